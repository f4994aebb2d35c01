#!/usr/bin/env bash
# folx 0.2.30: the slope of det([[x, 1], [1, 1]]) at 1 is nan, where the determinant is 0. It is 1, as JAX 0.10.2,
# on which folx builds, has it.
#
# Output seen:
#   folx 0.2.30
#   1: folx nan, JAX 1
#   2: folx 1, JAX 1
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check folx==0.2.30 jax==0.10.2
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import folx
import jax
import jax.numpy as jnp

print("folx", version("folx"))


def determinant(x):
    return jnp.linalg.det(jnp.array([[x[0], 1.0], [1.0, 1.0]]))


for value in (1.0, 2.0):
    at = jnp.array([value])
    folded = float(folx.forward_laplacian(determinant)(at).jacobian.dense_array[0])
    slope = float(jax.jacfwd(determinant)(at)[0])
    print(f"{value:g}: folx {folded:g}, JAX {slope:g}")
    assert abs(slope - 1) < 1e-5
    assert (folded != folded) == (value == 1.0)
PYTHON
