#!/usr/bin/env bash
# PyTorch 2.13.0: the tangent of logsumexp by dual numbers is computed by changing a saved value in
# place, so that differentiating it backwards is refused, with the reason. Inside of
# torch.autograd.graph.saved_tensors_hooks, whatever they do, and inside of
# torch.utils.checkpoint.checkpoint, which is made of them, it is not refused: the second
# derivatives are two thirds of the true ones (of three equal elements), without a word.
#
# Output seen:
#   torch 2.13.0
#   hessian: 0.2222 -0.1111 -0.1111
#   plain: refused, modified by an inplace operation
#   hooks: 0.1481 -0.0741 -0.0741
#   checkpoint: 0.1481 -0.0741 -0.0741
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from torch.autograd import forward_ad
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

torch.set_default_dtype(torch.float64)
print("torch", torch.__version__.partition("+")[0])
first = torch.tensor([1.0, 0.0, 0.0])


def softmax_of_first(v):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(torch.logsumexp(forward_ad.make_dual(v, first), 0)).tangent


def row(slope):
    v = torch.zeros(3, requires_grad=True)
    return torch.autograd.grad(slope(v), v)[0]


found = {"hessian": torch.func.hessian(lambda v: torch.logsumexp(v, 0))(torch.zeros(3))[0]}
try:
    row(softmax_of_first)
except RuntimeError as error:
    assert "modified by an inplace operation" in str(error)
    refused = True
else:
    refused = False
with saved_tensors_hooks(lambda value: value, lambda value: value):
    found["hooks"] = row(softmax_of_first)
found["checkpoint"] = row(lambda v: checkpoint(softmax_of_first, v, use_reentrant=False))
texts = {name: " ".join(f"{x:.4f}" for x in value.tolist()) for name, value in found.items()}
print("hessian:", texts["hessian"])
print("plain:", "refused, modified by an inplace operation" if refused else "not refused")
for name in ("hooks", "checkpoint"):
    print(f"{name}: {texts[name]}")
assert refused
assert texts["hessian"] == "0.2222 -0.1111 -0.1111"
assert texts["hooks"] == texts["checkpoint"] == "0.1481 -0.0741 -0.0741"
PYTHON
