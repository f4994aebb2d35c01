#!/usr/bin/env bash
# autograd 1.9.1: at (0, 1) the Hessian of x**y is [[0, 1], [0, 0]]: the derivative by x and then y is
# not the one by y and then x. At (2, 3) it is symmetric.
#
# Output seen:
#   autograd 1.9.1
#   (0, 1): [[0.0, 1.0], [0.0, 0.0]]
#   (2, 3): symmetric
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check autograd==1.9.1 numpy==2.3.5
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import autograd
import autograd.numpy as np

print("autograd", version("autograd"))
hessian = autograd.hessian(lambda v: v[0] ** v[1])
found = hessian(np.array([0.0, 1.0]))
print(f"(0, 1): {found.tolist()}")
smooth = hessian(np.array([2.0, 3.0]))
print("(2, 3):", "symmetric" if np.allclose(smooth, smooth.T) else "not symmetric")
assert found.tolist() == [[0, 1], [0, 0]]
assert np.allclose(smooth, smooth.T)
PYTHON
