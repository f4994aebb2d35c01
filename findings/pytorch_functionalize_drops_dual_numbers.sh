#!/usr/bin/env bash
# PyTorch 2.13.0: torch.func.functionalize of a function that differentiates forward by
# torch.autograd.forward_ad is 0, without a word: by dual numbers, or by
# torch.autograd.functional.jacobian with strategy='forward-mode'. By torch.func.jvp it is right.
#
# Output seen:
#   torch 2.13.0
#   jvp: 12, functionalized 12
#   dual: 12, functionalized 0
#   jacobian: 12, functionalized 0
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
from torch.autograd import forward_ad
from torch.autograd.functional import jacobian
from torch.func import functionalize, jvp

warnings.simplefilter("ignore")
print("torch", torch.__version__.partition("+")[0])
one = torch.tensor(1.0, dtype=torch.float64)


def cube(x):
    return x**3


def dual(x):
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(cube(forward_ad.make_dual(x, one))).tangent
    return torch.zeros_like(x) if tangent is None else tangent


found = []
for name, slope in {
    "jvp": lambda x: jvp(cube, (x,), (one,))[1],
    "dual": dual,
    "jacobian": lambda x: jacobian(cube, x, vectorize=True, strategy="forward-mode"),
}.items():
    plain, functional = float(slope(2 * one)), float(functionalize(slope)(2 * one))
    print(f"{name}: {plain:g}, functionalized {functional:g}")
    found.append((plain, functional))
assert found == [(12, 12), (12, 0), (12, 0)]
PYTHON
