"""``difflab explore``: a page on which a derivative is followed step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from difflab.cli.functions import Subject
from difflab.cli.options import ExpressionArgument, PointOption
from difflab.cli.output import check_destination, deliver, say


def explore(
    expression: ExpressionArgument,
    /,
    destination: Annotated[Path, typer.Option(parser=check_destination)],
    at: PointOption = None,
) -> int:
    """Write a page that steps through EXPR and its derivative; it needs no network.

    Parameters
    ----------
    destination : FILE
        Write the page to this file.

    Examples
    --------
    difflab explore "ln(x1)+x1*x2-sin(x2)" --at x1=2,x2=5 -o page.html
    difflab explore "where(x>0, sqrt(x), 0)" --at x=0 -o page.html
    difflab explore model:loss --at "w=[0.5,1],x=2" -o page.html
    """
    subject = Subject.of(expression, at)
    if subject.point_or_start is None and subject.function.inputs:
        say("no --at: a point inside the domain was chosen")
    deliver(subject.function.explore(subject.point_or_start).html(), destination)
    return 0
