#!/usr/bin/env bash
# JAX 0.10.2: bessel_jn(0, v=0) is nan, where J0 is 1. At 100 its default of 50 iterations gives
# -1.46, where J0 is 0.01999; no Bessel function exceeds 1. At 10 it is right.
#
# Output seen:
#   jax 0.10.2
#   0: nan
#   10: -0.245936
#   100: -1.45856
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check jax==0.10.2
"$folder/venv/bin/python" - <<'PYTHON'
import jax
from jax.scipy.special import bessel_jn

jax.config.update("jax_enable_x64", True)
print("jax", jax.__version__)


def j0(x):
    value = float(bessel_jn(jax.numpy.float64(x), v=0)[0])
    print(f"{x:g}: {value:g}")
    return value


zero = j0(0.0)
assert zero != zero
assert abs(j0(10.0) + 0.24593576445134832) < 1e-12
assert abs(j0(100.0)) > 1
PYTHON
