"""Batch normalisation in use, folded into the convolution before it.

With given statistics the normalisation is s·y + c with one s and one c per channel, and a
convolution is linear in its filters: s·conv(x, W) = conv(x, s·W). So the factor moves to the
filters, which have fewer elements than the result.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from difflab import arrays
from difflab.core.primitive import Primitive
from difflab.errors import ConsistencyError
from difflab.graph.algebra import unspread
from difflab.graph.builder import Builder
from difflab.graph.checks import require_function
from difflab.graph.function import Function
from difflab.graph.ir import Params, Shape
from difflab.graph.node import Node
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten
from difflab.primitives import (
    broadcast,
    constant_array,
    matmul,
    negative,
    reshape,
)

POINTS = 3
"""Random points at which the two functions are compared."""
CLOSE = 1e-9
"""Largest difference there, relative to the largest element of an output."""


def fold_batch_norm(function: Function) -> Function:
    """Return a function with every batch normalisation in use as part of the convolution before it.

    A convolution whose result is shifted and scaled channel by channel becomes one with other
    filters and one shift. Normalisation by the statistics of the batch itself, and a convolution
    whose result is used elsewhere, are left as they are. Values change by rounding.

    Parameters
    ----------
    function : Function
        The graph of code with `difflab.arrays.conv2d` and `batch_norm`.

    Returns
    -------
    Function
        The same map; `function` itself if there is nothing to fold.

    Raises
    ------
    ConsistencyError
        The result differs from the function at a random point: it is compared before it is
        returned.

    Examples
    --------
    >>> import difflab as dl
    >>> def layer(x, w, mean, variance):
    ...     y = dl.arrays.conv2d(x, w)
    ...     return dl.arrays.batch_norm(y, mean=mean, variance=variance)
    >>> f = dl.trace(layer, np.ones((2, 3, 9, 9)), np.ones((4, 3, 3, 3)), np.ones(4), np.ones(4))
    >>> x = np.ones((2, 3, 9, 9)), np.ones((4, 3, 3, 3)), np.ones(4), np.ones(4)
    >>> folded = fold_batch_norm(f)
    >>> bool(np.allclose(folded(*x), f(*x), rtol=1e-14))
    True

    Notes
    -----
    B. Jacob et al., *Quantization and training of neural networks for efficient
    integer-arithmetic-only inference*, section 3.2 (2018).
    """
    require_function(function, "fold_batch_norm")
    folding = _Folding(function)
    folded = rewritten(function, folding.rule)
    if not folding.folded:
        return function
    _check(function, folded)
    return folded


@dataclass(frozen=True)
class _Convolution:
    """``(A @ B).reshape(shape)·scale + shift``, one scale and one shift per channel.

    Attributes
    ----------
    filters, columns : Node
        A, which has one row per channel, and B.
    shape : tuple
    axis : int
        The axis of the channels.
    scale, shift : Node or None
        Vectors; None for 1 and 0.
    """

    filters: Node
    columns: Node
    shape: Shape
    axis: int
    scale: Node | None = None
    shift: Node | None = None

    def written(self) -> Node:
        """Append the operations."""
        filters = self.filters
        if self.scale is not None:
            filters = filters * arrays.reshape(self.scale, (*filters.shape[:-1], 1))
        result = arrays.reshape(arrays.matmul(filters, self.columns), self.shape)
        if self.shift is None:
            return result  # type: ignore[no-any-return]
        behind = len(self.shape) - self.axis - 1
        return result + arrays.reshape(self.shift, (-1, *(1,) * behind))  # type: ignore[no-any-return]


class _Folding:
    """The rewrite rule; it records each copy as a function of a convolution."""

    def __init__(self, function: Function) -> None:
        graph = function.graph
        self.arguments = [args for _, args in graph.rows()]
        self.uses = Counter(arg for args in self.arguments for arg in args)
        self.uses.update(function.outputs)
        self.known: dict[int, _Convolution] = {}
        self.folded = 0

    def rule(
        self, builder: Builder, node: int, row: Primitive, args: Args, params: Params
    ) -> int | None:
        """Append a convolution with a scale and a shift, where the operation gives one."""
        operands = [Node(builder, arg) for arg in args]
        convolution = None
        if row is reshape:
            convolution = self._convolution(builder, operands, dict(params)["shape"])
        elif len(row.signs) == 2 or row.degrees:
            convolution = self._changed(node, row, operands)
        if convolution is None:
            return None
        self.known[node] = convolution
        return None if convolution.scale is None else convolution.written().id

    def _convolution(
        self, builder: Builder, operands: list[Node], shape: Shape
    ) -> _Convolution | None:
        """Return the product of matrices that a reshape shows as channels of images."""
        if builder.primitive(operands[0].id) is not matmul:
            return None
        product = operands[0]
        a, b = (Node(builder, arg) for arg in builder.arguments(product.id))
        filters: Node | None = a
        while filters is not None:
            batch = product.ndim - filters.ndim
            channels = math.prod(filters.shape[:-1])
            same = filters.ndim in (2, 3) and product.shape[:batch] == shape[:batch]
            if same and len(shape) > batch + 1 and shape[batch] == channels:
                return _Convolution(filters, b, shape, batch)
            filters = _one_of_a_stack(filters)
        return None

    def _changed(self, node: int, row: Primitive, operands: list[Node]) -> _Convolution | None:
        """Return a convolution shifted or scaled once more."""
        for index, old in enumerate(self.arguments[node]):
            conv = self.known.get(old)
            if conv is None or self.uses[old] > 1 or (row.degrees and row.degrees[index] < 0):
                continue
            change = _per_channel(operands[1 - index], conv)
            if change is None:
                continue
            self.folded += bool(row.degrees)
            return _combined(row, conv, change, index)
        return None


def _one_of_a_stack(filters: Node) -> Node | None:
    """Return the matrices that a stack repeats along its first axis; None if there are none."""
    builder, lead = filters.builder, filters.shape[0]
    row, params = builder.primitive(filters.id), builder.params(filters.id)
    if filters.ndim < 3:
        return None
    if row is broadcast:
        inner = Node(builder, builder.arguments(filters.id)[0])
        return inner if inner.shape == filters.shape[-inner.ndim :] else None
    if row is constant_array:
        stack = np.frombuffer(params["values"]).reshape(lead, -1)
        if np.all(stack == stack[:1]):
            one = (("shape", filters.shape[1:]), ("values", stack[0].tobytes()))
            return Node(builder, builder.emit(constant_array, (), one))
    return None


def _per_channel(value: Node, conv: _Convolution) -> Node | None:
    """Return a value as a vector of one number per channel; None if it is none."""
    builder = value.builder
    size = conv.shape[conv.axis]
    value = Node(builder, unspread(builder, value.id))
    if value.shape == ():
        return arrays.broadcast_to(value, (size,))  # type: ignore[no-any-return]
    whole = (1,) * (len(conv.shape) - value.ndim) + tuple(value.shape)
    if whole != tuple(size if axis == conv.axis else 1 for axis in range(len(whole))):
        return None
    return arrays.reshape(value, (size,))  # type: ignore[no-any-return]


def _combined(row: Primitive, conv: _Convolution, change: Node, index: int) -> _Convolution:
    """Fold a row into a convolution, its argument of index `index`; `change` is the other one."""
    scale, shift = conv.scale, conv.shift
    if row.signs:
        if row.signs[index] < 0:  # change − conv
            minus = Node(change.builder, change.builder.constant(-1.0))
            scale = arrays.broadcast_to(minus, change.shape) if scale is None else -scale
            shift = change if shift is None else change - shift
        else:
            change = negative(change) if row.signs[1 - index] < 0 else change
            shift = change if shift is None else shift + change
    else:
        if row.degrees[1 - index] < 0:
            change = 1.0 / change
        scale = change if scale is None else scale * change
        shift = None if shift is None else shift * change
    return _Convolution(conv.filters, conv.columns, conv.shape, conv.axis, scale, shift)


def _check(function: Function, folded: Function) -> None:
    """Raise unless both functions agree at random points; variances are positive there."""
    rng = np.random.default_rng(0)
    for _ in range(POINTS):
        point = rng.uniform(0.5, 1.5, function.n)
        expected, actual = function.values(point), folded.values(point)
        close = CLOSE * np.max(np.abs(expected), initial=1.0)
        if not np.allclose(actual, expected, rtol=0, atol=close, equal_nan=True):
            raise ConsistencyError("fold_batch_norm changed a function's values")
