#!/usr/bin/env bash
# Warp 1.19.0 on the processor: a loop that squares a number as often as an array says computes the right value, and
# its adjoint, silently, about twice the slope: the variable of a loop of unknown length is not kept for each turn.
# With a constant number of turns the loop is unrolled, and its slope is right.
#
# Output seen:
#   warp 1.19.0
#   varying x**8 at 1.1: 2.143589, slope 30.379987, of 8*x**7 15.589737
#   constant x**8 at 1.1: 2.143589, slope 15.589737, of 8*x**7 15.589737
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

code = '''
import sys

import warp as wp

wp.config.quiet = True
wp.config.kernel_cache_dir = sys.prefix
print("warp", wp.__version__)


@wp.kernel
def varying(x: wp.array(dtype=wp.float64), times: wp.array(dtype=int), y: wp.array(dtype=wp.float64)):
    power = x[0]
    for _ in range(times[0]):
        power = power * power
    y[0] = power


@wp.kernel
def constant(x: wp.array(dtype=wp.float64), times: wp.array(dtype=int), y: wp.array(dtype=wp.float64)):
    power = x[0]
    for _ in range(3):
        power = power * power
    y[0] = power


def array(value):
    return wp.array([value], dtype=wp.float64, requires_grad=True, device="cpu")


found, times = {}, wp.array([3], dtype=int, device="cpu")
for kernel in (varying, constant):
    x, y = array(1.1), array(0.0)
    with wp.Tape() as tape:
        wp.launch(kernel, 1, inputs=[x, times], outputs=[y], device="cpu")
    tape.backward(grads={y: array(1.0)})
    found[kernel.key] = float(y.numpy()[0]), float(x.grad.numpy()[0])
    print(kernel.key, "x**8 at 1.1: %.6f, slope %.6f, of 8*x**7 %.6f" % (*found[kernel.key], 8 * 1.1**7))
assert all(abs(value - 1.1**8) < 1e-12 for value, _ in found.values())
assert abs(found["constant"][1] / (8 * 1.1**7) - 1) < 1e-12
assert found["varying"][1] / (8 * 1.1**7) > 1.9
'''
# Warp reads the source of its kernels, which standard input does not have.
script = pathlib.Path(tempfile.mkdtemp(dir=pathlib.Path(sys.prefix))) / "kernels.py"
script.write_text(code, encoding="utf-8")
runpy.run_path(str(script))
PYTHON
