"""``difflab compare``: every method's derivative of one function, judged and measured.

Its options are the declared options of comparisons, and those of the command itself. With
``--over``, every method is judged over a domain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from difflab.cli.explain import ExplainNan, explain_point
from difflab.cli.functions import Subject, is_function, verified
from difflab.cli.options import (
    ExpressionArgument,
    OutputOption,
    PlotOption,
    PointOption,
    StabiliseOption,
    one_of,
    parse_names,
    parse_point,
)
from difflab.cli.output import CommandProgressLine, deliver, formatted, report_format, say
from difflab.cli.program_text import LatexOption, formula, read_expression
from difflab.core.place import SourceLocation
from difflab.core.wording import names_problem
from difflab.errors import InputError, ParseError, PointError
from difflab.graph.names import missing_values
from difflab.lab.options import CompareOptions, DomainOptions, Option, declared, inserted

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.lab.code import CodeSubject
    from difflab.lab.domain.record import DomainComparison
    from difflab.lab.record import Comparison
    from difflab.lab.side_by_side import SideBySide


_DECLARED = declared(CompareOptions, DomainOptions)
_ONLY_OVER = _DECLARED.keys() - declared(CompareOptions).keys()
"""The options of a domain alone, which a command gets if they are given."""


def _comparison_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command with ``**options`` those of a comparison, as `difflab.compare` takes them."""
    shown = [_parameter(name, *each) for name, each in _DECLARED.items() if each[1].help]

    @wraps(command)
    def call(*arguments: Any, **options: Any) -> int:
        for name in (each.name for each in shown):
            if options[name] is None and name in _ONLY_OVER:
                del options[name]
            elif _DECLARED[name][0] is bool:
                options[name] = not options[name]
        return command(*arguments, **options)

    own = inspect.signature(command, eval_str=True)
    call.__signature__ = inserted(own, shown)  # type: ignore[attr-defined]
    return call


def _parameter(name: str, kind: Any, option: Option) -> Parameter:
    """Return the parameter of an option; a boolean one is ``--no-NAME``."""
    kinds = [get_origin(one) for one in get_args(kind)]
    parser = next((_PARSERS[one] for one in kinds if one in _PARSERS), None)
    form = typer.Option(
        *[f"--no-{name}"] * (kind is bool),
        help=option.help,
        metavar=option.metavar,
        min=option.least,
        max=option.most,
        parser=parser,
    )
    default = None if name in _ONLY_OVER else kind is not bool and option.default
    plain: Any = str if parser else kind
    parts: Any = (plain | None if default is None else plain, form)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[parts])


def _parse_scales(text: str) -> dict[str, str]:
    """Return the scales of ``--scale x1=log,x2=linear``.

    Raises
    ------
    InputError
        One is not written as ``name=log``.

    Examples
    --------
    >>> _parse_scales("x1=log, x2=linear")
    {'x1': 'log', 'x2': 'linear'}
    """
    scales: dict[str, str] = {}
    for item in parse_names(text) or []:
        name, equals, scale = item.partition("=")
        if not equals or not name.strip():
            raise InputError(f"a scale is written as name=log, not {item!r}", hint="--scale x1=log")
        scales[name.strip()] = scale.strip()
    return scales


_PARSERS: dict[Any, Callable[[str], Any]] = {Sequence: parse_names, Mapping: _parse_scales}


ComparisonFormat = Literal["table", "json", "csv", "md", "latex", "html"]
"""The output format of a comparison."""


