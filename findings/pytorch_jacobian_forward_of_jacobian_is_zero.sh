#!/usr/bin/env bash
# PyTorch 2.13.0: torch.autograd.functional.jacobian with strategy='forward-mode' of another
# jacobian, which has create_graph=True, is 0, without a word; with the reverse strategy it is
# right, and so is torch.func.jacfwd of the same inner jacobian's function.
#
# Output seen:
#   torch 2.13.0
#   reverse of jacobian: 18
#   reverse of jacobian, vectorized: 18
#   forward of jacobian: 0
#   jacfwd of jacrev: 18
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from torch.autograd.functional import jacobian
from torch.func import jacfwd, jacrev

print("torch", torch.__version__.partition("+")[0])
x = torch.tensor(3.0, dtype=torch.float64)


def cube(x):
    return x**3


def slope(x):
    return jacobian(cube, x, create_graph=True)


found = {
    "reverse of jacobian": jacobian(slope, x),
    "reverse of jacobian, vectorized": jacobian(slope, x, vectorize=True),
    "forward of jacobian": jacobian(slope, x, vectorize=True, strategy="forward-mode"),
    "jacfwd of jacrev": jacfwd(jacrev(cube))(x),
}
for name, value in found.items():
    print(f"{name}: {float(value):g}")
assert [float(value) for value in found.values()] == [18, 18, 0, 18]
PYTHON
