#!/usr/bin/env bash
# ONNX Runtime 1.32.0: the product of a transposed matrix and a vector is that of another matrix,
# the same numbers in memory reshaped: for A = [[1, 2, 3], [4, 5, 6]] and u = (1, 10), A' u is (41,
# 52, 63), and the runtime gives (21, 43, 65). With the vector as a matrix of one column, or without
# optimisations, it is right.
#
# Output seen:
#   onnxruntime 1.32.0
#   Transpose(A) @ u: [21.0, 43.0, 65.0]
#   Transpose(A) @ u as a column: [41.0, 52.0, 63.0]
#   without optimisations: [41.0, 52.0, 63.0]
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


def run(steps, optimised=True, **inputs):
    described = [
        helper.make_tensor_value_info(name, KINDS[x.dtype.name], x.shape)
        for name, x in inputs.items()
    ]
    result = helper.make_tensor_value_info("y", described[0].type.tensor_type.elem_type, None)
    nodes = [helper.make_node(kind, names, [out], **more) for kind, names, out, more in steps]
    graph = helper.make_graph(nodes, "f", described, [result])
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(["y"], inputs)[0]


A, u = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([1.0, 10.0])
steps = [("Transpose", ["A"], "B", {}), ("MatMul", ["B", "u"], "y", {})]
found = run(steps, A=A, u=u)
column = run(steps, A=A, u=u[:, None])[:, 0]
plain = run(steps, optimised=False, A=A, u=u)
print("Transpose(A) @ u:", found.tolist())
print("Transpose(A) @ u as a column:", column.tolist())
print("without optimisations:", plain.tolist())
assert found.tolist() == (A.reshape(3, 2) @ u).tolist() == [21, 43, 65]
assert column.tolist() == plain.tolist() == (A.T @ u).tolist() == [41, 52, 63]
PYTHON
