"""Loops, branches and custom functions: one box each, whose functions are drawn on request."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.drawing.model import BoxKind
from difflab.graph.function import Function


def recurrent() -> Function:
    def cell(h: Any, u: Any, w: Any) -> Any:
        return np.tanh(w @ h + u), np.sum(h)

    return dl.trace(
        lambda w, x: dl.scan(lambda h, u: cell(h, u, w), x, np.ones((50, 3)))[0],
        np.ones((3, 3)),
        np.ones(3),
    )


def newton() -> Function:
    return dl.trace(lambda a: dl.while_loop(lambda x: x * x > a, lambda x: (x + a / x) / 2, a), 2.0)


def nested() -> Function:
    loop = lambda x: dl.fori_loop(0, 7, lambda i, y: np.sin(y) * i, x)  # noqa: E731
    return dl.trace(lambda x: dl.cond(x > 0, loop, lambda x: 0 * x, x), 1.0)


def custom() -> Function:
    class Softplus(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: np.log(1 + np.exp(x)))
        backward = staticmethod(lambda ctx, y_bar: y_bar)

    return dl.trace(lambda x: np.sum(Softplus.apply(x)), np.ones(3))


@pytest.mark.parametrize(
    ("make", "box"),
    [
        (recurrent, ("scan", "50 turns")),
        (newton, ("while_loop",)),
        (nested, ("cond",)),
        (custom, ("Softplus",)),
    ],
)
def test_each_is_one_box(make: Any, box: tuple[str, ...]) -> None:
    diagram = make().draw().diagram
    coarse = [each for each in diagram.boxes if each.kind is BoxKind.COARSE]
    assert [each.lines for each in coarse] == [box]
    assert diagram.parts == ()


def shown(function: Function, depth: int) -> dict[str, list[str]]:
    """Return the heading of every frame, with the operations inside."""
    kinds = (BoxKind.OPERATION, BoxKind.COARSE)
    return {
        heading: sorted(box.lines[0] for box in part.boxes if box.kind in kinds)
        for heading, part in function.draw(depth=depth).diagram.panels()
    }


def test_a_step_is_opened() -> None:
    assert shown(recurrent(), 1) == {"v₂ = scan: step, 50 turns": ["+", "matmul", "tanh", "Σ"]}
    ((_, part),) = recurrent().draw(depth=1).diagram.parts
    assert part.subtitle.endswith("carried: x1 · from arrays: x2 · constant: captured1")
    assert shown(newton(), 1) == {
        "v₁ = while_loop: while": [">", "×"],
        "v₁ = while_loop: step": ["+", "÷", "÷"],
    }
    assert shown(custom(), 1) == {"v₁ = Softplus: forward": ["+", "exp", "ln"]}


def test_opening_goes_as_deep_as_asked() -> None:
    assert shown(nested(), 1) == {"v₃ = cond: if true": ["scan"], "v₃ = cond: if false": ["×"]}
    assert shown(nested(), 2) == {
        "v₃ = cond: if true": ["scan"],
        "v₃ = cond: if true › v₁ = scan: step, 7 turns": ["+", "sin", "×"],
        "v₃ = cond: if false": ["×"],
    }


def test_equal_loops_are_opened_once() -> None:
    loop = lambda x: dl.fori_loop(0, 7, lambda i, y: np.sin(y), x)  # noqa: E731
    assert len(shown(dl.trace(lambda x: loop(x) + loop(2 * x), 1.0), 1)) == 1


def test_frames_hold_their_boxes_and_nothing_overlaps() -> None:
    svg = nested().draw(depth=2).svg()
    spots = re.findall(
        r'<rect class="panel"[^>]* x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"',
        svg,
    )
    frames = [tuple(map(float, spot)) for spot in spots]
    assert len(frames) == 3
    for (_, y, _, height), (_, below, _, _) in pairwise(frames):
        assert y + height < below
    root = ET.fromstring(svg)
    tall, wide = float(root.attrib["height"]), float(root.attrib["width"])
    assert all(x + w < wide and y + h < tall for x, y, w, h in frames)
    inside = [
        float(y) for y in re.findall(r'<rect class="(?:input|operation)"[^>]* y="([\d.]+)"', svg)
    ]
    assert sum(any(y < at < y + h for _, y, _, h in frames) for at in inside) == 8


def test_every_format_has_the_frames() -> None:
    drawing = nested().draw(depth=2)
    assert drawing.dot().count("subgraph cluster_") == 3
    assert drawing.dot().count("{") == drawing.dot().count("}")
    assert drawing.mermaid().count("subgraph ") == drawing.mermaid().count("\n    end\n") == 3
    names = re.findall(r"^ +(p?\d*n\d+)[ \[(/]", drawing.dot(), re.MULTILINE)
    assert {"n0", "p1n0", "p2n0", "p3n0"} <= set(names)
    assert drawing.png()[:4] == b"\x89PNG"


def test_a_summary_can_be_opened() -> None:
    def long(x: Any) -> Any:
        for k in range(200):
            x = np.sin(x) * k
        return dl.fori_loop(0, 5, lambda i, y: y * y, x)

    diagram = dl.trace(long, 1.0).draw(depth=1).diagram
    assert len(diagram.boxes) < 60
    assert len(diagram.parts) == 1
