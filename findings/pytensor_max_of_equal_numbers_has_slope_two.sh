#!/usr/bin/env bash
# PyTensor 3.0.7: the derivative of max([x, x]) is 2, though the function is x: the maximum over an axis
# passes the whole derivative to every maximal element. pt.maximum(x, x) has slope 1.
#
# Output seen:
#   pytensor 3.0.7
#   max of [x, x]: 2.0
#   maximum(x, x): 1.0
#   max of [x, x, x]: 3.0
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check pytensor==3.0.7
"$folder/venv/bin/python" - <<'PYTHON'
import pytensor
import pytensor.tensor as pt

print("pytensor", pytensor.__version__)
x = pt.dscalar("x")


def slope(label, value):
    run = pytensor.function([x], pytensor.grad(value, x), mode="FAST_COMPILE")
    found = float(run(1.5))
    print(f"{label}: {found}")
    return found


assert slope("max of [x, x]", pt.max(pt.stack([x, x]))) == 2
assert slope("maximum(x, x)", pt.maximum(x, x)) == 1
assert slope("max of [x, x, x]", pt.max(pt.stack([x, x, x]))) == 3
PYTHON
