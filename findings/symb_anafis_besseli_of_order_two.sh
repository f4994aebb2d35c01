#!/usr/bin/env bash
# SymbAnaFis 0.8.1: modified Bessel functions of higher orders are wrong. I2(1.5) is 30 % too small and K1(1.5) more
# than three times too large; I0, I1 and K0 are right to seven digits.
#
# Output seen:
#   symb-anafis 0.8.1
#   I0(1.5): 1.646723, by SciPy 1.646723
#   I1(1.5): 0.981666, by SciPy 0.981666
#   I2(1.5): 0.236489, by SciPy 0.337835
#   K0(1.5): 0.213806, by SciPy 0.213806
#   K1(1.5): 0.957827, by SciPy 0.277388
#   K2(1.5): 1.490908, by SciPy 0.583656
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check symb-anafis==0.8.1 numpy==2.3.5 scipy==1.17.0
"$folder/venv/bin/python" - <<'PYTHON'
import symb_anafis as sa
from scipy import special

print("symb-anafis", sa.__version__)
x = sa.symb("x").to_expr()
off = {}
for name, mine, true in (("I", x.besseli, special.iv), ("K", x.besselk, special.kv)):
    for order in range(3):
        value = sa.CompiledEvaluator(mine(order), ["x"]).evaluate([1.5])
        off[name, order] = abs(value / true(order, 1.5) - 1)
        print(f"{name}{order}(1.5): {value:.6f}, by SciPy {true(order, 1.5):.6f}")
assert max(off["I", 0], off["I", 1], off["K", 0]) < 1e-6
assert off["I", 2] > 0.25
assert min(off["K", 1], off["K", 2]) > 1
PYTHON
