#!/usr/bin/env bash
# PyTorch 2.13.0: torch.special.airy_ai and the Bessel functions bessel_j0, bessel_y0 and
# modified_bessel_k0 return tensors that need no gradient, so that the derivative of x*airy_ai(x)
# silently lacks the term x*Ai'(x). i0 and i1 have gradients.
#
# Output seen:
#   torch 2.13.0
#   airy_ai needs a gradient: False
#   derivative of x*airy_ai(x) at 1: 0.135292, Ai(1) + Ai'(1) is -0.023855
#   i0 needs a gradient: True
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 mpmath==1.3.0
"$folder/venv/bin/python" - <<'PYTHON'
import mpmath
import torch

print("torch", torch.__version__.partition("+")[0])
x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
needs = torch.special.airy_ai(x).requires_grad
print("airy_ai needs a gradient:", needs)
(found,) = torch.autograd.grad(x * torch.special.airy_ai(x), x)
truth = float(mpmath.airyai(1) + mpmath.airyai(1, derivative=1))
print(f"derivative of x*airy_ai(x) at 1: {found:.6f}, Ai(1) + Ai'(1) is {truth:.6f}")
print("i0 needs a gradient:", torch.special.i0(x).requires_grad)
assert not needs
assert abs(float(found) - float(mpmath.airyai(1))) < 1e-6
assert abs(truth - float(found)) > 0.1
PYTHON
