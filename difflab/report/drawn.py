"""The picture of a function's graph, with its text as the heading and the values at a point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from difflab.diagnose import node_cotangents
from difflab.diagnose.point_check import checked_point
from difflab.drawing import Drawing, diagram, opened
from difflab.errors import InputError
from difflab.graph.function import Function, evaluate_all
from difflab.report.summary import heading


def draw(
    function: Function,
    at: Mapping[str, Any] | None = None,
    *,
    values: bool = False,
    title: str | None = None,
    depth: int = 0,
    open: str | Iterable[str] | None = None,
) -> Drawing:
    """Return the picture of the graph that ``difflab graph`` writes.

    Parameters
    ----------
    at : mapping, optional
        A value for every input; the boxes then show their values.
    values : bool
        Whether the arrows carry the values, and the cotangents of the sum of the outputs,
        instead.
    title : str, optional
        The heading, by default the function's text.
    depth : int
        How many levels of loops, branches and custom functions are opened. Each is one box;
        opened, its functions are drawn in frames below.
    open : str or iterable of str, optional
        What is opened: names, ``"all"`` or ``"none"``. A composition, which is a call of a
        Python function in the traced code, of a layer, or of a function of several operations
        such as ``layer_norm``, is one box, or opened its operations and the compositions among
        them; a loop, branch or custom function is opened in a frame below. By default those are
        closed, and compositions are open as far as the picture stays readable.

    Returns
    -------
    Drawing
        Shows itself in a notebook; ``svg()``, ``png()``, ``dot()`` and ``mermaid()`` are its
        forms, and ``save("graph.svg")`` writes a file.

    Raises
    ------
    InputError
        `values` without a point, a negative depth, or nothing of a name in `open`.
    PointError
        A value is missing, unknown or of the wrong shape.

    Examples
    --------
    >>> import difflab as dl
    >>> dl.parse("x*sin(y)").draw()
    <drawing of x*sin(y): 2 inputs · 2 operations · 1 output · depth 2>
    >>> boxes = dl.parse("x: [3]; sum(layer_norm(x))").draw(open="none").diagram.boxes
    >>> [box.lines[0] for box in boxes]
    ['x', 'layer_norm', 'Σ', 'y']
    >>> draw(dl.parse("x*y"), {"x": 2, "y": 3}).diagram.boxes[2].caption
    'v₁ = 6'
    """
    if depth < 0:
        raise InputError(f"depth is a number of levels, not {depth}")
    if values and at is None:
        raise InputError("the values at the arrows need a point", hint="give at={...}")
    inputs = None if at is None else list(checked_point(function, at, inside=False).values())
    return Drawing(
        diagram(
            function,
            None if inputs is None else evaluate_all(function, inputs),
            cotangents=node_cotangents(function, inputs) if values and inputs is not None else None,
            title=heading(function) if title is None else title,
            depth=depth,
            open=None if open is None else opened(function, open),
        )
    )
