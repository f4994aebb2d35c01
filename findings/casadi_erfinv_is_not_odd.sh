#!/usr/bin/env bash
# CasADi 3.8.2: erfinv(-x) is not -erfinv(x). At 0.99999 the value is right to 2e-13 relative, at
# -0.99999 only to 1.7e-6; at 0.8 to an ulp, at -0.8 to 6e-8; on both sides of zero it is 2e-6 off at
# 0.69 and right at 0.3. The truth is from mpmath at 40 digits.
#
# Output seen:
#   0.3 right -0.3 right
#   0.69 2.0e-06 -0.69 2.0e-06
#   0.8 right -0.8 5.7e-08
#   0.99999 1.6e-13 -0.99999 1.7e-06
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check casadi==3.8.2 mpmath==1.3.0
"$folder/venv/bin/python" - <<'PYTHON'
import casadi
import mpmath

mpmath.mp.dps = 40


def error(x):
    truth = mpmath.erfinv(mpmath.mpf(x))
    return float(abs(mpmath.mpf(float(casadi.erfinv(x))) / truth - 1))


def shown(x):
    return f"{x} {'right' if error(x) < 1e-15 else format(error(x), '.1e')}"


print("casadi", casadi.__version__)
for x in (0.3, 0.69, 0.8, 0.99999):
    print(shown(x), shown(-x))
assert error(0.3) < 1e-15 and error(-0.3) < 1e-15
assert 1e-6 < error(0.69) < 1e-5
assert error(0.8) < 1e-15 and 1e-8 < error(-0.8) < 1e-6
assert error(0.99999) < 1e-11 and 1e-7 < error(-0.99999) < 1e-5
PYTHON
