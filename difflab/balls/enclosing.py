"""Bounds of a function and its derivatives at a point, over a box, and over a divided box."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from difflab.balls.enclosure import Enclosure, Interval, Obstacle
from difflab.balls.evaluation import PRECISIONS, FaultNode, evaluated, fault_nodes
from difflab.balls.jets import Jet
from difflab.balls.library import Ball, arb, below, between, precision, upward
from difflab.balls.limit import reached
from difflab.errors import MethodTimeout
from difflab.graph.function import Function
from difflab.graph.names import element_names

Array = NDArray[np.float64]
Box = Sequence[tuple[float, float]]

MOST_PIECES = 4096
"""Boxes into which a box is divided at most."""

FEW_PIECES = 64
"""The same where no width is given, to exclude obstacles that are not there."""

BOX_BITS = PRECISIONS[0]


@dataclass(frozen=True)
class _Bounds:
    """Bounds of the flattened outputs: values, Jacobian and Hessians in one row.

    ``lower`` and ``upper`` have the shape ``(m, 1 + n + n²)``, less what the order leaves out.
    """

    lower: Array
    upper: Array
    outputs: Sequence[Jet]
    bits: int


def enclosed(function: Function, box: Box, order: int = 1, width: float | None = None) -> Enclosure:
    """Return proved bounds of the values and derivatives on a box.

    Parameters
    ----------
    function : Function
        The function, of n flattened inputs.
    box : sequence of (float, float)
        The lower and the upper end of each input; equal for a point.
    order : int
        How many derivatives: 0, 1 or 2.
    width : float, optional
        The box is divided until no bound exceeds the range by more than this.

    Returns
    -------
    Enclosure
        The bounds; those proved so far if the time limit of `difflab.balls.limit` is reached.

    Examples
    --------
    >>> import difflab as dl
    >>> print(enclosed(dl.parse("x^2"), [(3.0, 3.0)]))
    value [9.0, 9.0]
    jacobian [6.0, 6.0]
    >>> enclosed(dl.parse("abs(x)"), [(-1.0, 1.0)]).obstacles[0].kind
    'kink'
    """
    try:
        return _enclosed(function, box, order, width)
    except MethodTimeout as error:
        return unbounded(function, order, str(error))


def _enclosed(function: Function, box: Box, order: int, width: float | None) -> Enclosure:
    if all(low == high for low, high in box):
        return _at_point(function, box, order)
    with precision(BOX_BITS):
        bounds = _on_box(function, box, order)
        if width is not None:
            return _divided(function, box, order, bounds, width, MOST_PIECES)
        if any(output.fault is not None for output in bounds.outputs):
            return _divided(function, box, order, bounds, math.inf, FEW_PIECES)
        return _enclosure(function, box, order, bounds, sharp=True)


# --- a point ----------------------------------------------------------------------------------


def _at_point(function: Function, box: Box, order: int) -> Enclosure:
    """Raise the precision until the bounds are adjacent."""
    balls = [arb(low) for low, _ in box]
    bounds: _Bounds | None = None
    stopped = ""
    try:
        for bits in PRECISIONS:
            known = (
                None
                if bounds is None
                else partial(_enclosure, function, box, order, bounds, sharp=False)
            )
            reached(f"at {bits} bits", known)
            bounds = _bounds_of(function, evaluated(function, balls, bits, order), order, bits)
            if _adjacent(bounds):
                return _enclosure(function, box, order, bounds, sharp=True)
    except MethodTimeout as error:
        if bounds is None:
            raise
        stopped = str(error)
    assert bounds is not None
    return _enclosure(function, box, order, bounds, sharp=False, stopped=stopped)


def _adjacent(bounds: _Bounds) -> bool:
    """Whether nothing is undecided, and each bound is a number beside the exact one."""
    if any(output.fault and not output.fault.certain for output in bounds.outputs):
        return False
    with np.errstate(over="ignore"):
        above = np.nextafter(np.nextafter(bounds.lower, np.inf), np.inf)
    return bool(np.all((bounds.upper <= above) | np.isnan(bounds.upper)))


def _bounds_of(function: Function, outputs: Sequence[Jet], order: int, bits: int) -> _Bounds:
    """Return the bounds of expansions, rounded outward."""
    with precision(bits):
        lower, upper = (
            np.array([_row(output, function.n, order, end) for output in outputs], dtype=np.float64)
            for end in (below, upward)
        )
    return _Bounds(lower, upper, outputs, bits)


def _row(output: Jet, n: int, order: int, end: Callable[[Ball], float]) -> list[float]:
    """Return one end of the value, the gradient and the Hessian of an output."""
    row = [end(output.value)]
    blank = 0.0 if output.fault is None else math.nan
    if order >= 1:
        slopes = [blank] * n
        for place, slope in output.slopes.items():
            slopes[place] = end(slope)
        row += slopes
    if order == 2:
        curves = [blank] * (n * n)
        for (i, j), curve in (output.curves or {}).items():
            curves[i * n + j] = curves[j * n + i] = end(curve)
        row += curves
    return row


# --- a box ------------------------------------------------------------------------------------


def _on_box(function: Function, box: Box, order: int) -> _Bounds:
    """Return the natural enclosure, intersected with the mean-value form where it is smooth."""
    balls = [between(low, high) for low, high in box]
    bounds = _bounds_of(function, evaluated(function, balls, BOX_BITS, order), order, BOX_BITS)
    if order == 0:
        return bounds
    middle = [arb(_middle(low, high)) for low, high in box]
    steps = [ball - center for ball, center in zip(balls, middle, strict=True)]
    centers = evaluated(function, middle, BOX_BITS, order - 1)
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    for row, (output, center) in enumerate(zip(bounds.outputs, centers, strict=True)):
        if output.fault is not None or center.fault is not None:
            continue
        for place, ball in _mean_values(output, center, steps, order).items():
            low, high = below(ball), upward(ball)
            if math.isfinite(low) and math.isfinite(high):
                lower[row, place] = np.fmax(lower[row, place], low)
                upper[row, place] = np.fmin(upper[row, place], high)
    return replace(bounds, lower=lower, upper=upper)


def _middle(low: float, high: float) -> float:
    return low + (high - low) / 2 if high - low < math.inf else low / 2 + high / 2


def _mean_values(output: Jet, center: Jet, steps: Sequence[Ball], order: int) -> dict[int, Ball]:
    """Return f(c) + f′(X)(X - c), and the same for the gradient if the order is 2."""
    value = arb(center.value)
    for place, slope in output.slopes.items():
        value += slope * steps[place]
    means = {0: value}
    if order == 2:
        for place in output.slopes:
            means[1 + place] = arb(center.slopes.get(place, arb(0)))
        for (i, j), curve in (output.curves or {}).items():
            means[1 + i] += curve * steps[j]
            if i != j:
                means[1 + j] += curve * steps[i]
    return means


# --- a divided box ----------------------------------------------------------------------------


@dataclass
class _Piece:
    box: list[tuple[float, float]]
    bounds: _Bounds
    inner: _Bounds


def _divided(
    function: Function, box: Box, order: int, whole: _Bounds, width: float, most: int
) -> Enclosure:
    """Divide the pieces whose bounds exceed the function's range by more than `width`."""
    pieces = [_piece(function, list(box), order, whole)]
    wide = _too_wide(pieces, box, width)
    stopped = ""
    while wide and len(pieces) + len(wide) <= most:
        reached(f"with {len(pieces)} pieces")
        halves = [half for index in wide for half in _halves(pieces[index])]
        try:
            parts = [
                _piece(function, half, order, _on_box(function, half, order)) for half in halves
            ]
        except MethodTimeout as error:
            stopped = str(error)
            break
        dropped = set(wide)
        pieces = [piece for index, piece in enumerate(pieces) if index not in dropped] + parts
        wide = _too_wide(pieces, box, width)
    lower = np.min([piece.bounds.lower for piece in pieces], axis=0)
    upper = np.max([piece.bounds.upper for piece in pieces], axis=0)
    worst = max(pieces, key=_informative)
    bounds = replace(worst.bounds, lower=lower, upper=upper)
    count = len(pieces)
    return _enclosure(
        function, worst.box, order, bounds, sharp=not wide, pieces=count, stopped=stopped
    )


