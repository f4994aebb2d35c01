"""A gradient that fails a check because the function declares it: by `stop_gradient`, or a rule.

It is the derivative of the graph with the rules that the function states. Without them the graph
must have the derivative that the check accepts; otherwise the gradient is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.wording import exact
from difflab.graph.function import Function
from difflab.graph.pytree import flatten, leaf_paths, unflatten
from difflab.testing.checker.leaves import Array

_SAME = 1e-8
"""Relative difference of two derivatives that rounding explains."""


@dataclass(frozen=True)
class DeclaredGradient:
    """A gradient that differs from the derivative by rules that the function declares.

    Attributes
    ----------
    rules : tuple of str
        The names of the rules.
    component : str
        The first component that differs.
    yours, derivative : float
        Its value in the gradient, and the derivative.
    """

    rules: tuple[str, ...]
    component: str
    yours: float
    derivative: float

    def __str__(self) -> str:
        return (
            "the gradient is declared: it differs from the derivative by the rule of"
            f" {' and '.join(self.rules)}: {self.component} is {exact(self.yours)} where the"
            f" derivative is {exact(self.derivative)}"
        )


def traced_arguments(f: Callable[..., Any], arguments: Sequence[Any]) -> Function | None:
    """Return the graph of a function of NumPy scalars and arrays; None if there is none."""
    from difflab.graph.trace import trace

    for leaf in flatten(tuple(arguments))[0]:
        if not isinstance(leaf, int | float | np.number | np.ndarray):
            return None
    try:
        return trace(f, *arguments)
    except Exception:  # user code may raise anything on a traced value
        return None


def declared_gradient(
    f: Callable[..., Any],
    gradient: Any,
    arguments: Sequence[Any],
    accepted: Callable[[Any], bool],
) -> DeclaredGradient | None:
    """Return how a gradient differs from the derivative, if the function declares it.

    Parameters
    ----------
    f : callable
        The function.
    gradient : callable, tree, array_like or None
        Its gradient; None for that of difflab.
    arguments : sequence
        The arguments.
    accepted : callable
        Whether the check accepts a derivative, of the structure of the gradient.

    Returns
    -------
    DeclaredGradient or None
        None if the function declares nothing, or the gradient is wrong.
    """
    from difflab.autodiff.functions.declared import declared_rules, undeclared
    from difflab.graph.verify import packed

    graph = traced_arguments(f, arguments)
    names = () if graph is None else declared_rules(graph)
    if graph is None or not names:
        return None
    leaves, structure = flatten(tuple(arguments))
    try:
        with np.errstate(all="ignore"):
            x = packed(leaves)
            declared, plain = _jacobian(graph, x), _jacobian(undeclared(graph), x)
            yours = declared if gradient is None else _given(gradient, arguments, declared.shape)
    except Exception:  # a rule, or the gradient, may fail in any way
        return None
    if yours is None or not _same(yours, declared).all() or _same(declared, plain).all():
        return None
    tree = _tree(graph, plain, leaves, structure, single=len(arguments) == 1)
    if not accepted(tree):
        return None
    row, column = (int(k) for k in np.argwhere(~_same(declared, plain))[0])
    name = _component(leaves, structure, column)
    return DeclaredGradient(names, name, float(yours[row, column]), float(plain[row, column]))


def _jacobian(graph: Function, x: Array) -> Array:
    from difflab.autodiff import jacobian
    from difflab.autodiff.engine.custom import goes_forward

    try:
        elements = jacobian(graph, mode="reverse").values(x)
    except Exception:
        if not goes_forward(graph):
            raise
        elements = jacobian(graph, mode="forward").values(x)
    return np.reshape(elements, (graph.m, graph.n))


def _given(gradient: Any, arguments: Sequence[Any], shape: tuple[int, ...]) -> Array | None:
    """Return a gradient by hand as a Jacobian, if it has as many elements."""
    tree = gradient(*arguments) if callable(gradient) else gradient
    leaves = [np.asarray(leaf, dtype=np.float64) for leaf in flatten(tree)[0]]
    if len(leaves) > 1 and not any(leaf.ndim for leaf in leaves):  # a list of numbers
        leaves = [np.array(leaves)]
    whole = np.hstack([leaf.reshape(shape[0], -1) for leaf in leaves])
    return whole if whole.shape == shape else None


def _same(one: Array, other: Array) -> NDArray[np.bool_]:
    with np.errstate(all="ignore"):
        tolerance = _SAME * np.fmax(np.abs(one), np.abs(other))
        same: NDArray[np.bool_] = (np.abs(one - other) <= tolerance) | (one == other)
    return same


def _tree(
    graph: Function, jacobian: Array, leaves: Sequence[Any], structure: Any, *, single: bool
) -> Any:
    """Return a Jacobian in the structure of the arguments, each part of its leaf's shape."""
    out = graph.output_shapes[0] if len(graph.output_shapes) == 1 else (graph.m,)
    cuts = np.cumsum([int(np.size(leaf)) for leaf in leaves])[:-1]
    parts = [
        part.reshape(out + np.shape(leaf))[()]
        for part, leaf in zip(np.split(jacobian, cuts, axis=1), leaves, strict=True)
    ]
    tree = unflatten(structure, parts)
    return tree[0] if single else tree


def _component(leaves: Sequence[Any], structure: Any, column: int) -> str:
    """Return the name of a component, such as ``x['w'][3]``."""
    for path, leaf in zip(leaf_paths(structure), leaves, strict=True):
        size = int(np.size(leaf))
        if column < size:
            name = f"x{path.partition(']')[2]}" if path.startswith("[0]") else f"arguments{path}"
            index = np.unravel_index(column, np.shape(leaf))
            return f"{name}[{', '.join(map(str, index))}]" if index else name
        column -= size
    return f"x[{column}]"
