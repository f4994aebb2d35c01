"""``difflab compare``: every method's derivative of one function, judged and measured."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from difflab.cli.declared import ONLY_OVER, comparison_options
from difflab.cli.explain import ExplainNan, explain_point
from difflab.cli.functions import Subject, verified
from difflab.cli.options import (
    ExpressionArgument,
    OutputOption,
    PlotOption,
    PointOption,
    StabiliseOption,
)
from difflab.cli.output import ProgressLine, deliver, formatted, report_format
from difflab.cli.program_text import LatexOption, formula
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.lab.code import CodeSubject
    from difflab.lab.record import Comparison
    from difflab.lab.side_by_side import SideBySide


ComparisonFormat = Literal["table", "json", "csv", "md", "latex", "html"]
"""The output format of a comparison."""


@comparison_options
def compare(
    expression: ExpressionArgument,
    /,
    at: PointOption = None,
    over: list[str] | None = None,
    *,
    form: ComparisonFormat | None = None,
    destination: OutputOption = None,
    plot: PlotOption = None,
    explain_nan: ExplainNan = False,
    stabilise: StabiliseOption = False,
    each_line: bool = False,
    latex: LatexOption = False,
    **options: Any,
) -> int:
    r"""Differentiate EXPR by every method; judge and measure each.

    Parameters
    ----------
    over : x1=0.1:10,x2=-5:5
        Judge at many points of these intervals instead.
    form
        By default the ending of -o's name, else a table.
    each_line
        Every line of EXPR, as of @file, is a formula of its own.

    Examples
    --------
    difflab compare "ln(x1)+x1*x2-sin(x2)"
    difflab compare "x^2*sin(y)" --at x=1.5,y=pi/3 --plot picture.svg
    difflab compare "1/(1+exp(-x))" --at x=-700 --stabilise
    difflab compare --latex "\frac{x_1}{x_2} \sin x_1"
    difflab compare @model.txt --at "w=[1,2,3]" -o model.json
    difflab compare model:loss --at "w=[0.5,1],x=2"
    difflab compare @formulas.txt --each-line --at @values.json
    difflab compare "ln(x1)+x1*x2-sin(x2)" --over x1=0.1:10,x2=-5:5 --plot map.png
    """
    sampled = {f"--{name}": given for name, given in options.items() if name in ONLY_OVER}
    if each_line:
        given = {"--over": over, **sampled, "--plot": plot, "--explain-nan": explain_nan}
        given |= {"--stabilise": stabilise, "--latex": latex}
        return _each(expression, at or [], options, form, destination, given)
    expression = formula(expression, latex=latex)
    if over or sampled:
        from difflab.cli.domain import DomainRequest, compare_over

        request = DomainRequest(expression, over or [], at or [], form, destination, plot)
        unused = {"--explain-nan": explain_nan, "--stabilise": stabilise}
        unused["--no-timing"] = not options.pop("timing")
        return compare_over(request, options, [name for name, given in unused.items() if given])
    subject = Subject.of(expression, at, runs=not (explain_nan or stabilise))
    point = subject.point_or_start
    chosen = report_format(form, destination, ComparisonFormat)
    if explain_nan:
        from difflab.diagnose.point_check import checked_point

        function = subject.function
        point = checked_point(function, None, options["seed"]) if point is None else point
        aside = chosen != "table" or destination is not None
        explain_point(function, point, aside=aside)
    compared = subject.code or subject.text
    if stabilise and subject.code is not None:
        verify = options["verify"]
        compared = verified(subject.text, subject.code) if verify else subject.function
    result = _compared(compared, point, stabilise, options)
    report = _written(result, chosen, to_file=destination is not None)
    _deliver(result, report, destination, plot)
    return 0 if result.agreed else 1


def _each(
    expression: str,
    at: list[str],
    options: Mapping[str, Any],
    form: ComparisonFormat | None,
    destination: Path | None,
    given: dict[str, Any],
) -> int:
    """Compare every formula of a text, and write the records together."""
    from difflab.cli.several import subjects, together

    chosen = report_format(form, destination, ComparisonFormat)
    given["--format html"] = chosen == "html"
    for name, value in given.items():
        if value not in (None, False):
            raise InputError(f"{name} is for one formula", hint="omit it, or --each-line")
    results = [_compared(one.text, one.point, False, options) for one in subjects(expression, at)]
    write = partial(_written, form=chosen, to_file=destination is not None)
    deliver(together(results, chosen, write), destination)
    return 0 if all(result.agreed for result in results) else 1


def _compared(
    expression: str | Function | CodeSubject,
    point: dict[str, Any] | None,
    stabilise: bool,
    options: Mapping[str, Any],
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


def _written(result: Comparison | SideBySide, form: ComparisonFormat, *, to_file: bool) -> str:
    """Return a comparison, or two side by side, in one of the formats."""
    from difflab.lab.record import Comparison
    from difflab.report.comparison import formats as reports

    if not isinstance(result, Comparison):
        from difflab.report.comparison import side_by_side as reports  # type: ignore[no-redef]
    return str(formatted(result, form, reports, to_file=to_file))
