#!/usr/bin/env bash
# ONNX Runtime 1.32.0: ReduceMax is nan if the first element is, and drops a nan elsewhere; MaxPool
# of the same three numbers keeps a first nan in float64 and drops it in float32. Max of two arrays
# keeps every nan.
#
# Output seen:
#   onnxruntime 1.32.0
#   float64 [nan, 1, 2]: ReduceMax nan, MaxPool nan
#   float64 [1, nan, 2]: ReduceMax 2, MaxPool 2
#   float64 [1, 2, nan]: ReduceMax 2, MaxPool 2
#   float32 [nan, 1, 2]: ReduceMax nan, MaxPool 2
#   float32 [1, nan, 2]: ReduceMax 2, MaxPool 2
#   float32 [1, 2, nan]: ReduceMax 2, MaxPool 2
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


nan = float("nan")
pooled, reduced = {}, []
for dtype in ("float64", "float32"):
    for vector in ([nan, 1, 2], [1, nan, 2], [1, 2, nan]):
        x = np.array(vector, dtype)
        most = float(run([("ReduceMax", ["x"], "y", {"keepdims": 0})], x=x))
        pool = float(run([("MaxPool", ["x"], "y", {"kernel_shape": [3]})], x=x[None, None]).item())
        print(f"{dtype} {vector}: ReduceMax {most:g}, MaxPool {pool:g}")
        reduced.append(most)
        pooled.setdefault(dtype, []).append(pool)
assert [np.isnan(most) for most in reduced] == [True, False, False] * 2
assert [np.isnan(pool) for pool in pooled["float64"]] == [True, False, False]
assert not np.isnan(pooled["float32"]).any()
PYTHON
