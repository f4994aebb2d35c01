"""``--explain-nan``: what went wrong at the point, beside what a command shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from difflab.cli.output import emit, say

__all__ = ["ExplainNan", "explain_point"]

ExplainNan = Annotated[
    bool,
    typer.Option(
        "--explain-nan",
        help="First say which operation made a nan, inf, overflow or cancellation, and which"
        " inputs get no gradient.",
    ),
]


def explain_point(text: str, point: Mapping[str, Any], *, aside: bool) -> None:
    """Say what goes wrong in the value and the gradient of a program at a point.

    It goes to standard output, ahead of the result, or `aside`, to standard error, where that
    output is for machines.
    """
    from difflab.diagnose import explain
    from difflab.language import parse

    report = f"{explain(parse(text), point)}\n"
    if aside:
        say(report)
    else:
        emit(f"{report}\n")
