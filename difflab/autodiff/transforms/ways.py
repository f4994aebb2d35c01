"""The ways of computing a differential operator, of which one is chosen by its operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from difflab.arrays import random
from difflab.autodiff.functions import operators
from difflab.autodiff.functions.operators import Positions, Way
from difflab.autodiff.lifting import Argnums, Call, F, lifted
from difflab.autodiff.transforms.partial import mixed_derivative
from difflab.errors import InputError, UnsupportedError
from difflab.graph.counts import count
from difflab.graph.function import Function
from difflab.graph.rewritten import selected

ESTIMATE = "hutchinson"
MOST_FORMULAS = 64
"""Terms above which an operator is not written as a formula for each."""
MOST_TRIED = 5_000
"""Nodes of a function above which operations are not counted: the first way is chosen."""


@dataclass(frozen=True)
class Ways:
    """The ways of computing an operator of one function, by their scalar operations at a point.

    Attributes
    ----------
    operator : str
        The operator's name.
    chosen : str
        The way that is used.
    operations : mapping of str to int
        The count of each way, `Counts.arithmetic`; empty where the function is too large to try.
    refused : mapping of str to str
        Why other ways cannot be used.
    """

    operator: str
    chosen: str
    operations: Mapping[str, int]
    refused: Mapping[str, str]

    def __call__(self, *args: Any) -> Ways:
        """Return the ways: those of a Function do not depend on its arguments."""
        return self

    def __str__(self) -> str:
        lines = [f"{self.operator}: {self.chosen}"]
        for way, operations in sorted(self.operations.items(), key=lambda pair: pair[1]):
            lines.append(f"  {way:<16}{operations:>16,} operations")
        return "\n".join(lines + [f"  {way:<16}{why}" for way, why in self.refused.items()])


def _by_element(
    function: Function, sources: Positions, outputs: Positions, *, order: int
) -> Function:
    """Return the sum of one formula for each coordinate, or for each pair of them."""
    ends = list(accumulate(map(math.prod, function.input_shapes), initial=0))
    squares = [(column, column) for i in sources for column in range(ends[i], ends[i + 1])]
    if not squares:
        raise UnsupportedError("there are no coordinates")
    if len(squares) ** (order // 2) > MOST_FORMULAS:
        raise UnsupportedError(f"more than {MOST_FORMULAS} formulas")
    terms = squares if order == 2 else [(*a, *b) for a in squares for b in squares]
    names = [function.output_names[i] for i in outputs]
    whole = selected(function, [function.outputs[i] for i in outputs], names)
    return operators.sum_of([mixed_derivative(whole, term) for term in terms], whole.output_shapes)


def _signs(key: Any, shape: tuple[int, int]) -> Any:
    """Return random signs."""
    return 2.0 * random.bernoulli(key, 0.5, shape) - 1.0


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator: its ways, and its estimate as `scale` times the mean of a term.

    The directions of the mean are drawn by ``draw(key, shape)``.
    """

    name: str
    ways: Mapping[str, Way]
    term: Way | None = None
    draw: Callable[[Any, tuple[int, int]], Any] = _signs
    scale: float = 1.0

    def built(
        self, function: Function, sources: Positions, outputs: Positions, method: str
    ) -> tuple[Function, Ways]:
        """Return the operator in one way, and the counts by which "auto" chooses it."""
        functions: dict[str, Function] = {}
        refused: dict[str, str] = {}
        tried = self.ways if method == "auto" else [method]
        for way in tried:
            if functions and len(function.graph) > MOST_TRIED:
                break
            try:
                functions[way] = self.ways[way](function, sources, outputs)
            except UnsupportedError as error:
                if method != "auto":
                    raise
                refused[way] = str(error)
        if not functions:
            raise UnsupportedError(f"no way of {self.name}: {next(iter(refused.values()))}")
        operations = {way: count(each).arithmetic for way, each in functions.items()}
        chosen = min(operations, key=operations.__getitem__)
        return functions[chosen], Ways(self.name, chosen, operations, refused)

    def estimated(
        self, function: Function, sources: Positions, outputs: Positions, samples: int
    ) -> Function:
        """Return the estimate and its error, of random directions, the last inputs."""
        assert self.term is not None
        term = self.term(function, sources, outputs)
        return operators.mean_along(term, len(function.inputs), samples, self.scale)

    def estimate(self, call: Call, key: Any, samples: int) -> Any:
        """Return the estimate of a call and its error."""
        shapes = call.shapes()
        ends = list(accumulate(map(math.prod, shapes), initial=0))
        drawn = self.draw(key, (samples, ends[-1]))
        parts = [
            drawn[:, start:stop].reshape(samples, *shape)
            for (start, stop), shape in zip(pairwise(ends), shapes, strict=True)
        ]
        derived = call.derived(self.estimated, call.outputs, samples)
        count = len(derived.outputs) // 2
        if call.values is None:
            derived, parts = operators.bound(derived, parts), []

        def form(values: Sequence[Any]) -> Any:
            return _result(call, values[:count]), _result(call, values[count:])

        return call.returned(derived, form, list(call.run.precisions[:count]) * 2, parts)