def _informative(piece: _Piece) -> int:
    """Return how informative the obstacle on a piece is: 0 if there is none."""
    kinds = [output.fault.kind for output in piece.bounds.outputs if output.fault is not None]
    return 1 + any(kind != "undecided" for kind in kinds) if kinds else 0


def _piece(
    function: Function, box: list[tuple[float, float]], order: int, bounds: _Bounds
) -> _Piece:
    middle = [arb(_middle(low, high)) for low, high in box]
    outputs = evaluated(function, middle, BOX_BITS, order)
    return _Piece(box, bounds, _bounds_of(function, outputs, order, BOX_BITS))


def _halves(piece: _Piece) -> list[list[tuple[float, float]]]:
    """Divide the side that matters most: its length times the largest slope along it."""
    sides = np.array([high - low for low, high in piece.box])
    n = len(sides)
    slopes = np.abs(piece.inner.lower[:, 1 : 1 + n])
    weights = np.max(np.where(np.isfinite(slopes), slopes, 0.0), axis=0, initial=0.0)
    matter = sides * (weights if slopes.shape[1] == n and np.any(sides * weights) else 1.0)
    place = int(np.argmax(matter))
    low, high = piece.box[place]
    cut = _middle(low, high)
    first, second = list(piece.box), list(piece.box)
    first[place], second[place] = (low, cut), (cut, high)
    return [first, second]


