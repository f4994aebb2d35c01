#!/usr/bin/env bash
# PyTorch 2.13.0: torch.special.bessel_j0, bessel_j1, bessel_y0 and bessel_y1 of float64 tensors have
# 6 to 9 digits for arguments between 4 and 10, where neither their zeros nor large arguments are an
# excuse; at 1 and from 25 on they have 15. i0, i1, modified_bessel_k0 and modified_bessel_k1 have 15
# throughout.
#
# Output seen:
#   torch 2.13.0
#   bessel_j0: error 5.7e-17 at 1, 3.7e-07 at 5.01, 4.1e-16 at 25
#   bessel_j1: error 3.7e-17 at 1, 4.5e-07 at 5.01, 5.9e-16 at 25
#   bessel_y0: error 1.2e-17 at 1, 2.0e-07 at 5.01, 3.4e-16 at 25
#   bessel_y1: error 7.9e-17 at 1, 8.5e-07 at 5.01, 8.1e-16 at 25
#   relative error of modified_bessel_k0 at 5.01: 1.4e-16
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

mpmath.mp.dps = 30
print("torch", torch.__version__.partition("+")[0])
truths = {
    "bessel_j0": lambda x: mpmath.besselj(0, x),
    "bessel_j1": lambda x: mpmath.besselj(1, x),
    "bessel_y0": lambda x: mpmath.bessely(0, x),
    "bessel_y1": lambda x: mpmath.bessely(1, x),
}


def value(name, x):
    return float(getattr(torch.special, name)(torch.tensor(x, dtype=torch.float64)))


for name, truth in truths.items():
    one, five, far = (float(abs(value(name, x) - truth(x))) for x in (1.0, 5.01, 25.0))
    print(f"{name}: error {one:.1e} at 1, {five:.1e} at 5.01, {far:.1e} at 25")
    assert one < 1e-15 and far < 2e-15
    assert 1e-7 < five < 1e-6
truth = mpmath.besselk(0, 5.01)
error = float(abs(value("modified_bessel_k0", 5.01) - truth) / truth)
print(f"relative error of modified_bessel_k0 at 5.01: {error:.1e}")
assert error < 1e-14
PYTHON
