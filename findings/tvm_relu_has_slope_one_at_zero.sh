#!/usr/bin/env bash
# TVM 0.27.0.post1: Relax's pass Gradient gives relu the slope 1 at 0; PyTorch, JAX and TensorFlow have 0.
#
# Output seen:
#   tvm 0.27.0.post1
#   slopes of relu at -1, 0, 1: [0.0, 1.0, 1.0]
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check apache-tvm==0.27.0.post1 numpy==2.3.5
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import tvm
from tvm import relax
from tvm.script import relax as R

print("tvm", tvm.__version__)
x, builder = relax.Var("x", R.Tensor((3,), "float64")), relax.BlockBuilder()
with builder.function("main", [x]):
    with builder.dataflow():
        loss = builder.emit_output(relax.op.sum(relax.op.nn.relu(x)))
    builder.emit_func_output(loss)
module = relax.transform.Gradient("main")(builder.get())
machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
_, (slope,) = machine["main_adjoint"](tvm.runtime.tensor(np.array([-1.0, 0.0, 1.0])))
print("slopes of relu at -1, 0, 1:", slope.numpy().tolist())
assert slope.numpy().tolist() == [0.0, 1.0, 1.0]
PYTHON
