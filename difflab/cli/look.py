"""The commands that show one function: ``trace``, ``graph``, ``explore`` and ``serve``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from difflab.cli.explain import ExplainNan, explain_point
from difflab.cli.functions import Subject
from difflab.cli.options import (
    DerivativeKind,
    ExpressionArgument,
    OutputOption,
    PointOption,
    StabiliseOption,
    parse_point,
)
from difflab.cli.output import deliver, emit, formatted, report_format, say, screen
from difflab.cli.program_text import LatexOption, formula
from difflab.core.system import check_destination
from difflab.core.wording import names_problem, without_comments
from difflab.errors import InputError, PointError

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.stabilisation.proof import Stabilised


TraceFormat = Literal["table", "json", "md", "latex", "html", "pdf"]
"""The output format of a trace."""


def trace(
    expression: ExpressionArgument,
    /,
    at: PointOption = None,
    mode: Literal["both", "forward", "reverse"] = "both",
    seed: str | None = None,
    opened: list[str] | None = None,
    form: TraceFormat | None = None,
    destination: OutputOption = None,
    explain_nan: ExplainNan = False,
    latex: LatexOption = False,
) -> int:
    """Show how EXPR and its derivative are evaluated, step by step.

    Parameters
    ----------
    mode
        The mode to show.
    seed : NAME
        The input to differentiate by (forward), or the output (reverse).
    opened : NAME
        Open this call, loop or branch (repeatable); all or none. By default calls are open and
        loops are closed.
    form
        By default the ending of -o's name, else a table.

    Examples
    --------
    difflab trace "ln(x1)+x1*x2-sin(x2)" --at x1=2,x2=5
    difflab trace "ln(x1)+x1*x2-sin(x2)" --at x1=2,x2=5 --mode forward --seed x2
    difflab trace "where(x>0, sqrt(x), 0)" --at x=0 -o trace.html
    difflab trace model:loss --at "w=[0.5,1],x=2" --open none
    """
    expression = formula(expression, latex=latex)
    chosen = report_format(form, destination, TraceFormat)
    subject = Subject.of(expression, at)
    from difflab.diagnose.point_check import checked_point
    from difflab.report.trace import text
    from difflab.report.trace.trace import SHOWN
    from difflab.report.trace.trace import trace as traced

    function, point = subject.function, subject.point_or_start
    limit = None if chosen == "json" else SHOWN
    if point is None:
        if function.inputs:
            say("no --at: a point inside the domain was chosen")
        point = checked_point(function, None)
    if explain_nan:
        aside = chosen != "table" or destination is not None
        explain_point(function, point, aside=aside)
    steps = traced(function, point, mode=mode, seed=seed, limit=limit, open=opened or None)
    deliver(formatted(steps, chosen, text, to_file=destination is not None), destination)
    return 0


GraphFormat = Literal["svg", "png", "dot", "mermaid"]
"""The output format of a graph."""


def graph(
    expression: ExpressionArgument,
    /,
    derivative: bool = False,
    of: DerivativeKind | None = None,
    at: list[str] | None = None,
    values: bool = False,
    depth: Annotated[int, typer.Option(min=0)] = 0,
    opened: list[str] | None = None,
    form: GraphFormat | None = None,
    destination: OutputOption = None,
    passes: bool = False,
    stabilise: StabiliseOption = False,
    memory: bool = False,
    latex: LatexOption = False,
) -> int:
    """Draw the computational graph of EXPR, or of its derivative.

    Parameters
    ----------
    derivative
        Draw the gradient (Jacobian) in reverse mode.
    of
        Draw this derivative.
    at : x1=2,x2=5
        Show the values at this point in the boxes.
    values
        Show values and cotangents at the arrows instead.
    depth : N
        Also draw the functions inside loops, branches and custom functions, N levels deep.
    opened : NAME
        Open this call, loop or branch (repeatable); all or none. By default calls are open
        while the picture stays readable.
    form
        By default the ending of -o's name, else mermaid.
    passes
        List what each pass changes; no picture.
    memory
        List the values kept for the reverse sweep; no picture.

    Examples
    --------
    difflab graph "ln(x1)+x1*x2-sin(x2)" -o graph.svg
    difflab graph "x1*x2-sin(x2)" --derivative --at x1=2,x2=5 -o g.png
    difflab graph "x*sin(y)" --at x=2,y=1 --values -o graph.svg
    difflab graph "x^2*sin(y)" --format dot
    difflab graph "log(exp(a) + exp(b)) + a^1" --passes --stabilise
    difflab graph "W: [4, 3]; x: [3]; sum(relu(W @ x))" --memory
    difflab graph model:loss --at "w=[0.5,1],x=2" --open layer -o graph.svg
    """
    expression = formula(expression, latex=latex)
    table = "--passes" if passes else "--memory" if memory else ""
    if passes and memory:
        raise InputError("--passes and --memory exclude each other", hint="omit one of them")
    if table:
        pictures = {"--values": values or None, "--depth": depth or None, "--open": opened or None}
        _refuse_picture(table, {"--format": form, **pictures})
    elif values and not at and not names_problem(expression):
        raise InputError("--values needs a point", hint="add --at, such as --at x=2")
    chosen = None if table else _format(form, destination)
    subject = Subject.of(expression, at)
    if table and subject.traced is None:
        _refuse_picture(table, {"--at": subject.point})
    from difflab.diagnose.point_check import checked_point
    from difflab.drawing import WRITERS
    from difflab.report.drawn import draw

    function, point = subject.function, subject.point_or_start if values else subject.point
    stable = _stabilised(function, report=not passes) if stabilise else None
    shown = function if stable is None else stable.function
    drawn, title = _drawn_function(shown, without_comments(subject.text), of, derivative)
    if memory:
        from difflab.eager import memory as memory_of

        deliver(memory_of(drawn).table() + "\n", destination)
    elif chosen is None:
        deliver(_passes(function, stable, drawn, to_file=destination is not None), destination)
    else:
        if point is not None:
            point = checked_point(shown, point, inside=not values)
        picture = draw(drawn, point, values=values, title=title, depth=depth, open=opened or None)
        deliver(WRITERS[chosen](picture.diagram), destination)
    return 0


def _refuse_picture(table: str, options: dict[str, object]) -> None:
    """Raise for options that apply only to pictures."""
    for option, value in options.items():
        if value is not None:
            raise InputError(
                f"{table} writes a table, to which {option} does not apply",
                hint="omit one of them",
            )


def _stabilised(function: Function, *, report: bool) -> Stabilised:
    """Return the function in stable forms; with `report`, list the rewrites on standard error."""
    from difflab.report.passes import rewrites_text
    from difflab.stabilisation.proof import stabilise

    stable = stabilise(function)
    if report:
        say(rewrites_text(stable))
    return stable


def _passes(
    function: Function, stable: Stabilised | None, drawn: Function, *, to_file: bool
) -> str:
    """Return the table of passes; a stabilised function gets one more row."""
    from difflab.report.passes import STABILISE, PassStep, passes_table

    steps = [] if stable is None else [PassStep(STABILISE, function, stable.function)]
    return passes_table([*steps, *drawn.passes()], stable, **screen(to_file=to_file))


def _format(requested: GraphFormat | None, destination: Path | None) -> str:
    """Return the requested format, else that of the file's ending, else Mermaid."""
    if destination is None:
        if requested == "png":
            raise InputError("a PNG picture must be written to a file", hint="add -o graph.png")
        return requested or "mermaid"
    from difflab.drawing import ENDINGS

    chosen = requested or ENDINGS.get(destination.suffix.lower())
    if chosen is None:
        raise InputError(
            f"cannot tell the format of the picture from {str(destination)!r}",
            hint=f"end the name in {', '.join(ENDINGS)}, or add --format",
        )
    return chosen


