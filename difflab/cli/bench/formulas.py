"""The benchmarks of one formula of the user's at a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from difflab.cli.bench.points import function_at, point_key
from difflab.cli.bench.running import (
    REPORTS,
    FolderOption,
    FormatOption,
    PictureFormat,
    QuickOption,
    drawn,
    measured,
    run,
)
from difflab.cli.options import (
    PointOption,
    TimeoutOption,
    expression_key,
    parse_names,
    read_expression,
)
from difflab.cli.output import emit, say, screen
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.bench.accuracy import AccuracyCase

__all__ = ["accuracy", "peers", "precision"]

# Baydin et al. (2018), Figure 3: the logistic map's fourth iterate.
_FIGURE_3 = "64*x*(1 - x)*(1 - 2*x)^2*(1 - 8*x + 8*x*x)^2"
_FIGURE_3_AT = {"x": 0.2}
_MOST_POINTS = 100_000_000


def accuracy(
    expression: Annotated[
        str, typer.Argument(metavar="[EXPR]", help="By default the paper's Figure 3 at x = 0.2.")
    ] = "",
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="x1=2,x2=5", help="The point; by default one is chosen."),
    ] = None,
    output: FolderOption = REPORTS,
    quick: QuickOption = False,
    form: FormatOption = PictureFormat.SVG,
) -> None:
    """Run the benchmark of the error against the step."""
    from difflab.bench import accuracy as module

    case = accuracy_case(
        read_expression(expression) if expression else _FIGURE_3,
        at or [],
        figure_3=not expression,
    )
    tasks = module.tasks(case, module.steps(2 if quick else 8))
    run("accuracy", module, tasks, output, form)


def precision(
    expression: Annotated[
        str, typer.Argument(metavar="[EXPR]", help="By default the paper's Figure 3 at x = 0.2.")
    ] = "",
    at: PointOption = None,
    methods: Annotated[
        str | None,
        typer.Option(metavar="a,b", help="Only these; by default all, and installed peers."),
    ] = None,
    output: FolderOption = REPORTS,
    quick: QuickOption = False,
    form: FormatOption = PictureFormat.SVG,
    timeout: TimeoutOption = 10.0,
) -> None:
    """Run the benchmark of the error against the time."""
    from difflab.bench import precision as module
    from difflab.methods.registry import select

    case = accuracy_case(
        read_expression(expression) if expression else _FIGURE_3,
        at or [],
        figure_3=not expression,
    )
    chosen = select(parse_names(methods) or "all")
    tasks = module.tasks(case, chosen, timeout, per_decade=2 if quick else 8)
    run("precision", module, tasks, output, form)


def peers(
    expression: Annotated[
        str, typer.Argument(metavar="[EXPR]", help="By default the seed, ln(x1)+x1*x2-sin(x2).")
    ] = "",
    at: PointOption = None,
    points: Annotated[
        str, typer.Option(metavar="N,N", help="The numbers of points in a batch.")
    ] = "1,1000,1000000",
    names: Annotated[
        str | None,
        typer.Option("--peers", metavar="a,b", help="Only these; by default all installed ones."),
    ] = None,
    output: FolderOption = REPORTS,
    quick: QuickOption = False,
    form: FormatOption = PictureFormat.SVG,
    timeout: Annotated[
        float, typer.Option(min=0.01, metavar="SECONDS", help="The time limit of one row.")
    ] = 5.0,
) -> int:
    """Run the benchmark of calls beside other packages."""
    from difflab.bench.peers import bench as module
    from difflab.bench.peers.drawing import table

    sizes = batch_sizes(points)
    text = read_expression(expression) if expression else module.SEED
    function, point, packed = function_at(text, at or [], None if expression else module.SEED_AT)
    case = module.PeerCase(function, packed, expression_key(text), point_key(point))
    contenders = module.contenders(parse_names(names))
    if not set(contenders) - set(module.OWN):
        say("no peer is installed; add them with: pip install 'difflab[peers]'")
    # `--quick` means fewer points and less time; the time limit is recorded in the rows.
    sizes, timeout = (sizes[:2], min(timeout, 1.0)) if quick else (sizes, timeout)
    rows = measured(output / "peers.csv", module, module.tasks(case, contenders, sizes, timeout))
    emit(table(rows, **screen()) + "\n")
    drawn(output / f"peers.{form}", module, rows)
    return int(any(row["status"] == "disagree" for row in rows))


def batch_sizes(text: str) -> list[int]:
    """Return the numbers of points in a list, sorted, without duplicates."""
    sizes = []
    for word in parse_names(text) or []:
        if not word.isdecimal() or not 1 <= int(word) <= _MOST_POINTS:
            raise InputError(
                f"{word!r} is not a number of points",
                hint=f"give integers from 1 to {_MOST_POINTS:,}",
            )
        sizes.append(int(word))
    return sorted(dict.fromkeys(sizes))


def accuracy_case(text: str, at: Sequence[str], *, figure_3: bool) -> AccuracyCase:
    """Return the function, its point, and its derivative by the referee."""
    from difflab.bench.accuracy import AccuracyCase
    from difflab.referee.referee import refer

    function, point, packed = function_at(text, at, _FIGURE_3_AT if figure_3 else None)
    truth = refer(function, packed.tolist())
    if truth.status != "smooth":
        raise InputError(
            f"the derivative is {truth.status} at this point: no error against it is defined",
            hint="choose another point with --at",
        )
    return AccuracyCase(function, packed, truth.jacobian, expression_key(text), point_key(point))
