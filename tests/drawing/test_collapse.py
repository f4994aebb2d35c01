"""Large graphs: a picture that can be read, whose numbers are those of the graph."""

from __future__ import annotations

import re

import numpy as np
import pytest

import difflab as dl
from difflab.drawing import BoxKind, Diagram, diagram, dot, svg
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node


def counted(picture: Diagram) -> int:
    """Add up the operations that the boxes stand for."""
    total = 0
    for box in picture.boxes:
        if box.kind is BoxKind.SUMMARY:
            total += sum(int(line.split(" × ")[0].replace(",", "")) for line in box.lines)
        total += box.kind is BoxKind.OPERATION
    return total


def tree(leaves: int) -> Function:
    builder = Builder()
    inputs = [Node(builder, builder.input(f"x{k}")) for k in range(leaves)]
    row = [np.exp(x) * x for x in inputs]
    while len(row) > 1:
        row = [a + b for a, b in zip(row[::2], row[1::2], strict=True)]
    return Function.build(builder, [x.id for x in inputs], [row[0].id], ["y"])


def chain(length: int) -> Function:
    builder = Builder()
    x, y = (Node(builder, builder.input(name)) for name in "xy")
    inputs = [x.id, y.id]
    for _ in range(length):
        x = np.sin(x * y) + y
    return Function.build(builder, inputs, [x.id], ["z"])


def test_few_levels_are_grouped_by_level_and_primitive() -> None:
    picture = diagram(tree(1024))
    lines = [box.lines[0] for box in picture.boxes]
    assert lines[:5] == [
        "1,024 inputs", "1,024 × exp", "1,024 × multiply", "512 × add", "256 × add",
    ]  # fmt: skip
    assert lines[-2:] == ["add", "y"]
    assert counted(picture) == 1024 + 1024 + 1023
    by_name = {
        (picture.boxes[e.source].lines[0], picture.boxes[e.target].lines[0]): e.count
        for e in picture.edges
    }
    assert by_name["1,024 inputs", "1,024 × multiply"] == 1024
    assert by_name["1,024 × multiply", "512 × add"] == 1024
    assert by_name["2 × add", "add"] == 2


def test_many_levels_are_grouped_into_bands() -> None:
    picture = diagram(chain(100_000))
    assert len(picture.boxes) <= 20
    assert counted(picture) == 300_000
    assert picture.subtitle == "2 inputs · 300,000 operations · 1 output · depth 300,000"
    # Of 500,000 uses those inside a band are not drawn: all of y's are.
    from_y = sum(e.count for e in picture.edges if picture.boxes[e.source].lines == ("y",))
    assert from_y == 200_000


def test_the_summary_is_drawn_with_the_counts_on_the_arrows() -> None:
    text = svg(diagram(tree(1024)))
    assert ">1,024 × multiply<" in text
    assert re.search(r'class="mark"[^>]*>1,024<', text)
    assert "many operations" in text


@pytest.mark.parametrize("terms", [10, 200])
def test_the_limit_decides_what_is_summarised(terms: int) -> None:
    picture = diagram(dl.parse("+".join(f"x{k}^2" for k in range(terms))))
    summarised = any(box.kind is BoxKind.SUMMARY for box in picture.boxes)
    assert summarised == (terms == 200)
    assert len(picture.boxes) <= 80


def test_many_outputs_are_one_box() -> None:
    picture = diagram(dl.parse("[" + ", ".join(f"sin(x)^{k}" for k in range(2, 90)) + "]"))
    assert picture.boxes[-1].lines == ("88 outputs",)
    assert picture.edges[-1].count == 88


def test_every_edge_points_to_a_later_box() -> None:
    for function in (tree(256), chain(1000)):
        assert all(edge.source < edge.target for edge in diagram(function).edges)


def test_an_arrow_of_many_is_thick_in_dot() -> None:
    widths = re.findall(r"penwidth=([\d.]+)", dot(diagram(tree(1024))))
    assert max(map(float, widths)) == pytest.approx(1 + np.log10(1024) / 2, abs=0.01)
    assert min(map(float, widths)) == 1.0
