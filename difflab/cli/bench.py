"""``difflab bench accuracy|swell|cost|memory|adbench|peers``: pictures, their data beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from difflab.cli.options import (
    At,
    ExpressionCommand,
    Timeout,
    parse_names,
    parse_point,
    read_expression,
)
from difflab.cli.output import ProgressLine, emit, say, screen, write_files
from difflab.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from difflab.bench.accuracy import Subject
    from difflab.graph.function import Function
    from difflab.lab.sweep import SweepLayout, SweepRow, Task

__all__ = ["bench"]

bench = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Draw accuracy, swell, cost, memory, ADBench or the peers, with the data as CSV.",
)

# Baydin et al. (2018), Figure 3: the logistic map's fourth iterate.
_FIGURE_3 = "64*x*(1 - x)*(1 - 2*x)^2*(1 - 8*x + 8*x*x)^2"
_FIGURE_3_AT = {"x": 0.2}


class Kind(StrEnum):
    """What a picture is written as."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


Folder = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Where the picture and CSV go.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer sizes: seconds instead of minutes.")]
Picture = Annotated[Kind, typer.Option("--format", help="What the picture is written as.")]
REPORTS = Path("reports")
_MOST_POINTS = 100_000_000
_WRITTEN_OUT = 16  # numbers of an input in a row's key; of more there is a hash
_START = 200  # characters of a long formula in its rows
_LONGEST_TEXT = 2000  # characters of a formula in every row; of a longer one there is a hash


@bench.command(cls=ExpressionCommand)
def accuracy(
    expression: Annotated[
        str, typer.Argument(metavar="[EXPR]", help="By default the paper's Figure 3 at x = 0.2.")
    ] = "",
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="x1=2,x2=5", help="The point; otherwise one is chosen."),
    ] = None,
    output: Folder = REPORTS,
    quick: Quick = False,
    form: Picture = Kind.SVG,
) -> None:
    """Error against step size, for every difference formula and method."""
    from difflab.bench import accuracy as lab
    from difflab.bench import drawing as report

    subject = _subject(
        read_expression(expression) if expression else _FIGURE_3, at or [], not expression
    )
    tasks = lab.tasks(subject, lab.steps(2 if quick else 8))
    rows = _measured(output / "accuracy.csv", lab.LAYOUT, tasks)
    _drawn(output / f"accuracy.{form}", rows, report.accuracy)


@bench.command()
def swell(
    output: Folder = REPORTS,
    quick: Quick = False,
    form: Picture = Kind.SVG,
    timeout: Timeout = 10.0,
) -> None:
    """Expression size against depth: written out, simplified, shared, and both AD modes."""
    from difflab.bench import drawing as report
    from difflab.bench import swell as lab

    depths = {
        name: sizes[: 1 + len(sizes) // 2] if quick else sizes for name, sizes in lab.DEPTHS.items()
    }
    rows = _measured(output / "swell.csv", lab.LAYOUT, lab.tasks(depths, timeout))
    _drawn(output / f"swell.{form}", rows, report.swell)


@bench.command()
def cost(
    output: Folder = REPORTS,
    quick: Quick = False,
    form: Picture = Kind.SVG,
    timeout: Timeout = 10.0,
) -> None:
    """Operations and time against inputs and outputs, with forward and reverse crossing."""
    from difflab.bench import cost as lab
    from difflab.bench import drawing as report

    sizes = lab.SIZES[:5] if quick else lab.SIZES
    rows = _measured(output / "cost.csv", lab.LAYOUT, lab.tasks(sizes, timeout))
    _drawn(output / f"cost.{form}", rows, report.cost)


@bench.command()
def memory(
    output: Folder = REPORTS,
    quick: Quick = False,
    form: Picture = Kind.SVG,
) -> None:
    """Memory against recomputation, for the gradient of chains with checkpoints."""
    from difflab.bench import memory as lab
    from difflab.bench import memory_drawing as report

    lengths = lab.LENGTHS[:2] if quick else lab.LENGTHS
    rows = _measured(output / "memory.csv", lab.LAYOUT, lab.tasks(lengths))
    _drawn(output / f"memory.{form}", rows, report.memory)


@bench.command()
def adbench(
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder `data` of Microsoft ADBench.")
    ],
    problems: Annotated[
        str, typer.Option(metavar="gmm,ba,…", help="Which problems are measured.")
    ] = "gmm,ba,lstm,hand",
    peers: Annotated[
        str, typer.Option(metavar="jax,…", help="What difflab is compared with.")
    ] = "torch,jax,autograd",
    large: Annotated[
        bool, typer.Option("--large", help="Also instances of more than 100,000 points.")
    ] = False,
    output: Folder = REPORTS,
    form: Picture = Kind.SVG,
) -> None:
    """Jacobian time over objective time on ADBench's problems, beside peers, answers checked."""
    from difflab.bench.adbench import bench as lab
    from difflab.bench.adbench import drawing as report

    found = lab.chosen(data, parse_names(problems) or [], large=large)
    others = parse_names(peers or None) or []
    tools = ["difflab", *(name for name in others if name != "difflab")]
    rows = _measured(output / "adbench.csv", lab.LAYOUT, lab.tasks(data, found, tools))
    emit(report.text(rows, **screen(usual=110)))
    path = output / f"adbench.{form}"
    document = json.dumps(lab.document(rows), indent=1, allow_nan=False) + "\n"
    write_files({path: report.picture(rows, form), path.with_suffix(".json"): document.encode()})
    emit("".join(f"{path.with_suffix(suffix)}\n" for suffix in (path.suffix, ".json", ".csv")))
    if any(row["status"] == "wrong" for row in rows):
        raise typer.Exit(1)


