"""``difflab budget`` and ``difflab dtypes``: rounding errors, by operation and by dtype."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from difflab.cli.compare import parse_ranges
from difflab.cli.functions import Subject
from difflab.cli.options import (
    ExpressionArgument,
    OutputOption,
    PlotOption,
    PointOption,
    parse_names,
)
from difflab.cli.output import deliver, formatted, report_format
from difflab.cli.program_text import LatexOption, formula
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.graph.function import Function

BudgetFormat = Literal["table", "json", "csv", "md", "html"]
"""The output format of an error budget."""
DtypeName = Literal["float64", "float32", "float16", "bfloat16"]
"""The dtype in which value and gradient are computed."""


def budget(
    expression: ExpressionArgument,
    /,
    at: PointOption = None,
    over: list[str] | None = None,
    *,
    points: Annotated[int, typer.Option(min=1)] = 64,
    dtype: DtypeName = "float64",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    form: BudgetFormat | None = None,
    destination: OutputOption = None,
    plot: PlotOption = None,
    latex: LatexOption = False,
) -> int:
    """Show how much of the rounding error of EXPR and its gradient each operation contributes.

    Parameters
    ----------
    over : x1=0.1:10,x2=-5:5
        Sum over points of these intervals.
    points
        The number of points of the intervals.
    dtype
        In which value and gradient are computed.
    seed
        Of the points.
    form
        By default the ending of -o's name, else a table.

    Examples
    --------
    difflab budget "(-b + sqrt(b^2-4*a*c))/(2*a)" --at a=1,b=1e5,c=1
    difflab budget "(1-cos(x))/x^2" --over x=1e-4:1 --plot budget.svg
    difflab budget "log(exp(a)+exp(b))" --at a=3,b=2 --dtype float32
    difflab budget model:loss --at "w=[0.5,1],x=2" -o budget.html
    """
    chosen = report_format(form, destination, BudgetFormat)
    if plot is not None and plot.suffix.lower() == ".pdf":
        raise InputError("the picture of a graph is SVG or PNG", hint="end the name in .svg")
    ranges = parse_ranges(over or [])
    expression = formula(expression, latex=latex)
    from difflab.report.rounding import budget as reports
    from difflab.report.rounding.result import error_budget

    function, point = _fixed(expression, at, ranges)
    result = error_budget(
        function, point, over=ranges or None, points=points, dtype=dtype, seed=seed
    )
    files: dict[Path, str | bytes] = {}
    if plot is not None:
        picture = result.draw()
        files[plot] = picture.png() if plot.suffix.lower() == ".png" else picture.svg()
    report = formatted(result, chosen, reports, to_file=destination is not None)
    deliver(report, destination, files)
    return 0


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

    function, point = _fixed(expression, at, ranges)
    result = cheapest_dtypes(
        function, ranges, point, tolerance=tolerance, floor=floor,
        dtypes=parse_names(dtypes) or [], points=points, seed=seed,
    )  # fmt: skip
    deliver(formatted(result, chosen, reports, to_file=destination is not None), destination)
    return 0


def _fixed(
    expression: str, at: list[str] | None, ranges: Mapping[str, tuple[float, float]]
) -> tuple[Function, Mapping[str, Any] | None]:
    """Return the function, and the values of its inputs that have no range."""
    middle = {name: (low + high) / 2 for name, (low, high) in ranges.items()}
    subject = Subject.of(expression, at, list(ranges), over=middle or None)
    point = subject.point_or_start
    if ranges:
        point = {name: value for name, value in (point or {}).items() if name not in ranges}
    return subject.function, point
