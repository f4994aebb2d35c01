#!/usr/bin/env bash
# PyTorch 2.13.0: at (2, 0), where x**y is smooth, its Hessian is not symmetric: the derivative by x
# and then by y is 0, the one by y and then by x is 1/2, which is right. At the exponent 1e-9 both
# are right. A second derivative of a(t)**b(t) where b is 0 loses a term.
#
# Output seen:
#   torch 2.13.0
#   (2, 0): [[0.0, 0.0], [0.5, 0.48045]]
#   (2, 1e-09): [[-0.0, 0.5], [0.5, 0.48045]]
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from torch.func import hessian

print("torch", torch.__version__.partition("+")[0])
found = {}
for exponent in (0.0, 1e-9):
    at = torch.tensor([2.0, exponent], dtype=torch.float64)
    rows = hessian(lambda v: v[0] ** v[1])(at).tolist()
    found[exponent] = [[round(entry, 5) for entry in row] for row in rows]
    print(f"(2, {exponent:g}): {found[exponent]}")
assert found[0.0][0][1] == 0.0 and found[0.0][1][0] == 0.5
assert found[1e-9][0][1] == found[1e-9][1][0] == 0.5
PYTHON
