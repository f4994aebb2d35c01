#!/usr/bin/env bash
# JAX 0.10.2: jet of x**2.0 has nan for all derivatives at 0 and for negative x, as it is the exponential of a
# logarithm there; that of x**2 is right, and so is grad of x**2.0.
#
# Output seen:
#   jax 0.10.2
#   0.0: x**2.0 [nan, nan], x**2 [0.0, 1.9999999999999976], grad 0.0
#   -1.5: x**2.0 [nan, nan], x**2 [-3.0, 1.9999999999999976], grad -3.0
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check jax==0.10.2
"$folder/venv/bin/python" - <<'PYTHON'
import jax
from jax.experimental.jet import jet

jax.config.update("jax_enable_x64", True)
print("jax", jax.__version__)
for x in (0.0, -1.5):
    real = jet(lambda t: t**2.0, (x,), ((1.0, 0.0),))
    whole = jet(lambda t: t**2, (x,), ((1.0, 0.0),))
    slope = float(jax.grad(lambda t: t**2.0)(x))
    print(f"{x}: x**2.0 {[float(v) for v in real[1]]}, x**2 {[float(v) for v in whole[1]]}, grad {slope}")
    assert all(v != v for v in map(float, real[1]))
    assert all(abs(float(v) - wanted) < 1e-12 for v, wanted in zip(whole[1], (2 * x, 2.0)))
    assert slope == 2 * x
PYTHON
