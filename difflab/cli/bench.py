"""``difflab bench NAME``: a subcommand for every benchmark of `difflab.bench.registry`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from difflab.bench.registry import BENCHMARKS, Benchmark, BenchmarkModule
from difflab.cli.options import (
    ExpressionCommand,
    PointOption,
    TimeoutOption,
    expression_key,
    parse_names,
    parse_point,
    read_expression,
)
from difflab.cli.output import ProgressLine, emit, say, screen, write_files
from difflab.cli.problems import chosen_problems
from difflab.core.quantities import shape_text
from difflab.core.wording import names_problem
from difflab.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from difflab.bench.accuracy import AccuracyCase
    from difflab.graph.function import Function
    from difflab.lab.sweep import SweepRow, Task

__all__ = ["bench"]

bench = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run a benchmark; write its picture, and its data as CSV.",
)

# Baydin et al. (2018), Figure 3: the logistic map's fourth iterate.
_FIGURE_3 = "64*x*(1 - x)*(1 - 2*x)^2*(1 - 8*x + 8*x*x)^2"
_FIGURE_3_AT = {"x": 0.2}


class PictureFormat(StrEnum):
    """The file format of a picture."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


FolderOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="DIR", help="The folder of the picture and the CSV."),
]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="Fewer sizes: seconds instead of minutes.")
]
FormatOption = Annotated[PictureFormat, typer.Option("--format", help="The picture's format.")]
REPORTS = Path("reports")
_MOST_POINTS = 100_000_000
_MOST_ELEMENTS = 16  # of an input written out in a row's key; a larger input is hashed


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
    from difflab.bench import accuracy as module

    case = _accuracy_case(
        read_expression(expression) if expression else _FIGURE_3,
        at or [],
        figure_3=not expression,
    )
    tasks = module.tasks(case, module.steps(2 if quick else 8))
    _run("accuracy", module, tasks, output, form)


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
    from difflab.bench import precision as module
    from difflab.methods.registry import select

    case = _accuracy_case(
        read_expression(expression) if expression else _FIGURE_3,
        at or [],
        figure_3=not expression,
    )
    chosen = select(parse_names(methods) or "all")
    tasks = module.tasks(case, chosen, timeout, per_decade=2 if quick else 8)
    _run("precision", module, tasks, output, form)


def adbench(
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder `data` of Microsoft ADBench.")
    ],
    problems: Annotated[
        str, typer.Option(metavar="gmm,ba,…", help="The problems to measure.")
    ] = "gmm,ba,lstm,hand",
    peers: Annotated[
        str, typer.Option(metavar="jax,…", help="The packages to compare with.")
    ] = "torch,jax,autograd",
    large: Annotated[
        bool, typer.Option("--large", help="Also instances of more than 100,000 points.")
    ] = False,
    output: FolderOption = REPORTS,
    form: FormatOption = PictureFormat.SVG,
) -> None:
    from difflab.bench.adbench import bench as module
    from difflab.bench.adbench.drawing import text

    instances = module.chosen(data, parse_names(problems) or [], large=large)
    others = parse_names(peers or None) or []
    tools = ["difflab", *(name for name in others if name != "difflab")]
    rows = _rows(output / "adbench.csv", module, module.tasks(data, instances, tools))
    emit(text(rows, **screen(usual=110)))
    path = output / f"adbench.{form}"
    document = json.dumps(module.document(rows), indent=1, allow_nan=False) + "\n"
    write_files({path: module.draw(rows, form), path.with_suffix(".json"): document.encode()})
    emit("".join(f"{path.with_suffix(suffix)}\n" for suffix in (path.suffix, ".json", ".csv")))
    if any(row["status"] == "wrong" for row in rows):
        raise typer.Exit(1)


