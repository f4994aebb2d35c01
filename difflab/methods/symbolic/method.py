"""Symbolic differentiation by SymPy, in a process of its own that can be stopped.

SymPy's rules, its `diff`, `cse`, `lambdify` and `simplify`; none of difflab's derivatives. This
module talks to that process and never imports SymPy, so that `import difflab` and the other
methods do not wait for it.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from itertools import count as counter
from typing import TYPE_CHECKING, Any

from numpy import float64
from numpy.typing import NDArray

from difflab.errors import MethodTimeout, MissingDependencyError, UnsupportedError
from difflab.methods.process.worker import Worker
from difflab.methods.protocol import Estimate, Family, Prepared, Problem, Size

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.methods.symbolic.facts import Sizes, SymbolicFacts

__all__ = ["SYMBOLIC", "Symbolic", "SymbolicDerivative"]

TREE_LIMIT = 1_000_000
"""SymPy works on trees, at ten microseconds a node or more: beyond this no time limit helps."""

SIMPLIFY_SHARE = 0.25
"""The part of the time limit that `sympy.simplify` may take; it is asked for a size only."""


class Symbolic:
    """SymPy's derivative, as Python code made by `lambdify` with `cse`.

    Examples
    --------
    >>> import difflab as dl, numpy as np
    >>> f = dl.parse("ln(x1) + x1*x2 - sin(x2)")
    >>> prepared = SYMBOLIC.prepare(Problem(f.values, f.n, f.m, f))
    >>> prepared(np.array([2.0, 5.0])).value
    array([[5.5       , 1.71633781]])
    """

    name = "symbolic"
    family = Family.SYMBOLIC
    summary = "SymPy's diff, common subexpressions shared, compiled by lambdify"
    orders = (1, 2)
    packages = ("sympy",)

    def __init__(self) -> None:
        self._worker: Worker | None = None
        # A derivative may be collected in the middle of a message to the process, so that what
        # is no longer needed waits here for the next one.
        self.forgotten: deque[int] = deque()

    def missing(self) -> str | None:
        """Return why SymPy cannot be used, or None; SymPy is not imported for it."""
        return None if find_spec("sympy") else "sympy is not installed: pip install sympy"

    def start(self) -> None:
        """Start SymPy's process without waiting for it.

        SymPy takes a third of a second to import; whoever knows that it will be needed starts
        it first and does other work meanwhile.
        """
        self.running()

    def wait(self) -> None:
        """Wait until SymPy is imported."""
        self.running().wait()

    def stop(self) -> None:
        """End SymPy's process; the next derivative starts another."""
        if self._worker is not None:
            self._worker.stop()

    def prepare(self, problem: Problem) -> Prepared:
        """Convert the graph to SymPy, differentiate there, and generate code.

        Raises
        ------
        UnsupportedError
            There is no graph, its tree is too large, or SymPy has no rule for a part of it.
        MethodTimeout
            SymPy took longer than ``problem.timeout`` or more than ``problem.memory_bytes``.
        """
        if problem.function is None:
            raise UnsupportedError("SymPy needs a formula, and this is Python code")
        if find_spec("sympy") is None:
            raise MissingDependencyError("sympy", extra="all")
        from difflab.graph.custom.rows import opened

        function = opened(problem.function)
        _refuse_explosion(function)
        return SymbolicDerivative(self, replace(problem, function=function))

    def drain(self) -> list[int]:
        """Return the derivatives that SymPy's process may drop, once."""
        return [self.forgotten.popleft() for _ in range(len(self.forgotten))]

    def running(self) -> Worker:
        """Return SymPy's process, started when it is not there."""
        if self._worker is None or not self._worker.alive:
            self._worker = Worker("difflab.methods.symbolic.worker")
        return self._worker


class SymbolicDerivative:
    """A derivative that lives in SymPy's process, and is made again when that was stopped.

    Attributes
    ----------
    prepare_seconds : float
        What SymPy took to convert, differentiate and generate code; without starting it.
    """

    _numbers = counter()

    def __init__(self, method: Symbolic, problem: Problem) -> None:
        self._method = method
        self._problem = problem
        self._number = next(self._numbers)
        self._facts = self._prepare()
        weakref.finalize(self, method.forgotten.append, self._number)
        self.prepare_seconds = self._facts.seconds

    @property
    def operations(self) -> int:
        """Operations of one call: those that `cse` leaves, as `sympy.count_ops` counts them."""
        return self._facts.size.operations

    @property
    def tree_operations(self) -> int:
        """Operations of the derivative written out: `sympy.count_ops` before `cse`."""
        return self._facts.size.tree_operations

    @cached_property
    def simplified(self) -> Sizes | None:
        """Sizes after `sympy.simplify`; None where that does not finish in its time."""
        timeout = min(self._problem.timeout * SIMPLIFY_SHARE, self._problem.seconds_left())
        try:
            self._present()
            found: Sizes = self._worker.request("simplify", self._number, timeout=timeout)
        except MethodTimeout:
            return None
        return found

    @property
    def size(self) -> Size:
        """Nodes of the derivative: as a tree and after `cse`, before and after `simplify`."""
        plain, simplified = self._facts.size, self.simplified
        if simplified is None:
            return Size(plain.tree, plain.dag)
        return Size(plain.tree, plain.dag, simplified.tree, simplified.dag)

    def __call__(self, x: NDArray[float64]) -> Estimate:
        """Return the derivative at `x`, by the code that SymPy generated."""
        return Estimate(self._ask("value", x), None, 0)

    def elapsed(self, x: NDArray[float64], repeats: int) -> float:
        """Return the seconds that `repeats` calls at `x` take in SymPy's process."""
        seconds: float = self._ask("elapsed", x, repeats)
        return seconds

    def peak_bytes(self, x: NDArray[float64]) -> int:
        """Return the bytes that one call allocates at its peak."""
        peak: int = self._ask("peak", x)
        return peak

    def _ask(self, request: str, *arguments: Any) -> Any:
        self._present()
        return self._worker.request(
            request,
            self._number,
            *arguments,
            timeout=self._problem.seconds_left(),
            limit=self._problem.timeout,
        )

    def _present(self) -> None:
        """Prepare again when the process that had this derivative is gone."""
        if not self._worker.alive:
            self._prepare()

    def _prepare(self) -> SymbolicFacts:
        problem = self._problem
        self._worker = self._method.running()
        facts: SymbolicFacts = self._worker.request(
            "prepare",
            self._number,
            problem.function,
            problem.order,
            problem.memory_bytes,
            self._method.drain(),
            timeout=problem.seconds_left(),
            limit=problem.timeout,
        )
        return facts


def _refuse_explosion(function: Function) -> None:
    """Raise where the tree is too large for SymPy, which shares no subexpressions.

    Array operations are written out element by element; the largest array bounds by how much.
    """
    from difflab.graph.counts import count

    tree = count(function).tree * max(map(math.prod, function.graph.shape_table), default=1)
    if tree > TREE_LIMIT:
        raise UnsupportedError(
            f"written out as a tree for SymPy it has {_readable(tree)} nodes; "
            f"the limit is {TREE_LIMIT:,}"
        )


def _readable(number: int) -> str:
    """Return an exact number, or its magnitude when nobody would read the digits.

    Examples
    --------
    >>> _readable(1234567), _readable(4**100)
    ('1,234,567', 'about 10^60')
    """
    if number.bit_length() < 54:
        return f"{number:,}"
    return f"about 10^{math.floor(number.bit_length() * math.log10(2))}"


SYMBOLIC = Symbolic()
