#!/usr/bin/env bash
# TensorFlow Probability 0.25.0 on JAX 0.6.2: the second derivative of tfp.math.lambertw at 0 is nan,
# where W(x) = x - x^2 + 3 x^3 / 2 - ... has -2; the value 0 and the slope 1 are right, and so is the
# second derivative at 1e-8. The rule of the slope avoids the division 0/0 by a choice of which the
# derivative does not know.
#
# Output seen:
#   tensorflow-probability 0.25.0, jax 0.6.2
#   at 0: value 0, slope 1, second derivative nan
#   at 1e-08: value 1e-08, slope 1, second derivative -2
#
# Needs Python 3.11 or 3.12 and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check \
    tensorflow-probability==0.25.0 jax==0.6.2 jaxlib==0.6.2
JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 "$folder/venv/bin/python" - <<'PYTHON'
import math

import jax
import jax.numpy as jnp
import tensorflow_probability.substrates.jax as tfp

print(f"tensorflow-probability {tfp.__version__}, jax {jax.__version__}")
slope = jax.grad(tfp.math.lambertw)
bend = jax.grad(slope)
for x in (0.0, 1e-8):
    value, first, second = (float(f(jnp.float64(x))) for f in (tfp.math.lambertw, slope, bend))
    print(f"at {x:g}: value {value:.3g}, slope {first:.3g}, second derivative {second:.3g}")
    assert abs(value - x) < 1e-15 and abs(first - 1) < 1e-7
    assert math.isnan(second) if x == 0 else abs(second + 2) < 1e-6
PYTHON
