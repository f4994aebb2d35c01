"""``difflab graph``: the graph of a formula or of its derivative, as a picture or as text."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from difflab.cli.options import Expression, Kind, Output, Stabilise, parse_point, read_expression
from difflab.cli.output import check_destination, deliver, say, screen
from difflab.core.wording import without_comments
from difflab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from difflab.graph.function import Function
    from difflab.stabilisation.proof import Stabilised

__all__ = ["EXAMPLES", "Picture", "graph"]

EXAMPLES = """\b
difflab graph "ln(x1)+x1*x2-sin(x2)" -o graph.svg
difflab graph "x1*x2-sin(x2)" --derivative --at x1=2,x2=5 -o g.png
difflab graph "x*sin(y)" --at x=2,y=1 --values -o graph.svg
difflab graph "x^2*sin(y)" --format dot
difflab graph "log(exp(a) + exp(b)) + a^1" --passes --stabilise
difflab graph "W: [4, 3]; x: [3]; sum(relu(W @ x))" --memory
"""


class Picture(StrEnum):
    """What a graph is written as."""

    SVG = "svg"
    PNG = "png"
    DOT = "dot"
    MERMAID = "mermaid"


ENDINGS = {
    ".svg": Picture.SVG,
    ".png": Picture.PNG,
    ".dot": Picture.DOT,
    ".gv": Picture.DOT,
    ".mmd": Picture.MERMAID,
    ".mermaid": Picture.MERMAID,
}


Derivative = Annotated[
    bool, typer.Option("--derivative", help="Of the gradient (Jacobian) in reverse mode.")
]
AtBoxes = Annotated[
    list[str] | None,
    typer.Option(metavar="x1=2,x2=5", help="Show the values at this point in the boxes."),
]
Values = Annotated[
    bool, typer.Option("--values", help="Show values and derivatives at the arrows instead.")
]
AsPicture = Annotated[
    Picture | None,
    typer.Option("--format", help="By default what the name of -o ends in, else mermaid."),
]
Passes = Annotated[
    bool, typer.Option("--passes", help="Show what each pass makes of it, no picture.")
]
Memory = Annotated[
    bool, typer.Option("--memory", help="List what going backward keeps, no picture.")
]


def graph(
    expression: Expression,
    derivative: Derivative = False,
    of: Annotated[Kind | None, typer.Option("--of", help="Of this derivative instead.")] = None,
    at: AtBoxes = None,
    values: Values = False,
    form: AsPicture = None,
    output: Output = None,
    passes: Passes = False,
    stabilise: Stabilise = False,
    memory: Memory = False,
) -> int:
    """Draw the computational graph of EXPR, or of its derivative."""
    point = parse_point(at or [])
    destination = None if output is None else check_destination(output)
    table = "--passes" if passes else "--memory" if memory else ""
    if passes and memory:
        raise InputError("--passes and --memory are two tables", hint="leave one of them out")
    if table:
        _refuse_picture(table, {"--format": form, "--at": point, "--values": values or None})
    elif values and point is None:
        raise InputError("--values needs a point", hint="add --at, such as --at x=2")
    chosen = None if table else _format(form, destination)
    from difflab.language import parse

    function = parse(text := read_expression(expression))
    stable = _stabilised(function, aside=not passes) if stabilise else None
    if memory:
        deliver(_memory(function, stable, of, derivative), destination)
    elif chosen is None:
        aside = destination is not None
        deliver(_passes(function, stable, of, derivative, to_file=aside), destination)
    else:
        function = function if stable is None else stable.function
        place = None if point is None else _point_values(function, point, check=not values)
        drawn, title = _subject(function, without_comments(text), of, derivative)
        deliver(_drawing(drawn, title, place, values, chosen), destination)
    return 0


def _drawing(
    drawn: Function, title: str, place: list[Any] | None, values: bool, form: Picture
) -> str | bytes:
    from difflab.drawing import WRITERS, diagram

    picture = diagram(
        drawn,
        None if place is None else _all_values(drawn, place),
        cotangents=_cotangents(drawn, place) if values and place is not None else None,
        title=title,
    )
    return WRITERS[form](picture)


def _memory(
    function: Function, stable: Stabilised | None, of: Kind | None, derivative: bool
) -> str:
    """Return what going backward through the function, or its derivative, keeps."""
    from difflab.eager import memory

    subject, _ = _subject(function if stable is None else stable.function, "", of, derivative)
    return memory(subject).table() + "\n"


def _refuse_picture(table: str, options: dict[str, object]) -> None:
    """Refuse options that only pictures have."""
    for option, given in options.items():
        if given is not None:
            raise InputError(
                f"{table} writes a table, which has no {option}", hint="leave one of them out"
            )


def _stabilised(function: Function, *, aside: bool) -> Stabilised:
    """Return the function in stable forms; where it is rewritten is said beside a picture."""
    from difflab.report.passes import rewrites_text
    from difflab.stabilisation.proof import stabilise

    found = stabilise(function)
    if aside:
        say(rewrites_text(found))
    return found


def _passes(
    function: Function,
    stable: Stabilised | None,
    of: Kind | None,
    derivative: bool,
    *,
    to_file: bool,
) -> str:
    """Return what each pass makes of the function, or of its derivative."""
    from difflab.lab.pipeline import STABILISE, PassStep, run
    from difflab.report.passes import passes_table

    steps = [] if stable is None else [PassStep(STABILISE, function, stable.function)]
    subject, _ = _subject(function if stable is None else stable.function, "", of, derivative)
    steps += run(subject)
    return passes_table(steps, stable, **screen(to_file=to_file))


def _format(asked: Picture | None, destination: Path | None) -> Picture:
    """Return the format asked for, otherwise what the file's name ends in, otherwise Mermaid."""
    if destination is None:
        if asked is Picture.PNG:
            raise InputError("a PNG picture is written to a file", hint="add -o graph.png")
        return asked or Picture.MERMAID
    found = asked or ENDINGS.get(destination.suffix.lower())
    if found is None:
        raise InputError(
            f"cannot tell the kind of picture from {str(destination)!r}",
            hint=f"end the name in {', '.join(ENDINGS)}, or add --format",
        )
    return found


def _subject(
    function: Function, text: str, of: Kind | None, derivative: bool
) -> tuple[Function, str]:
    """Return what is drawn, the function or a derivative of it, and its title."""
    if of is None and not derivative:
        return function, text
    from difflab import autodiff

    kind = of or (Kind.GRADIENT if function.m == 1 else Kind.JACOBIAN)
    transforms: dict[Kind, Callable[[Function], Function]] = {
        Kind.GRADIENT: autodiff.gradient,
        Kind.JACOBIAN: autodiff.jacobian,
        Kind.HESSIAN: autodiff.hessian,
    }
    return transforms[kind](function), f"{kind} of {text}"


def _point_values(function: Function, point: dict[str, Any], *, check: bool) -> list[Any]:
    """Return the inputs' values; with `check`, at a point where the function is defined."""
    from difflab.diagnose.domain import check_domain
    from difflab.report.trace.trace import point_values

    values = point_values(function, point)
    if check:
        check_domain(function, values)
    return values


def _all_values(drawn: Function, values: list[Any]) -> list[Any]:
    from difflab.graph.function import evaluate_all

    return evaluate_all(drawn, values)


def _cotangents(drawn: Function, values: list[Any]) -> dict[int, Any]:
    from difflab.diagnose import node_cotangents

    return node_cotangents(drawn, values)
