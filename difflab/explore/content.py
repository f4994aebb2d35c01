"""What a page is filled with: the graph, its operations and its picture, as JSON and as script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from difflab.core.strict_json import strict
from difflab.drawing.order import evaluation_order, output_labels, trace_names
from difflab.explore.operations import Operations
from difflab.explore.picture import picture
from difflab.explore.scalars import scalar_function
from difflab.explore.while_loops import unrolled
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW
from difflab.graph.source import NOWHERE
from difflab.report.heading import heading

__all__ = ["Content", "content"]

SHOWN_TEXT = 20_000
"""Most characters of a program that a page shows."""
LINKED = 3000
"""Most operations that are linked to their places in the program."""


@dataclass(frozen=True)
class Content:
    """The data of a page, and the script with the functions of its operations."""

    data: dict[str, Any]
    script: str


def content(function: Function, point: Mapping[str, Any]) -> Content:
    """Return what the page of a function at a point is filled with.

    Parameters
    ----------
    function : Function
    point : mapping of str to number or array
        A value for every input.

    Raises
    ------
    InputError
        The function cannot be written as operations on numbers, or a loop takes too many turns at
        the point.
    UnsupportedError
        JavaScript has no function for an operation.

    Examples
    --------
    >>> import difflab as dl
    >>> found = content(dl.parse("x*sin(x)"), {"x": 2.0})
    >>> found.data["inputs"], found.data["steps"]
    ([['x', 2.0]], [0, 1, 1, 2, 1])
    """
    opened = unrolled(function, point)
    scalars = scalar_function(opened.function)
    graph = scalars.graph
    order = evaluation_order(scalars)
    index = {node: place for place, node in enumerate(order)}
    names = trace_names(scalars, order)
    constants = [node for node in order if graph.opcode[node] == CONSTANT]
    operations = [node for node in order if graph.opcode[node] >= FIRST_ROW]
    collected = Operations()
    steps = []
    for node in operations:
        back = [index[node] - index[each] for each in graph.arguments(node)]
        steps.append([collected.number(graph, node), *back])
    flat = [np.asarray(point[name], dtype=float).ravel().tolist() for name in function.inputs]
    values = list(chain.from_iterable(flat))
    text = heading(function)
    data = {
        "text": text if len(text) <= SHOWN_TEXT else text[:SHOWN_TEXT] + " …",
        "inputs": [list(pair) for pair in zip(scalars.inputs, values, strict=True)],
        "constants": [[names[node], strict(float(graph.constant(node)))] for node in constants],
        "steps": list(chain.from_iterable(steps)),
        "names": _given(names, operations, index),
        "spans": _spans(function, scalars, operations),
        "outputs": [[label, index[n]] for label, n in _outputs(scalars)],
        "operations": collected.records,
        "picture": picture(scalars, index, names),
        "turns": max(opened.turns, default=0),
    }
    return Content(data, collected.script())


def _outputs(scalars: Function) -> list[tuple[str, int]]:
    return list(zip(output_labels(scalars), scalars.outputs, strict=True))


def _given(
    names: Mapping[int, str], operations: Sequence[int], index: Mapping[int, int]
) -> dict[str, str]:
    """Return the names that are not v1, v2, … in order."""
    found, count = {}, 0
    for node in operations:
        count += 1
        if names[node] != f"v{count}":
            found[str(index[node])] = names[node]
            count -= 1
    return found


def _spans(function: Function, scalars: Function, operations: Sequence[int]) -> list[int]:
    """Return start and end of each operation in the text, one after the other; empty if many."""
    text = function.text
    short = text is not None and len(text) <= SHOWN_TEXT and len(operations) <= LINKED
    if not short or scalars.graph.text != text:
        return []
    found = []
    for node in operations:
        span = int(scalars.graph.spans[node])
        found += [0, 0] if span <= NOWHERE else [span >> 32, span & 0xFFFFFFFF]
    return found
