"""A mistake in the derivative of one operation.

Which operation was differentiated wrongly is found by differentiating each one wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff import jacobian
from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, Graph, Params
from difflab.graph.rewrite import RewriteRule
from difflab.graph.rewritten import rewritten
from difflab.primitives.arithmetic import add, multiply, subtract
from difflab.primitives.movement import stop_gradient
from difflab.testing.checker.leaves import Array
from difflab.testing.checker.truth import most_own

_OPERATIONS = 60
"""Operations of a function up to which each is tried."""
_ALIKE = 1e-6
_SUMS = ("add", "subtract", "sum")


def mistake_in(function: Function, x: Array, yours: Array, alike: float = _ALIKE) -> str:
    r"""Return which one mistake gives a wrong Jacobian; empty if none does.

    The derivative of one operation is scaled by 0, -1, 2 or 1/2, or left out of the chain rule,
    where :math:`y = s + c\,(u - s)` with s = `stop_gradient` of the operation has its value and
    another derivative.

    Parameters
    ----------
    function : Function
        The function as a graph.
    x : ndarray (n,)
        The point.
    yours : ndarray (m, n)
        The Jacobian under test.
    alike : float
        The relative difference that rounding explains.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("sin(x^2) + 3*x")
    >>> mistake_in(f, np.array([0.75]), np.array([[np.cos(0.5625) + 3.0]]))
    'likely a missing inner derivative: that of `x^2` (column 5) is left out'
    >>> mistake_in(f, np.array([0.75]), np.array([[1.5 * np.cos(0.5625)]]))
    'likely a missing term: `3*x` (column 12) is treated as a constant'
    """
    graph = function.graph
    operations = [node for node in range(len(graph)) if graph.primitive(node) is not None]
    if len(operations) > _OPERATIONS or not np.isfinite(yours).all() or not yours.any():
        return ""
    # Each Jacobian is computed once, which does not pay for a search for the cheaper mode.
    tall = function.m > function.n

    def jacobian_of(changed: Function) -> NDArray[np.float64]:
        packed = jacobian(changed, mode="forward" if tall else "reverse")
        values: NDArray[np.float64] = packed.values(x).reshape(yours.shape)
        return values

    right = jacobian_of(function)
    for node in reversed(operations):
        for text, inner, factor in _changes(graph, node):
            candidate = jacobian_of(rewritten(function, _rule(node, inner, factor)))
            if (np.abs(candidate - yours) <= alike * np.abs(candidate)).all():
                # A change as small as the rounding of the right formula explains nothing.
                return text if (np.abs(candidate - right) > most_own(right)).any() else ""
    return ""


def _changes(graph: Graph, node: int) -> Iterator[tuple[str, int, float]]:
    """Yield mistakes in one operation: in words, the operand left as it is or -1, the factor."""
    location = graph.place(node)
    row = graph.primitive(node)
    assert row is not None
    part = f"`{location.part or row.name}`"
    where = f"{part} ({location})" if str(location) else part
    users = (row for row in map(graph.primitive, _users(graph, node)) if row is not None)
    kind = "a missing term" if any(row.name in _SUMS for row in users) else "a detached part"
    yield f"likely {kind}: {where} is treated as a constant", -1, 0.0
    yield f"likely a sign error: the derivative of {where} has the wrong sign", -1, -1.0
    operands = [
        k for k, arg in enumerate(graph.arguments(node)) if int(graph.opcode[arg]) != CONSTANT
    ]
    if len(operands) == 1 and graph.shape(graph.arguments(node)[operands[0]]) == graph.shape(node):
        text = f"likely a missing inner derivative: that of {where} is left out"
        yield text, operands[0], 1.0
    yield f"likely a wrong factor: the derivative of {where} counts twice", -1, 2.0
    yield f"likely a wrong factor: the derivative of {where} counts half", -1, 0.5


def _users(graph: Graph, node: int) -> list[int]:
    return [k for k in range(node + 1, len(graph)) if node in graph.arguments(k)]


def _rule(target: int, inner: int, factor: float) -> RewriteRule:
    """Return the rule that gives one operation another derivative."""

    def rule(
        builder: Builder, node: int, row: Primitive, args: tuple[int, ...], params: Params
    ) -> int | None:
        if node != target:
            return None
        value = builder.emit(row, args, params)
        still = builder.emit(stop_gradient, (value,))
        if factor == 0.0:
            return still
        moving = value if inner < 0 else args[inner]
        change = builder.emit(subtract, (moving, builder.emit(stop_gradient, (moving,))))
        scaled = builder.emit(multiply, (builder.constant(factor), change))
        return builder.emit(add, (still, scaled))

    return rule