def _drawn_function(
    function: Function, text: str, of: DerivativeKind | None, derivative: bool
) -> tuple[Function, str]:
    """Return the function to draw, itself or a derivative of it, and its title."""
    if of is None and not derivative:
        return function, text
    kind = of or DerivativeKind.first(function)
    return kind.derivative(function), f"{kind} of {text}"


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


def serve(
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    name: list[str] | None = None,
    timeout: Annotated[float, typer.Option(min=0.1)] = 30.0,
) -> int:
    """Serve the page of explore with an editable formula; it stores nothing.

    Without --host it is reached from this machine only.

    Parameters
    ----------
    host : ADDRESS
        The interface to listen on.
    port
        The port; 0 chooses a free one.
    name : HOST
        A name under which others reach it (repeatable).
    timeout : SECONDS
        The time of one request.

    Examples
    --------
    difflab serve
    difflab serve --host 0.0.0.0 --name class.example.org --port 8000
    """
    from difflab.explore.server.app import Settings, application
    from difflab.explore.server.app import serve as served

    settings = Settings(_read_point, [*(name or ()), host], timeout)
    application(settings)

    def ready(address: str) -> None:
        emit(f"{address}\n")
        say("Ctrl-C stops the server")

    served(settings, host, port, ready)
    return 0


def _read_point(text: str) -> dict[str, Any] | None:
    """Return the point that a text names, which may not name files.

    Raises
    ------
    PointError
        The text cannot be read.
    """
    if "@" in text:
        start = text.index("@")
        raise PointError(
            "the server reads no files",
            text=text,
            span=(start, start + 1),
            hint="give numbers, x=2, or arrays, x=[1,2]",
        )
    return parse_point([text])
