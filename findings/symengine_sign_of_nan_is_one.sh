#!/usr/bin/env bash
# SymEngine 0.15.0: compiled by Lambdify, sign(nan) is 1 (and that of SymForce 0.12.0 too, which brings
# its own copy). NumPy's is nan.
#
# Output seen:
#   symengine 0.15.0
#   sign(nan): 1.0
#   sign(-2), sign(0), sign(3): [-1.0, 0.0, 1.0]
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check symengine==0.15.0 numpy==2.3.5
"$folder/venv/bin/python" - <<'PYTHON'
import symengine

print("symengine", symengine.__version__)
x = symengine.Symbol("x")
sign = symengine.Lambdify([x], [symengine.sign(x)])
found = float(sign([float("nan")])[0])
print(f"sign(nan): {found}")
others = [float(sign([value])[0]) for value in (-2.0, 0.0, 3.0)]
print(f"sign(-2), sign(0), sign(3): {others}")
assert found == 1.0
assert others == [-1.0, 0.0, 1.0]
PYTHON
