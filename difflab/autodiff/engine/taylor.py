r"""Derivatives of every node along a curve, of every order, as nodes.

A *series* holds the derivatives :math:`y_0, y_1, \dots` of a value y(t). A row with a recurrence
states :math:`y_k` itself. For all others the derivative rule does: for y = φ(a, b, …) the tangent
map applied to series gives that of y′ from those of a′, b′, …, y, a, b, …, and :math:`y_k` is the
derivative of order k − 1 of y′. The operations of the map are rows again, with series of their
own: ``sin`` needs that of ``cos``, which needs that of ``sin``, each one order lower. Equal
operations on equal series are one series, so that order d costs O(d²) operations for each
operation of the function (Griewank & Walther, *Evaluating Derivatives*, 2nd ed., §13.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

from difflab.autodiff.engine.argumentwise import anywhere, recorded_tangent
from difflab.autodiff.engine.forward import moved_mask, selected_tangent
from difflab.autodiff.engine.masked import Masked, either, resolved
from difflab.autodiff.engine.recipe import template
from difflab.autodiff.engine.series import Series, is_direct, varies
from difflab.autodiff.engine.sweep import Sweep, spread
from difflab.core.primitive import (
    ByArgument,
    Custom,
    Elementwise,
    LinearMap,
    Params,
    Primitive,
    Select,
    Transpose,
)
from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Shape
from difflab.graph.node import Node
from difflab.graph.rewritten import composed
from difflab.primitives import add
from difflab.primitives.recurrences import plus


def taylor_terms(
    sweep: Sweep, curves: Mapping[int, Sequence[Node]], targets: Sequence[int], order: int
) -> list[list[Node | None]]:
    r"""Return the derivatives of `targets` of the orders 1 to `order`.

    Parameters
    ----------
    sweep : Sweep
        The graph and the builder to append to.
    curves : mapping of int to sequence of Node
        The derivatives of other nodes, from order 1.
    targets : sequence of int
        The nodes whose derivatives are wanted.
    order : int
        The highest order.
    """
    expansion = _SeriesExpansion(sweep, curves)
    return [
        [expansion.resolved_term(expansion.of_node[number], k) for k in range(1, order + 1)]
        for number in targets
    ]


def solution_terms(sweep: Sweep, time: int, state: int, rate: int, order: int) -> list[Node | None]:
    """Return the derivatives by time, of the orders 1 to `order`, of y with y′ = f(t, y).

    The derivative of order k + 1 of y is that of order k of f, which takes those of y up to k.

    Parameters
    ----------
    sweep : Sweep
        The graph of f.
    time, state, rate : int
        The nodes t, y and f(t, y).
    order : int
        The highest order.
    """
    first = Node(sweep.builder, rate)
    # Two derivatives make the series one that is given; those from the second on are found here.
    expansion = _SeriesExpansion(sweep, {time: [sweep.constant(1)], state: [first, first]})
    terms = expansion.of_node[state].terms
    del terms[2:]
    for k in range(1, order):
        term = expansion.resolved_term(expansion.of_node[rate], k)
        terms.append(None if term is None else term.id)
    return [None if term is None else Node(sweep.builder, term) for term in terms[1:]]


class _SeriesExpansion:
    """The series of a function's nodes, and of the operations of their derivatives."""

    def __init__(self, sweep: Sweep, curves: Mapping[int, Sequence[Node]]) -> None:
        self.sweep, self.builder = sweep, sweep.builder
        self.known: dict[object, Series] = {}
        self.of_node: list[Series] = []
        for number, opcode in enumerate(sweep.opcode):
            sweep.at(number)
            if number in curves:
                self.of_node.append(self._given(number, curves[number]))
            elif opcode < FIRST_ROW:
                self.of_node.append(self._constant(number))
            else:
                row = sweep.graph.primitives[opcode - FIRST_ROW]
                params = tuple(sweep.graph.params(number).items())
                args = [self.of_node[arg] for arg in sweep.args(number)]
                series = self.applied(row, params, args)
                if not series.terms:
                    series.terms.append(number)
                    series.mask = self._mask(series)
                self.of_node.append(series)

    def applied(self, row: Primitive, params: Params, args: Sequence[Series]) -> Series:
        """Return the series of an operation on series."""
        key = (row, params, *map(id, args))
        series = self.known.get(key)
        if series is None:
            series = self.known[key] = Series(
                row, params, list(args), varies(row, args), span=self.builder.span
            )
        return series

    def resolved_term(self, series: Series, k: int) -> Node | None:
        """Return a derivative that is zero where the mask does not hold."""
        self._compute(series, k)
        return self._clean(series, k)

    def _given(self, number: int, derivatives: Sequence[Node]) -> Series:
        """Return the series of a node whose derivatives are given, and zero beyond them."""
        terms: list[int | None] = [number, *(node.id for node in derivatives)]
        if len(terms) > 2:
            return Series(None, (), [], True, terms)
        seed = self.sweep.zeros.seeded(derivatives[0].id)
        return Series(None, (), [], seed is not None, terms, seed.mask if seed else None)

    def _constant(self, number: int) -> Series:
        """Return the series of a node that does not change along the curve."""
        return self.known.setdefault(("constant", number), Series(None, (), [], False, [number]))

    def _node(self, number: int | None) -> Node | None:
        return None if number is None else Node(self.builder, number)

    def _clean(self, series: Series, k: int, mask: int | None = None) -> Node | None:
        """Return a derivative, zero where the mask does not hold unless that is `mask`."""
        if not series.varies and k:
            return None
        number = series.terms[k]
        if number is None or not k or series.mask is None or series.mask == mask:
            return self._node(number)
        return self._node(resolved(self.builder, Masked(number, series.mask)))

    def _compute(self, series: Series, k: int) -> None:
        """Compute the derivatives up to order k, and their dependencies."""
        stack = [(series, k)]
        while stack:
            current, order = stack[-1]
            if len(current.terms) > order or (order and not current.varies):
                stack.pop()
                continue
            missing = [
                (other, needed)
                for other, needed in self._needed(current, order)
                if len(other.terms) <= needed and (other.varies or not needed)
            ]
            if missing:
                stack += missing
                continue
            stack.pop()
            self.builder.span = current.span
            current.terms.append(self._term(current, order))
            if not order:
                current.mask = self._mask(current)

    def _needed(self, series: Series, k: int) -> list[tuple[Series, int]]:
        """Return the terms from which that of order k is computed."""
        if series.is_derivative:
            below = [(series, k - 1)] if k else []
            return [*below, (series.args[0], k + 1)]
        if series.row is None:
            return [(series, k - 1)]
        if k == 0:
            return [(arg, 0) for arg in series.args]
        if is_direct(series.row):
            return [(series, k - 1), *((arg, k) for arg in series.args)]
        if series.rate is None:
            self.builder.span = series.span
            series.rate = self._rate(series)
        return [(series, k - 1), (series.rate, k - 1)]

    def _term(self, series: Series, k: int) -> int | None:
        """Return the derivative of order k, from those of which it is computed."""
        row = series.row
        if series.is_derivative:
            (source,) = series.args
            term = self._clean(source, k + 1)
            return None if term is None else term.id
        if row is None:  # given, and zero beyond what is given
            return None
        if k == 0:
            return self.builder.emit(row, self._values(series), series.params)
        derivative = self._higher_term(series, row, k)
        return None if derivative is None else spread(derivative, self._shape(series)).id

    def _higher_term(self, series: Series, row: Primitive, k: int) -> Node | None:
        if series.rate is not None:
            return self._clean(series.rate, k - 1, series.mask)
        if row.taylor is not None:
            return self._recurrence(series, row, k)
        if isinstance(row.rule, Select):
            return self._selected(series, row.rule, k)
        if isinstance(row.rule, LinearMap):
            return self._linear(series, row, k)
        return self._product(series, row, k)

    def _recurrence(self, series: Series, row: Primitive, k: int) -> Node | None:
        """Return the derivative by the recurrence that the row states."""
        args = [
            [self._number(arg), *(self._clean(arg, j, series.mask) for j in range(1, k + 1))]
            for arg in series.args
        ]
        y = [self._clean(series, j, series.mask) for j in range(k)]
        assert row.taylor is not None
        derivative: Node | None = row.taylor(k, y, *args, **dict(series.params))
        return derivative

    def _selected(self, series: Series, rule: Select, k: int) -> Node | None:
        """Return the derivative of the argument that is passed on."""
        terms = [self._clean(arg, k, arg.mask) for arg in series.args]
        dots = [
            None if term is None else Masked(term.id, arg.mask)
            for term, arg in zip(terms, series.args, strict=True)
        ]
        tangent = selected_tangent(self.sweep, rule, self._values(series), dots)
        if tangent is None:
            return None
        same = tangent.mask == series.mask
        return self._node(tangent.value if same else resolved(self.builder, tangent))

    def _linear(self, series: Series, row: Primitive, k: int) -> Node | None:
        """Return the primitive of the arguments' derivatives."""
        terms = [self._clean(arg, k) for arg in series.args]
        if all(term is None for term in terms):
            return None
        return self._through(series, row, terms)

    def _product(self, series: Series, row: Primitive, k: int) -> Node | None:
        """Return the derivative of a product, by Leibniz's rule."""
        a, b = series.args
        total = None
        for j in range(k + 1):
            terms = [self._clean(a, j), self._clean(b, k - j)]
            if all(term is not None for term in terms):
                total = plus(total, comb(k, j) * self._through(series, row, terms))
        return total

    def _through(self, series: Series, row: Primitive, terms: Sequence[Node | None]) -> Node:
        """Apply a row to terms of its arguments."""
        zero = self.sweep.constant(0)
        filled = [
            spread(zero if term is None else term, self._shape(arg))
            for term, arg in zip(terms, series.args, strict=True)
        ]
        result: Node = row(*filled, **dict(series.params))
        return result

    def _values(self, series: Series) -> list[int]:
        return [self._value(arg).id for arg in series.args]

    def _value(self, series: Series) -> Node:
        """Return the value."""
        number = series.terms[0]
        if number is not None:
            return Node(self.builder, number)
        return spread(self.sweep.constant(0), self._shape(series))

    def _number(self, series: Series) -> Node | float | None:
        """Return the value, of some constants as a number: Python would round others.

        These are whole numbers and negative halves of whole numbers: a power with such an
        exponent has no derivatives at base 0, so that its recurrence needs no case for it.
        """
        constant = None if series.terms[0] is None else self.builder.number(series.terms[0])
        if constant is None or not float(2 * constant if constant < 0 else constant).is_integer():
            return self._clean(series, 0)
        return constant

    def _shape(self, series: Series) -> Shape:
        while series.terms[0] is None:  # only derivatives have a first term of zero
            (series,) = series.args
        return self.builder.shape(series.terms[0])

    def _mask(self, series: Series) -> int | None:
        """Return the condition under which the derivatives of a series apply."""
        row, moving = series.row, [arg for arg in series.args if arg.varies]
        if row is None or not series.varies:  # the terms of a derivative are zero where masked
            return None
        if isinstance(row.rule, Select):
            dots = [
                Masked(self._value(arg).id, arg.mask) if arg.varies else None for arg in series.args
            ]
            tangent = selected_tangent(self.sweep, row.rule, self._values(series), dots)
            return None if tangent is None else tangent.mask
        masks = [arg.mask for arg in moving]
        if all(mask is None for mask in masks):
            return None
        if row.shape is None:
            return masks[0] if len(set(masks)) == 1 else either(self.builder, masks)
        if isinstance(row.rule, LinearMap):
            return moved_mask(
                self.sweep,
                [None if not arg.varies else Masked(0, arg.mask) for arg in series.args],
                lambda terms: self._through(series, row, terms),
            )
        shape = self._shape(series)
        return either(self.builder, [anywhere(self.sweep, mask, shape) for mask in masks])

    def _rate(self, series: Series) -> Series:
        """Return the series of y′, by the row's derivative rule."""
        row, args = series.row, series.args
        assert row is not None
        if isinstance(row.rule, Custom):
            return self._custom_rate(series, row.rule)
        rule = row.rule
        assert isinstance(rule, Elementwise | ByArgument)
        entries = rule.maps if isinstance(rule, Elementwise) else rule.entries
        parts = [
            self._part(series, row, entry, position)
            for position, entry in enumerate(entries)
            if entry is not None and args[position].varies
        ]
        total = parts[0]
        for part in parts[1:]:
            total = self.applied(add, (), [total, part])
        return total

    def _part(self, series: Series, row: Primitive, entry: Any, position: int) -> Series:
        """Return the contribution of one argument to y′."""
        args = series.args
        dot = self._derivative(args[position])
        if isinstance(entry, Transpose):
            operands = [*args[:position], dot, *args[position + 1 :]]
            return self.applied(row, series.params, operands)
        if isinstance(row.rule, Elementwise):
            recipe = template(entry, len(args))
            constants = (self._constant(self.builder.constant(*pair)) for pair in recipe.constants)
            slots = [dot, series, *args, *constants]
            for primitive, positions, _ in recipe.steps:
                slots.append(self.applied(primitive, (), [slots[k] for k in positions]))
            return slots[recipe.result]
        shapes = tuple(map(self._shape, args))
        recorded = recorded_tangent(entry, position, series.params, shapes, self._shape(series))
        return self._stamped(recorded, [dot, series, *args])

    def _custom_rate(self, series: Series, rule: Custom) -> Series:
        if isinstance(rule.jvp, str):
            raise UnsupportedError(rule.jvp)
        jvp, count = rule.jvp, len(series.args)
        shapes = list(map(self._shape, series.args))
        recorded = composed(
            lambda nodes: [jvp(nodes[:count], *nodes[count:])],
            [*shapes, self._shape(series), *shapes],
        )
        dots = [self._derivative(arg) for arg in series.args]
        return self._stamped(recorded, [*dots, series, *series.args])

    def _stamped(self, recorded: Function, inputs: Sequence[Series]) -> Series:
        """Apply a function with one output to series."""
        graph = recorded.graph
        slots: dict[int, Series] = dict(zip(recorded.input_nodes, inputs, strict=True))
        for number, opcode in enumerate(graph.opcode.tolist()):
            if opcode >= FIRST_ROW:
                row = graph.primitives[opcode - FIRST_ROW]
                params = graph.param_table[graph.param_ids[number]]
                operands = [slots[arg] for arg in graph.arguments(number)]
                slots[number] = self.applied(row, params, operands)
            elif number in graph.constants:
                value = graph.constants[number][0]
                slots[number] = self._constant(self.builder.constant(value))
        return slots[recorded.outputs[0]]

    def _derivative(self, series: Series) -> Series:
        key = ("derivative", id(series))
        dot = self.known.get(key)
        if dot is None:
            dot = self.known[key] = Series(None, (), [series], series.varies, span=series.span)
        return dot
