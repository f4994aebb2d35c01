"""Find a small pattern, a formula of the language, in a graph.

The variables of a pattern match any subexpression, and the same one at every occurrence.
Equivalent forms match each other: commutative operands in either order, ``x*x`` and ``x^2``,
``a + (-b)`` and ``a - b``, ``x^0.5`` and ``sqrt(x)``, constants through a broadcast. Depth and
width of the search are those of the pattern, not of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from inspect import signature
from typing import Any

from difflab.core.primitive import Primitive
from difflab.graph.algebra import degrees, signs, unspread
from difflab.graph.builder import SPREADING, Builder
from difflab.graph.function import Function, evaluate
from difflab.graph.ir import Number
from difflab.graph.node import Node
from difflab.language import parse
from difflab.primitives import add, negative, power, sqrt, subtract
from difflab.stabilisation.sums import signed_terms, signed_total

Bindings = dict[int, int]

Form = str | Callable[..., Node]
"""A pattern or a replacement: a formula of the language, or a function of nodes."""


@cache
def _parsed(text: str) -> Function:
    return parse(text)


def _parameters(form: Form) -> tuple[str, ...]:
    """Return the names of the variables of a form."""
    return _parsed(form).inputs if isinstance(form, str) else tuple(signature(form).parameters)


def applied(form: Form, nodes: Mapping[str, Node]) -> Node:
    """Return a form of nodes, which are given by the names of its variables."""
    if not isinstance(form, str):
        return form(*nodes.values())
    function = _parsed(form)
    node: Node = evaluate(function, [nodes[name] for name in function.inputs])[0]
    return node


class GraphPattern:
    """The compiled pattern of a rule.

    Parameters
    ----------
    form : str or callable
        The pattern as a formula of the language, or as a function of its wildcards.

    Examples
    --------
    >>> from difflab.primitives import exp
    >>> builder = Builder()
    >>> x = Node(builder, builder.input("x"))
    >>> bound = GraphPattern("exp(u) - 1").match(builder, (-1 + exp(x * x)).id)
    >>> {name: builder.primitive(node.id) for name, node in bound.items()}
    {'u': <primitive multiply>}
    """

    def __init__(self, form: Form) -> None:
        self.builder = Builder()
        self.wildcards = {name: self.builder.input(name) for name in _parameters(form)}
        nodes = {name: Node(self.builder, node) for name, node in self.wildcards.items()}
        self.root = applied(form, nodes).id
        row = self.builder.primitive(self.root)
        if row is None:
            raise ValueError("a pattern applies at least one operation")
        self.row: Primitive = row

    @property
    def rows(self) -> tuple[Primitive, ...]:
        """The primitives of nodes that the root of the pattern can match."""
        return (self.row, *_OTHERWISE.get(self.row, ((), None))[0])

    @property
    def operands(self) -> set[Primitive]:
        """The primitives of the operands of the root."""
        rows = map(self.builder.primitive, self.builder.arguments(self.root))
        return {row for row in rows if row is not None}

    def match(self, builder: Builder, node: int) -> dict[str, Node] | None:
        """Return the subexpressions that the wildcards match, or None.

        A match of constants only is left to constant folding.
        """
        for bound in self._matches(builder, self.root, node, {}):
            if any(number(builder, bound[part]) is None for part in self.wildcards.values()):
                return {k: Node(builder, bound[part]) for k, part in self.wildcards.items()}
        return None

    def _matches(
        self, builder: Builder, part: int, node: int, bound: Bindings
    ) -> Iterator[Bindings]:
        """Yield the bindings with which `node` matches `part`, extending `bound`."""
        row = self.builder.primitive(part)
        if part in self.builder.names:
            if part not in bound:
                yield {**bound, part: node}
            elif bound[part] == node:
                yield bound
        elif row is None:
            if number(builder, node) == self.builder.constants[part][0]:
                yield bound
        else:
            parts = self.builder.arguments(part)
            known = bound.get(parts[0]) if row.signs == (-1,) else None
            if known is not None and _opposite(builder, node, known):
                yield bound
            for operands in self._readings(builder, row, parts, node):
                yield from self._all(builder, parts, operands, bound)

    def _all(
        self, builder: Builder, parts: tuple[int, ...], operands: tuple[int, ...], bound: Bindings
    ) -> Iterator[Bindings]:
        if not parts:
            yield bound
            return
        for extended in self._matches(builder, parts[0], operands[0], bound):
            yield from self._all(builder, parts[1:], operands[1:], extended)

    def _readings(
        self, builder: Builder, row: Primitive, parts: tuple[int, ...], node: int
    ) -> Iterator[tuple[int, ...]]:
        """Yield the operands with which `node` is an application of `row`."""
        node = unspread(builder, node)
        if row is power and self.builder.constants.get(parts[1], (0, None))[0] == 2:
            root = square_root_of(builder, node)
            if root is not None:
                yield root, builder.constant(2)
            return
        if builder.primitive(node) is row:
            args = builder.arguments(node)
            yield args
            if row.commutative:
                yield args[::-1]
        elif row in _OTHERWISE:
            yield from _OTHERWISE[row][1](builder, node)
        if row.signs == (1, 1):
            yield from self._apart(builder, parts, node)

    def _apart(
        self, builder: Builder, parts: tuple[int, ...], node: int
    ) -> Iterator[tuple[int, ...]]:
        """Yield a longer sum as the constant that the pattern adds, and the sum of the rest."""
        terms = signed_terms(builder, node)
        for wanted in parts if len(terms) > 2 else ():
            value = self.builder.constants.get(wanted, (None, None))[0]
            for place, (sign, term) in enumerate(terms if value is not None else ()):
                constant = number(builder, term)
                if constant is not None and sign * constant == value:
                    rest = signed_total(builder, terms[:place] + terms[place + 1 :])
                    apart = (builder.constant(value), rest)
                    yield apart if wanted == parts[0] else apart[::-1]
                    break


def _differences(builder: Builder, node: int) -> Iterator[tuple[int, ...]]:
    """Yield the operands with which a sum is a difference."""
    if signs(builder, node) == (1, 1):
        for kept, minus in (builder.arguments(node), builder.arguments(node)[::-1]):
            subtrahend = negated(builder, minus)
            if subtrahend is not None:
                yield kept, subtrahend


def _roots(builder: Builder, node: int) -> Iterator[tuple[int, ...]]:
    """Yield the operand with which a power is a square root."""
    if builder.primitive(node) is power:
        base, exponent = builder.arguments(node)
        if number(builder, exponent) == 0.5:
            yield (base,)


def _negations(builder: Builder, node: int) -> Iterator[tuple[int, ...]]:
    """Yield the operand with which a node is a negation."""
    operand = negated(builder, node)
    if operand is not None:
        yield (operand,)


Reading = Callable[[Builder, int], Iterator[tuple[int, ...]]]
_OTHERWISE: dict[Primitive, tuple[tuple[Primitive, ...], Reading]] = {
    subtract: ((add,), _differences),
    sqrt: ((power,), _roots),
    negative: ((), _negations),
}
"""Other forms of operations in a pattern: the rows of a root in that form, and its operands."""


def number(builder: Builder, node: int) -> Number | None:
    """Return the value of a constant `node`, also through a broadcast or a minus; else None."""
    sign = 1
    while (minus := signs(builder, node) == (-1,)) or builder.primitive(node) in SPREADING:
        sign = -sign if minus else sign
        (node,) = builder.arguments(node)
    return sign * builder.constants[node][0] if node in builder.constants else None


def negated(builder: Builder, node: int) -> int | None:
    """Return z if `node` is -z or a negative constant; else None."""
    if signs(builder, node) == (-1,):
        return builder.arguments(node)[0]
    if degrees(builder, node) == (1, 1):
        for factor, other in (builder.arguments(node), builder.arguments(node)[::-1]):
            if number(builder, factor) == -1:
                return other
    if node in builder.constants and builder.constants[node][0] < 0:
        return builder.constant(-builder.constants[node][0])
    return None


def _opposite(builder: Builder, a: int, b: int) -> bool:
    """Return whether a is -b in form: a minus, a reversed difference, the sign of a factor."""
    if negated(builder, a) == b or negated(builder, b) == a:
        return True
    if builder.primitive(a) is not builder.primitive(b):
        return False
    if signs(builder, a) == (1, -1):
        return builder.arguments(a) == builder.arguments(b)[::-1]
    if degrees(builder, a) == (1, 1):
        scaled = _factor(builder, a)
        return scaled is not None and scaled == _factor(builder, b, -1)
    return False


def _factor(builder: Builder, node: int, sign: int = 1) -> tuple[Number, int] | None:
    """Return ``sign`` times the constant, and the other factor, of a product with a constant."""
    for factor, other in (builder.arguments(node), builder.arguments(node)[::-1]):
        value = number(builder, factor)
        if value is not None:
            return sign * value, other
    return None


def square_root_of(builder: Builder, node: int) -> int | None:
    """Return b if `node` has the form b² or is the square of an integer; else None."""
    if builder.primitive(node) is power:
        base, exponent = builder.arguments(node)
        return base if number(builder, exponent) == 2 else None
    if degrees(builder, node) == (1, 1):
        left, right = builder.arguments(node)
        return left if left == right else None
    value = number(builder, node)
    if value is None or not math.isfinite(value) or value <= 0 or value != int(value):
        return None
    root = math.isqrt(int(value))
    return builder.constant(root) if root * root == int(value) else None


@dataclass(frozen=True, eq=False)
class Rule:
    """One rewrite rule.

    Attributes
    ----------
    plain, stable : str
        The pattern and the replacement, as readable text.
    why : str
        What fails in the plain form.
    example : str
        A program of the language to which the rule applies.
    danger : mapping of str to float or list
        A point at which the plain form of `example`, or its derivative, is wrong.
    pattern, replacement : str, callable or None
        The pattern and the replacement as formulas of the language in the same variables, or as
        functions of the same parameters; None if the rule is implemented in
        `difflab.stabilisation.rewriting`.
    rows : tuple of Primitive
        The primitives to which a rule without a pattern can apply.
    """

    plain: str
    stable: str
    why: str
    example: str
    danger: Mapping[str, Any]
    pattern: Form | None = None
    replacement: Form | None = None
    rows: tuple[Primitive, ...] = ()

    @property
    def name(self) -> str:
        """The rule in one line."""
        return f"{self.plain} → {self.stable}"

    @cached_property
    def compiled(self) -> GraphPattern | None:
        """The pattern as a graph."""
        return None if self.pattern is None else GraphPattern(self.pattern)

    @property
    def roots(self) -> tuple[Primitive, ...]:
        """The primitives to which the rule can apply."""
        return self.rows if self.compiled is None else self.compiled.rows
