#!/usr/bin/env bash
# JAX 0.10.2: jnp.hypot(3e200, 4e200) is 5e200, without overflow, but its derivative by the second
# argument is 1.25 instead of 0.8. At (3e-200, 4e-200) the gradient is (nan, -inf) instead of
# (0.6, 0.8), which it is at (3, 4).
#
# Output seen:
#   jax 0.10.2
#   (3, 4): 5 0.6 0.8
#   (3e+200, 4e+200): 5e+200 0.6 1.25
#   (3e-200, 4e-200): 5e-200 nan -inf
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check jax==0.10.2
"$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
print("jax", jax.__version__)


def gradient(x, y):
    value, slopes = jax.value_and_grad(jnp.hypot, (0, 1))(x, y)
    print(f"({x:g}, {y:g}): {value:g} {slopes[0]:g} {slopes[1]:g}")
    return [float(slope) for slope in slopes]


assert abs(gradient(3.0, 4.0)[1] - 0.8) < 1e-15
assert abs(gradient(3e200, 4e200)[1] - 1.25) < 1e-15
small = gradient(3e-200, 4e-200)
assert small[0] != small[0] and small[1] == float("-inf")
PYTHON
