#!/usr/bin/env bash
# folx 0.2.30 with JAX 0.10.2: the forward Laplacian of a function that ends in floor is a plain array, without
# the attributes x, jacobian and laplacian that that of every other function has.
#
# Output seen:
#   folx 0.2.30
#   square: FwdLaplArray
#   floor: ArrayImpl
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
import jax.numpy as jnp

print("folx", version("folx"))
x = jnp.array([1.5, 2.5])
kinds = {}
for name, function in (("square", lambda v: jnp.sum(v**2)), ("floor", lambda v: jnp.sum(jnp.floor(v)))):
    found = folx.forward_laplacian(function)(x)
    kinds[name] = hasattr(found, "laplacian")
    print(f"{name}: {type(found).__name__}")
assert kinds == {"square": True, "floor": False}
PYTHON
