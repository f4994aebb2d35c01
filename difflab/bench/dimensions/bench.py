"""Cost of Jacobians against input and output dimensions, for the user's own family of functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.bench.dimensions.drawing import draw, page
from difflab.bench.shared import layout
from difflab.core.system import require_memory
from difflab.errors import DifflabError, MethodTimeout
from difflab.execute.long_loops import values_of
from difflab.graph.counts import count
from difflab.graph.function import Function
from difflab.lab import measure, provenance
from difflab.lab.measure import Effort
from difflab.lab.problems.sized import SizedFamily, formula_family
from difflab.lab.record import outcome
from difflab.lab.sweep import Row, Task, together
from difflab.methods.automatic import AutomaticDerivative
from difflab.methods.differentiate import differentiate
from difflab.methods.protocol import Method, Problem
from difflab.methods.registry import select

__all__ = ["DEFAULT", "LAYOUT", "draw", "page", "tasks"]

LAYOUT = layout(
    "family n m method inputs outputs status message error function_operations operations "
    "prepare_seconds call_seconds peak_bytes",
    key="family n m method",
)

DEFAULT = "x: [n]; W: [m, n]; tanh(W@x/n)"
"""A layer of a neural network: m outputs, and n + m·n inputs."""


def tasks(
    family: SizedFamily | None = None,
    sizes: tuple[Sequence[int], Sequence[int]] = ((1, 4, 16), (1, 4)),
    methods: Sequence[Method] | None = None,
    timeout: float = 10.0,
) -> Iterator[Task]:
    """Yield a task for every size and method.

    Parameters
    ----------
    family : SizedFamily, optional
        By default that of `DEFAULT`.
    sizes : pair of sequences of int
        The values of n and of m; one value for a size that the family does not have.
    methods : sequence of Method, optional
        By default difflab's own and the installed peers.
    timeout : float
        Seconds for preparing and calling one method. After a method's timeout no size that is
        larger in n and m is tried; the rows of those sizes report this.
    """
    chosen = select("all") if methods is None else methods
    meter = FamilyMeter(family or formula_family(DEFAULT), chosen, timeout)
    sources = {
        method.name: provenance.source(method, target="auto", timeout=timeout, seed=SEED)
        for method in chosen
    }
    for n in sizes[0]:
        for m in sizes[1]:
            key: Row = {"family": meter.family.text, "n": n, "m": m}
            yield from together(key, sources, partial(meter.rows, n, m))


TOLERANCE = 1e-5
"""Relative error of J v from which a method is not timed; its cause is no rounding."""

SEED = 0

Array = NDArray[np.float64]


@dataclass
class FamilyMeter:
    """Measures a family, all methods at one size together.

    Attributes
    ----------
    family : SizedFamily
    methods : sequence of Method
    timeout : float
        Seconds for preparing and first calling one method, and for its timed calls.
    """

    family: SizedFamily
    methods: Sequence[Method]
    timeout: float
    _timeouts: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict)

    def rows(self, n: int, m: int) -> dict[str, Row]:
        """Return the row of every method at a size."""
        with np.errstate(all="ignore"):
            return self._measured(n, m)

    def _measured(self, n: int, m: int) -> dict[str, Row]:
        try:
            function, x = self.family.member(n, m)
            shape = f"{function.m:,} × {function.n:,}"
            needed = 8 * function.m * function.n * (len(self.methods) + 1)
            require_memory(needed, f"a Jacobian of {shape} elements for every method")
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            return {method.name: outcome(error)._asdict() for method in self.methods}
        problem = Problem.of(function, timeout=self.timeout, often=True)
        judge, effort = _Judge.of(function, x), Effort(problem, x)
        facts = {"inputs": function.n, "outputs": function.m}
        facts["function_operations"] = count(function).arithmetic

        def first(method: Method) -> tuple[Row, measure.MethodCall | None]:
            try:
                self._refuse_larger(method.name, n, m)
                answer = measure.answer(effort.stoppable(method), problem, x)
            except MethodTimeout as error:
                self._timeouts.setdefault(method.name, []).append((n, m, str(error)))
                raise
            row = {**judge.judged(answer), **_work(answer, function)}
            return row, answer.call if row["status"] == "ok" else None

        rows = measure.rows_in_turns(self.methods, first)
        return {name: {**facts, **row} for name, row in rows.items()}

    def _refuse_larger(self, name: str, n: int, m: int) -> None:
        """Raise if the method timed out at a size that is not larger."""
        for n_before, m_before, message in self._timeouts.get(name, []):
            if n_before <= n and m_before <= m:
                size = f"n = {n_before}, m = {m_before}"
                raise MethodTimeout(
                    message if "not tried" in message else _not_tried(size, message)
                )


def _not_tried(size: str, message: str) -> str:
    return f"not tried: at {size} it was {message}"


def _work(answer: measure.MethodAnswer, function: Function) -> Row:
    """Return the scalar operations, and the seconds of preparation."""
    prepared = answer.call.prepared
    operations = prepared.operations
    if isinstance(prepared, AutomaticDerivative):
        operations = count(prepared.function).arithmetic
    elif operations is None and answer.estimate.evaluations:
        operations = answer.estimate.evaluations * count(function).arithmetic
    return {"operations": operations, "prepare_seconds": min(answer.prepare_samples)}


@dataclass(frozen=True)
class _Judge:
    """Compares a Jacobian with one directional derivative, from values only.

    An error of the Jacobian shows in J v for almost every direction v, and the reference takes
    some thirty values whatever the numbers of inputs and outputs.
    """

    direction: Array
    reference: Array | None
    doubt: float

    @classmethod
    def of(cls, function: Function, x: Array) -> _Judge:
        direction = np.random.default_rng(SEED).standard_normal(x.size)
        direction /= np.linalg.norm(direction) or 1.0

        values = values_of(function)

        def along(t: Any) -> Array:
            return np.ravel(values((x + t * direction)[None, :]))

        try:
            estimate = differentiate(along, 0.0)
        except DifflabError:
            return cls(direction, None, 0.0)
        doubt = float(np.max(estimate.error, initial=0.0))
        settled = bool(np.isfinite(doubt) and np.all(np.isfinite(estimate.value)))
        return cls(direction, np.ravel(estimate.value) if settled else None, doubt)

    def judged(self, answer: measure.MethodAnswer) -> Row:
        """Return the status of a Jacobian and the largest relative error along the direction."""
        jacobian = np.asarray(answer.estimate.value, dtype=np.float64)
        if self.reference is None:
            return {"status": "ok", "message": "not judged: the values settle on no derivative"}
        product = jacobian.reshape(self.reference.size, -1) @ self.direction
        scale = float(np.max(np.abs(self.reference), initial=0.0)) or 1.0
        error = float(np.max(np.abs(product - self.reference), initial=0.0)) / scale
        row: Row = {"status": "ok", "error": error}
        own = 0.0 if answer.estimate.error is None else float(np.max(answer.estimate.error))
        # A difference that the stated errors of both may explain is no fault.
        margin = self.doubt + own * float(np.sum(np.abs(self.direction)))
        if not error <= TOLERANCE + 10 * margin / scale:
            row |= {"status": "disagree", "message": f"relative error {error:.1e} of J v"}
        return row
