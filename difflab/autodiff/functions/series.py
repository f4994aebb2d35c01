"""Derivatives of every order along a curve, of Functions, as Functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from difflab.autodiff.engine.jacobian_entries import elements
from difflab.autodiff.engine.sweep import Sweep, fresh_inputs, spread, unit
from difflab.autodiff.engine.taylor import taylor_terms
from difflab.autodiff.functions.flat import owner_of
from difflab.errors import InputError
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.primitives import pack, reshape

_HIGHEST = 170
"""The factorial of a higher order is no float64."""


Curves = Mapping[int, Sequence[Node]]
"""The derivatives of nodes of a function along a curve, from order 1 on."""
Form = Callable[[Node, list[Node]], Sequence[Node]]
"""Returns what is wanted of an output and its derivatives along a curve."""


def expansion(
    sweep: Sweep, curves: Curves, outputs: Sequence[int], order: int, form: Form
) -> list[int]:
    """Apply a form to each of the outputs and its derivatives up to `order`."""
    targets, zero = [sweep.function.outputs[i] for i in outputs], sweep.constant(0)
    nodes: list[int] = []
    for number, terms in zip(targets, taylor_terms(sweep, curves, targets, order), strict=True):
        shape = sweep.graph.shape(number)
        whole = [spread(zero if term is None else term, shape) for term in terms]
        nodes += [part.id for part in form(sweep.node(number), whole)]
    return nodes


def lines_by(sweep: Sweep, sources: Sequence[int]) -> dict[int, list[Node]]:
    """Return new inputs, the directions of lines along the inputs `sources`."""
    function = sweep.function
    names, shapes = function.inputs, function.input_shapes
    seeds = fresh_inputs(sweep, [names[i] for i in sources], [shapes[i] for i in sources], "_dot")
    return {function.input_nodes[i]: [seed] for i, seed in zip(sources, seeds, strict=True)}


def derivatives_along(
    function: Function, sources: Sequence[int], outputs: Sequence[int], order: int
) -> Function:
    """Return all outputs, then the derivatives of `outputs` along a curve, up to `order`.

    Its inputs are those of `function`, then for each of `sources` the derivatives of the curve
    from order 1 to `order`.
    """
    sweep, orders = Sweep(function), range(1, order + 1)
    curves: dict[int, list[Node]] = {}
    for i in sources:
        names = [f"{function.inputs[i]}_{k}" for k in orders]
        shapes = [function.input_shapes[i]] * order
        curves[function.input_nodes[i]] = fresh_inputs(sweep, names, shapes, "")
    nodes = [*function.outputs, *expansion(sweep, curves, outputs, order, lambda y, terms: terms)]
    names = [f"{function.output_names[i]}_{k}" for i in outputs for k in orders]
    return _built(sweep, curves, nodes, [*function.output_names, *names])


def coefficients(
    function: Function, sources: Sequence[int], outputs: Sequence[int], order: int, *, unit: bool
) -> Function:
    """Return the Taylor coefficients of `outputs`, up to `order`.

    Its inputs are those of `function`, then the directions of `sources`; with `unit` the direction
    of the only source, a number, is 1.
    """
    sweep = Sweep(function)
    lines = lines_by(sweep, () if unit else sources)
    curves = {function.input_nodes[i]: [sweep.constant(1)] for i in sources} if unit else lines
    nodes = expansion(sweep, curves, outputs, order, _stacked)
    return _built(sweep, lines, nodes, [function.output_names[i] for i in outputs])


def along(
    function: Function, sources: Sequence[int], outputs: Sequence[int], order: int
) -> Function:
    """Return the derivatives of one order along a line, by Taylor mode."""
    sweep = Sweep(function)
    lines = lines_by(sweep, sources)
    nodes = expansion(sweep, lines, outputs, order, lambda y, terms: terms[-1:])
    return _built(sweep, lines, nodes, [function.output_names[i] for i in outputs])


def _built(sweep: Sweep, curves: Curves, outputs: Sequence[int], names: Sequence[str]) -> Function:
    """Return the function of the sweep's inputs and of the derivatives of curves."""
    seeds = [node.id for nodes in curves.values() for node in nodes]
    return Function.build(sweep.builder, [*sweep.function.input_nodes, *seeds], outputs, names)


def _stacked(value: Node, terms: list[Node]) -> list[Node]:
    """Return the coefficients along a new first axis."""
    whole = [value, *(term / math.factorial(k) for k, term in enumerate(terms, 1))]
    flat = pack(*whole, ranks=(value.ndim,) * len(whole))
    return [reshape(flat, shape=(len(whole), *value.shape), rank=1)]


def higher_derivative(
    function: Function, column: int, order: int, names: Sequence[str]
) -> Function:
    """Return the derivatives of one order by one input element, by Taylor mode.

    It has an output for each element of the outputs.
    """
    sweep = Sweep(function)
    position, inside = owner_of(function, column)
    shape = function.input_shapes[position]
    key = tuple(int(i) for i in np.unravel_index(inside, shape)) if shape else ()
    curves = {function.input_nodes[position]: [unit(sweep, shape, key)]}
    outputs = range(len(function.outputs))
    nodes = expansion(sweep, curves, outputs, order, lambda y, terms: terms[-1:])
    whole = _built(sweep, {}, nodes, function.output_names)
    return elements(whole, range(whole.m), names)


def require_order(order: object, what: str) -> None:
    """Raise `InputError` unless the order of a derivative is an integer from 1 to 170."""
    if not isinstance(order, int) or isinstance(order, bool) or not 1 <= order <= _HIGHEST:
        raise InputError(
            f"the order of {what} must be an integer from 1 to {_HIGHEST}, not {order!r}"
        )
