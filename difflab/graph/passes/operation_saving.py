"""Powers of two multiplied last, which a derivative takes for the operations it saves."""

from __future__ import annotations

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.algebra import degrees
from difflab.graph.builder import Builder
from difflab.graph.counts import operation_count
from difflab.graph.function import Function
from difflab.graph.identities import exponent_of
from difflab.graph.ir import Params
from difflab.graph.rewrite import Args, label, rewrite
from difflab.primitives import multiply

Scaled = tuple[int, int]
"""A node and an exponent k: the value is the node's times 2^k."""


def doubled_last(function: Function, first: int = 0) -> Function:
    """Multiply by powers of two after products and sums, where that saves operations.

    ``2·a + 2·b`` is ``2·(a + b)``, and so on along a recursion. Scaling by a power of two is
    exact, so that a value changes only where a number is too small or too large to be scaled.

    Parameters
    ----------
    function : Function
        The function to rewrite.
    first : int
        The node to begin at; those before it, as of a function in its derivative, stay.

    Examples
    --------
    >>> import difflab as dl
    >>> doubled_last(dl.parse("2*x*y + 2*y*z")) == dl.parse("2*(x*y + y*z)")
    True
    """
    graph = function.graph
    if not any((1, 1) in (row.signs, row.degrees) for row in graph.primitives):
        return function
    builder = Builder(graph.source)
    scaling = _Scaling(function, builder, first)
    copied = rewrite(graph, builder, scaling.written)
    builder.labels.clear()
    for node, name in graph.labels.items():
        if node not in scaling.exponents:
            label(builder, copied[node], name)
    inputs = [copied[node] for node in function.input_nodes]
    outputs = [scaling.whole((copied[n], scaling.exponents.get(n, 0))) for n in function.outputs]
    names, arguments = function.output_names, function.arguments
    doubled = Function.build(
        builder, inputs, outputs, names, function.structure, arguments=arguments
    )
    return min(function, doubled, key=operation_count)


class _Scaling:
    """Nodes with the powers of two that they have still to be multiplied by."""

    def __init__(self, function: Function, builder: Builder, first: int) -> None:
        self.builder = builder
        self.arguments = [args for _, args in function.graph.rows()]
        self.first = first
        self.exponents: dict[int, int] = {}
        """The exponent of each node of the function that is not 0."""

    def written(
        self, builder: Builder, node: int, row: Primitive, args: Args, params: Params
    ) -> int | None:
        """Rule of `rewrite`: append a value without its power of two, which is recorded."""
        if node < self.first:
            return None
        exponent_of = self.exponents.get
        pairs = zip(args, self.arguments[node], strict=True)
        parts = [(arg, exponent_of(old, 0)) for arg, old in pairs]
        moved = self.moved(row, parts)
        if moved is None:
            return builder.emit(row, [self.whole(part) for part in parts], params)
        if moved[1]:
            self.exponents[node] = moved[1]
        return moved[0]

    def moved(self, row: Primitive, parts: list[Scaled]) -> Scaled | None:
        """Append an operation, its operands' powers of two behind it; None where they stay."""
        if row.degrees:
            return (self._quotient if -1 in row.degrees else self._product)(row, *parts)
        if row.signs == (-1,):
            return self._negative(row, *parts)
        if row.signs:
            return (self._difference if -1 in row.signs else self._sum)(row, *parts)
        return None

    def whole(self, part: Scaled) -> int:
        """Return the node that has the value of `part`; a factor that is there takes it in."""
        node, exponent = part
        if not exponent:
            return node
        scale = 1 << exponent
        if degrees(self.builder, node) == (1, 1):
            for factor, other in (args := self.builder.arguments(node), args[::-1]):
                if factor in self.builder.constants:
                    value = self.builder.constants[factor][0] * scale
                    return self.builder.emit(multiply, (self.builder.constant(value), other))
        return self.builder.emit(multiply, (self.builder.constant(scale), node))

    def _product(self, row: Primitive, a: Scaled, b: Scaled) -> Scaled:
        """Multiply; powers of two are not multiplied but carried along."""
        for (factor, held), (node, exponent) in ((a, b), (b, a)):
            more = self._exponent(factor)
            if more:
                return node, exponent + held + more
        return self.builder.emit(row, (a[0], b[0])), a[1] + b[1]

    def _sum(self, row: Primitive, a: Scaled, b: Scaled) -> Scaled:
        """Add two values; double if they are equal."""
        return (a[0], a[1] + 1) if a == b else self._difference(row, a, b)

    def _difference(self, row: Primitive, a: Scaled, b: Scaled) -> Scaled:
        operands, exponent = self._aligned([a, b])
        return self.builder.emit(row, operands), exponent

    def _negative(self, row: Primitive, a: Scaled) -> Scaled:
        return self.builder.emit(row, (a[0],)), a[1]

    def _quotient(self, row: Primitive, a: Scaled, b: Scaled) -> Scaled:
        return self.builder.emit(row, (a[0], self.whole(b))), a[1]

    def _exponent(self, node: int) -> int:
        """Return k where a node is the constant 2^k and k > 0; else 0."""
        value = self.builder.constants.get(node, (0, None))[0]
        return max(exponent_of(value) or 0, 0)

    def _aligned(self, parts: list[Scaled]) -> tuple[list[int], int]:
        """Return two operands under the same power of two; a constant takes any."""
        constants = self.builder.constants
        other = [exponent for node, exponent in parts if node not in constants]
        if len(other) < len(parts):
            common = max(other, default=0)
            operands = [
                self.builder.constant(_divided(constants[node][0], common - exponent))
                if node in constants
                else node
                for node, exponent in parts
            ]
            return operands, common
        least = min(exponent for _, exponent in parts)
        return [self.whole((node, exponent - least)) for node, exponent in parts], least


def _divided(value: float, exponent: int) -> float:
    """Return value / 2^exponent, an integer where it is one."""
    with np.errstate(over="ignore"):  # a value that is too large is infinite, as a product is
        quotient = float(np.ldexp(float(value), -exponent))
    return int(quotient) if isinstance(value, int) and quotient.is_integer() else quotient
