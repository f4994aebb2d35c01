"""The benchmarks of one formula of the user's at a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from difflab.cli.bench.running import (
    Destination,
    MethodsOption,
    QuickOption,
    RowTimeoutOption,
    run,
    wide,
)
from difflab.cli.functions import Subject, code_digest, load_function
from difflab.cli.options import PointOption, TimeoutOption, parse_names
from difflab.cli.output import say, screen
from difflab.cli.program_text import expression_key
from difflab.core.quantities import shape_text
from difflab.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from difflab.bench.accuracy import AccuracyCase
    from difflab.graph.function import Function


# Baydin et al. (2018), Figure 3: the logistic map's fourth iterate.
_FIGURE_3 = "64*x*(1 - x)*(1 - 2*x)^2*(1 - 8*x + 8*x*x)^2"
_FIGURE_3_AT = {"x": 0.2}
_MOST_POINTS = 100_000_000


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

    case = accuracy_case(expression, at)
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

    case = accuracy_case(expression, at)
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
    from difflab.bench.peers.case import PeerCase

    case = PeerCase(*formula_at_point(expression, at, (bench.SEED, bench.SEED_AT)))
    module: Any = ways if execution else bench
    name = "execution" if execution else "peers"
    sizes = list(module.POINTS) if points is None else batch_sizes(points)
    contenders = module.contenders(parse_names(names))
    if not set(contenders) - set(module.OWN):
        say("no peer is installed; add them with: pip install 'difflab[peers]'")
    # `--quick` means fewer points and less time; the time limit is recorded in the rows.
    sizes, timeout = (sizes[:2], min(timeout, 1.0)) if quick else (sizes, timeout)
    tasks = module.tasks(case, contenders, sizes, timeout)
    rows = run(name, module, tasks, to, lambda found: module.table(found, **screen()) + "\n")
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


def accuracy_case(expression: str, at: Sequence[str] | None) -> AccuracyCase:
    """Return the function, its point, and its derivative by the referee."""
    from difflab.bench.accuracy import AccuracyCase
    from difflab.referee.referee import refer

    found = formula_at_point(expression, at, (_FIGURE_3, _FIGURE_3_AT))
    truth = refer(found.function, found.x.tolist())
    if truth.status != "smooth":
        raise InputError(
            f"the derivative is {truth.status} at this point: no error against it is defined",
            hint="choose another point with --at",
        )
    return AccuracyCase(found.function, found.x, truth.jacobian, found.text, found.where)


_MOST_ELEMENTS = 16  # of an input written out in a row's key; a larger input is hashed


class FormulaAtPoint(NamedTuple):
    """A function and the packed point at which it is measured, with the texts of both."""

    function: Function
    x: NDArray[np.float64]
    text: str
    where: str


def formula_at_point(
    expression: str, at: Sequence[str] | None, default: tuple[str, Mapping[str, float]]
) -> FormulaAtPoint:
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
    return FormulaAtPoint(subject.function, packed(subject.function, point), key, point_key(point))


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
