"""The recorded graph of a tensor: its steps, values and gradients."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.eager.tapes import Tape
from difflab.errors import TapeError

X = np.array([[1.0, 2.0], [3.0, 4.0]])


def network() -> tuple[list[Any], Any]:
    leaves = [dl.tensor(value, requires_grad=True) for value in (X, [0.5, -0.5], 0.1)]
    x, w, b = leaves
    return leaves, np.sum(np.tanh(x @ w + b) ** 2) * 3.0 + 1


def by_name(tape: Tape, found: dict[Any, Any]) -> dict[str, Any]:
    return {tape.names[edge]: value for edge, value in found.items()}


def test_values_are_those_that_numpy_computes() -> None:
    tape = network()[1].tape()
    values = by_name(tape, tape.values)
    inner = X @ [0.5, -0.5] + 0.1
    expected = [X @ [0.5, -0.5], inner, np.tanh(inner), np.tanh(inner) ** 2]
    for name, wanted in zip(("v1", "v2", "v3", "v4"), expected, strict=True):
        np.testing.assert_allclose(values[name], wanted, rtol=1e-15)
    assert values["v7"] == 3 * np.sum(np.tanh(inner) ** 2) + 1


@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_gradients_are_those_of_pytorch() -> None:
    import torch

    x, w, b = (
        torch.tensor(value, dtype=torch.float64, requires_grad=True)
        for value in (X, [0.5, -0.5], 0.1)
    )
    steps = [x @ w]
    steps.append(steps[-1] + b)
    steps.append(torch.tanh(steps[-1]))
    steps.append(steps[-1] ** 2)
    for step in steps:
        step.retain_grad()
    (torch.sum(steps[-1]) * 3.0 + 1).backward()
    tape = network()[1].tape()
    bars = by_name(tape, tape.gradients)
    for name, other in zip(
        ("x1", "x2", "x3", "v1", "v2", "v3", "v4"), [x, w, b, *steps], strict=True
    ):
        np.testing.assert_allclose(bars[name], other.grad.numpy(), rtol=1e-13)


def test_looking_changes_nothing() -> None:
    leaves, result = network()
    calls: list[Any] = []
    leaves[0].register_hook(calls.append)
    result.tape().table()
    result.tape().draw()
    assert not calls
    assert all(leaf.grad is None for leaf in leaves)
    result.backward()
    assert len(calls) == 1
    again, other = network()
    other.backward()
    for one, two in zip(leaves, again, strict=True):
        np.testing.assert_array_equal(one.grad.numpy(), two.grad.numpy())


def test_what_is_unknown_is_not_made_up() -> None:
    x = dl.tensor(2.0, requires_grad=True)
    tape = np.sum(np.sin(x + 3.0) + 1.0 + x).tape()
    values = by_name(tape, tape.values)
    assert values["v1"] == 5.0  # the sine keeps its operand
    assert values["v2"] == np.sin(5.0)
    assert "v3" not in values  # a sum keeps neither its terms nor its result
    rows = tape.table().splitlines()
    assert rows[4].split() == ["v3", "add(v2,", "constant)", "number", "…", "1"]
    assert tape.draw().diagram.boxes[-4].value == ""


def test_parts_that_are_computed_again_are_boxes() -> None:
    x = dl.tensor([1.0, 2.0], requires_grad=True)
    tape = np.sum(dl.checkpoint(lambda u: np.exp(np.sin(u)), x)).tape()
    assert "checkpoint(x1)" in tape.table()
    bars = by_name(tape, tape.gradients)
    np.testing.assert_allclose(bars["x1"], np.exp(np.sin([1.0, 2.0])) * np.cos([1.0, 2.0]))
    assert [box.lines[0] for box in tape.draw().diagram.boxes[:2]] == ["x1", "checkpoint"]


def test_pictures() -> None:
    leaves, result = network()
    drawing = result.tape().draw()
    assert drawing._repr_svg_().startswith("<svg")
    texts = {box.lines[0]: (box.value, box.bar) for box in drawing.diagram.boxes}
    assert texts["x3"] == ("0.1", "−3.901")
    assert texts["tanh"] == ("[−0.3799, −0.3799]", "[−2.28, −2.28]")
    assert leaves[0].grad is None
    plain = result.tape().draw(values=False)
    assert not any(box.value or box.bar for box in plain.diagram.boxes)
    x = dl.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(2000):
        y = np.sin(y) * x
    tape = y.tape()
    assert len(tape.draw().diagram.boxes) < 60
    assert len(tape.table().splitlines()) < 110


def test_there_must_be_a_tape() -> None:
    x = dl.tensor(2.0, requires_grad=True)
    with pytest.raises(TapeError, match="no operation was recorded"):
        x.tape()
    y = x * x
    y.backward()
    with pytest.raises(TapeError, match="was freed by backward"):
        y.tape()
