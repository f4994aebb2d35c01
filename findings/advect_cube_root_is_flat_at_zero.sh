#!/usr/bin/env bash
# advect 0.3.1: the slope of numpy.cbrt at 0 is 0, and infinite at numbers near it; that of numpy.sqrt at 0 is inf.
#
# Output seen:
#   advect 0.3.1
#   at 0: {'cbrt': 0.0, 'sqrt': inf}; cbrt at 1e-30: 3.33e+19
#
# Needs Python 3.12 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check advect==0.3.1 numpy==2.4.1
"$folder/venv/bin/python" - <<'PYTHON'
import advect as ad
import numpy as np

print("advect", ad.__version__)
with np.errstate(all="ignore"):
    slopes = {f.__name__: float(ad.grad(f)(0.0)) for f in (np.cbrt, np.sqrt)}
near = float(ad.grad(np.cbrt)(1e-30))
print(f"at 0: {slopes}; cbrt at 1e-30: {near:.3g}")
assert slopes == {"cbrt": 0.0, "sqrt": float("inf")}
assert abs(near / (1e20 / 3) - 1) < 1e-9
PYTHON
