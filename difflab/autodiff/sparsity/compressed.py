"""Compressed derivatives: one sweep for each color of the columns.

The columns are the elements of all inputs, or of those chosen by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.engine.forward import tangents
from difflab.autodiff.engine.reverse import cotangents
from difflab.autodiff.engine.sweep import Sweep, packed, spread
from difflab.autodiff.functions.flat import ChosenInputs, Names, of_inputs, with_inputs
from difflab.autodiff.sparsity.dependence import dependence
from difflab.autodiff.sparsity.reach import Pattern, reached
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.primitives import constant_array, reshape, take
from difflab.primitives.movement import as_places

Colors = NDArray[np.int64]


def compressed(function: Function, columns: Colors | None, rows: Colors | None) -> Function:
    """Return the products of J with the colors of its columns, then those of Jᵀ with its rows'.

    A product with a color is that with the sum of the unit vectors of the color.

    Parameters
    ----------
    function : Function
        With n input and m output elements.
    columns, rows : (n,) and (m,) arrays of int, optional
        Colors from 0; −1 for those in no product. None for no products of that kind.

    Returns
    -------
    Function
        Its output has the shape batch + (p, m) or (q, n), for p or q colors; with colors of both
        batch + (p·m + q·n,).

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("[x*y, y*z, z*x]")
    >>> compressed(f, np.array([0, 1, 1]), None)(2.0, 3.0, 5.0).tolist()
    [[3.0, 0.0, 5.0], [2.0, 8.0, 2.0]]
    >>> f = dl.parse("[x*y, z^2]")
    >>> compressed(f, None, np.array([0, 0]))(2.0, 3.0, 5.0).tolist()
    [[3.0, 2.0, 10.0]]
    >>> f = dl.parse("[x*y*z, y*z, z^2]")
    >>> compressed(f, np.array([-1, 0, 1]), np.array([0, -1, -1]))(1.0, 2.0, 3.0).tolist()
    [3.0, 3.0, 0.0, 2.0, 2.0, 6.0, 6.0, 3.0, 2.0]
    """
    sweep = Sweep(function)
    inputs, outputs = function.input_nodes, function.outputs
    forward = [] if columns is None else _seeds(sweep.builder, inputs, columns)
    parts = [dot for seeds in forward for dot in tangents(sweep, seeds, outputs)]
    back = [] if rows is None else _seeds(sweep.builder, outputs, rows)
    parts += [bar for seeds in back for bar in cotangents(sweep, seeds, inputs)]
    p, q, m, n = len(forward), len(back), function.m, function.n
    shape = (p, m) if rows is None else (q, n) if columns is None else (p * m + q * n,)
    whole: Node = reshape(packed(sweep, parts), shape=shape, rank=1)
    return Function.build(sweep.builder, inputs, [whole.id], ["compressed"])


def _seeds(builder: Builder, nodes: Sequence[int], colors: Colors) -> list[dict[int, Node]]:
    """Return the seeds of each color's sweep; unseeded nodes are omitted."""
    shapes = [builder.shape(node) for node in nodes]
    sizes = [math.prod(shape) for shape in shapes]
    starts = np.cumsum([0, *sizes])
    owners = np.repeat(np.arange(len(nodes)), sizes)
    all_seeds: list[dict[int, Node]] = []
    colored = np.flatnonzero(colors >= 0)
    by_color = colored[np.argsort(colors[colored], kind="stable")]
    ends = np.cumsum(np.bincount(colors[colored]))
    for indices in np.split(by_color, ends[:-1]) if len(colored) else []:
        seeds: dict[int, Node] = {}
        touched, begins = np.unique(owners[indices], return_index=True)
        for part, inside in zip(touched.tolist(), np.split(indices, begins[1:]), strict=True):
            seed = _marked(builder, shapes[part], inside - starts[part])
            node = nodes[part]
            seeds[node] = seeds[node] + seed if node in seeds else seed
        all_seeds.append(seeds)
    return all_seeds


