#!/usr/bin/env bash
# PyTorch 2.13.0: torch.func.linearize(f, x)[1](v) is right, and its derivative by x is lost without
# a word: torch.func.grad of the slope of x**3 at 2 returns some other number, often 0, instead of
# 12, and torch.autograd.grad of x times the slope lacks a term. Through
# torch.func.jvp both are right.
#
# Output seen:
#   torch 2.13.0
#   jvp: grad of the slope is 12: True, autograd.grad of x times the slope 36
#   linearize: grad of the slope is 12: False, autograd.grad of x times the slope 12
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import warnings

import torch
from torch.func import grad, jvp, linearize

warnings.simplefilter("ignore")
print("torch", torch.__version__.partition("+")[0])
one = torch.tensor(1.0, dtype=torch.float64)
x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
SLOPES = {
    "jvp": lambda x: jvp(lambda x: x**3, (x,), (one,))[1],
    "linearize": lambda x: linearize(lambda x: x**3, x)[1](one),
}
found = {}
for name, slope in SLOPES.items():
    assert float(slope(x.detach())) == 12  # 3 x**2
    curved = float(grad(slope)(x.detach()))  # 6 x
    (product,) = torch.autograd.grad(x * slope(x), x)  # of 3 x**3: 9 x**2
    found[name] = abs(curved - 12) < 1e-9, float(product)
    print(
        f"{name}: grad of the slope is 12: {found[name][0]}, "
        f"autograd.grad of x times the slope {product:g}"
    )
assert found == {"jvp": (True, 36.0), "linearize": (False, 12.0)}
PYTHON
