"""Calls of functions in traced code: one box each, which opens on request."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.arrays import layer_norm
from difflab.drawing.model import BoxKind, Diagram
from difflab.graph.function import Function


class Dense:
    def __init__(self) -> None:
        self.weight = np.linspace(-1.0, 1.0, 9).reshape(3, 3)

    def __call__(self, x: Any) -> Any:
        return np.tanh(self.weight @ x + 0.1)


def block(x: Any, w: Any) -> Any:
    return x + np.tanh(w @ layer_norm(x))


def network(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = block(x, w)
    return np.sum(x**2)


def traced() -> Function:
    return dl.trace(network, np.ones(3), np.eye(3))


def lines(picture: Diagram) -> Counter[str]:
    """Return how often the first line of each box of operations occurs."""
    left_out = (BoxKind.INPUT, BoxKind.OUTPUT, BoxKind.CONSTANT)
    return Counter(box.lines[0] for box in picture.boxes if box.kind not in left_out)


def is_sound(picture: Diagram) -> bool:
    """Whether every arrow points forward, and every box but the inputs has one."""
    reached = {edge.target for edge in picture.edges}
    inner = [k for k, box in enumerate(picture.boxes) if box.kind is BoxKind.SUMMARY]
    return all(edge.source < edge.target for edge in picture.edges) and reached >= set(inner)


def test_calls_are_boxes() -> None:
    picture = traced().draw(open="none").diagram
    assert lines(picture) == {"block": 3, "xʸ": 1, "Σ": 1}
    assert is_sound(picture)
    assert {box.lines[1] for box in picture.boxes if box.lines[0] == "block"} == {"14 operations"}


def test_an_opened_call_shows_the_calls_in_it() -> None:
    picture = traced().draw(open="block").diagram
    assert lines(picture) == {"layer_norm": 3, "matmul": 3, "tanh": 3, "+": 3, "xʸ": 1, "Σ": 1}
    assert lines(traced().draw(open=["block", "layer_norm"]).diagram) == lines(
        traced().draw(open="all").diagram
    )


def test_a_small_picture_is_open_and_a_large_one_closes_its_calls() -> None:
    assert lines(traced().draw().diagram)["÷"] >= 3

    def deep(x: Any, w: Any) -> Any:
        for _ in range(8):
            x = block(x, w)
        return x

    picture = dl.trace(deep, np.ones(3), np.eye(3)).draw().diagram
    assert lines(picture) == {"layer_norm": 8, "matmul": 8, "tanh": 8, "+": 8}


def test_calls_too_many_for_a_picture_are_summarised() -> None:
    def deep(x: Any, w: Any) -> Any:
        for _ in range(100):
            x = block(x, w)
        return x

    function = dl.trace(deep, np.ones(3), np.eye(3))
    assert function.draw().diagram.boxes == function.draw(open="none").diagram.boxes
    assert len(function.draw().diagram.boxes) < 60


def test_a_reverse_sweep_has_boxes_of_its_own() -> None:
    picture = dl.gradient(traced()).draw(open="none").diagram
    assert lines(picture)["block"] == 6
    assert is_sound(picture)


def test_a_layer_goes_by_its_class_and_shared_weights_stand_alone() -> None:
    layer = Dense()
    picture = dl.trace(lambda x: layer(layer(x)), np.ones(3)).draw(open="none").diagram
    assert lines(picture) == {"Dense": 2, "constant_array": 1}
    alone = dl.trace(lambda x: layer(x) + 1.0, np.ones(3)).draw(open="none").diagram
    assert lines(alone) == {"Dense": 1, "+": 1}


def test_values_and_cotangents_leave_the_boxes() -> None:
    point = {"x": [0.1, 0.5, 0.9], "w": np.eye(3)}
    picture = traced().draw(point, open="none", values=True).diagram
    whole = traced().draw(point, open="all", values=True).diagram
    shown = {(box.value, box.bar) for box in whole.boxes}
    boxes = [box for box in picture.boxes if box.lines[0] == "block"]
    assert len(boxes) == 3
    assert all(box.value and box.bar and (box.value, box.bar) in shown for box in boxes)


def test_a_formula_has_them_too() -> None:
    function = dl.parse("x: [3]; y: [3]; dot(layer_norm(x), layer_norm(y)) + sin(x[0])")
    assert lines(function.draw(open="none").diagram)["layer_norm"] == 2
    assert "sin" in lines(function.draw(open="none").diagram)


def test_a_loop_opens_by_its_name() -> None:
    loop = lambda x: dl.fori_loop(0, 5, lambda i, y: np.sin(y) * i, x)  # noqa: E731
    function = dl.trace(lambda x: loop(x) + 1.0, 2.0)
    assert function.draw(open="none").diagram.parts == ()
    assert len(function.draw(open="scan").diagram.parts) == 1
    assert len(function.draw(open="all").diagram.parts) == 1


def test_calls_of_one_line_and_recursive_calls_differ() -> None:
    def halve(x: Any, depth: int) -> Any:
        return np.sin(x) * 2 if depth == 0 else np.cos(halve(x, depth - 1)) + 1

    picture = dl.trace(lambda x: next(halve(x, 2) for _ in range(1)) + 0 * x, 1.0)
    assert lines(picture.draw(open="none").diagram)["halve"] == 1
    assert lines(picture.draw(open="halve").diagram) == lines(picture.draw(open="all").diagram)
    twice = dl.trace(lambda x, y: halve(x, 0) + halve(y, 0), 1.0, 2.0)
    assert lines(twice.draw(open="none").diagram)["halve"] == 2


def test_a_stored_function_keeps_them() -> None:
    copy = pickle.loads(pickle.dumps(traced()))
    assert lines(copy.draw(open="none").diagram) == lines(traced().draw(open="none").diagram)


def test_an_inlined_function_belongs_to_the_call() -> None:
    inner = dl.trace(lambda x: np.sin(x) * np.cos(x), 1.0)

    def outer(x: Any) -> Any:
        return inner(x) + 1.0

    picture = dl.trace(lambda x: outer(x) * outer(2 * x), 1.0).draw(open="none").diagram
    assert lines(picture) == {"outer": 2, "×": 2}


@pytest.mark.parametrize("asked", ["layer", ["block", "layer"]])
def test_an_unknown_name_lists_what_opens(asked: Any) -> None:
    with pytest.raises(dl.errors.InputError, match="'layer'") as caught:
        traced().draw(open=asked)
    assert caught.value.hint == "choose from all, none, block, layer_norm"


def test_all_and_a_name_exclude_each_other() -> None:
    with pytest.raises(dl.errors.InputError, match="all, block"):
        traced().draw(open=["all", "block"])