def _marked(builder: Builder, shape: Shape, indices: NDArray[np.int64]) -> Node:
    """Return an array with 1 at the given indices and 0 elsewhere."""
    size = math.prod(shape)
    if len(indices) == size:
        return spread(Node(builder, builder.constant(1)), shape)
    marks = np.zeros(size)
    marks[indices] = 1.0
    params = (("shape", shape), ("values", marks.tobytes()))
    return Node(builder, builder.emit(constant_array, (), params))


def selected(function: Function, indices: NDArray[np.int64], shape: Shape) -> Function:
    """Return a function whose only output has some elements of the function's only output.

    Examples
    --------
    >>> import difflab as dl
    >>> selected(dl.parse("[x*y, y, x]"), np.array([2, 0]), (2,))(3.0, 5.0).tolist()
    [3.0, 15.0]
    """
    sweep = Sweep(function)
    flat = packed(sweep, [sweep.node(output) for output in function.outputs])
    chosen: Node = take(flat, places=as_places(indices), axis=-1, rank=1)
    whole: Node = reshape(chosen, shape=shape, rank=1)
    inputs = function.input_nodes
    return Function.build(sweep.builder, inputs, [whole.id], function.output_names)


Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Columns:
    """A function, and the columns of its Jacobian that are wanted.

    Attributes
    ----------
    whole : Function
        Of all inputs.
    part : Function
        Of the chosen inputs only. It is differentiated, and cannot be evaluated.
    chosen : array of int, optional
        The columns among the elements of the inputs of `part`; None for all of them.
    """

    whole: Function
    part: Function
    chosen: Indices | None = None

    @classmethod
    def of(cls, function: Function, wrt: Names | None, what: str) -> Columns:
        """Return the columns that names choose; all of them when None.

        Raises
        ------
        InputError
            A name is unknown or repeated, or there is none.
        """
        if wrt is None:
            return cls(function, function)
        names = ChosenInputs.of(function, wrt, what)
        chosen = None if names.columns is None else np.array(names.columns, np.int64)
        return cls(function, of_inputs(function, names.inputs), chosen)

    @property
    def count(self) -> int:
        """The number of columns."""
        return self.part.n if self.chosen is None else len(self.chosen)

    def pattern(self) -> Pattern:
        """Return the structural nonzeros of the columns."""
        edges, sources, targets = dependence(self.part)
        tails, heads = edges.ends()
        if self.chosen is not None:
            sources = sources[self.chosen]
        pattern = reached(edges.count, tails, heads, sources, targets)
        pattern.sort_indices()
        return pattern

    def with_outputs_alike(self) -> Columns:
        """Return the function with those elements of its output vector that are its columns."""
        if self.chosen is None:
            return self
        return replace(self, part=selected(self.part, self.chosen, (self.count,)))

    def seeded(self, colors: Indices) -> Indices:
        """Return a color for each element of the inputs of `part`; −1 for those not chosen."""
        if self.chosen is None:
            return colors
        all_colors = np.full(self.part.n, -1)
        all_colors[self.chosen] = colors
        return all_colors

    def kept(self, compressed: Function, before: int, count: int) -> Function:
        """Return compressed products as a function of all inputs, with the chosen columns only.

        Parameters
        ----------
        compressed : Function
            Of `part`; its output has the elements of the forward sweeps, then those of the
            reverse sweeps, one for each element of the inputs.
        before, count : int
            The elements of forward sweeps; the number of reverse sweeps.
        """
        if self.chosen is not None and count:
            starts = before + self.part.n * np.arange(count)[:, None]
            indices = np.concatenate([np.arange(before), (starts + self.chosen).ravel()])
            shape = (len(indices),) if before else (count, self.count)
            compressed = selected(compressed, indices, shape)
        return with_inputs(compressed, self.whole)
