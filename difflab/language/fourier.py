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

__all__ = ["TRANSFORMS", "written_integers"]

Integers = tuple[int, ...]


def written_integers(row: Any, params: Mapping[str, Any]) -> str:
    """Return the integers of a transform in brackets; empty if they are the default.

    Examples
    --------
    >>> written_integers(fft, {"axes": (-2, -1), "rank": 3, "transposed": True})
    '[1, 1]'
    """
    integers = [params["axes"][0] + params["rank"]]
    if row is irfft:
        integers.append(params["size"])
    if params["transposed"]:
        integers.append(1)
    return "" if integers == [_last(row, params["rank"])] else str(integers)


def _last(row: Any, rank: int) -> int:
    """Return the axis of a transform by default."""
    return rank - (1 if row is rfft else 2)


def _axis(row: Any, shape: Shape, integers: Integers) -> int:
    """Return the axis, counted from the end."""
    rank, parts = len(shape), 0 if row is rfft else 1
    if parts and (rank < 2 or shape[-1] != 2):
        raise ShapeError(
            f"{row.name} takes real and imaginary parts along the last axis, of 2, not the shape"
            f" {list(shape)}",
            hint="rfft takes real values",
        )
    axis = integers[0] if integers else _last(row, rank)
    if not 0 <= axis < rank - parts or shape[axis] == 0:
        raise ShapeError(f"{row.name} along axis {axis} of the shape {list(shape)}")
    return axis - rank


def _complex(row: Any) -> Callable[[Node, Integers | None], Node]:
    """Return the call of `fft` or `rfft`."""

    def call(x: Node, integers: Integers | None) -> Node:
        given = integers or ()
        if len(given) > 2 or given[1:] not in ((), (1,)):
            raise ShapeError(
                f"{row.name} takes the axis, and 1 for the transposed map, not {list(given)}"
            )
        axis, rank = _axis(row, x.shape, given), len(x.shape)
        axes = (axis,) if row is rfft else (axis, -1)
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
    axis, size = _axis(irfft, x.shape, given), given[1]
    if size < 1 or size // 2 + 1 != x.shape[axis]:
        raise ShapeError(
            f"irfft of {x.shape[axis]} complex values gives {2 * x.shape[axis] - 2} or"
            f" {2 * x.shape[axis] - 1} real ones, not {size}"
        )
    node: Node = irfft(x, axes=(axis, -1), rank=len(x.shape), size=size, transposed=len(given) == 3)
    return node


TRANSFORMS: Mapping[Any, Callable[[Node, Integers | None], Node]] = {
    fft: _complex(fft),
    rfft: _complex(rfft),
    irfft: _real,
}
"""The calls by row."""