@bench.command(cls=ExpressionCommand)
def peers(
    expression: Annotated[
        str, typer.Argument(metavar="[EXPR]", help="By default the seed, ln(x1)+x1*x2-sin(x2).")
    ] = "",
    at: At = None,
    points: Annotated[
        str, typer.Option(metavar="N,N", help="How many points at once.")
    ] = "1,1000,1000000",
    names: Annotated[
        str | None,
        typer.Option("--peers", metavar="a,b", help="Only these; otherwise what is installed."),
    ] = None,
    output: Folder = REPORTS,
    quick: Quick = False,
    form: Picture = Kind.SVG,
    timeout: Annotated[
        float, typer.Option(min=0.01, metavar="SECONDS", help="For measuring one row.")
    ] = 5.0,
) -> int:
    """Value and gradient beside JAX, PyTorch, …: equal work, equal answers, ratios."""
    from difflab.bench.peers import bench as lab
    from difflab.bench.peers import drawing as report
    from difflab.diagnose.point_check import checked_point

    sizes = _counts(points)
    text = read_expression(expression) if expression else lab.SEED
    function, point, packed = _placed(text, at or [], None if expression else lab.SEED_AT)
    subject = lab.Subject(function, packed, _named(text), _shown(checked_point(function, point)))
    chosen = lab.contenders(parse_names(names))
    if not set(chosen) - set(lab.OWN):
        say("no peer is installed; add them with: pip install 'difflab[peers]'")
    # A quick look has fewer points and less time, which is part of what was measured.
    sizes, timeout = (sizes[:2], min(timeout, 1.0)) if quick else (sizes, timeout)
    tasks = lab.tasks(subject, chosen, sizes, timeout)
    rows = _measured(output / "peers.csv", lab.LAYOUT, tasks)
    emit(report.table(rows, **screen()) + "\n")
    _drawn(output / f"peers.{form}", rows, report.peers)
    return int(any(row["status"] == "disagree" for row in rows))


def _counts(text: str) -> list[int]:
    """Return the numbers of points asked for, each once."""
    found = []
    for word in parse_names(text) or []:
        if not word.isdecimal() or not 1 <= int(word) <= _MOST_POINTS:
            raise InputError(
                f"{word!r} is no number of points", hint=f"whole numbers from 1 to {_MOST_POINTS:,}"
            )
        found.append(int(word))
    return sorted(dict.fromkeys(found))


def _placed(
    text: str, at: Sequence[str], standard: Mapping[str, float] | None
) -> tuple[Function, Mapping[str, Any], NDArray[np.float64]]:
    """Return the function, its point (given, standard or chosen), and the point packed."""
    import numpy as np

    from difflab.diagnose.points import choose_point
    from difflab.language import parse

    function = parse(text)
    given = parse_point(at) or standard
    point = choose_point(function) if given is None else given
    return function, point, np.concatenate(list(map(np.ravel, function.arranged((), point))))


def _shown(point: Mapping[str, Any]) -> str:
    """Return the point as the key of its rows: no other point has the same."""
    import numpy as np

    return ", ".join(f"{name} = {_exact(np.asarray(value))}" for name, value in point.items())


def _named(text: str) -> str:
    """Return a formula as the key of its rows; of a long one the beginning and a hash of all."""
    if len(text) <= _LONGEST_TEXT:
        return text
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[:_START]}… {len(text):,} characters, SHA-256 {digest}…"


def _exact(value: NDArray[np.float64]) -> str:
    """Return every digit of some numbers; of many the shape, and a hash of all their bits."""
    if value.size <= _WRITTEN_OUT:
        return str(value.tolist())
    digest = sha256(value.tobytes()).hexdigest()[:16]
    return f"{'×'.join(map(str, value.shape))} numbers, SHA-256 {digest}…"


def _subject(text: str, at: Sequence[str], standard: bool) -> Subject:
    """Return the function, its point, and its derivative by the referee."""
    from difflab.bench.accuracy import Subject
    from difflab.referee.referee import refer

    function, point, packed = _placed(text, at, _FIGURE_3_AT if standard else None)
    truth = refer(function, packed.tolist())
    if truth.status != "smooth":
        raise InputError(
            f"the derivative is {truth.status} at this point, so an error against it says nothing",
            hint="choose another point with --at",
        )
    return Subject(function, packed, truth.jacobian, _named(text), _shown(point))


def _measured(path: Path, layout: SweepLayout, tasks: Iterable[Task]) -> list[SweepRow]:
    """Run a sweep with progress; an interruption says what is kept and how to go on."""
    from difflab.lab.sweep import run

    progress = ProgressLine()
    try:
        return run(path, layout, tasks, progress, say)
    except KeyboardInterrupt:
        progress.clear()
        say(f"stopped; what is measured is kept in {path}, and the same command goes on from it")
        raise


def _drawn(path: Path, rows: Sequence[SweepRow], draw: Callable[..., Any]) -> None:
    write_files({path: draw(rows, path.suffix[1:])})
    emit(f"{path}\n{path.with_suffix('.csv')}\n")
