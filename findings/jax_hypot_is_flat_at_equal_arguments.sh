#!/usr/bin/env bash
# JAX 0.10.2: the Hessian of jnp.hypot where the arguments are equal, or opposite, is 0, without a
# word; hypot is smooth there, and its second derivatives are +-0.35355, as they are beside it.
#
# Output seen:
#   jax 0.10.2
#   (1, 1): [[0.0, 0.0], [0.0, 0.0]]
#   (1, -1): [[0.0, 0.0], [0.0, 0.0]]
#   (1, 1.000000001): [[0.35355, -0.35355], [-0.35355, 0.35355]]
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check jax==0.10.2 numpy==2.4.6
JAX_ENABLE_X64=1 JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp

print("jax", jax.__version__)
found = []
for second in (1.0, -1.0, 1.000000001):
    rows = jax.hessian(lambda v: jnp.hypot(v[0], v[1]))(jnp.array([1.0, second])).tolist()
    found.append([[round(entry, 5) for entry in row] for row in rows])
    print(f"(1, {second:.10g}): {found[-1]}")
assert found[0] == found[1] == [[0.0, 0.0], [0.0, 0.0]]
assert found[2] == [[0.35355, -0.35355], [-0.35355, 0.35355]]
PYTHON
