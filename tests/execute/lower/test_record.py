"""The recorder of kernels, which every target reads its operations from."""

from __future__ import annotations

import math

import numpy as np
import pytest

import difflab as dl
from difflab.execute.lower.ops import BOOL, OpForm
from difflab.execute.lower.plan import planned
from difflab.execute.lower.record import Recorder, Unrecordable, as_ufuncs, kernel_form
from difflab.execute.lower.schedule import ScalarProgram, Schedule
from difflab.execute.targets.llvm.arrays.expansion import instructions
from difflab.execute.targets.llvm.functions import SPELLINGS
from difflab.primitives import multiply, power, where


def test_an_operation_on_the_same_operands_is_recorded_once() -> None:
    recorder = Recorder([(), ()])
    x, y = recorder.inputs
    np.sin(x * y) + np.sin(x * y) * np.sin(y * x)
    names = [op.name for op in recorder.program.ops]
    assert names == ["multiply", "sin", "multiply", "sin", "multiply", "add"]


def test_constants_are_equal_if_their_bits_are() -> None:
    recorder = Recorder([])
    values = [0.0, -0.0, 1.0, 1, True, math.nan, np.float64(1.0), np.ones(1), np.nan, False]
    numbers = [recorder.constant(value) for value in values]
    assert numbers == [0, 1, 2, 2, 3, 4, 2, 5, 4, 6]
    assert recorder.program.truths == {3, 6}


def test_a_form_knows_its_constants_by_their_bits() -> None:
    forms = [kernel_form(multiply, ("number", text)) for text in ("0.0", "-0.0", "True", "1.0")]
    known = [next(iter(form.known.values())).item() for form in forms if form is not None]
    assert list(map(repr, known)) == ["0.0", "-0.0", "True", "1.0"]


def test_kernels_that_look_at_values_are_not_recorded() -> None:
    recorder = Recorder([()])
    for look in (bool, np.asarray, np.sum, lambda x: x.reshape(1), lambda x: x @ x):
        with pytest.raises(Unrecordable):
            look(recorder.inputs[0])
    assert kernel_form(power, ("number",)) is None


def test_all_targets_read_the_same_selection() -> None:
    f = dl.trace(lambda x: np.where(x > 0.5, np.sin(x), 2.0), 0.0)
    program = ScalarProgram.of(f)
    form = kernel_form(where, ("truth", "number", "2.0"))
    assert form is not None
    assert [op.form for op in form.ops] == [OpForm.SELECT]
    names = ["greater", "sin", "where"]
    assert [op.name for op in as_ufuncs(program, SPELLINGS).ops] == names
    assert [op.name for op in planned(program).program.ops] == names
    assert [step.name for step in instructions(Schedule.of(f)).code] == names
    assert [op.dtype == BOOL for op in planned(program).program.ops] == [True, False, False]
