"""Fourier transforms in the language: rows of arrays whose last axis holds the parts.

``fft(x, [axis])`` takes and returns complex values; ``rfft(x, [axis])`` takes real ones, and
``irfft(x, [axis, size])`` returns `size` of them. By default the axis is the last one that is not
that of the parts. A last integer of 1 asks for the transposed map, as derivatives do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from difflab.errors import ShapeError
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.primitives import fft, irfft, rfft

__all__ = ["TRANSFORMS"]

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


def _complex(row: Any, parts: int) -> Callable[[Node, Integers | None], Node]:
    """Return the call of `fft` or `rfft`, given how many axes of its operand are of parts."""

    def call(x: Node, integers: Integers | None) -> Node:
        given = integers or ()
        if len(given) > 2 or given[1:] not in ((), (1,)):
            raise ShapeError(
                f"{row.name} takes the axis, and 1 for the transposed map, not {list(given)}"
            )
        axis, rank = _axis(row, x.shape, given, parts), len(x.shape)
        axes = (axis, -1) if parts else (axis,)
        node: Node = row(x, axes=axes, rank=rank, transposed=len(given) == 2)
        return node

    return call


def _real(x: Node, integers: Integers | None) -> Node:
    """Return the call of `irfft`."""
    given = integers or ()
    if len(given) not in (2, 3) or given[2:] not in ((), (1,)):
        raise ShapeError(
            f"irfft takes the axis and the size, and 1 for the transposed map, not {list(given)}"
        )
    axis, size = _axis(irfft, x.shape, given, 1), given[1]
    if size < 1 or size // 2 + 1 != x.shape[axis]:
        raise ShapeError(
            f"irfft of {x.shape[axis]} complex values gives {2 * x.shape[axis] - 2} or"
            f" {2 * x.shape[axis] - 1} real ones, not {size}"
        )
    node: Node = irfft(x, axes=(axis, -1), rank=len(x.shape), size=size, transposed=len(given) == 3)
    return node


TRANSFORMS: Mapping[Any, Callable[[Node, Integers | None], Node]] = {
    fft: _complex(fft, 1),
    rfft: _complex(rfft, 0),
    irfft: _real,
}
"""The calls by row."""
