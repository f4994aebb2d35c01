"""Random programs on arrays, written as models of ONNX, read back, and run by onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np

import difflab as dl
from difflab.core.optional import load
from difflab.errors import UnsupportedError
from tests.differential.array_programs import CHOSEN
from tests.differential.arrays import Program, listed, programs
from tests.differential.judging import FORMULAS, agree, noise
from tests.differential.search import Family

ONNX, RUNTIME = load("onnx").module, load("onnxruntime").module
MOST = 300
"""Operations of a program: each is one or more of the model's."""


def run(model: Any, inputs: list[Any]) -> list[Any] | None:
    """Return what onnxruntime computes; None if it lacks an operator in 64 bits, such as Det."""
    settings = RUNTIME.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.log_severity_level = 3  # it warns of axes without elements
    lacking = RUNTIME.capi.onnxruntime_pybind11_state.NotImplemented
    try:
        session = RUNTIME.InferenceSession(model.SerializeToString(), settings)
    except lacking:
        return None
    names = [entry.name for entry in session.get_inputs()]
    return list(session.run(None, dict(zip(names, map(np.asarray, inputs), strict=True))))


def check(program: Program) -> None:
    """Hold the model, and the function that is read back, to the function."""
    asked = program.asked
    chosen = program.points == "wild" and any(step.name in CHOSEN for step in program.steps)
    if ONNX is None or len(asked.graph) > MOST or chosen:
        return
    try:
        model = dl.to_onnx(asked)
    except UnsupportedError:
        return
    inputs = program.point(0)
    wanted = listed(asked(*inputs))
    with np.errstate(all="ignore"):
        moves = lambda n: noise(asked, inputs, wanted, n)  # noqa: E731
        agree(listed(dl.from_onnx(model)(*inputs)), wanted, moves, "read back")
        if RUNTIME is not None and program.points != "wild":  # its softmax has no limits there
            found = run(model, inputs)
            if found is not None:
                agree(found, wanted, moves, "onnxruntime", FORMULAS)


FAMILY = Family("onnx_models", programs(), check, fixed=300, fresh=60)
