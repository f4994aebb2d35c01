"""``difflab dtypes``: the cheapest dtypes that keep value and gradient within a tolerance."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from difflab.cli.domain import parse_ranges
from difflab.cli.functions import Subject
from difflab.cli.options import ExpressionArgument, OutputOption, PointOption, parse_names
from difflab.cli.output import deliver, formatted, report_format
from difflab.cli.program_text import LatexOption, formula
from difflab.errors import InputError

DtypesFormat = Literal["table", "json", "csv", "md", "html", "python"]
"""The output format of an assignment of dtypes."""


def dtypes(
    expression: ExpressionArgument,
    /,
    at: PointOption = None,
    over: list[str] | None = None,
    *,
    tolerance: Annotated[float, typer.Option()] = 1e-6,
    dtypes: str = "float64,float32,float16",
    floor: Annotated[float | None, typer.Option(min=0)] = None,
    points: Annotated[int, typer.Option(min=1)] = 1024,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    form: DtypesFormat | None = None,
    destination: OutputOption = None,
    latex: LatexOption = False,
) -> int:
    """Find the cheapest dtypes that keep EXPR and its gradient within a tolerance over a domain.

    Parameters
    ----------
    over : x1=0.1:10,x2=-5:5
        The domain.
    tolerance
        The error that is allowed, relative to the size of a result.
    dtypes : a,b
        Those to choose from; bfloat16 needs ml_dtypes.
    floor
        Judge smaller results as if they had this size. By default the median size.
    points
        The number of points of the domain.
    seed
        Of the points.
    form
        By default the ending of -o's name, else a table with the code.

    Examples
    --------
    difflab dtypes "ln(x1)+x1*x2-sin(x2)" --over x1=0.5:10,x2=-5:5 --tolerance 1e-6
    difflab dtypes "exp(x)*y" --over x=0:15,y=1:2 --tolerance 1e-2 --format python
    difflab dtypes model:loss --over x=-1:1 --at "w=[0.5,1]" -o loss.py
    """
    chosen = report_format(form, destination, DtypesFormat)
    ranges = parse_ranges(over or [])
    if not ranges:
        raise InputError("a search of dtypes needs a domain", hint="--over x1=0.1:10")
    expression = formula(expression, latex=latex)
    from difflab.report.rounding import dtypes as reports
    from difflab.report.rounding.result import cheapest_dtypes

    middle = {name: (low + high) / 2 for name, (low, high) in ranges.items()}
    subject = Subject.of(expression, at, list(ranges), over=middle)
    point = {k: value for k, value in (subject.point_or_start or {}).items() if k not in ranges}
    found = cheapest_dtypes(
        subject.function, ranges, point, tolerance=tolerance, floor=floor,
        dtypes=parse_names(dtypes) or [], points=points, seed=seed,
    )  # fmt: skip
    deliver(formatted(found, chosen, reports, to_file=destination is not None), destination)
    return 0
