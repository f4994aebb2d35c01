#!/usr/bin/env bash
# Warp 1.19.0 on the processor: the slope of clamp(x, 0, 1) is 1 at the lower bound and 0 at the upper one, and that
# of frac is 0 everywhere, though frac(x) is x less a constant.
#
# Output seen:
#   warp 1.19.0
#   clamp at 0, 0.5, 1: [1.0, 1.0, 0.0]
#   frac at 0, 0.5, 1: [0.0, 0.0, 0.0]
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check warp-lang==1.19.0 numpy==2.3.5
"$folder/venv/bin/python" - <<'PYTHON'
import pathlib
import runpy
import sys
import tempfile

# Warp reads the source of its kernels, which standard input does not have.
code = '''
import sys

import numpy as np
import warp as wp

wp.config.quiet = True
wp.config.kernel_cache_dir = sys.prefix
print("warp", wp.__version__)


@wp.kernel
def pieces(x: wp.array(dtype=wp.float64), held: wp.array(dtype=wp.float64), rest: wp.array(dtype=wp.float64)):
    i = wp.tid()
    held[i] = wp.clamp(x[i], wp.float64(0.0), wp.float64(1.0))
    rest[i] = wp.frac(x[i])


def array(values):
    return wp.array(values, dtype=wp.float64, requires_grad=True, device="cpu")


slopes = []
for chosen in (0, 1):
    x, results = array([0.0, 0.5, 1.0]), [array(np.zeros(3)), array(np.zeros(3))]
    with wp.Tape() as tape:
        wp.launch(pieces, 3, inputs=[x], outputs=results, device="cpu")
    tape.backward(grads={results[chosen]: array(np.ones(3))})
    slopes.append(x.grad.numpy().tolist())
print("clamp at 0, 0.5, 1:", slopes[0])
print("frac at 0, 0.5, 1:", slopes[1])
assert slopes == [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
'''
script = pathlib.Path(tempfile.mkdtemp(dir=pathlib.Path(sys.prefix))) / "kernels.py"
script.write_text(code, encoding="utf-8")
runpy.run_path(str(script))
PYTHON
