"""ADBench's LSTM: the suite's definition, number by number, and complex steps through it."""

import numpy as np
import pytest

import difflab as dl
from tests.benchmarks.gradbench import golden

STATE = "state = "
SEQUENCE = np.array([[0, 1, 1], [1, 0, 1], [0, 1, 0], [1, 1, 0]])


def test_value_and_gradient_are_those_of_the_definition():
    one = dl.problem("families/lstm-2-3")
    (line,) = (line for line in one.path.read_text().splitlines() if line.startswith(STATE))
    rows = line.removeprefix(STATE).strip("[]").split("], [")
    state = np.array([[float(number) for number in row.split(",")] for row in rows])
    gates, ends = (np.array(one.start[name], complex) for name in ("gates", "ends"))
    expected = golden.lstm(gates, ends, state, SEQUENCE)
    assert float(one.reference.value[0]) == pytest.approx(expected.real, rel=1e-15)
    for name, array in (("gates", gates), ("ends", ends)):
        for i, j in np.ndindex(array.shape):
            array[i, j] += 1e-30j
            slope = golden.lstm(gates, ends, state, SEQUENCE).imag / 1e-30
            array[i, j] -= 1e-30j
            stated = float(one.reference.elements.get((1, f"{name}[{i},{j}]"), "0"))
            assert stated == pytest.approx(slope, rel=1e-13, abs=1e-17)