LAPLACIAN = Operator(
    "laplacian",
    {**operators.LAPLACIAN, "symbolic": partial(_by_element, order=2)},
    operators.SECOND,
)
BIHARMONIC = Operator(
    "biharmonic",
    {**operators.BIHARMONIC, "symbolic": partial(_by_element, order=4)},
    operators.FOURTH,
    random.normal,
    1 / 3,
)
DIVERGENCE = Operator("divergence", operators.DIVERGENCE, operators.TRACE)
CURL = Operator("curl", operators.CURL)


def computed(
    operator: Operator,
    fun: F,
    argnums: Argnums | None,
    method: str,
    key: Any = None,
    samples: int | None = None,
) -> F:
    """Return an operator of a function in the chosen way."""
    _require_method(operator, method, key, samples)
    positions: Argnums = 0
    if isinstance(fun, Function):
        groups = len(fun.arguments.names) if fun.arguments else len(fun.inputs)
        positions = tuple(range(groups)) if groups > 1 else 0

    def value(call: Call) -> Any:
        _require_numbers(call)
        if samples is not None:
            return operator.estimate(call, key, samples)
        derived, ways = call.derived(operator.built, call.outputs, method)
        result = call.returned(derived, partial(_result, call), call.run.precisions)
        if call.values is None:
            result.__dict__["explain"] = ways
        return result

    def ways(call: Call) -> Any:
        _require_numbers(call)
        if samples is None:
            return call.derived(operator.built, call.outputs, method)[1]
        work = count(call.derived(operator.estimated, call.outputs, samples)).arithmetic
        return Ways(operator.name, method, {method: work}, {})

    chosen = positions if argnums is None else argnums
    derivative = lifted(value, fun, chosen, False, operator.name)
    if not isinstance(fun, Function):
        derivative.__dict__["explain"] = lifted(ways, fun, chosen, False, operator.name)
    return derivative


def _result(call: Call, parts: Sequence[Any]) -> Any:
    """Return the operator of each result in their tree, or the only number of a vector field."""
    field = call.what in {"divergence", "curl"}
    return parts[0] if field else call.run.result(parts)


def _require_method(operator: Operator, method: str, key: Any, samples: int | None) -> None:
    """Raise `InputError` unless the method exists and has its arguments."""
    allowed = ["auto", *operator.ways, *([ESTIMATE] if operator.term else [])]
    if not isinstance(method, str) or method not in allowed:
        raise InputError(
            f"{operator.name} has no method {method!r}", hint=f"one of: {', '.join(allowed)}"
        )
    estimates = method == ESTIMATE
    if estimates != (samples is not None) or estimates != (key is not None):
        raise InputError(
            f'key and samples of {operator.name} are those of method="{ESTIMATE}"',
            hint=f'write method="{ESTIMATE}", key=dl.random.key(0), samples=100',
        )
    if estimates and (not isinstance(samples, (int, np.integer)) or samples < 2):
        raise InputError(f"samples of {operator.name} is an integer of at least 2, not {samples!r}")


def _require_numbers(call: Call) -> None:
    """Raise `InputError` without arguments or results.

    A vector field must have as many elements as its argument.
    """
    if not call.shapes() or not call.run.results:
        lacks = "result" if call.shapes() else "argument"
        raise InputError(f"{call.what} needs a function whose {lacks} has a number or an array")
    if call.what not in {"divergence", "curl"}:
        return
    n = sum(map(math.prod, call.shapes()))
    m = sum(map(math.prod, call.run.function.output_shapes[: call.run.results]))
    if m != n or (call.what == "curl" and n not in {2, 3}):
        sizes = "2 or 3 elements" if call.what == "curl" else "as many elements as its result"
        raise InputError(
            f"{call.what} needs an argument of {sizes}; this function maps {n} to {m}",
            hint="argnums chooses the arguments that are the coordinates",
        )
