#!/usr/bin/env bash
# SymbAnaFis 0.8.1: the second derivative of digamma is written as tetragamma(x), whose value is wrong by 0.6 % at
# 1.2 and by 19 % at 10. The same function as polygamma(2, x) is right.
#
# Output seen:
#   symb-anafis 0.8.1
#   digamma'' is tetragamma(x)
#   1.2: -1.468952, polygamma(2, x) -1.478036, the series -1.478036
#   10: -0.008948, polygamma(2, x) -0.011050, the series -0.011050
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check symb-anafis==0.8.1 numpy==2.3.5
"$folder/venv/bin/python" - <<'PYTHON'
import symb_anafis as sa

print("symb-anafis", sa.__version__)
x = sa.symb("x").to_expr()
second = x.digamma().diff("x").diff("x")
print("digamma'' is", second)
# -2 * sum over k of (x + k)**-3, with the tail of Euler and Maclaurin
true = {v: -2 * (sum((v + k) ** -3 for k in range(1000)) + 0.5 * (v + 999.5) ** -2) for v in (1.2, 10.0)}
for value, wanted in true.items():
    both = [sa.CompiledEvaluator(f, ["x"]).evaluate([value]) for f in (second, x.polygamma(2))]
    print(f"{value:g}: {both[0]:.6f}, polygamma(2, x) {both[1]:.6f}, the series {wanted:.6f}")
    assert abs(both[1] / wanted - 1) < 1e-5
    assert abs(both[0] / wanted - 1) > 5e-3
PYTHON