def _too_wide(pieces: Sequence[_Piece], box: Box, width: float) -> list[int]:
    """Return the pieces whose bounds exceed values that the function takes on, or may be smooth."""
    lower = np.array([piece.bounds.lower for piece in pieces])
    upper = np.array([piece.bounds.upper for piece in pieces])
    lowest = np.fmin.reduce([piece.inner.upper for piece in pieces], axis=0)
    highest = np.fmax.reduce([piece.inner.lower for piece in pieces], axis=0)
    with np.errstate(invalid="ignore"):
        beyond = (lower < lowest - width) | (upper > highest + width)
    wide = set(np.flatnonzero(beyond.reshape(len(pieces), -1).any(axis=1)).tolist())
    for index, piece in enumerate(pieces):
        if any(output.fault is not None for output in piece.bounds.outputs):
            wide.add(index)
    return [index for index in sorted(wide) if _divisible(pieces[index], box, width)]


def _divisible(piece: _Piece, box: Box, width: float) -> bool:
    """Whether a piece is longer than a thousandth of the box, or bounded and longer than rounding.

    A kink stays in some piece, however small: its neighbourhood is not divided for ever.
    """
    faulty = any(output.fault is not None for output in piece.bounds.outputs)
    least = 2.0**-10 if faulty else 2.0**-40
    whole = [high - low for low, high in box]
    return any(
        high - low > least * side and low < _middle(low, high) < high
        for (low, high), side in zip(piece.box, whole, strict=True)
    )


# --- the result -------------------------------------------------------------------------------


def _enclosure(
    function: Function,
    box: Box,
    order: int,
    bounds: _Bounds,
    *,
    sharp: bool,
    pieces: int = 1,
    stopped: str = "",
) -> Enclosure:
    return Enclosure(
        *_parts(function, order, bounds.lower, bounds.upper),
        obstacles=_obstacles(function, box, order, bounds),
        bits=bounds.bits,
        pieces=pieces,
        sharp=sharp,
        stopped=stopped,
    )


def unbounded(function: Function, order: int, stopped: str) -> Enclosure:
    """Return that nothing is proved, and why."""
    n = function.n
    nothing = np.full((function.m, (1, 1 + n, 1 + n + n**2)[order]), math.nan)
    names = element_names(function.output_names, function.output_shapes)
    nodes = np.repeat(function.outputs, [math.prod(shape) for shape in function.output_shapes])
    obstacles = tuple(
        Obstacle(name, "undecided", stopped, node, function.graph.place(node), False)
        for name, node in zip(names, nodes.tolist(), strict=True)
    )
    parts = _parts(function, order, nothing, nothing)
    return Enclosure(*parts, obstacles, bits=0, pieces=1, sharp=False, stopped=stopped)


def _parts(
    function: Function, order: int, lower: Array, upper: Array
) -> tuple[Interval, Interval | None, Interval | None]:
    """Return the bounds of value, Jacobian and Hessian."""
    n, m = function.n, function.m
    single = len(function.outputs) == 1
    blocks = [(slice(0, 1), function.output_shapes[0] if single else (m,))]
    blocks.append((slice(1, 1 + n), (m, n)))
    blocks.append((slice(1 + n, None), (n, n) if m == 1 else (m, n, n)))
    parts = [
        Interval(lower[:, cut].reshape(shape), upper[:, cut].reshape(shape))
        for cut, shape in blocks[: order + 1]
    ]
    return parts[0], parts[1] if order >= 1 else None, parts[2] if order == 2 else None


def _obstacles(function: Function, box: Box, order: int, bounds: _Bounds) -> tuple[Obstacle, ...]:
    """Return why derivatives are missing, and where that was written."""
    if all(output.fault is None for output in bounds.outputs):
        return ()
    balls = [between(low, high) for low, high in box]
    nodes: Sequence[FaultNode | None]
    try:
        nodes = fault_nodes(function, balls, bounds.bits, order)
    except MethodTimeout:  # the operation is known, its position is not
        ends = np.repeat(function.outputs, [math.prod(shape) for shape in function.output_shapes])
        nodes = [
            None if output.fault is None else FaultNode(output.fault, node)
            for output, node in zip(bounds.outputs, ends.tolist(), strict=True)
        ]
    names = element_names(function.output_names, function.output_shapes)
    return tuple(
        Obstacle(
            name,
            entry.fault.kind,
            entry.fault.reason,
            entry.node,
            function.graph.place(entry.node),
            entry.fault.certain,
        )
        for name, entry in zip(names, nodes, strict=True)
        if entry is not None
    )
