"""``--explain-nan``: the causes of nan, inf and lost precision at the point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from difflab.cli.output import emit, say

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["ExplainNan", "explain_point"]

ExplainNan = Annotated[
    bool,
    typer.Option(
        "--explain-nan",
        help="First name the operations that produce nan, inf, overflow or cancellation, and"
        " the inputs without a gradient.",
    ),
]


def explain_point(function: Function, point: Mapping[str, Any], *, aside: bool) -> None:
    """Report anomalies in the value and the gradient of a function at a point.

    The report goes to standard output ahead of the result or, with `aside`, to standard error,
    where standard output is machine-readable.
    """
    from difflab.diagnose import explain

    report = f"{explain(function, point)}\n"
    if aside:
        say(report)
    else:
        emit(f"{report}\n")