def dimensions(
    family: Annotated[
        str,
        typer.Argument(
            metavar="[FAMILY]",
            help="A formula with the sizes n and m, as in 'x: [n]; W: [m, n]; W@x', or"
            " module:function of sizes that returns a function and its example arguments.",
        ),
    ] = "",
    n: Annotated[
        str, typer.Option("--n", metavar="1:4096", help="Sizes, doubled; or a list 1,10,100.")
    ] = "1:64",
    m: Annotated[str | None, typer.Option("--m", metavar="1:256", help="Likewise; 1:16.")] = None,
    methods: Annotated[
        str | None,
        typer.Option(metavar="a,b", help="Only these; by default all, and installed peers."),
    ] = None,
    output: FolderOption = REPORTS,
    quick: QuickOption = False,
    form: FormatOption = PictureFormat.SVG,
    timeout: TimeoutOption = 10.0,
) -> None:
    from difflab.bench.dimensions import bench as module
    from difflab.cli.families import size_family, sizes
    from difflab.methods.registry import select

    chosen = size_family(family or module.DEFAULT)
    ranges = sizes(chosen.family, n, m)
    if quick:
        ranges = ranges[0][:4], ranges[1][:2]
    chosen.try_smallest(ranges)
    tasks = module.tasks(chosen.family, ranges, select(parse_names(methods) or "all"), timeout)
    with chosen.running():
        rows = _rows(output / "dimensions.csv", module, tasks)
    path, html = output / f"dimensions.{form}", output / "dimensions.html"
    write_files({path: module.draw(rows, form), html: module.page(rows).encode()})
    emit("".join(f"{file}\n" for file in (path, html, path.with_suffix(".csv"))))


def gradbench(
    checkout: Annotated[
        Path, typer.Option("--gradbench", metavar="DIR", help="A checkout of GradBench.")
    ],
    evals: Annotated[
        str | None, typer.Option(metavar="gmm,ba,…", help="Only these; by default all.")
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(metavar="jax,…", help="Only these; by default all that can run."),
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="GradBench's branch ci/refs/heads/nightly, to draw."),
    ] = None,
    output: FolderOption = REPORTS,
    quick: QuickOption = False,
    form: FormatOption = PictureFormat.SVG,
    timeout: Annotated[
        float, typer.Option(min=0.01, metavar="SECONDS", help="The time limit of one answer.")
    ] = 600.0,
) -> int:
    from difflab.bench.gradbench import bench as module
    from difflab.bench.gradbench.checkout import EVALS, Checkout
    from difflab.bench.gradbench.drawing import text

    if quick and published is not None:
        raise InputError("published figures are those of full sizes: leave out --quick")
    names = parse_names(evals) or list(EVALS)
    found = Checkout.of(checkout, names)
    chosen = module.chosen_tools(found, parse_names(tools))
    tasks = module.tasks(found, names, chosen, published, quick=quick, timeout=timeout)
    rows = _rows(output / "gradbench.csv", module, tasks)
    emit(text(rows, **screen(usual=110)))
    _draw(output / f"gradbench.{form}", module, rows)
    own = [row for row in rows if row["tool"] == "difflab" and row["origin"] == "measured"]
    return int(any(row["status"] != "ok" for row in own))


def graders(
    output: FolderOption = REPORTS,
    quick: Annotated[
        bool, typer.Option("--quick", help="One of 23 cases: minutes instead of hours.")
    ] = False,
    every: Annotated[
        int, typer.Option(min=1, metavar="N", help="One of N cases; by default all.")
    ] = 1,
    form: FormatOption = PictureFormat.SVG,
) -> None:
    from difflab.bench.graders import bench as module
    from difflab.bench.graders.drawing import text

    tasks = module.tasks(quick=quick, every=every)
    rows = _rows(output / "graders.csv", module, tasks)
    emit(text(rows, **screen(usual=110)))
    _draw(output / f"graders.{form}", module, rows)


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
    from difflab.bench.peers import bench as module
    from difflab.bench.peers.drawing import table

    sizes = _batch_sizes(points)
    text = read_expression(expression) if expression else module.SEED
    function, point, packed = _function_at(text, at or [], None if expression else module.SEED_AT)
    case = module.PeerCase(function, packed, expression_key(text), _point_key(point))
    contenders = module.contenders(parse_names(names))
    if not set(contenders) - set(module.OWN):
        say("no peer is installed; add them with: pip install 'difflab[peers]'")
    # `--quick` means fewer points and less time; the time limit is recorded in the rows.
    sizes, timeout = (sizes[:2], min(timeout, 1.0)) if quick else (sizes, timeout)
    rows = _rows(output / "peers.csv", module, module.tasks(case, contenders, sizes, timeout))
    emit(table(rows, **screen()) + "\n")
    _draw(output / f"peers.{form}", module, rows)
    return int(any(row["status"] == "disagree" for row in rows))


