"""The picture of a function's graph, with its text as the heading and the values at a point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from difflab.diagnose import node_cotangents
from difflab.diagnose.point_check import checked_point
from difflab.drawing import Drawing, diagram, opened
from difflab.errors import InputError
from difflab.graph.function import Function, evaluate_all
from difflab.report.heading import heading

__all__ = ["draw"]


def draw(
    function: Function,
    at: Mapping[str, Any] | None = None,
    *,
    values: bool = False,
    title: str | None = None,
    depth: int = 0,
    open: str | Iterable[str] | None = None,
) -> Drawing:
    """Return the picture of a function's graph: `Function.draw`.

    Examples
    --------
    >>> import difflab as dl
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
