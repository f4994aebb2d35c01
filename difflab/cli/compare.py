"""``difflab compare``: every method's derivative of one function, judged and measured."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from difflab.cli.explain import ExplainNan, explain_point
from difflab.cli.functions import Subject, verified
from difflab.cli.options import (
    ExpressionArgument,
    OutputOption,
    PlotOption,
    PointOption,
    StabiliseOption,
    TimeoutOption,
    parse_names,
)
from difflab.cli.output import (
    ProgressLine,
    deliver,
    report_format,
    screen,
)
from difflab.cli.program_text import LatexOption, formula
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.lab.code import CodeSubject
    from difflab.lab.compare import CompareOptions
    from difflab.lab.record import Comparison
    from difflab.lab.side_by_side import SideBySide

__all__ = ["EXAMPLES", "ComparisonFormat", "compare"]

EXAMPLES = """\b
difflab compare "ln(x1)+x1*x2-sin(x2)"
difflab compare "x^2*sin(y)" --at x=1.5,y=pi/3 --plot picture.svg
difflab compare "1/(1+exp(-x))" --at x=-700 --stabilise
difflab compare --latex "\\frac{x_1}{x_2} \\sin x_1"
difflab compare @model.txt --at "w=[1,2,3]" -o model.json
difflab compare model:loss --at "w=[0.5,1],x=2"
difflab compare @formulas.txt --each-line --at @values.json
difflab compare "ln(x1)+x1*x2-sin(x2)" --over x1=0.1:10,x2=-5:5 --plot map.png
"""


class ComparisonFormat(StrEnum):
    """The output format of a comparison."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"
    LATEX = "latex"
    HTML = "html"


MethodsOption = Annotated[
    str | None,
    typer.Option(metavar="a,b", help="Only these of `difflab methods`; or peers, or all."),
]
FormatOption = Annotated[
    ComparisonFormat | None,
    typer.Option("--format", help="By default the ending of -o's name, else a table."),
]
TargetOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How forward and reverse execute: auto, python, numpy, native, cupy, exact.",
    ),
]
NoTimingOption = Annotated[bool, typer.Option("--no-timing", help="Judge only; do not time calls.")]
OverOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="x1=0.1:10,x2=-5:5", help="Judge at many points of these intervals instead."
    ),
]
PointsOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="How many, with --over; 10,000 by default.")
]
NoVerifyOption = Annotated[
    bool,
    typer.Option(
        "--no-verify", help="Do not run module:function to compare its values with its graph's."
    ),
]
EachLineOption = Annotated[
    bool,
    typer.Option("--each-line", help="Every line of EXPR, as of @file, is a formula of its own."),
]
ScaleOption = Annotated[
    str | None,
    typer.Option(metavar="x1=log", help="With --over: the points are even in the logarithm."),
]


def compare(
    expression: ExpressionArgument,
    at: PointOption = None,
    methods: MethodsOption = None,
    form: FormatOption = None,
    destination: OutputOption = None,
    plot: PlotOption = None,
    order: Annotated[int, typer.Option(min=1, max=2, help="2 compares Hessians.")] = 1,
    target: TargetOption = "auto",
    timeout: TimeoutOption = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed for choosing the point.")] = 0,
    no_timing: NoTimingOption = False,
    explain_nan: ExplainNan = False,
    stabilise: StabiliseOption = False,
    over: OverOption = None,
    points: PointsOption = None,
    scale: ScaleOption = None,
    each_line: EachLineOption = False,
    latex: LatexOption = False,
    no_verify: NoVerifyOption = False,
) -> int:
    """Differentiate EXPR by every method; judge and measure each."""
    names = parse_names(methods)
    options: CompareOptions
    if each_line:
        given = {"--over": over, "--points": points, "--scale": scale, "--plot": plot}
        given |= {"--explain-nan": explain_nan, "--stabilise": stabilise, "--latex": latex}
        options = {"methods": names, "order": order, "timeout": timeout, "seed": seed}
        options |= {"target": target, "timing": not no_timing}
        return _each(expression, at or [], options, form, destination, given)
    expression = formula(expression, latex=latex)
    if over or points is not None or scale:
        from difflab.cli.domain import DomainRequest, compare_over

        request = DomainRequest(
            expression, over or [], points, scale, at or [], form, destination, plot
        )
        options = {"methods": names, "order": order, "timeout": timeout}
        options |= {"target": target, "seed": seed, "verify": not no_verify}
        unused = {"--explain-nan": explain_nan, "--stabilise": stabilise, "--no-timing": no_timing}
        return compare_over(request, options, [name for name, given in unused.items() if given])
    subject = Subject.of(expression, at, runs=not (explain_nan or stabilise))
    point = subject.point_or_start
    chosen = report_format(form, destination, ComparisonFormat)
    if explain_nan:
        from difflab.diagnose.point_check import checked_point

        function = subject.function
        point = checked_point(function, None, seed) if point is None else point
        aside = chosen is not ComparisonFormat.TABLE or destination is not None
        explain_point(function, point, aside=aside)
    options = {"methods": names, "order": order, "timeout": timeout, "seed": seed}
    options |= {"target": target, "timing": not no_timing, "verify": not no_verify}
    compared = subject.code or subject.text
    if stabilise and subject.code is not None:
        compared = subject.function if no_verify else verified(subject.text, subject.code)
    result = _compared(compared, point, stabilise, options)
    report = written(result, chosen, to_file=destination is not None)
    _deliver(result, report, destination, plot)
    return 0 if result.agreed else 1


