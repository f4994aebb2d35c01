#!/usr/bin/env bash
# JAX 0.10.2: the second derivative of the Bessel function i1 is 1 at 0. i1 is odd, so it is 0; at
# 0.001 JAX gives 0.000375, which is right.
#
# Output seen:
#   jax 0.10.2
#   0: 1
#   0.001: 0.000375
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check jax==0.10.2
"$folder/venv/bin/python" - <<'PYTHON'
import jax
from jax.scipy.special import i1

jax.config.update("jax_enable_x64", True)
print("jax", jax.__version__)
second = jax.grad(jax.grad(i1))
found = [float(second(x)) for x in (0.0, 0.001)]
for x, value in zip((0.0, 0.001), found):
    print(f"{x:g}: {value:.3g}")
assert found[0] == 1.0
assert abs(found[1] - 0.375 * 0.001) < 1e-9
PYTHON