def problems(
    sets: Annotated[
        str | None, typer.Option("--set", metavar="a,b", help="Only these sets; by default all.")
    ] = None,
    kinds: Annotated[
        str | None, typer.Option("--kind", metavar="a,b", help="Only these kinds of problem.")
    ] = None,
    inputs: Annotated[
        str | None, typer.Option("--inputs", metavar="LOW:HIGH", help="Only of so many inputs.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(metavar="a,b", help="Only these of `difflab methods`; or peers, or all."),
    ] = None,
    output: FolderOption = REPORTS,
    quick: QuickOption = False,
    form: FormatOption = PictureFormat.SVG,
    timeout: TimeoutOption = 10.0,
) -> int:
    from difflab.bench.problems import bench as module

    found = chosen_problems(sets, kinds, inputs)
    tasks = module.tasks(found, parse_names(methods), quick=quick, timeout=timeout)
    rows = _rows(output / "problems.csv", module, tasks)
    emit(module.text(rows, **screen(usual=110)))
    path = output / "problems.html"
    write_files({path: module.page(rows).encode()})
    emit(f"{path}\n")
    _draw(output / f"problems.{form}", module, rows)
    return int(any(row["verdict"] == "disagree" for row in rows))


def swell(
    repeat: Annotated[
        str | None,
        typer.Option(metavar="'y = 4*y*(1-y)'", help="A recurrence, in place of the families."),
    ] = None,
    depth: Annotated[
        str | None,
        typer.Option(metavar="1:40", help="How often it is repeated: a range or a list; 1:16."),
    ] = None,
    output: FolderOption = REPORTS,
    quick: QuickOption = False,
    form: FormatOption = PictureFormat.SVG,
    timeout: TimeoutOption = 10.0,
) -> None:
    from difflab.bench import swell as module
    from difflab.bench.recurrence import recurrence
    from difflab.cli.families import integers

    if repeat is None:
        if depth is not None:
            raise InputError("--depth is given without a recurrence", hint="add --repeat")
        tasks = module.tasks(quick=quick, timeout=timeout)
    else:
        text = read_expression(repeat)
        key, depths = expression_key(text), integers(depth or "1:16")
        depths = depths[: 1 + len(depths) // 2] if quick else depths
        tasks = module.tasks({key: depths}, timeout, families={key: recurrence(text)})
    _run("swell", module, tasks, output, form)


def _batch_sizes(text: str) -> list[int]:
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


def _function_at(
    text: str, at: Sequence[str], default: Mapping[str, float] | None
) -> tuple[Function, Mapping[str, Any], NDArray[np.float64]]:
    """Return the function, its point (from `at`, `default` or chosen), and the packed point."""
    from difflab.diagnose.point_check import checked_point, packed
    from difflab.lab.problems.library import problem
    from difflab.language import parse

    known = problem(text) if names_problem(text) else None
    function = parse(text) if known is None else known.function
    point = checked_point(function, parse_point(at) or (known.start if known else default))
    return function, point, packed(function, point)


def _point_key(point: Mapping[str, Any]) -> str:
    """Return the text that identifies a point in the key of its rows."""
    import numpy as np

    return ", ".join(f"{name} = {_exact_text(np.asarray(value))}" for name, value in point.items())


def _exact_text(value: NDArray[np.float64]) -> str:
    """Return every digit of a small array; the shape and a hash of a large one."""
    if value.size <= _MOST_ELEMENTS:
        return str(value.tolist())
    digest = sha256(value.tobytes()).hexdigest()[:16]
    return f"{shape_text(value.shape)} numbers, SHA-256 {digest}…"


def _accuracy_case(text: str, at: Sequence[str], *, figure_3: bool) -> AccuracyCase:
    """Return the function, its point, and its derivative by the referee."""
    from difflab.bench.accuracy import AccuracyCase
    from difflab.referee.referee import refer

    function, point, packed = _function_at(text, at, _FIGURE_3_AT if figure_3 else None)
    truth = refer(function, packed.tolist())
    if truth.status != "smooth":
        raise InputError(
            f"the derivative is {truth.status} at this point: no error against it is defined",
            hint="choose another point with --at",
        )
    return AccuracyCase(function, packed, truth.jacobian, expression_key(text), _point_key(point))


def _rows(path: Path, module: BenchmarkModule, tasks: Iterable[Task]) -> list[SweepRow]:
    """Run a sweep with progress; after Ctrl-C, report what is kept and how to resume."""
    from difflab.lab.sweep import run

    progress = ProgressLine()
    try:
        return run(path, module.LAYOUT, tasks, progress, say)
    except KeyboardInterrupt:
        progress.clear()
        say(f"stopped; what is measured is kept in {path}; run the same command again to resume")
        raise


def _draw(path: Path, module: BenchmarkModule, rows: Sequence[SweepRow]) -> None:
    """Write the picture; name it and its CSV file on standard output."""
    write_files({path: module.draw(rows, path.suffix[1:])})
    emit(f"{path}\n{path.with_suffix('.csv')}\n")


# --- the subcommands --------------------------------------------------------------------------


def _run(
    name: str, module: BenchmarkModule, tasks: Iterable[Task], output: Path, form: str
) -> None:
    """Measure the rows of a benchmark and write them and their picture."""
    _draw(output / f"{name}.{form}", module, _rows(output / f"{name}.csv", module, tasks))


def _timed_command(benchmark: Benchmark) -> Callable[..., None]:
    """Return the subcommand of a benchmark with the options ``quick`` and ``timeout``."""

    def command(
        output: FolderOption = REPORTS,
        quick: QuickOption = False,
        form: FormatOption = PictureFormat.SVG,
        timeout: TimeoutOption = 10.0,
    ) -> None:
        module = benchmark.load()
        _run(benchmark.name, module, module.tasks(quick=quick, timeout=timeout), output, form)

    return command


def _untimed_command(benchmark: Benchmark) -> Callable[..., None]:
    """Return the subcommand of a benchmark with the option ``quick``."""

    def command(
        output: FolderOption = REPORTS,
        quick: QuickOption = False,
        form: FormatOption = PictureFormat.SVG,
    ) -> None:
        module = benchmark.load()
        _run(benchmark.name, module, module.tasks(quick=quick), output, form)

    return command


_OWN_COMMANDS: Mapping[str, tuple[Callable[..., int | None], type[TyperCommand] | None]] = {
    "accuracy": (accuracy, ExpressionCommand),
    "adbench": (adbench, None),
    "dimensions": (dimensions, ExpressionCommand),
    "gradbench": (gradbench, None),
    "graders": (graders, None),
    "peers": (peers, ExpressionCommand),
    "precision": (precision, ExpressionCommand),
    "problems": (problems, None),
    "swell": (swell, None),
}
"""The subcommands with options of their own; those of the other benchmarks are alike."""

for _row in BENCHMARKS.values():
    _standard = _timed_command if _row.timed else _untimed_command
    _command, _class = _OWN_COMMANDS.get(_row.name) or (_standard(_row), None)
    bench.command(_row.name, help=_row.summary, cls=_class)(_command)