@_comparison_options
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
    sampled = {f"--{name}": value for name, value in options.items() if name in _ONLY_OVER}
    if each_line:
        settings = {"--over": over, **sampled, "--plot": plot, "--explain-nan": explain_nan}
        settings |= {"--stabilise": stabilise, "--latex": latex}
        return _each(expression, at or [], options, form, destination, settings)
    expression = formula(expression, latex=latex)
    if over or sampled:
        unused = {"--explain-nan": explain_nan, "--stabilise": stabilise}
        unused["--no-timing"] = not options.pop("timing")
        return _compare_over(
            expression, over or [], at or [], form, destination, plot, options, unused
        )
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
    files: dict[Path, bytes] = {}
    if plot is not None:
        from difflab.report.comparison.plots import picture

        files[plot] = picture(getattr(result, "stabilised", result), plot.suffix[1:].lower())
    deliver(report, destination, files)
    return 0 if result.agreed else 1


def _each(
    expression: str,
    at: list[str],
    options: Mapping[str, Any],
    form: ComparisonFormat | None,
    destination: Path | None,
    settings: dict[str, Any],
) -> int:
    """Compare every formula of a text, and write the records together."""
    chosen = report_format(form, destination, ComparisonFormat)
    settings["--format html"] = chosen == "html"
    for name, value in settings.items():
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

    with CommandProgressLine(patience=1.0) as progress:
        if stabilise:
            from difflab.lab.side_by_side import compare_stabilised

            return compare_stabilised(expression, point, progress=progress, **options)  # type: ignore[arg-type]
        return compare(expression, point, progress=progress, **options)


def _written(result: Comparison | SideBySide, form: ComparisonFormat, *, to_file: bool) -> str:
    """Return a comparison, or two side by side, in one of the formats."""
    from difflab.lab.record import Comparison
    from difflab.report.comparison import formats as reports

    if not isinstance(result, Comparison):
        from difflab.report.comparison import side_by_side as reports  # type: ignore[no-redef]
    return str(formatted(result, form, reports, to_file=to_file))


# --- a formula on each line -------------------------------------------------------------------


def formulas(argument: str) -> list[tuple[int, str]]:
    """Return the formulas of EXPR, one a line, each with its line number; ``#`` begins a comment.

    Raises
    ------
    InputError
        There is none, or EXPR is not a text of formulas.
    """
    if names_problem(argument) or is_function(argument):
        hint = "write difflab compare @formulas.txt --each-line"
        raise InputError("--each-line is for a text of formulas, one a line", hint=hint)
    lines = enumerate(read_expression(argument).splitlines(), 1)
    bare = [(number, line.partition("#")[0].strip()) for number, line in lines]
    numbered = [(number, line) for number, line in bare if line]
    if not numbered:
        raise InputError("there is no formula in the text", hint="write one formula a line")
    return numbered


def subjects(argument: str, at: Sequence[str]) -> list[Subject]:
    """Return the formulas of EXPR, each with the values of ``--at`` that it needs.

    Raises
    ------
    InputError
        A formula cannot be read, the error names its line; or ``--at`` gives a value to a name
        that no formula has.
    """
    point = parse_point(at)
    functions = [(number, _function(number, line, point)) for number, line in formulas(argument)]
    used = {name for _, function in functions for name in function.inputs}
    for name in point or ():
        if name not in used:
            one_of(name, sorted(used), "input of the formulas,")
    return [Subject(str(f.text), _part(number, point, f)) for number, f in functions]


def _function(number: int, line: str, point: Mapping[str, Any] | None) -> Function:
    from difflab.language import given_names, parse

    try:
        return parse(line, given_names(point))
    except ParseError as error:
        message = f"{error.message} (line {number})"
        raise ParseError(message, text=line, span=error.span, hint=error.hint) from error


def _part(
    number: int, point: Mapping[str, Any] | None, function: Function
) -> dict[str, Any] | None:
    """Return the values of a formula's inputs."""
    if point is None:
        return None
    missing = [name for name in function.inputs if name not in point]
    if missing:
        hint = "give every formula its values, or none to have points chosen"
        raise PointError(f"{missing_values(missing)} (line {number})", hint=hint)
    return {name: value for name, value in point.items() if name in function.inputs}


