"""Expression size against depth: how much swell remains after sharing subexpressions.

The derivative of a deep function, written out, is exponentially long (Baydin et al. 2018,
Table 1). With common subexpressions computed once, SymPy's derivative needs few more operations
than forward and reverse mode. All sizes are numbers of operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter

from difflab.autodiff import jacobian
from difflab.bench.shared import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    CurveStyle,
    layout,
    picture,
    plot_curve,
)
from difflab.errors import DifflabError, InputError, MethodTimeout
from difflab.graph.counts import count
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.lab import provenance
from difflab.lab.problems import FAMILIES, FunctionFamily
from difflab.lab.problems.sized import names, renamed
from difflab.lab.sweep import Cell, SweepRow, Task
from difflab.language import parse
from difflab.methods.protocol import Problem
from difflab.methods.symbolic.method import SYMBOLIC, SymbolicDerivative
from difflab.report.canvas import FAINT, INK, Axes, Figure, Label, label_ends, titled_figure
from difflab.report.terminal import clean, shorten

LAYOUT = layout(
    "family title depth series status message operations seconds",
    key="family depth series",
)


DEPTHS: Mapping[str, tuple[int, ...]] = {
    "logistic": tuple(range(1, 17)),
    "product": (2, *range(4, 41, 4)),
    "nested": (1, 2, 3, *range(4, 41, 4)),
}

SERIES = (
    "function tree",
    "function",
    "forward",
    "reverse",
    "symbolic tree",
    "symbolic cse",
    "symbolic simplified",
)


def tasks(
    depths: Mapping[str, Sequence[int]] | None = None,
    timeout: float = 10.0,
    *,
    quick: bool = False,
    families: Mapping[str, FunctionFamily] = FAMILIES,
) -> Iterator[Task]:
    """Yield a task for every family, depth and series.

    The families are by default those of `difflab.lab.problems`, and the depths `DEPTHS`, of which
    `quick` keeps the smaller half. After SymPy's first timeout in a family no greater depth is
    tried; the rows of those depths report this.
    """
    if depths is None:
        depths = {
            name: every[: 1 + len(every) // 2 if quick else None] for name, every in DEPTHS.items()
        }
    sources = {
        series: provenance.source(
            SYMBOLIC if series.startswith("symbolic") else None, timeout=timeout
        )
        for series in SERIES
    }
    for name, sizes in depths.items():
        meters = _Meters(families[name], timeout)
        for depth in sizes:
            for series in SERIES:
                key: dict[str, Cell] = {"family": name, "depth": depth, "series": series}
                yield Task(key, partial(meters.row, depth, series), sources[series])


class _Meters:
    """Measures one family; keeps SymPy's last derivative and its timeouts."""

    def __init__(self, family: FunctionFamily, timeout: float) -> None:
        self.family = family
        self.timeout = timeout
        self.timeouts: dict[str, str] = {}
        self.derivative: tuple[int, SymbolicDerivative] | None = None

    def row(self, depth: int, series: str) -> dict[str, Cell]:
        """Return the row of a series at one depth; a timeout is a row with its message."""
        row: dict[str, Cell] = {"title": self.family.title}
        stage = {"symbolic tree": "diff", "symbolic cse": "diff"}.get(series, series)
        timeout = self.timeouts.get(stage)
        if series == "symbolic simplified":
            timeout = timeout or self.timeouts.get("diff")
        if timeout is not None:
            return row | {"status": "timeout", "message": timeout}
        start = perf_counter()
        try:
            operations = self.operations(depth, series)
        except MethodTimeout as error:
            self.timeouts[stage] = f"not tried: at depth {depth} it was {error}"
            return row | {"status": "timeout", "message": str(error)}
        except DifflabError as error:
            return row | {"status": "unsupported", "message": str(error)}
        seconds = perf_counter() - start
        row |= {"status": "ok", "operations": operations, "seconds": seconds}
        return row | {"repetitions": 1}

    def operations(self, depth: int, series: str) -> int:
        """Return the number of operations of a series."""
        function = parse(self.family.text(depth))
        if series == "function tree":
            return tree_operations(function)
        if series == "function":
            return count(function).operations
        if series == "forward":
            return count(jacobian(function, "forward")).operations
        if series == "reverse":
            return count(jacobian(function, "reverse")).operations
        derivative = self.symbolic(depth, function)
        if series == "symbolic tree":
            return derivative.tree_operations
        if series == "symbolic cse":
            return derivative.operations
        if derivative.simplified is None:
            raise MethodTimeout(f"stopped at simplify's share of {self.timeout:g} s")
        return derivative.simplified.tree_operations

    def symbolic(self, depth: int, function: Function) -> SymbolicDerivative:
        """Return SymPy's derivative with its sizes."""
        if self.derivative is None or self.derivative[0] != depth:
            prepared = SYMBOLIC.prepare(Problem.of(function, timeout=self.timeout))
            assert isinstance(prepared, SymbolicDerivative)
            self.derivative = depth, prepared
        return self.derivative[1]


