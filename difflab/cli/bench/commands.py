"""``difflab bench NAME``: a subcommand for every benchmark of `difflab.bench.registry`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from difflab.bench.registry import BENCHMARKS, MOVED, load
from difflab.cli.bench.running import (
    Destination,
    MethodsOption,
    QuickOption,
    RowTimeoutOption,
    run,
    wide,
    writes,
)
from difflab.cli.documented import CommandGroup, add
from difflab.cli.functions import Subject, code_digest, load_function
from difflab.cli.listings import chosen_problems
from difflab.cli.options import InputsOption, KindsOption, PointOption, TimeoutOption, parse_names
from difflab.cli.output import say, screen
from difflab.cli.program_text import expression_key, read_expression
from difflab.core.wording import shape_text
from difflab.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from difflab.bench.accuracy import AccuracyCase
    from difflab.bench.solvers.problem import SolverProblem
    from difflab.graph.function import Function


# Baydin et al. (2018), Figure 3: the logistic map's fourth iterate.
_FIGURE_3 = "64*x*(1 - x)*(1 - 2*x)^2*(1 - 8*x + 8*x*x)^2"
_FIGURE_3_AT = {"x": 0.2}


def accuracy(
    expression: str = "", /, at: PointOption = None, quick: QuickOption = False, *, to: Destination
) -> None:
    """Run the benchmark of the error against the step.

    Parameters
    ----------
    expression : EXPR
        A formula, problem:SET/NAME or module:function; by default the paper's Figure 3 at x =
        0.2.
    """
    from difflab.bench import accuracy as module

    case = _accuracy_case(expression, at)
    tasks = module.tasks(case, module.steps(2 if quick else 8))
    run("accuracy", module, tasks, to, wide(module.text))


def precision(
    expression: str = "",
    /,
    at: PointOption = None,
    methods: MethodsOption = None,
    quick: QuickOption = False,
    timeout: TimeoutOption = 10.0,
    *,
    to: Destination,
) -> None:
    """Run the benchmark of the error against the time.

    Parameters
    ----------
    expression : EXPR
        A formula, problem:SET/NAME or module:function; by default the paper's Figure 3 at x =
        0.2.
    """
    from difflab.bench import precision as module
    from difflab.methods.registry import select

    case = _accuracy_case(expression, at)
    chosen = select(parse_names(methods) or "all")
    tasks = module.tasks(case, chosen, timeout, per_decade=2 if quick else 8)
    run("precision", module, tasks, to)


def peers(
    expression: str = "",
    /,
    at: PointOption = None,
    points: str | None = None,
    names: str | None = None,
    execution: bool = False,
    quick: QuickOption = False,
    timeout: RowTimeoutOption = 5.0,
    *,
    to: Destination,
) -> int:
    """Run the benchmark of calls, compared with other packages.

    Parameters
    ----------
    expression : EXPR
        A formula, problem or module:function; by default ln(x1)+x1*x2-sin(x2).
    points : N,N
        The numbers of points in a batch; 1,1000,1000000.
    names : a,b
        Only these; by default all installed ones.
    execution
        Ways of executing: eager, graph, traced, compiled.
    """
    from difflab.bench.peers import bench
    from difflab.bench.peers import execution as ways
    from difflab.bench.peers.ways import PeerCase

    case = PeerCase(*_formula_at_point(expression, at, (bench.SEED, bench.SEED_AT)))
    module: Any = ways if execution else bench
    name = "execution" if execution else "peers"
    sizes = list(module.POINTS) if points is None else _batch_sizes(points)
    contenders = module.contenders(parse_names(names))
    if not set(contenders) - set(module.OWN):
        say("no peer is installed; add them with: pip install 'difflab[peers]'")
    # `--quick` means fewer points and less time; the time limit is recorded in the rows.
    sizes, timeout = (sizes[:2], min(timeout, 1.0)) if quick else (sizes, timeout)
    tasks = module.tasks(case, contenders, sizes, timeout)
    rows = run(name, module, tasks, to, lambda measured: module.table(measured, **screen()) + "\n")
    return int(any(row["status"] == "disagree" for row in rows))


_MOST_POINTS = 100_000_000


def _batch_sizes(text: str) -> list[int]:
    """Return the point counts in a list, sorted, without duplicates."""
    sizes = []
    for word in parse_names(text) or []:
        if not word.isdecimal() or not 1 <= int(word) <= _MOST_POINTS:
            raise InputError(
                f"{word!r} is not a number of points",
                hint=f"give integers from 1 to {_MOST_POINTS:,}",
            )
        sizes.append(int(word))
    return sorted(dict.fromkeys(sizes))


def _accuracy_case(expression: str, at: Sequence[str] | None) -> AccuracyCase:
    """Return the function, its point, and its derivative by the referee."""
    from difflab.bench.accuracy import AccuracyCase
    from difflab.referee.referee import refer

    case = _formula_at_point(expression, at, (_FIGURE_3, _FIGURE_3_AT))
    truth = refer(case.function, case.x.tolist())
    if truth.status != "smooth":
        raise InputError(
            f"the derivative is {truth.status} at this point: no error against it is defined",
            hint="choose another point with --at",
        )
    return AccuracyCase(case.function, case.x, truth.jacobian, case.text, case.where)


_MOST_ELEMENTS = 16  # of an input written out in a row's key; a larger input is hashed


class _FormulaAtPoint(NamedTuple):
    """A function and the packed point at which it is measured, with the texts of both."""

    function: Function
    x: NDArray[np.float64]
    text: str
    where: str


def _formula_at_point(
    expression: str, at: Sequence[str] | None, default: tuple[str, Mapping[str, float]]
) -> _FormulaAtPoint:
    """Return the function of an argument EXPR and its point, from ``--at`` or chosen.

    Parameters
    ----------
    expression : str
        A formula, a problem or ``module:function``; empty for the default.
    at : sequence of str or None
        The options ``--at``.
    default : (str, mapping)
        The formula and the point if none is given.
    """
    from difflab.diagnose.point_check import checked_point, packed

    subject = Subject.of(expression or default[0], at)
    usual = None if expression else default[1]
    point = checked_point(subject.function, subject.point_or_start or usual)
    key = expression_key(subject.text)
    if subject.traced is not None:
        key += f" ({code_digest(load_function(expression))})"
    return _FormulaAtPoint(subject.function, packed(subject.function, point), key, point_key(point))


def point_key(point: Mapping[str, Any]) -> str:
    """Return the text that identifies a point in the key of its rows."""
    import numpy as np

    return ", ".join(f"{name} = {_exact_text(np.asarray(value))}" for name, value in point.items())


def _exact_text(value: NDArray[np.float64]) -> str:
    """Return every digit of a small array; the shape and a hash of a large one."""
    if value.size <= _MOST_ELEMENTS:
        return str(value.tolist())
    from hashlib import sha256

    digest = sha256(value.tobytes()).hexdigest()[:16]
    return f"{shape_text(value.shape)} numbers, SHA-256 {digest}…"


def dimensions(
    family: str = "",
    /,
    n: str = "1:64",
    m: str | None = None,
    methods: MethodsOption = None,
    quick: QuickOption = False,
    timeout: TimeoutOption = 10.0,
    *,
    to: Destination,
) -> None:
    """Run the benchmark of the cost against sizes.

    Parameters
    ----------
    family : FAMILY
        A formula with the sizes n and m, as in 'x: [n]; W: [m, n]; W@x', or module:function of
        sizes that returns a function and its example arguments.
    n : 1:4096
        A range of sizes, doubled; or a list 1,10,100.
    m : 1:256
        Likewise; by default 1:16.
    """
    from difflab.bench.dimensions import bench as module
    from difflab.cli.bench.sizes import size_family, sizes
    from difflab.methods.registry import select

    chosen = size_family(family or module.DEFAULT)
    ranges = sizes(chosen.family, n, m)
    if quick:
        ranges = ranges[0][:4], ranges[1][:2]
    chosen.try_smallest(ranges)
    tasks = module.tasks(chosen.family, ranges, select(parse_names(methods) or "all"), timeout)
    with chosen.running():
        run("dimensions", module, tasks, to, pages={".html": module.page})


def memory(policies: bool = False, quick: QuickOption = False, *, to: Destination) -> None:
    """Run the benchmark of memory against recomputation.

    Parameters
    ----------
    policies : bool
        The policies of checkpoints on one network, beside those of JAX and PyTorch, instead of
        chains.
    """
    if policies:
        from difflab.bench import policies as networks

        run("policies", networks, networks.tasks(quick=quick), to)
        return
    from difflab.bench import memory as module

    run("memory", module, module.tasks(quick=quick), to)


def solvers(
    problems: str | None = None,
    quick: QuickOption = False,
    timeout: TimeoutOption = 60.0,
    *,
    to: Destination,
) -> None:
    """Run the benchmark of derivatives of solutions.

    Parameters
    ----------
    problems : a,b
        Only problems whose names begin like one of these, as ode or root-kepler.
    """
    from difflab.bench.solvers import bench as module
    from difflab.bench.solvers.problem import problems as listed

    chosen = None
    if problems is not None:
        begins = tuple(parse_names(problems) or ())
        chosen = [problem for problem in listed() if problem.name.startswith(begins)]
        if not chosen:
            raise InputError(
                f"no problem's name begins with {' or '.join(begins)}",
                hint=f"they begin with {', '.join(_families(listed()))}",
            )
    run("solvers", module, module.tasks(chosen, timeout=timeout, quick=quick), to)


def _families(problems: Iterable[SolverProblem]) -> list[str]:
    """Return the first words of the names of problems."""
    return list(dict.fromkeys(problem.name.partition("-")[0] for problem in problems))


def swell(
    repeat: str | None = None,
    depth: str | None = None,
    quick: QuickOption = False,
    timeout: TimeoutOption = 10.0,
    *,
    to: Destination,
) -> None:
    """Run the benchmark of the size of expressions against the depth.

    Parameters
    ----------
    repeat : 'y = 4*y*(1-y)'
        A recurrence, in place of the families.
    depth : 1:40
        How often it is repeated: a range or a list; by default 1:16.
    """
    from difflab.bench import swell as module
    from difflab.cli.bench.sizes import integers

    if repeat is None:
        if depth is not None:
            raise InputError("--depth is given without a recurrence", hint="add --repeat")
        tasks = module.tasks(quick=quick, timeout=timeout)
    else:
        text = read_expression(repeat)
        key, depths = expression_key(text), integers(depth or "1:16")
        depths = depths[: 1 + len(depths) // 2] if quick else depths
        tasks = module.tasks({key: depths}, timeout, families={key: module.recurrence(text)})
    run("swell", module, tasks, to)


def problems(
    sets: str | None = None,
    kinds: KindsOption = None,
    inputs: InputsOption = None,
    methods: str | None = None,
    quick: QuickOption = False,
    timeout: TimeoutOption = 10.0,
    *,
    to: Destination,
) -> int:
    """Run every method on problems of the library.

    Parameters
    ----------
    sets : a,b
        Only these sets; by default all.
    methods : a,b
        Only these of `difflab methods`; or peers, or all.
    """
    from difflab.bench import problems as module

    chosen = chosen_problems(sets, kinds, inputs)
    tasks = module.tasks(chosen, parse_names(methods), quick=quick, timeout=timeout)
    rows = run("problems", module, tasks, to, wide(module.text), {".html": module.page})
    return int(any(row["verdict"] == "disagree" for row in rows))


bench = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run a benchmark; print its table, or write its picture, rows or page.",
)


def standard_command(name: str, package: str = "difflab.bench") -> Callable[..., None]:
    """Return the subcommand of a benchmark without options of its own."""

    def command(
        quick: QuickOption = False, timeout: TimeoutOption = 10.0, *, to: Destination
    ) -> None:
        module = load(name, package)
        run(name, module, module.tasks(quick=quick, timeout=timeout), to)

    return command


_OWN_COMMANDS: Mapping[str, Callable[..., int | None]] = {
    command.__name__: command
    for command in (accuracy, dimensions, memory, peers, precision, problems, solvers, swell)
}
"""The subcommands with options of their own; those of the other benchmarks are alike."""

for _name, _summary in BENCHMARKS.items():
    _command = _OWN_COMMANDS.get(_name) or standard_command(_name)
    add(bench, writes(_command), name=_name, help=_summary)


def _moved(name: str) -> Callable[[], None]:
    """Return the subcommand of a benchmark that is no longer one: it says where it went."""

    def command() -> None:
        raise InputError(
            f"'difflab bench {name}' is 'python -m benchmarks {name}' now",
            hint="in a checkout of difflab's repository, with the same options",
        )

    return command


_ANY_OPTIONS = {"ignore_unknown_options": True, "allow_extra_args": True}
for _name in MOVED:
    bench.command(_name, hidden=True, context_settings=_ANY_OPTIONS)(_moved(_name))
