"""Array functions of the language only: lists, indices, placed parts, Fourier transforms.

Derivatives consist of them; Python code writes them as `np.stack` and as indexing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from difflab import arrays
from difflab import primitives as rows
from difflab.arrays.given import normalized_axes, normalized_axis
from difflab.core.apply import apply
from difflab.core.primitive import Primitive
from difflab.errors import ShapeError
from difflab.graph.builder import Builder
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.primitives.movement import as_places

# --- Fourier transforms: rows of arrays whose last axis holds the parts --------------------------
# ``fft(x, [axis])`` takes and returns complex values; ``rfft(x, [axis])`` takes real ones, and
# ``irfft(x, [axis, size])`` returns `size` of them. By default the axis is the last one that is
# not that of the parts. A last integer of 1 asks for the transposed map, as derivatives do.

Integers = tuple[int, ...]


def _axis(row: Any, shape: Shape, integers: Integers, parts: int) -> int:
    """Return the axis, counted from the end, by default the last that is not of parts."""
    rank = len(shape)
    if parts and (rank < 2 or shape[-1] != 2):
        raise ShapeError(
            f"{row.name} takes real and imaginary parts along the last axis, of 2, not the shape"
            f" {list(shape)}",
            hint="rfft takes real values",
        )
    axis = integers[0] if integers else rank - parts - 1
    if not 0 <= axis < rank - parts or shape[axis] == 0:
        raise ShapeError(f"{row.name} along axis {axis} of the shape {list(shape)}")
    return axis - rank


def fft(x: Node, integers: Integers) -> Node:
    """Return the call of `fft`, whose operand and result have axes of parts."""
    return _to_complex(rows.fft, x, integers, 1)


def rfft(x: Node, integers: Integers) -> Node:
    """Return the call of `rfft`, whose result has an axis of parts."""
    return _to_complex(rows.rfft, x, integers, 0)


def _to_complex(row: Any, x: Node, integers: Integers, parts: int) -> Node:
    """Return the call of `fft` or `rfft`, given how many axes of its operand are of parts."""
    if len(integers) > 2 or integers[1:] not in ((), (1,)):
        raise ShapeError(
            f"{row.name} takes the axis, and 1 for the transposed map, not {list(integers)}"
        )
    axis, rank = _axis(row, x.shape, integers, parts), len(x.shape)
    axes = (axis, -1) if parts else (axis,)
    node: Node = row(x, axes=axes, rank=rank, transposed=len(integers) == 2)
    return node


def irfft(x: Node, integers: Integers) -> Node:
    """Return the call of `irfft`, whose operand has an axis of parts."""
    if len(integers) not in (2, 3) or integers[2:] not in ((), (1,)):
        raise ShapeError(
            f"irfft takes the axis and the size, and 1 for the transposed map, not {list(integers)}"
        )
    axis, size = _axis(rows.irfft, x.shape, integers, 1), integers[1]
    if size < 1 or size // 2 + 1 != x.shape[axis]:
        raise ShapeError(
            f"irfft of {x.shape[axis]} complex values gives {2 * x.shape[axis] - 2} or"
            f" {2 * x.shape[axis] - 1} real ones, not {size}"
        )
    transposed = len(integers) == 3
    node: Node = rows.irfft(x, axes=(axis, -1), rank=len(x.shape), size=size, transposed=transposed)
    return node


# --- lists, indices and placed parts -------------------------------------------------------------

AxisIndex = int | tuple[int, int | None, int]
"""An index along one axis, or a slice ``(start, stop, step)``."""
IndexKey = tuple[AxisIndex, ...]
RawParts = tuple[int | None, ...]
"""An index or a slice as it is written: one to three integers, None where one is left out."""
RawKey = tuple[RawParts, ...]


def listed(parts: Sequence[Node]) -> Node:
    """Return the array whose first axis has these parts: one operation for a list of lists.

    Raises
    ------
    ShapeError
        The parts differ in shape.
    """
    if len({part.shape for part in parts}) > 1:
        shapes = " and ".join(dict.fromkeys(str(list(part.shape)) for part in parts))
        raise ShapeError(f"a list has elements of one shape, not of {shapes}")
    elements = [_elements(part) for part in parts]
    if not all(elements):
        stacked: Node = arrays.stack(parts)
        return stacked
    scalars = [element for each in elements for element in each]
    stacked = apply(rows.pack, *scalars, ranks=(0,) * len(scalars))
    shape = (len(parts), *parts[0].shape)
    return stacked if len(shape) == 1 else arrays.reshape(stacked, shape)


def indexed(builder: Builder, node: int, key: IndexKey, span: tuple[int, int]) -> int:
    """Return a value indexed by a key: an element of a list, the value itself, or an operation."""
    shape = builder.shape(node)
    (entry, *more) = key
    if isinstance(entry, int) and not more:
        if builder.primitive(node) is rows.pack:  # a list of scalars: the language makes no other
            return builder.args[builder.starts[node] + entry]
        return builder.element(node, entry, span)
    if key == tuple((0, size, 1) for size in shape):
        return node
    return builder.emit(rows.index, (node,), (("key", key), ("rank", len(shape))), span)


def resolved(key: RawKey, shape: tuple[int, ...]) -> IndexKey:
    """Return a written key for a value of `shape`, with an entry for every axis.

    Raises
    ------
    ValueError
        If an index is out of bounds, a slice is empty, or there are too many indices.

    Examples
    --------
    >>> resolved(((1, None),), (4, 2))
    ((1, 4, 1), (0, 2, 1))
    """
    if len(key) > len(shape):
        raise ValueError(f"too many indices for the shape {list(shape)}")
    entries = [axis_index(parts, size) for parts, size in zip(key, shape, strict=False)]
    return (*entries, *((0, size, 1) for size in shape[len(key) :]))


def axis_index(parts: RawParts, size: int) -> AxisIndex:
    """Return an index or a slice of an axis of the given size.

    Raises
    ------
    ValueError
        If it is out of bounds, or empty.

    Examples
    --------
    >>> axis_index((-1,), 5), axis_index((None, None, -1), 5)
    (4, (4, None, -1))
    """
    if len(parts) == 1:
        position = parts[0]
        assert position is not None
        if not -size <= position < size:
            raise ValueError(f"index {position} is out of bounds for an axis of size {size}")
        return position % size
    if parts[2:] == (0,):
        raise ValueError("the step of a slice cannot be 0")
    chosen = range(*slice(*parts).indices(size))
    if not chosen:
        raise ValueError(f"this slice of an axis of size {size} is empty")
    return (chosen.start, chosen.stop if chosen.stop >= 0 else None, chosen.step)


def _elements(part: Node) -> list[Node]:
    """Return the scalars that a value lists, itself if it is one; none for another array."""
    if not part.shape:
        return [part]
    builder, node = part.builder, part.id
    if builder.primitive(node) is rows.reshape:
        (node,) = builder.arguments(node)
    if builder.primitive(node) is not rows.pack or any(builder.params(node)["ranks"]):
        return []
    return [Node(builder, arg) for arg in builder.arguments(node)]


def scattered(parts: Sequence[Node], places: Sequence[RawKey], shape: Shape) -> Node:
    """Return zeros of `shape` with every part added at its indices.

    Raises
    ------
    ShapeError
        A part has no index or not the shape that its index selects, or two scalars have one index.
    """
    if len(places) != len(parts):
        raise ShapeError(
            "scatter needs a place after every argument", hint="write scatter(x at [0], [3])"
        )
    keys = tuple([_key(key, shape, part) for part, key in zip(parts, places, strict=True)])
    scalars = len(shape) == 1 and not any(part.shape for part in parts)
    if scalars and len(set(keys)) < len(keys):
        raise ShapeError("scatter has two numbers for one place", hint="add them up before")
    node: Node = apply(rows.scatter, *parts, keys=keys, shape=shape)
    return node


def _key(raw: RawKey, shape: Shape, part: Node) -> IndexKey:
    try:
        key = resolved(raw, shape)
    except ValueError as error:
        raise ShapeError(str(error)) from None
    assert rows.index.shape is not None
    wanted = rows.index.shape((shape,), key=key, rank=len(shape))
    if wanted != part.shape:
        raise ShapeError(
            f"an argument of the shape {list(part.shape)} at a place of the shape {list(wanted)}"
        )
    return key


def put(x: Node, places: tuple[int, ...], axis: int, shape: Shape) -> Node:
    """Return zeros of `shape` with the entries of `x` along an axis added at `places`.

    Raises
    ------
    ShapeError
        The shapes differ on another axis, or an index is out of bounds.
    """
    along = normalized_axis("put", axis, x.shape)
    size = shape[along] if len(shape) == len(x.shape) else -1
    inside = all(-size <= place < size for place in places)
    expected = (*x.shape[:along], size, *x.shape[len(x.shape) + along + 1 :])
    if shape != expected or len(places) != x.shape[along] or not inside:
        raise ShapeError(
            f"put needs an index into the result for each of the {x.shape[along]} entries, and the"
            f" result's shape; these are {list(places)[:6]} and {list(shape)}"
        )
    positive = as_places(np.array(places, dtype=np.int64) % max(size, 1))
    rank = len(shape)
    node: Node = apply(rows.put, x, places=positive, axis=along, rank=rank, size=size)
    return node


def put_along(x: Node, places: Node, axis: int, size: int) -> Node:
    """Return zeros with every element of `x` added at its computed index along an axis.

    Raises
    ------
    ShapeError
        The shapes differ, or the size is negative.
    """
    along = normalized_axis("put_along", axis, x.shape)
    if places.shape != x.shape or size < 0:
        raise ShapeError(
            f"put_along takes an index for each element: the shapes are {list(x.shape)} and"
            f" {list(places.shape)}, the size is {size}"
        )
    rank = len(x.shape)
    node: Node = apply(rows.put_along, x, places, axis=along, rank=rank, size=size)
    return node


def sum_in_order(parts: Sequence[Node], places: Sequence[RawKey]) -> Node:
    """Return the sum along the last axis, from the first term to the last.

    Raises
    ------
    ShapeError
        The indices are not a permutation of the positions of the terms.
    """
    if not all(part.shape for part in parts):
        raise ShapeError("sum_in_order adds up the elements of arrays, not of scalars")
    length = sum(part.shape[-1] for part in parts)
    if not places and len(parts) == 1:
        places = [((None, None),)]
    try:
        keys = [resolved(key, (length,)) for key in places]
    except ValueError as error:
        raise ShapeError(str(error)) from None
    counts = np.zeros(length, dtype=int)
    sizes = []
    for (entry,) in keys:
        chosen = slice(*entry) if isinstance(entry, tuple) else slice(entry, entry + 1)
        counts[chosen] += 1
        sizes.append(math.prod(counts[chosen].shape))
    if sizes != [part.shape[-1] for part in parts] or not np.all(counts == 1):
        raise ShapeError(
            "sum_in_order needs a place for every term after each argument",
            hint="write sum_in_order(x at [::2], y at [1::2])",
        )
    slices = tuple([e if isinstance(e, tuple) else (e, e + 1, 1) for (e,) in keys])
    node: Node = apply(rows.sum_in_order, *parts, places=slices, length=length)
    return node


def is_maximum(x: Node, axes: tuple[int, ...] | None) -> Node:
    """Return whether each element is the last maximum along axes, all of them by default."""
    chosen = normalized_axes("is_maximum", axes, x.shape)
    node: Node = apply(rows.is_maximum, x, axes=chosen, rank=len(x.shape))
    return node


def drawn(row: Primitive, key: Node, shape: Shape) -> Node:
    """Return random values of a shape for a key, or for each of a stack of keys."""
    _check_key(row, key, shape)
    node: Node = apply(row, key, shape=shape)
    return node


def random_keys(key: Node, sizes: Shape) -> Node:
    """Return new keys for a key, or for each of a stack of keys."""
    _check_key(rows.random_keys, key, sizes)
    if len(sizes) != 1:
        raise ShapeError("random_keys takes the number of keys in brackets: random_keys(key, [3])")
    node: Node = apply(rows.random_keys, key, count=sizes[0])
    return node


def _check_key(row: Primitive, key: Node, shape: Shape) -> None:
    if key.shape[-1:] != (2,) or min(shape, default=0) < 0:
        raise ShapeError(
            f"{row.name} takes a key of shape (2,) and a shape, not {key.shape} and {shape}",
            hint=f"declare key: [2] and write {row.name}(key, [3])",
        )
