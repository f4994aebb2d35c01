"""What a gradient is held to: numeric derivatives, each with what is known of its error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = [
    "TRUSTED",
    "Doubt",
    "Truth",
    "argument",
    "estimated",
    "refereed",
    "rounds",
    "traced",
]

Array = NDArray[float64]
Mask = NDArray[np.bool_]
Callee = Callable[[Any], Any]

TRUSTED = 0.1
"""A bar above this share of the derivative leaves nothing of it but its size."""

_LARGEST = 20_000  # operations times inputs that the referee is asked to take on
_PATIENCE = 5.0  # seconds that it gets
_SAME = 1e4  # roundings by which the traced function may differ from the code
_EPS = float(np.finfo(float64).eps)


@dataclass(frozen=True)
class Truth:
    """Numeric derivatives ``(m, n)``, and where they come from.

    Attributes
    ----------
    value, bar : ndarray (m, n)
        The derivative, and the bound on its error.
    left, right : ndarray (m, n)
        The one-sided derivatives; they differ at a kink.
    rise : ndarray (m, n)
        The steepest mean slope that the function was seen to have around the point.
    final : ndarray of bool (m, n)
        Where the derivative is known to all digits that matter, or to be zero.
    smooth : ndarray of bool (m, n)
        Where there is no kink.
    noise : ndarray (m,)
        The errors of the values, where they were found to be more than rounding.
    source : str
        For the message.
    """

    value: Array
    bar: Array
    left: Array
    right: Array
    rise: Array
    final: Mask
    smooth: Mask
    noise: Array
    source: str


@dataclass(frozen=True)
class Doubt:
    """Entries ``(m, n)`` of which a numeric method alone cannot tell.

    Attributes
    ----------
    wrong : ndarray of bool
        Those that it calls wrong.
    entries : ndarray of bool
        Those, and all that its error bar is too wide for.
    zero : ndarray of bool
        Those that are zero by both.
    size : ndarray
        How far they are off.
    """

    wrong: Mask
    entries: Mask
    zero: Mask
    size: Array


def argument(point: Array) -> Any:
    """Return the point as `f` expects it: its own copy, a number where it is one."""
    return float(point) if point.ndim == 0 else point.copy()


def estimated(f: Callee, point: Array, values: Array, method: str) -> Truth:
    """Return the derivatives by a numeric method."""
    from difflab.methods.differentiate import differentiate

    def isolated(x: Any) -> Any:
        return f(x.copy() if isinstance(x, np.ndarray) else x)

    found = differentiate(isolated, point, method=method)
    shape = (values.size, point.size)
    value = np.reshape(found.value, shape)
    bar = np.zeros(shape) if found.error is None else np.reshape(found.error, shape)
    return Truth(
        value=value,
        bar=bar,
        left=value,
        right=value,
        rise=np.zeros(shape),
        final=np.zeros(shape, dtype=bool),
        smooth=bar <= TRUSTED * np.abs(value),
        noise=np.zeros(values.size),
        source=f"{method}, {found.evaluations} evaluations of f",
    )


def traced(f: Callee, point: Array, values: Array) -> Function | None:
    """Return the graph of `f`, or None where Python decides what it computes, or it is large."""
    from difflab.graph.counts import count
    from difflab.graph.trace import trace

    try:
        function = trace(f, argument(point))
        small = count(function).operations * point.size <= _LARGEST
    except Exception:  # whatever the user's code does when it meets a value that is no number
        return None
    return function if small and function.m == values.size else None


def refereed(function: Function, f: Callee, point: Array, truth: Truth) -> Truth | None:
    """Put the referee's derivative where it settled one; None if the code computes otherwise.

    Code may compute something else with numbers than with the values that trace it.
    """
    from difflab.referee.referee import refer
    from difflab.referee.ulp import nearest

    found = refer(function, point.ravel().tolist(), timeout=_PATIENCE)
    if not _same(function, f, point, found.magnitude):
        return None
    settled = ~np.isin(found.regularity, ("undefined", "unsettled"))
    smooth = found.regularity == "smooth"
    value = np.where(settled, found.jacobian, truth.value)
    left, right = (
        np.where(settled & ~smooth, np.reshape([nearest(v) for v in side.flat], side.shape), value)
        for side in (found.left, found.right)
    )
    source = f"differences of mpmath values, {found.evaluations} evaluations"
    return replace(
        truth,
        value=value,
        bar=np.where(settled, found.bounds, truth.bar),
        left=left,
        right=right,
        final=settled,
        smooth=smooth,
        source=source if settled.all() else truth.source,
    )


def _same(function: Function, f: Callee, point: Array, magnitude: float) -> bool:
    """Return whether a graph and the code that was traced agree at the point and beside it."""
    draw = np.random.default_rng(0)
    for reach in (0.0, 1e-3, 0.1):
        near = point * (1.0 + reach * draw.uniform(-1.0, 1.0, point.shape))
        with np.errstate(all="ignore"):
            theirs = values_at(f, near, function.m)
            ours = function.values(near.ravel())
        room = _SAME * _EPS * np.fmax(np.abs(theirs), magnitude)
        if not (np.abs(ours - theirs) <= room)[np.isfinite(theirs)].all():
            return False
    return True


def rounds(function: Function) -> bool:
    """Return whether a graph has operations whose results move in steps, such as `round`.

    Its derivative is that of the pieces, zero where the result itself is rounded. What is asked
    for may also be the derivative of the function that was rounded.
    """
    return any(row.name in ("floor", "ceil", "round") for row in function.graph.primitives)


def values_at(f: Callee, point: Array, m: int) -> Array:
    """Return the flattened values ``(m,)``, nan where the code refuses the point."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(f(argument(point)), dtype=float64).reshape(m)
    except Exception:  # away from the point that was given, whatever the user's code raises
        return np.full(m, np.nan)
