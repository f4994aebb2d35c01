"""Expression size against depth: what of the swell is real, and what is only writing out.

The derivative of a deep function, written out, is exponentially long (Baydin et al. 2018,
Table 1); with equal subexpressions computed once, SymPy's is not much longer than what forward
and reverse mode compute. All sizes are operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter

from difflab.autodiff import jacobian
from difflab.errors import DifflabError, MethodTimeout
from difflab.graph.counts import count
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.lab import provenance
from difflab.lab.problems import FAMILIES, FunctionFamily
from difflab.lab.sweep import Cell, Task
from difflab.language import parse
from difflab.methods.protocol import Problem
from difflab.methods.symbolic.method import SYMBOLIC, SymbolicDerivative

__all__ = ["DEPTHS", "LAYOUT", "SERIES", "tasks", "tree_operations"]

LAYOUT = provenance.layout(
    {
        "family": str,
        "title": str,
        "depth": int,
        "series": str,
        "status": str,
        "message": str,
        "operations": int,
        "seconds": float,
    },
    key=("family", "depth", "series"),
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


def tasks(depths: Mapping[str, Sequence[int]] = DEPTHS, timeout: float = 10.0) -> Iterator[Task]:
    """Yield a task for every family of `difflab.lab.problems`, depth and series.

    After its first timeout in a family SymPy is not asked for greater depths: those are rows
    that say so.
    """
    sources = {
        series: provenance.source(
            SYMBOLIC if series.startswith("symbolic") else None, timeout=timeout
        )
        for series in SERIES
    }
    for name, sizes in depths.items():
        meters = _Meters(FAMILIES[name], timeout)
        for depth in sizes:
            for series in SERIES:
                key: dict[str, Cell] = {"family": name, "depth": depth, "series": series}
                yield Task(key, partial(meters.row, depth, series), sources[series])


class _Meters:
    """Measures one family; remembers SymPy's last derivative, and where SymPy gave up."""

    def __init__(self, family: FunctionFamily, timeout: float) -> None:
        self.family = family
        self.timeout = timeout
        self.beaten: dict[str, str] = {}
        self.derivative: tuple[int, SymbolicDerivative] | None = None

    def row(self, depth: int, series: str) -> dict[str, Cell]:
        """Return the size at one depth; a timeout is a row with SymPy's last words."""
        found: dict[str, Cell] = {"title": self.family.title}
        stage = {"symbolic tree": "diff", "symbolic cse": "diff"}.get(series, series)
        gone = self.beaten.get(stage)
        if series == "symbolic simplified":
            gone = gone or self.beaten.get("diff")
        if gone is not None:
            return found | {"status": "timeout", "message": gone}
        start = perf_counter()
        try:
            operations = self.operations(depth, series)
        except MethodTimeout as error:
            self.beaten[stage] = f"not tried: at depth {depth} it was {error}"
            return found | {"status": "timeout", "message": str(error)}
        except DifflabError as error:
            return found | {"status": "unsupported", "message": str(error)}
        seconds = perf_counter() - start
        found |= {"status": "ok", "operations": operations, "seconds": seconds}
        return found | {"repetitions": 1}

    def operations(self, depth: int, series: str) -> int:
        """Return the operations that a series counts."""
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
        """Return SymPy's derivative with its sizes, which difflab's own method alone tells."""
        if self.derivative is None or self.derivative[0] != depth:
            problem = Problem(
                function.values, function.n, function.m, function, timeout=self.timeout
            )
            prepared = SYMBOLIC.prepare(problem)
            assert isinstance(prepared, SymbolicDerivative)
            self.derivative = depth, prepared
        return self.derivative[1]


def tree_operations(function: Function) -> int:
    """Return the operations of a function when every shared subexpression is written out.

    Examples
    --------
    >>> tree_operations(parse("y = x*x; z = y*y; z*z"))
    7
    """
    graph = function.graph
    moves = graph.structural_rows().tolist()
    sizes: list[int] = []
    for node, (opcode, args) in enumerate(graph.rows()):
        own = int(opcode >= FIRST_ROW and not moves[node])
        sizes.append(own + sum(sizes[arg] for arg in args))
    return sum(sizes[output] for output in function.outputs)