def together(results: Sequence[Any], form: str, write: Callable[[Any], str]) -> str:
    """Return all comparisons: a JSON array, one table of CSV, or one after the other."""
    if form == "json":
        from difflab.core import strict_json

        return strict_json.dumps([result.to_dict() for result in results]) + "\n"
    texts = [write(result) for result in results]
    if form == "csv":
        return texts[0] + "".join(text.partition("\n")[2] for text in texts[1:])
    return "\n".join(texts)


# --- over a domain ----------------------------------------------------------------------------


DomainFormat = Literal["table", "json", "csv", "md", "html", "parquet"]
"""The output format of a comparison over a domain."""


def _compare_over(
    expression: str,
    over: Sequence[str],
    at: Sequence[str],
    form: str | None,
    destination: Path | None,
    plot: Path | None,
    options: dict[str, Any],
    unused: Mapping[str, bool],
) -> int:
    """Judge every method over a domain, and write the result.

    Finished blocks are kept beside the file of ``-o`` until that is written, so that the same
    command goes on after an interruption.
    """
    if not over:
        raise InputError("--points and --scale are for a domain", hint="--over x1=0.1:10")
    for name, setting in unused.items():
        if setting:
            raise InputError(f"{name} is for one point, and --over gives a domain")
    ranges = parse_ranges(over)
    from difflab.lab.domain.compare import middle_of

    subject = Subject.of(expression, at, runs=True, over=middle_of(ranges))
    chosen = report_format(form, destination, DomainFormat)
    if chosen not in get_args(DomainFormat):
        accepted = ", ".join(get_args(DomainFormat))
        raise InputError(f"a comparison over a domain has no format {chosen}", hint=accepted)
    if chosen == "parquet":
        from difflab.core.optional import require

        require("pyarrow", extra="parquet")
    if destination is not None:
        options["resume"] = destination.with_name(f"{destination.name}.partial")
    point = subject.point
    if subject.code is not None and point is not None:
        point = {name: value for name, value in point.items() if name not in ranges}
    result = _compared_over(subject, ranges, point, options)
    from difflab.report.domain import formats

    files: dict[Path, bytes] = {}
    if plot is not None:
        from difflab.report.domain.plots import picture

        files[plot] = picture(result, plot.suffix[1:].lower())
    report = formatted(result, chosen, formats, to_file=destination is not None)
    deliver(report, destination, files)
    return 0 if result.agreed else 1


def parse_ranges(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the intervals of the ``--over`` options, such as ``x1=0.1:10,x2=-pi:pi``.

    Raises
    ------
    PointError
        An option cannot be read, or gives a name twice; the error marks the text.

    Examples
    --------
    >>> parse_ranges(["x=0:1, y=-1e3:pi/2"])
    {'x': (0.0, 1.0), 'y': (-1000.0, 1.5707963267948966)}
    """
    ranges: dict[str, tuple[float, float]] = {}
    for text in texts:
        start = 0
        for item in text.split(","):
            name, _, value = item.partition("=")
            low, _, high = value.partition(":")
            name = name.strip()
            location = SourceLocation(text or None, (start, start + max(len(item), 1)))
            start += len(item) + 1
            if not (name and low.strip() and high.strip()):
                fault = "an interval is written as name=low:high"
                raise location.error(PointError, fault, "x1=0.1:10,x2=-5:5")
            if name in ranges:
                raise location.error(PointError, f"{name!r} is given twice")
            ends = [(parse_point([f"{name}={end.strip()}"]) or {})[name] for end in (low, high)]
            ranges[name] = (ends[0], ends[1])
    return ranges


def _compared_over(
    subject: Subject, over: dict[str, Any], at: dict[str, Any] | None, options: dict[str, Any]
) -> DomainComparison:
    from difflab.lab.domain.compare import compare_domain

    expression = subject.code or subject.text
    with CommandProgressLine(patience=1.0) as progress:
        return compare_domain(expression, over, at, progress=progress, notify=say, **options)
