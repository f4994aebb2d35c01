"""Compressed derivatives: one sweep for each color."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.engine.forward import push_forward
from difflab.autodiff.engine.jacobian_entries import cotangents, packed
from difflab.autodiff.engine.sweep import Sweep, spread
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.primitives import constant_array, reshape, take
from difflab.primitives.movement import as_places

__all__ = ["both_together", "pulled_together", "pushed_together", "selected"]

Colors = NDArray[np.int64]


def pushed_together(function: Function, colors: Colors, count: int) -> Function:
    """Return the products of J with the sums of unit vectors of each color of its columns.

    Parameters
    ----------
    function : Function
        With n input elements.
    colors : (n,) array of int
        From 0 to `count` - 1.

    Returns
    -------
    Function
        Its output has the shape batch + (count, m).

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("[x*y, y*z, z*x]")
    >>> pushed_together(f, np.array([0, 1, 1]), 2)(2.0, 3.0, 5.0).tolist()
    [[3.0, 0.0, 5.0], [2.0, 8.0, 2.0]]
    """
    sweep = Sweep(function)
    parts = _pushed(sweep, colors, count)
    return _stacked(sweep, parts, (count, function.m))


def pulled_together(function: Function, colors: Colors, count: int) -> Function:
    """Return the products of Jᵀ with the sums of unit vectors of each color of J's rows.

    Parameters
    ----------
    function : Function
        With m output elements.
    colors : (m,) array of int
        From 0 to `count` - 1.

    Returns
    -------
    Function
        Its output has the shape batch + (count, n).

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("[x*y, z^2]")
    >>> pulled_together(f, np.array([0, 0]), 1)(2.0, 3.0, 5.0).tolist()
    [[3.0, 2.0, 10.0]]
    """
    sweep = Sweep(function)
    parts = _pulled(sweep, colors, count)
    return _stacked(sweep, parts, (count, function.n))


def both_together(
    function: Function, columns: Colors, column_count: int, rows: Colors, row_count: int
) -> Function:
    """Return the products of J with the colors of its columns, then those of Jᵀ with its rows'.

    Parameters
    ----------
    function : Function
        With n input and m output elements.
    columns, rows : (n,) and (m,) arrays of int
        Colors from 0; −1 for those in no product.
    column_count, row_count : int
        The numbers of colors, p and q.

    Returns
    -------
    Function
        Its output has the shape batch + (p·m + q·n,).

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("[x*y*z, y*z, z^2]")
    >>> both_together(f, np.array([-1, 0, 1]), 2, np.array([0, -1, -1]), 1)(1.0, 2.0, 3.0).tolist()
    [3.0, 3.0, 0.0, 2.0, 2.0, 6.0, 6.0, 3.0, 2.0]
    """
    sweep = Sweep(function)
    parts = _pushed(sweep, columns, column_count) + _pulled(sweep, rows, row_count)
    return _stacked(sweep, parts, (column_count * function.m + row_count * function.n,))


def _pushed(sweep: Sweep, colors: Colors, count: int) -> list[Node]:
    """Return the tangents of all outputs, for each color of the inputs' elements."""
    function, zero = sweep.function, sweep.constant(0)
    parts: list[Node] = []
    for seeds in _seeds(sweep.builder, function.input_nodes, colors, count):
        tangents = push_forward(sweep, seeds, function.outputs)
        for number, shape in zip(function.outputs, function.output_shapes, strict=True):
            parts.append(spread(tangents.get(number, zero), shape))
    return parts


def _pulled(sweep: Sweep, colors: Colors, count: int) -> list[Node]:
    """Return the cotangents of all inputs, for each color of the outputs' elements."""
    parts: list[Node] = []
    for seeds in _seeds(sweep.builder, sweep.function.outputs, colors, count):
        parts += cotangents(sweep, seeds)
    return parts


def _seeds(
    builder: Builder, nodes: Sequence[int], colors: Colors, count: int
) -> list[dict[int, Node]]:
    """Return the seeds of each color's sweep; unseeded nodes are omitted."""
    shapes = [builder.shape(node) for node in nodes]
    sizes = [math.prod(shape) for shape in shapes]
    starts = np.cumsum([0, *sizes])
    owners = np.repeat(np.arange(len(nodes)), sizes)
    found: list[dict[int, Node]] = []
    colored = np.flatnonzero(colors >= 0)
    by_color = colored[np.argsort(colors[colored], kind="stable")]
    ends = np.cumsum(np.bincount(colors[colored], minlength=count))
    for indices in np.split(by_color, ends[:-1]) if count else []:
        seeds: dict[int, Node] = {}
        touched, begins = np.unique(owners[indices], return_index=True)
        for part, inside in zip(touched.tolist(), np.split(indices, begins[1:]), strict=True):
            seed = _marked(builder, shapes[part], inside - starts[part])
            node = nodes[part]
            seeds[node] = seeds[node] + seed if node in seeds else seed
        found.append(seeds)
    return found


def _marked(builder: Builder, shape: Shape, indices: NDArray[np.int64]) -> Node:
    """Return an array with 1 at the given indices and 0 elsewhere."""
    size = math.prod(shape)
    if len(indices) == size:
        return spread(Node(builder, builder.constant(1)), shape)
    marks = np.zeros(size)
    marks[indices] = 1.0
    params = (("shape", shape), ("values", marks.tobytes()))
    return Node(builder, builder.emit(constant_array, (), params))


def selected(function: Function, places: NDArray[np.int64], shape: Shape) -> Function:
    """Return a function whose only output has some elements of the function's only output.

    Examples
    --------
    >>> import difflab as dl
    >>> selected(dl.parse("[x*y, y, x]"), np.array([2, 0]), (2,))(3.0, 5.0).tolist()
    [3.0, 15.0]
    """
    sweep = Sweep(function)
    flat = packed(sweep, [sweep.node(output) for output in function.outputs])
    chosen: Node = take(flat, places=as_places(places), axis=-1, rank=1)
    whole: Node = reshape(chosen, shape=shape, rank=1)
    inputs = function.input_nodes
    return Function.build(sweep.builder, inputs, [whole.id], function.output_names)


def _stacked(sweep: Sweep, parts: list[Node], shape: Shape) -> Function:
    """Return the function whose output is all of `parts`, arranged in `shape`."""
    whole: Node = reshape(packed(sweep, parts), shape=shape, rank=1)
    inputs = sweep.function.input_nodes
    return Function.build(sweep.builder, inputs, [whole.id], ["compressed"])
