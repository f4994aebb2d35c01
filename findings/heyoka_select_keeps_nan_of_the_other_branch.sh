#!/usr/bin/env bash
# heyoka 7.13.2: the derivative of select(x > 0, sqrt(x), 0) is select(x > 0, 1, 0) times that of sqrt(x), and
# so nan at -1, where the branch is not taken and the value is 0.
#
# Output seen:
#   heyoka 7.13.2
#   (select((x > 0.0000000000000000), 1.0000000000000000, 0.0000000000000000) * (0.50000000000000000 / x**0.50000000000000000))
#   at -1: 0.0, derivative nan
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check heyoka==7.13.2
"$folder/venv/bin/python" - <<'PYTHON'
import heyoka as hy

print("heyoka", hy.__version__)
x = hy.make_vars("x")
chosen = hy.select(hy.gt(x, 0.0), hy.sqrt(x), hy.expression(0.0))
slope = hy.diff(chosen, x)
print(slope)
value, found = hy.cfunc([chosen, slope], [x])([-1.0])
print(f"at -1: {value}, derivative {found}")
assert value == 0.0
assert found != found
PYTHON
