"""`grad`, `value_and_grad`, `jacfwd` and `jacrev` of Functions, as Functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from difflab.autodiff.arguments import Argnums, argument_positions, composed
from difflab.autodiff.engine.argnums import gradients, jacobians
from difflab.errors import InputError
from difflab.graph.arguments import Arguments
from difflab.graph.checks import require_flag
from difflab.graph.function import Function
from difflab.graph.pytree import LEAF, Structure, flatten, unflatten
from difflab.graph.rewritten import selected

__all__ = ["function_gradient", "function_jacobian"]


def function_gradient(
    function: Function, argnums: Argnums, has_aux: bool, *, with_value: bool
) -> Function:
    """Return the gradient as a function with one output per leaf of the arguments."""
    what = "value_and_grad" if with_value else "grad"
    require_flag(has_aux, "has_aux", what)
    sources, slopes = _sources(function, argnums, what)
    extra = len(function.outputs) - 1
    if math.prod(function.output_shapes[0]) != 1 or (extra and not has_aux):
        raise InputError(
            f"{what} needs a function with one output number, this one has {function.m}",
            hint="use jacrev or jacfwd, or has_aux=True where other outputs are auxiliary",
        )
    if has_aux and not extra:
        raise InputError(f"has_aux=True of {what} needs a function with further outputs")
    whole = gradients(function, sources)
    aux: Any = 0 if extra == 1 else (0,) * extra
    value: Any = (0, aux) if has_aux else 0
    form = (value, slopes) if with_value else (slopes, aux) if has_aux else slopes
    count = 1 + extra
    slope_outputs = range(count, count + len(sources))
    if with_value:
        order = [*range(count), *slope_outputs]
    else:
        order = [*slope_outputs, *range(1, count)]
    return _reordered(whole, order, flatten(form)[1], function.arguments)


def _sources(function: Function, argnums: Argnums, what: str) -> tuple[tuple[int, ...], Any]:
    """Return the inputs that `argnums` names, and the tree of what belongs to each of them."""
    groups = function.arguments or Arguments(function.inputs, (LEAF,) * len(function.inputs))
    positions, single = argument_positions(argnums, len(groups.names), what)
    parts = groups.groups()
    sources = tuple(place for position in positions for place in parts[position])
    trees = [unflatten(groups.trees[k], [0] * len(parts[k])) for k in positions]
    return sources, trees[0] if single else tuple(trees)


def _reordered(
    function: Function, order: Sequence[int], structure: Structure, arguments: Arguments | None
) -> Function:
    """Return a function with the outputs `order`, in new structures."""
    chosen = selected(
        function,
        [function.outputs[i] for i in order],
        [function.output_names[i] for i in order],
        None if structure == LEAF else structure,
    )
    return replace(chosen, arguments=arguments)


def function_jacobian(
    function: Function, argnums: Argnums, what: str, *, forward: bool
) -> Function:
    """Return the Jacobians as a function with one output per pair of output and input."""
    sources, tree = _sources(function, argnums, what)
    outputs = tuple(range(len(function.outputs)))
    whole = jacobians(function, sources, outputs, forward=forward)
    results = function.structure
    if results is None:
        results = LEAF if len(outputs) == 1 else flatten(outputs)[1]
    structure = composed(results, flatten(tree)[1])
    return _reordered(whole, range(len(whole.outputs)), structure, function.arguments)
