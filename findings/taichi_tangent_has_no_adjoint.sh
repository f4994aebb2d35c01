#!/usr/bin/env bash
# Taichi 1.7.4: a kernel with ti.tan compiles and computes, and its adjoint is an error, "Not supported". sin(x)/cos(x)
# is differentiated.
#
# Output seen:
#   value 0.546302, slope 1.298446
#   value 0.546302, RuntimeError: ['Not', 'supported.']
#
# Needs Python 3.11 to 3.13 and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check taichi==1.7.4 numpy==2.3.5
"$folder/venv/bin/python" - <<'PYTHON'
import pathlib
import runpy
import sys
import tempfile

code = '''
import taichi as ti

ti.init(arch=ti.cpu, default_fp=ti.f64, offline_cache=False, log_level=ti.CRITICAL)
x, y = (ti.field(ti.f64, (), needs_grad=True) for _ in range(2))


@ti.kernel
def tangent():
    y[None] = ti.tan(x[None])


@ti.kernel
def quotient():
    y[None] = ti.sin(x[None]) / ti.cos(x[None])


x[None] = 0.5
for kernel in (quotient, tangent):
    x.grad[None], y.grad[None] = 0.0, 1.0
    kernel()
    try:
        kernel.grad()
        print(f"value {y[None]:.6f}, slope {x.grad[None]:.6f}")
        assert kernel is quotient and abs(x.grad[None] - 1.2984464) < 1e-6
    except RuntimeError as error:
        print(f"value {y[None]:.6f}, RuntimeError: {str(error).split()[-2:]}")
        assert kernel is tangent and "Not supported" in str(error)
'''
# Taichi reads the source of its kernels, which standard input does not have.
script = pathlib.Path(tempfile.mkdtemp(dir=pathlib.Path(sys.prefix))) / "kernels.py"
script.write_text(code, encoding="utf-8")
runpy.run_path(str(script))
PYTHON