def _each(
    expression: str,
    at: list[str],
    options: CompareOptions,
    form: ComparisonFormat | None,
    destination: Path | None,
    given: dict[str, Any],
) -> int:
    """Compare every formula of a text, and write the records together."""
    from difflab.cli.several import subjects, together

    chosen = report_format(form, destination, ComparisonFormat)
    given["--format html"] = chosen is ComparisonFormat.HTML
    for name, value in given.items():
        if value not in (None, False):
            raise InputError(f"{name} is for one formula", hint="omit it, or --each-line")
    results = [_compared(one.text, one.point, False, options) for one in subjects(expression, at)]
    write = partial(written, form=chosen, to_file=destination is not None)
    deliver(together(results, chosen, write), destination)
    return 0 if all(result.agreed for result in results) else 1


def _compared(
    expression: str | Function | CodeSubject,
    point: dict[str, Any] | None,
    stabilise: bool,
    options: CompareOptions,
) -> Comparison | SideBySide:
    from difflab.lab.compare import compare

    with ProgressLine(patience=1.0) as progress:
        if stabilise:
            from difflab.lab.side_by_side import compare_stabilised

            return compare_stabilised(expression, point, progress=progress, **options)  # type: ignore[arg-type]
        return compare(expression, point, progress=progress, **options)


def _deliver(
    result: Comparison | SideBySide, report: str, destination: Path | None, plot: Path | None
) -> None:
    """Write the report and, if requested, the picture."""
    files: dict[Path, bytes] = {}
    if plot is not None:
        from difflab.report.comparison.plots import picture

        shown = getattr(result, "stabilised", result)
        files[plot] = picture(shown, plot.suffix[1:].lower())
    deliver(report, destination, files)


def written(result: Comparison | SideBySide, form: ComparisonFormat, *, to_file: bool) -> str:
    """Return a comparison, or two side by side, in one of the formats."""
    if form is ComparisonFormat.JSON:
        return result.to_json() + "\n"
    from difflab.lab.record import Comparison
    from difflab.report.comparison import csv, formats

    writers: dict[ComparisonFormat, Callable[..., str]] = {
        ComparisonFormat.CSV: csv.csv,
        ComparisonFormat.MD: formats.markdown,
        ComparisonFormat.LATEX: formats.latex,
        ComparisonFormat.HTML: formats.page,
        ComparisonFormat.TABLE: partial(formats.table, **screen(to_file=to_file)),
    }
    if not isinstance(result, Comparison):
        from difflab.report.comparison import side_by_side

        writers = {
            ComparisonFormat.CSV: side_by_side.csv,
            ComparisonFormat.MD: side_by_side.markdown,
            ComparisonFormat.LATEX: side_by_side.latex,
            ComparisonFormat.HTML: side_by_side.page,
            ComparisonFormat.TABLE: partial(side_by_side.table, **screen(to_file=to_file)),
        }
    return writers[form](result)
