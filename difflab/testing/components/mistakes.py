"""Common mistakes in gradients: in one operation, and in what becomes of a right gradient.

Which operation was differentiated wrongly is found by differentiating each one wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, Graph, Params
from difflab.graph.rewrite import Rule
from difflab.graph.rewritten import rewritten
from difflab.primitives.arithmetic import add, multiply, subtract
from difflab.primitives.movement import stop_gradient

__all__ = ["factor_text", "guesses", "mistake_in"]

Array = NDArray[float64]

_OPERATIONS = 60
"""Operations of a function up to which each is tried."""
_ALIKE = 1e-6
_SUMS = ("add", "subtract", "sum")


def mistake_in(function: Function, x: Array, yours: Array) -> str:
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

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("sin(x^2) + 3*x")
    >>> mistake_in(f, np.array([0.5]), np.array([[np.cos(0.25) + 3.0]]))
    'likely a missing inner derivative: that of `x^2` (column 5) is left out'
    >>> mistake_in(f, np.array([0.5]), np.array([[np.cos(0.25)]]))
    'likely a missing term: `3*x` (column 12) is treated as a constant'
    """
    from difflab.autodiff import jacobian

    graph = function.graph
    operations = [node for node in range(len(graph)) if graph.primitive(node) is not None]
    if len(operations) > _OPERATIONS or not np.isfinite(yours).all() or not yours.any():
        return ""
    for node in reversed(operations):
        for text, inner, factor in _changes(graph, node):
            changed = rewritten(function, _rule(node, inner, factor))
            found = jacobian(changed).values(x).reshape(yours.shape)
            if (np.abs(found - yours) <= _ALIKE * np.abs(found)).all():
                return text
    return ""


def _changes(graph: Graph, node: int) -> Iterator[tuple[str, int, float]]:
    """Yield mistakes in one operation: in words, the operand left as it is or -1, the factor."""
    place = graph.place(node)
    row = graph.primitive(node)
    assert row is not None
    part = f"`{place.part or row.name}`"
    where = f"{part} ({place})" if str(place) else part
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


def _rule(target: int, inner: int, factor: float) -> Rule:
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


def guesses(yours: Array, shape: tuple[int, ...], *, complex_: bool) -> Iterator[tuple[str, Array]]:
    """Yield what the gradient of one array would be right for, with the mistake in words.

    Parameters
    ----------
    yours : ndarray (size,)
        The gradient under test, flattened; with real and imaginary parts if complex.
    shape : tuple of int
        The shape of the array.
    complex_ : bool
        Whether the array is complex.

    Examples
    --------
    >>> [text for text, right in guesses(np.arange(4.0), (2, 2), complex_=False)][:2]
    ['a sign error: yours is minus the numeric value', 'transposed: axes 0 and 1 are exchanged']
    """
    yield "a sign error: yours is minus the numeric value", -yours
    if complex_:
        conjugate = yours.copy()
        conjugate[1::2] *= -1.0
        yield "the other convention of complex gradients: yours is the conjugate", conjugate
        return
    array = yours.reshape(shape)
    if len(shape) == 2 and min(shape) > 1:
        text = "transposed: axes 0 and 1 are exchanged"
        yield text, array.T.ravel()
        if shape[0] != shape[1]:  # transposed, and then reshaped
            yield text, array.reshape(shape[::-1]).T.ravel()
    for axis, size in enumerate(shape):
        if size > 2:
            where = f" along axis {axis}" if len(shape) > 1 else ""
            for shift in (1, -1):
                moved = np.roll(array, shift, axis).ravel()
                yield f"off by one index{where}: yours is shifted by {-shift:+d}", moved
            yield f"reversed{where}", np.flip(array, axis).ravel()


def factor_text(ratio: float, sizes: dict[str, int]) -> str:
    """Return a factor in words: a fraction, or the number of elements that a mean divides by.

    Examples
    --------
    >>> factor_text(0.5, {}), factor_text(32.0, {"the number of elements of x": 32})
    ('1/2', '32, the number of elements of x')
    """
    near = Fraction(ratio).limit_denominator(16)
    text = str(near) if near and abs(ratio / near - 1) < 1e-6 else f"{ratio:.6g}"
    for name, size in sizes.items():
        if size > 2 and abs(ratio / size - 1) < 1e-6:
            return f"{size}, {name}"
        if size > 2 and abs(ratio * size - 1) < 1e-6:
            return f"1/{size}, 1 over {name}"
    return text
