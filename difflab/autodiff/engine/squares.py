"""Squares of norms as sums of squares, before a function is differentiated.

|x|², hypot(x, y)² and ‖x‖² are polynomials, but their factors have kinks at 0, where the rules of
the factors give second derivatives of 0 or nan. A graph keeps its numbering: an operation that is
replaced stays at its number, with another row and other arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.primitive import Params, Primitive
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.primitives import (
    absolute,
    add,
    broadcast,
    hypot,
    matmul,
    multiply,
    norm,
    power,
    reshape,
    sqrt,
    sum_,
    sum_of_squares,
)

__all__ = ["with_sums_of_squares"]

ROOTS = frozenset({absolute, hypot, norm, sqrt})
PRODUCTS = frozenset({multiply, power})

Args = tuple[int, ...]


def with_sums_of_squares(function: Function) -> Graph:
    """Return a function's graph with squares, and other even powers, of norms as polynomials.

    Examples
    --------
    >>> import difflab as dl
    >>> graph = with_sums_of_squares(dl.parse("hypot(x, y)^2"))
    >>> graph.primitives[-1]
    <primitive sum_of_squares>
    """
    graph = function.graph
    rows = set(graph.primitives)
    if not (rows & ROOTS and rows & PRODUCTS):
        return graph
    changes = _Changes(graph, function.outputs)
    for node in _candidates(graph):
        changes.square(node)
    return changes.applied()


def _candidates(graph: Graph) -> list[int]:
    """Return the products and powers whose first operand is a root."""

    def codes(chosen: frozenset[Primitive]) -> NDArray[np.bool_]:
        wanted = [FIRST_ROW + k for k, row in enumerate(graph.primitives) if row in chosen]
        found: NDArray[np.bool_] = np.isin(graph.opcode, wanted)
        return found

    products, roots = np.flatnonzero(codes(PRODUCTS)), codes(ROOTS)
    found: list[int] = products[roots[graph.args[graph.starts[products]]]].tolist()
    return found


class _Changes:
    """Rows, arguments and parameters of the operations that are replaced."""

    def __init__(self, graph: Graph, outputs: Sequence[int]) -> None:
        self.graph = graph
        self.uses = np.bincount(np.concatenate([graph.args, outputs]), minlength=len(graph))
        self.found: dict[int, tuple[Primitive, Args, Params, int]] = {}
        self.constants = dict(graph.constants)

    def _put(
        self, node: int, row: Primitive, args: Args, params: Params = (), like: int | None = None
    ) -> None:
        shape = self.graph.shape_ids[node if like is None else like]
        self.found[node] = (row, args, params, int(shape))

    def square(self, node: int) -> None:
        """Replace an even power of a root, if this is one that can be replaced."""
        root = self.graph.arguments(node)[0]
        exponent, row = self._exponent(node), self.graph.primitive(root)
        if exponent is None or root in self.found:
            return
        operands = self.graph.arguments(root)
        if row is absolute:
            if exponent == 2:
                self._put(node, multiply, operands * 2)
            else:
                self._put(node, power, (*operands, self.graph.arguments(node)[1]))
        elif row is sqrt and not self._is_sum_of_squares(operands[0]):
            return
        elif exponent == 2 and row is not norm:
            self._put(node, *self._squared(root))
        elif self.uses[root] == self.graph.arguments(node).count(root):
            if row is norm and exponent == 2:
                params = self.graph.param_table[self.graph.param_ids[root]]
                self._put(root, multiply, operands * 2, like=operands[0])
                self._put(node, sum_, (root,), params)
            elif exponent == 4 and (row is not norm or self._is_of_vector(root)):
                self._put(root, *self._squared(root))
                self._put(node, multiply, (root, root))
            elif exponent > 4 and (row is not norm or self._is_of_vector(root)):
                halved = self._halved(self.graph.arguments(node)[1], exponent)
                if halved is not None:
                    self._put(root, *self._squared(root))
                    self._put(node, power, (root, halved))

    def _exponent(self, node: int) -> int | None:
        """Return the even exponent of a power, 2 for a square as a product, else None."""
        one, other = self.graph.arguments(node)
        if self.graph.primitive(node) is multiply:
            return 2 if one == other else None
        if self.graph.primitive(other) is broadcast:
            (other,) = self.graph.arguments(other)
        number = self.graph.constants.get(other, (1, None))[0]
        return int(number) if number > 0 and number % 2 == 0 else None

    def _halved(self, node: int, exponent: int) -> int | None:
        """Return a node of half an exponent: another constant, or its own if nothing else uses it.

        None if the graph has no such node.
        """
        half, source = exponent // 2, node
        while self.graph.primitive(source) is broadcast:
            (source,) = self.graph.arguments(source)
            if self.uses[source] > 1:
                return None
        if self.uses[node] == 1:
            self.constants[source] = (type(self.constants[source][0])(half), None)
            return node
        known = [
            other
            for other, (value, _) in self.constants.items()
            if value == half and other < node == source
        ]
        return known[0] if known else None

    def _squared(self, root: int) -> tuple[Primitive, Args, Params]:
        """Return the square of a hypotenuse, a vector's norm or the root of a sum of squares."""
        operands, row = self.graph.arguments(root), self.graph.primitive(root)
        if row is hypot:
            return sum_of_squares, operands, ()
        if row is norm:
            return matmul, operands * 2, (("ranks", (1, 1)),)
        shape = self.graph.shape(operands[0])
        return reshape, operands, (("rank", len(shape)), ("shape", shape))

    def _is_of_vector(self, root: int) -> bool:
        """Whether a norm is that of a vector, and a number."""
        (operand,) = self.graph.arguments(root)
        return len(self.graph.shape(operand)) == 1 and self.graph.shape(root) == ()

    def _is_sum_of_squares(self, node: int) -> bool:
        """Whether a value is a sum of squares, so that it is the square of its root."""
        waiting = [node]
        while waiting:
            term = waiting.pop()
            row, args = self.graph.primitive(term), self.graph.arguments(term)
            if row is add or row is sum_ or row is broadcast or row is reshape:
                waiting += args
            elif row is power:
                if self._exponent(term) is None:
                    return False
            else:
                product = row is multiply or (row is matmul and not self.graph.shape(term))
                if not product or args[0] != args[1]:
                    return False
        return True

    def applied(self) -> Graph:
        """Return the graph with the replacements."""
        if not self.found:
            return self.graph
        graph = self.graph
        primitives, params = list(graph.primitives), list(graph.param_table)
        opcode, param_ids = graph.opcode.copy(), graph.param_ids.copy()
        shape_ids, sizes = graph.shape_ids.copy(), np.diff(graph.starts)
        pieces: list[Sequence[int] | NDArray[np.int32]] = []
        end = 0
        for node in sorted(self.found):
            row, args, given, shape_ids[node] = self.found[node]
            opcode[node] = FIRST_ROW + _position(primitives, row)
            param_ids[node], sizes[node] = _position(params, given), len(args)
            pieces += [graph.args[end : graph.starts[node]], args]
            end = int(graph.starts[node + 1])
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(graph.starts.dtype)
        return replace(
            graph,
            opcode=opcode,
            starts=starts,
            args=np.concatenate([*pieces, graph.args[end:]]).astype(graph.args.dtype),
            param_ids=param_ids,
            shape_ids=shape_ids,
            primitives=tuple(primitives),
            constants=self.constants,
            param_table=tuple(params),
        )


def _position(table: list[Any], entry: Any) -> int:
    if entry not in table:
        table.append(entry)
    return table.index(entry)
