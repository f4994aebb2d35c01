"""Squares before a function is differentiated: of norms as sums of squares, products as powers.

|x|², hypot(x, y)² and ‖x‖² are polynomials, and so is (‖x‖/σ)², but their factors have kinks at 0,
where the rules of the factors give second derivatives of 0 or nan. A graph keeps its numbering: an
operation that is replaced stays at its number, with another row and other arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.primitive import LinearMap, Params, Primitive
from difflab.graph.algebra import degrees, unspread
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.graph.rewritten import rewritten
from difflab.primitives import (
    absolute,
    broadcast,
    divide,
    hypot,
    index,
    matmul,
    multiply,
    negative,
    norm,
    power,
    reshape,
    sqrt,
    sum_,
    sum_of_squares,
)

ROOTS = frozenset({absolute, hypot, norm, sqrt})
PRODUCTS = frozenset({multiply, power})
SCALES = frozenset({multiply, divide, negative})
VIEWS = frozenset({broadcast, index, reshape})

Args = tuple[int, ...]


def squares_once(function: Function) -> Function:
    """Write every x·x as x^2, if the function has a square written either way.

    Both are the same product, and x^2 has the shorter derivative: t·(2·x), not t·x + t·x.

    Examples
    --------
    >>> import difflab as dl
    >>> squares_once(dl.parse("sin(x*x) + x^2")) == dl.parse("sin(x^2) + x^2")
    True
    >>> squares_once(dl.parse("sin(x*x)")) == dl.parse("sin(x*x)")
    True
    """
    graph = function.graph
    if power not in graph.primitives or multiply not in graph.primitives:
        return function
    products = graph.starts[:-1][graph.applies(multiply)]
    bases = graph.args[products]
    products_of = set(bases[bases == graph.args[products + 1]].tolist())
    if not products_of:
        return function
    powers = graph.starts[:-1][graph.applies(power)]
    twos = {node for node, (value, _) in graph.constants.items() if value == 2}
    pairs = zip(graph.args[powers].tolist(), graph.args[powers + 1].tolist(), strict=True)
    occurs = any(base in products_of and exponent in twos for base, exponent in pairs)
    return rewritten(function, _squared) if occurs else function


def _squared(builder: Builder, node: int, row: Primitive, args: Args, params: Params) -> int | None:
    if row.degrees == (1, 1) and args[0] == args[1]:
        return builder.emit(power, (args[0], builder.constant(2)))
    return None


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
    """Return the squares and powers of roots, and of roots that are scaled or viewed."""
    products = np.flatnonzero(graph.applies(*PRODUCTS))
    first, second = (graph.args[graph.starts[products] + k] for k in range(2))
    even = graph.applies(power)[products] | (first == second)
    rooted = graph.applies(*ROOTS, *SCALES, *VIEWS)[first]
    candidates: list[int] = products[even & rooted].tolist()
    return candidates


class _Changes:
    """Rows, arguments and parameters of the operations that are replaced."""

    def __init__(self, graph: Graph, outputs: Sequence[int]) -> None:
        self.graph = graph
        self.uses = np.bincount(np.concatenate([graph.args, outputs]), minlength=len(graph))
        self.edits: dict[int, tuple[Primitive, Args, Params, int]] = {}
        self.constants = dict(graph.constants)

    def _put(
        self, node: int, row: Primitive, args: Args, params: Params = (), like: int | None = None
    ) -> None:
        shape = self.graph.shape_ids[node if like is None else like]
        self.edits[node] = (row, args, params, int(shape))

    def square(self, node: int) -> None:
        """Replace an even power of a root, if this is one that can be replaced."""
        base, exponent = self.graph.arguments(node)[0], self._exponent(node)
        if exponent is None or base in self.edits:
            return
        if self.graph.primitive(base) in ROOTS:
            self._square_root(node, base, exponent)
            return
        self._drop_signs(node)
        if exponent == 2 and self._is_only_of(base, node):
            self._square_scaled(node, base)
            self._square_viewed(node, base)

    def _square_root(self, node: int, root: int, exponent: int) -> None:
        """Replace an even power of a root that is neither scaled nor viewed."""
        row, operands = self.graph.primitive(root), self.graph.arguments(root)
        if row is absolute:
            if exponent == 2:
                self._put(node, multiply, operands * 2)
            else:
                self._put(node, power, (*operands, self.graph.arguments(node)[1]))
            return
        assert row is not None
        square = self._square_of(root)
        if square is not None and row.shape is None and exponent == 2:
            self._put(node, *square)
        elif self.uses[root] == self.graph.arguments(node).count(root):
            if row.shape is not None and exponent == 2:
                self._sum_squares(root, node)
            elif square is not None and exponent == 4:
                self._put(root, *square)
                self._put(node, multiply, (root, root))
            elif square is not None and exponent > 4:
                halved = self._halved(self.graph.arguments(node)[1], exponent)
                if halved is not None:
                    self._put(root, *square)
                    self._put(node, power, (root, halved))

    def _sum_squares(self, root: int, node: int) -> None:
        """Write the square of a norm at another node, as the sum of its operand's squares."""
        operands = self.graph.arguments(root)
        self._put(root, multiply, operands * 2, like=operands[0])
        self._put(node, sum_, (root,), self._params(root), like=root)

    def _is_only_of(self, node: int, user: int) -> bool:
        """Whether only one operation uses a node, which is not replaced."""
        return self.uses[node] == self.graph.arguments(user).count(node) and node not in self.edits

    def _params(self, node: int) -> Params:
        params: Params = self.graph.param_table[self.graph.param_ids[node]]
        return params

    def _drop_signs(self, node: int) -> None:
        """Replace the factors |x| of an even power by x."""
        waiting = [(node, self.graph.arguments(node)[0])]
        while waiting:
            user, step = waiting.pop()
            row, args = self.graph.primitive(step), self.graph.arguments(step)
            if row and row in SCALES | VIEWS and self._is_only_of(step, user):
                plain = [
                    self.graph.arguments(arg)[0] if self.graph.primitive(arg) is absolute else arg
                    for arg in args
                ]
                if tuple(plain) != tuple(args):
                    self._put(step, row, tuple(plain), self._params(step))
                waiting += [(step, arg) for arg in args]

    def _square_scaled(self, node: int, step: int) -> None:
        """Replace (c·r)² by c·(c·r²), likewise (r/c)²."""
        row, args = self.graph.primitive(step), self.graph.arguments(step)
        if row is None or row not in SCALES:
            return
        for factor in self._factors(step):
            user, root = step, factor
            while self.graph.primitive(root) in VIEWS and self._is_only_of(root, user):
                user, root = root, self.graph.arguments(root)[0]
            square = self._square_of(root) if self._is_only_of(root, user) else None
            if square is not None:
                self._put(root, *square)
                scaled = tuple(step if arg == factor else arg for arg in args)
                self._put(node, row, scaled, self._params(step))
                return
        if row.degrees:
            self._square_norms(node, step, row)

    def _factors(self, node: int) -> Args:
        """Return the arguments of a product, a quotient or a negation, without its divisor."""
        args, powers = self.graph.arguments(node), degrees(self.graph, node) or (1,)
        return tuple(arg for arg, degree in zip(args, powers, strict=True) if degree > 0)

    def _square_norms(self, node: int, step: int, row: Primitive) -> None:
        """Replace the square of norms times or by a number by sums of squares and its square."""
        graph = self.graph
        norms = [arg for arg in self._factors(step) if graph.primitive(arg) is norm]
        if not norms or not self._is_only_of(norms[-1], step):
            return
        root, (one, other) = norms[-1], graph.arguments(step)
        factor = one if root == other else other
        both = [*graph.arguments(step), *graph.arguments(node)]
        if factor not in self.constants or self.uses[factor] != both.count(factor):
            return
        square = self.constants[factor][0] ** 2
        if 0 < square < np.inf:
            self.constants[factor] = square, None
            self._sum_squares(root, step)
            self._put(node, row, (step, factor), self._params(step))

    def _square_viewed(self, node: int, step: int) -> None:
        """Replace the square of a view of a root by a view of its square."""
        row, (root, *_) = self.graph.primitive(step), self.graph.arguments(step)
        if row is None or row not in VIEWS or not self._is_only_of(root, step):
            return
        square = self._square_of(root)
        if square is not None:
            shape = self.graph.shape(step)
            self._put(root, *square)
            self._put(node, reshape, (step,), (("rank", len(shape)), ("shape", shape)))
        elif self.graph.primitive(root) is norm:
            self._sum_squares(root, step)
            self._put(node, row, (step,), self._params(step))

    def _exponent(self, node: int) -> int | None:
        """Return the even exponent of a power, 2 for a square as a product, else None."""
        one, other = self.graph.arguments(node)
        if degrees(self.graph, node) == (1, 1):
            return 2 if one == other else None
        number = self.graph.constants.get(unspread(self.graph, other), (1, None))[0]
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
        bases = [
            other
            for other, (value, _) in self.constants.items()
            if value == half and other < node == source
        ]
        return bases[0] if bases else None

    def _square_of(self, root: int) -> tuple[Primitive, Args, Params] | None:
        """Return the square of a hypotenuse, a vector's norm or the root of a sum of squares."""
        operands, row = self.graph.arguments(root), self.graph.primitive(root)
        if row is hypot:
            return sum_of_squares, operands, ()
        shape = self.graph.shape(operands[0]) if operands else ()
        if row is norm and len(shape) == 1 and self.graph.shape(root) == ():
            return matmul, operands * 2, (("ranks", (1, 1)),)
        if row is sqrt and self._is_sum_of_squares(operands[0]):
            return reshape, operands, (("rank", len(shape)), ("shape", shape))
        return None

    def _is_sum_of_squares(self, node: int) -> bool:
        """Whether a value is a sum of squares, so that it is the square of its root."""
        waiting = [node]
        while waiting:
            term = waiting.pop()
            row, args = self.graph.primitive(term), self.graph.arguments(term)
            if row is not None and (row.signs == (1, 1) or isinstance(row.rule, LinearMap)):
                waiting += args
            elif row is power:
                if self._exponent(term) is None:
                    return False
            else:
                product = row is matmul and not self.graph.shape(term)
                product = product or degrees(self.graph, term) == (1, 1)
                if not product or args[0] != args[1]:
                    return False
        return True

    def applied(self) -> Graph:
        """Return the graph with the replacements."""
        if not self.edits:
            return self.graph
        graph = self.graph
        primitives, params = list(graph.primitives), list(graph.param_table)
        opcode, param_ids = graph.opcode.copy(), graph.param_ids.copy()
        shape_ids, sizes = graph.shape_ids.copy(), np.diff(graph.starts)
        pieces: list[Sequence[int] | NDArray[np.int32]] = []
        end = 0
        for node in sorted(self.edits):
            row, args, new_params, shape_ids[node] = self.edits[node]
            opcode[node] = FIRST_ROW + _position(primitives, row)
            param_ids[node], sizes[node] = _position(params, new_params), len(args)
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