def tree_operations(function: Function) -> int:
    """Return the operations of a function with every shared subexpression written out.

    Examples
    --------
    >>> tree_operations(parse("y = x*x; z = y*y; z*z"))
    7
    """
    graph = function.graph
    structural = graph.structural_rows().tolist()
    sizes: list[int] = []
    for node, (opcode, args) in enumerate(graph.rows()):
        own = int(opcode >= FIRST_ROW and not structural[node])
        sizes.append(own + sum(sizes[arg] for arg in args))
    return sum(sizes[output] for output in function.outputs)


# --- the picture -----------------------------------------------------------------------------

_SERIES_STYLES = {
    "function tree": CurveStyle(FAINT, "", "--"),
    "function": CurveStyle(FAINT, "", "-"),
    "symbolic tree": CurveStyle(RED, "s"),
    "symbolic simplified": CurveStyle(ORANGE, "^"),
    "symbolic cse": CurveStyle(PURPLE, "D"),
    "forward": CurveStyle(BLUE, "o", width=2.2),
    "reverse": CurveStyle(GREEN, "v", width=2.2),
}
_SERIES_TITLES = {
    "function tree": "f written out",
    "function": "f itself",
    "symbolic tree": "SymPy f′ written out",
    "symbolic simplified": "SymPy f′ simplified",
    "symbolic cse": "SymPy f′ after CSE",
    "forward": "forward mode",
    "reverse": "reverse mode",
}


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw operations against depth, a panel for each family of functions."""
    families = list(dict.fromkeys(str(row["family"]) for row in rows))
    canvas = titled_figure(
        2.4 + 2.2 * len(families),
        "expression swell: operations of the derivative against depth",
        "written out: shared subexpressions repeated · after CSE and in both modes: "
        "computed once · × SymPy timed out",
        right=1.95,
    )
    panels = canvas.subplots(len(families), squeeze=False, gridspec_kw={"hspace": 0.4}).ravel()
    for axes, family in zip(panels, families, strict=True):
        _panel(axes, [row for row in rows if row["family"] == family])
        axes.set_ylabel("operations")
    axes.set_xlabel("depth")
    return canvas


def _panel(axes: Axes, rows: Sequence[SweepRow]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set(yscale="log")
    axes.set_title(
        shorten(clean(str(rows[0]["title"])), 70), loc="left", fontsize=10, parse_math=False
    )
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    axes.grid(visible=True)
    deepest = max(float(row["depth"] or 0) for row in rows)
    labels = []
    for series, points in _curves(rows).items():
        curve_style = _SERIES_STYLES[series]
        x, y = zip(*points, strict=True)
        plot_curve(axes, x, y, curve_style)
        name = _SERIES_TITLES[series]
        if x[-1] < deepest:
            axes.plot(x[-1], y[-1], "x", color=INK, ms=9, mew=1.6, zorder=4)
            name = f"{name}, to {x[-1]:.0f}"
        labels.append(Label(name, deepest, y[-1], curve_style.colour))
    label_ends(axes, labels)


def _curves(rows: Sequence[SweepRow]) -> dict[str, list[tuple[float, float]]]:
    """Return the points of every series; without shared subexpressions f has one curve."""
    curves = {}
    for series in _SERIES_STYLES:
        chosen = [row for row in rows if row["series"] == series and row["operations"]]
        curves[series] = [
            (float(row["depth"] or 0), float(row["operations"] or 0)) for row in chosen
        ]
    if curves["function tree"] == curves["function"]:
        del curves["function tree"]
    return {series: points for series, points in curves.items() if points}


def recurrence(text: str) -> FunctionFamily:
    """Return the iterates of ``y = expression``, in which y and other names may occur.

    The k-th member applies the expression k times, first to the input y.

    Raises
    ------
    InputError
        The text is no such definition, or its expression cannot be parsed.

    Examples
    --------
    >>> print(recurrence("y = 4*y*(1 - y)").text(3))
    y_1 = 4*y*(1 - y)
    y_2 = 4*y_1*(1 - y_1)
    4*y_2*(1 - y_2)
    """
    left, equals, step = text.partition("=")
    left, step = left.strip(), step.strip()
    defined = [name for name, start, end in names(left) if end - start == len(left)]
    if not equals or step.startswith("=") or not defined:
        raise InputError(
            "a recurrence is a definition of one name",
            text=text or None,
            hint="--repeat 'y = 4*y*(1 - y)'",
        )
    (name,) = defined
    function = parse(step)
    if name not in function.inputs:
        raise InputError(
            f"the recurrence does not use {name}, so that all its iterates are equal",
            text=text,
            hint=f"write {name} on the right-hand side",
        )
    if function.m != 1:
        raise InputError(f"a step has {function.m} values instead of one", text=text)
    prefix = f"{name}_"
    while any(other.startswith(prefix) for other, _, _ in names(step)):
        prefix += "_"

    def program(depth: int) -> str:
        lines, current = [], name
        for k in range(1, depth):
            lines.append(f"{prefix}{k} = {renamed(step, {name: current})}")
            current = f"{prefix}{k}"
        return "\n".join([*lines, renamed(step, {name: current})])

    return FunctionFamily(
        f"{name} ← {step}", program, lambda _: dict.fromkeys(function.inputs, 0.2), "the user"
    )
