"""``difflab explore``: a page on which a derivative is followed step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from difflab.cli.functions import Subject
from difflab.cli.options import ExpressionArgument, PointOption
from difflab.cli.output import check_destination, deliver, say

__all__ = ["EXAMPLES", "explore"]

EXAMPLES = """\b
difflab explore "ln(x1)+x1*x2-sin(x2)" --at x1=2,x2=5 -o page.html
difflab explore "where(x>0, sqrt(x), 0)" --at x=0 -o page.html
difflab explore model:loss --at "w=[0.5,1],x=2" -o page.html
"""

PageOption = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        parser=check_destination,
        metavar="FILE",
        help="Write the page to this file.",
    ),
]


def explore(
    expression: ExpressionArgument,
    destination: PageOption,
    at: PointOption = None,
) -> int:
    """Write a page that steps through EXPR and its derivative; it needs no network."""
    subject = Subject.of(expression, at)
    if subject.point_or_start is None and subject.function.inputs:
        say("no --at: a point inside the domain was chosen")
    deliver(subject.function.explore(subject.point_or_start).html(), destination)
    return 0
