#!/usr/bin/env bash
# ONNX Runtime 1.32.0: Softplus of float64 is infinite at 800 and 0 at -40, where that of float32 is
# right: 800 and 4.2e-18. With Sigmoid it is the other way round at -20: 0 in float32 and 2.06e-9 in
# float64.
#
# Output seen:
#   onnxruntime 1.32.0
#   float64: Softplus(-40, 800) = 0, inf; Sigmoid(-20) = 2.06115e-09
#   float32: Softplus(-40, 800) = 4.24835e-18, 800; Sigmoid(-20) = 0
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

print("onnxruntime", onnxruntime.__version__)
KINDS = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT}


def run(steps, **inputs):
    described = [
        helper.make_tensor_value_info(name, KINDS[x.dtype.name], x.shape)
        for name, x in inputs.items()
    ]
    result = helper.make_tensor_value_info("y", described[0].type.tensor_type.elem_type, None)
    nodes = [helper.make_node(kind, names, [out], **more) for kind, names, out, more in steps]
    graph = helper.make_graph(nodes, "f", described, [result])
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(["y"], inputs)[0]


found = {}
for dtype in ("float64", "float32"):
    low, high = run([("Softplus", ["x"], "y", {})], x=np.array([-40, 800], dtype))
    (small,) = run([("Sigmoid", ["x"], "y", {})], x=np.array([-20], dtype))
    found[dtype] = float(low), float(high), float(small)
    print(f"{dtype}: Softplus(-40, 800) = {low:g}, {high:g}; Sigmoid(-20) = {small:g}")
low, high, small = found["float64"]
assert low == 0 and high == np.inf and abs(small / 2.061153620314381e-9 - 1) < 1e-6
low, high, small = found["float32"]
assert abs(low / 4.248354255291589e-18 - 1) < 1e-6 and high == 800 and small == 0
PYTHON
