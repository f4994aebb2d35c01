"""Calls of functions and layers in traced code: named in texts, traces and pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import nn
from difflab.drawing import openable

X = np.array([0.5, -1.0, 2.0])


def gate(x: Any, w: Any) -> Any:
    return 1 / (1 + np.exp(-x * w))


@dl.jit
def wave(x: Any) -> Any:
    return np.sin(x) * np.cos(x)


def cell(x: Any, w: Any) -> Any:
    return np.tanh(gate(x, w)) * wave(x)


def single(x: Any) -> Any:
    return np.exp(x)


def program(x: Any, w: Any) -> Any:
    return np.sum(cell(x, w)) + wave(w) + np.sum(single(x))


def network() -> Callable[[Any], Any]:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 2))
    return lambda x: np.sum(net(x) ** 2)


def test_text_names_calls_where_their_values_leave_them() -> None:
    assert str(dl.trace(program, X, 2.0)).splitlines() == [
        "x: [3]",
        "t1 = 1/(1 + exp(-x*w))  # cell › gate",
        "t2 = sin(x)*cos(x)  # cell › wave",
        "t3 = tanh(t1)*t2  # cell",
        "t4 = sin(w)*cos(w)  # wave",
        "sum(t3) + t4 + sum(exp(x))",
    ]


@pytest.mark.parametrize("derived", [lambda f: f, dl.gradient, dl.hessian])
def test_text_with_calls_is_read_back(derived: Any) -> None:
    f = derived(dl.trace(program, X, 2.0))
    assert "# cell" in str(f)
    again = dl.parse(str(f))
    assert np.array_equal(again(x=X, w=2.0), f(x=X, w=2.0))
    # Inputs are read in natural order, and the text is a fixed point but for the comments.
    assert str(again) == str(dl.parse(str(again)))


def test_calls_change_no_value() -> None:
    inlined = lambda x, w: (  # noqa: E731
        np.sum(np.tanh(1 / (1 + np.exp(-x * w))) * (np.sin(x) * np.cos(x)))
        + np.sin(w) * np.cos(w)
        + np.sum(np.exp(x))
    )
    boxed, plain = dl.trace(program, X, 2.0), dl.trace(inlined, X, 2.0)
    assert boxed == plain
    assert "#" not in str(plain)


def test_a_trace_names_the_call_of_each_step() -> None:
    steps = dl.trace(program, X, 2.0).trace({"x": X, "w": 2.0})
    called = {step.formula.split()[0]: step.call for step in steps.primal if step.formula}
    assert called["tanh"] == "cell"
    names = {"", "cell", "cell › gate", "cell › wave", "wave", "single"}
    assert {step.call for step in steps.primal} == names
    assert "call" in steps.table().split("primal", 1)[1].splitlines()[0]
    assert steps.to_dict()["reverse"]["adjoints"][-1]["call"].startswith("cell")
    plain = dl.parse("x*sin(y)").trace({"x": 2, "y": 1})
    assert "call" not in plain.table()
    assert "call" not in plain.to_dict()["primal"][0]


def test_layers_are_boxes_in_texts_traces_and_pictures() -> None:
    f = dl.trace(network(), X)
    lines = [line.rpartition("# ")[2] for line in str(f).splitlines() if "#" in line]
    assert lines == ["Sequential › Linear", "Sequential › LayerNorm", "Sequential › Linear"]
    assert openable(f) == {"Sequential", "Linear", "Tanh", "LayerNorm"}
    closed = [box.lines[0] for box in f.draw(open="none").diagram.boxes]
    assert "Sequential" in closed
    assert "Linear" not in closed
    opened = [box.lines[0] for box in f.draw(open="Sequential").diagram.boxes]
    assert [name for name in opened if name in {"Linear", "tanh", "LayerNorm"}] == [
        "Linear",
        "tanh",
        "LayerNorm",
        "Linear",
    ]
    assert any(step.call == "Sequential › LayerNorm" for step in f.trace({"x": X}).primal)


def test_layers_of_the_user_are_boxes_around_those_in_them() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return x + np.tanh(self.linear(x))

    block = Block()
    f = dl.trace(lambda x: np.sum(block(x)), X)
    assert openable(f) == {"Block", "Linear"}
    assert any(line.endswith("# Block › Linear") for line in str(f).splitlines())
    assert any(line.endswith("# Block") for line in str(f).splitlines())
