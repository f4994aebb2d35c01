"""Derivatives of every order along a curve, of Functions, as Functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from difflab.autodiff.engine.jacobian_entries import elements
from difflab.autodiff.engine.sweep import Sweep, filled, fresh_inputs, spread, unit
from difflab.autodiff.engine.taylor import taylor_terms
from difflab.autodiff.functions.elements import owner_of
from difflab.errors import InputError
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.primitives import pack, reshape

__all__ = [
    "coefficients",
    "derivatives_along",
    "higher_derivative",
    "require_order",
]

_HIGHEST = 170
"""The factorial of a higher order is no float64."""


def derivatives_along(
    function: Function, sources: Sequence[int], outputs: Sequence[int], order: int
) -> Function:
    """Return all outputs, then the derivatives of `outputs` along a curve, up to `order`.

    Its inputs are those of `function`, then for each of `sources` the derivatives of the curve
    from order 1 to `order`.
    """
    sweep = Sweep(function)
    curve: dict[int, list[Node]] = {}
    for i in sources:
        names = [f"{function.inputs[i]}_{k}" for k in range(1, order + 1)]
        shapes = [function.input_shapes[i]] * order
        curve[function.input_nodes[i]] = fresh_inputs(sweep, names, shapes, "")
    targets = [function.outputs[i] for i in outputs]
    zero = sweep.constant(0)
    found = [
        spread(zero if term is None else term, sweep.graph.shape(number)).id
        for number, terms in zip(targets, taylor_terms(sweep, curve, targets, order), strict=True)
        for term in terms
    ]
    names = [f"{function.output_names[i]}_{k}" for i in outputs for k in range(1, order + 1)]
    inputs = [*function.input_nodes, *(node.id for nodes in curve.values() for node in nodes)]
    return Function.build(
        sweep.builder,
        inputs,
        [*function.outputs, *found],
        [*function.output_names, *names],
    )


def coefficients(
    function: Function, sources: Sequence[int], outputs: Sequence[int], order: int, *, unit: bool
) -> Function:
    """Return the Taylor coefficients of `outputs`, up to `order`.

    Its inputs are those of `function`, then the directions of `sources`; with `unit` the direction
    of the only source, a number, is 1.
    """
    sweep = Sweep(function)
    names = [function.inputs[i] for i in sources]
    shapes = [function.input_shapes[i] for i in sources]
    seeds = [] if unit else fresh_inputs(sweep, names, shapes, "_dot")
    first = [sweep.constant(1)] if unit else seeds
    starts = [function.input_nodes[i] for i in sources]
    given = {number: [node] for number, node in zip(starts, first, strict=True)}
    targets = [function.outputs[i] for i in outputs]
    found = [
        _stacked(sweep, sweep.node(number), terms).id
        for number, terms in zip(targets, taylor_terms(sweep, given, targets, order), strict=True)
    ]
    inputs = [*function.input_nodes, *(node.id for node in seeds)]
    return Function.build(sweep.builder, inputs, found, [function.output_names[i] for i in outputs])


def _stacked(sweep: Sweep, value: Node, terms: Sequence[Node | None]) -> Node:
    """Return the coefficients along a new first axis."""
    zero = sweep.constant(0)
    coefficients = [
        zero if term is None else term / math.factorial(k) for k, term in enumerate(terms, 1)
    ]
    whole = [value, *(spread(term, value.shape) for term in coefficients)]
    flat = pack(*whole, ranks=(value.ndim,) * len(whole))
    stacked: Node = reshape(flat, shape=(len(whole), *value.shape), rank=1)
    return stacked


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
    given = {function.input_nodes[position]: [unit(sweep, shape, key)]}
    last = {
        number: terms[-1]
        for number, terms in zip(
            function.outputs, taylor_terms(sweep, given, function.outputs, order), strict=True
        )
        if terms[-1] is not None
    }
    found = [node.id for node in filled(sweep, last, function.outputs)]
    whole = Function.build(sweep.builder, function.input_nodes, found, function.output_names)
    return elements(whole, range(whole.m), names)


def require_order(order: object, what: str) -> None:
    """Raise `InputError` unless the order of a derivative is an integer from 1 to 170."""
    if not isinstance(order, int) or isinstance(order, bool) or not 1 <= order <= _HIGHEST:
        raise InputError(
            f"the order of {what} must be an integer from 1 to {_HIGHEST}, not {order!r}"
        )
