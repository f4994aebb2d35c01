"""Numeric derivatives with bounds on their errors, and the verdicts on a gradient by them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from difflab.core.conversions import host_numbers
from difflab.errors import InputError, MethodTimeout
from difflab.testing.checker.leaves import Array, BoolArray, Callee

if TYPE_CHECKING:
    from difflab.graph.function import Function


TRUSTED = 0.1
"""Share of the derivative above which an error bar determines only its order of magnitude."""

MOST_OWN = 1e-5
"""Share of a gradient up to which differences along a line count as its own rounding."""
_TERMS = 16.0  # roundings of terms that cancel
_LARGEST = 20_000  # operations times inputs up to which the referee is called
_TIMEOUT = 5.0  # seconds for the referee


@dataclass(frozen=True)
class NumericJacobian:
    """Numeric derivatives ``(m, n)`` and their origin.

    Attributes
    ----------
    value, bar : ndarray (m, n)
        The derivative and the bound on its error.
    left, right : ndarray (m, n)
        The one-sided derivatives; they differ at a kink.
    rise : ndarray (m, n)
        The steepest mean slope that was observed around the point.
    final : ndarray of bool (m, n)
        Where the derivative is known to full accuracy, or known to be zero.
    smooth : ndarray of bool (m, n)
        Where there is no kink.
    noise : ndarray (m,)
        The error of the values, if it is larger than rounding; otherwise 0.
    source : str
        How they were computed, for the message.
    """

    value: Array
    bar: Array
    left: Array
    right: Array
    rise: Array
    final: BoolArray
    smooth: BoolArray
    noise: Array
    source: str


def estimated(f: Callee, point: Array, values: Array, method: str) -> NumericJacobian:
    """Return the derivatives by a numeric method."""
    from difflab.methods.differentiate import differentiate

    def isolated(x: Any) -> Any:
        return f(x.copy() if isinstance(x, np.ndarray) else x)

    estimate = differentiate(isolated, point, method=method)
    shape = (values.size, point.size)
    value = np.reshape(estimate.value, shape)
    bar = np.zeros(shape) if estimate.error is None else np.reshape(estimate.error, shape)
    return NumericJacobian(
        value=value,
        bar=bar,
        left=value,
        right=value,
        rise=np.zeros(shape),
        final=np.zeros(shape, dtype=bool),
        smooth=bar <= TRUSTED * np.abs(value),
        noise=np.zeros(values.size),
        source=f"{method}, {estimate.evaluations} evaluations of f",
    )


def small(function: Function, n: int) -> bool:
    """Return whether the referee evaluates a function of `n` inputs in reasonable time."""
    from difflab.graph.counts import count

    return count(function).operations * n <= _LARGEST


def refereed(
    function: Function, f: Callee, point: Array, truth: NumericJacobian
) -> NumericJacobian | None:
    """Return `truth` with the referee's derivatives where resolved; None without a result.

    Code may compute one function of floats and another of traced values.
    """
    from difflab.referee.referee import refer
    from difflab.referee.ulp import nearest

    try:
        reference = refer(function, point.tolist(), timeout=_TIMEOUT)
    except MethodTimeout:
        return None
    if not _same(function, f, point):
        return None
    resolved = ~np.isin(reference.regularity, ("undefined", "unresolved"))
    smooth = reference.regularity == "smooth"
    value = np.where(resolved, reference.jacobian, truth.value)
    left, right = (
        np.where(resolved & ~smooth, np.reshape([nearest(v) for v in side.flat], side.shape), value)
        for side in (reference.left, reference.right)
    )
    source = f"differences of mpmath values, {reference.evaluations} evaluations"
    return replace(
        truth,
        value=value,
        bar=np.where(resolved, reference.bounds, truth.bar),
        left=left,
        right=right,
        final=resolved,
        smooth=smooth,
        source=source if resolved.all() else truth.source,
    )


def _same(function: Function, f: Callee, point: Array) -> bool:
    """Return whether a graph and the code that was traced agree at and near the point."""
    from difflab.graph.verify import agreeing

    draw = np.random.default_rng(0)
    for reach in (0.0, 1e-3, 0.1):
        near = point * (1.0 + reach * draw.uniform(-1.0, 1.0, point.shape))
        with np.errstate(all="ignore"):
            theirs = values_at(f, near, function.m)
            ours = function.values(near)
        if not agreeing(function, near, ours, theirs)[np.isfinite(theirs)].all():
            return False
    return True


def values_at(f: Callee, point: Array, m: int) -> Array:
    """Return the flattened values ``(m,)``; nan if the code raises an exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = host_numbers(f(point.copy()), "it")
            if values.dtype.kind == "c":  # outside of the real domain
                values = np.where(values.imag == 0, values.real, np.nan)
            return values.astype(np.float64).reshape(m)
    except Exception:  # user code may raise anything away from the given point
        return np.full(m, np.nan)


def most_own(gradient: Array) -> float:
    """Return the largest rounding that cancellation of terms of the size 1 leaves.

    If a component is larger, terms have its size. That of a coarser dtype is larger.
    """
    return _TERMS * 2.0**-52 * max(1.0, float(np.max(np.abs(gradient))))


def rounds(function: Function) -> bool:
    """Return whether a graph has piecewise constant operations, such as `round`.

    Its derivative is that of the pieces, zero where the result itself is rounded. A gradient
    under test may instead be that of the function without the rounding.
    """
    return any(row.name in ("floor", "ceil", "round") for row in function.graph.primitives)


_OF_RISE = 0.01
"""Share of the slopes around the point below which they set the scale of a derivative."""

_FINE = 1e-4
"""Relative error bar above which more values are sampled."""


@dataclass(frozen=True)
class CheckSettings:
    """Tolerances and settings of a check of a gradient.

    Attributes
    ----------
    rtol, atol : float
        Tolerances beside the error bar: relative to the derivative, and absolute.
    unjudged : str
        The consequence if a component cannot be judged: ``"fail"`` or ``"warn"``.
    method : str
        The numeric method.
    """

    rtol: float = 1e-8
    atol: float = 0.0
    unjudged: str = "fail"
    method: str = "richardson"

    def __post_init__(self) -> None:
        if self.unjudged not in ("fail", "warn"):
            raise InputError(f"unjudged must be 'fail' or 'warn', not {self.unjudged!r}")


DEFAULT = CheckSettings()


class Verdicts(NamedTuple):
    """Which components are wrong, and which could not be judged; the others are right."""

    wrong: BoolArray
    unjudged: BoolArray


def judged(
    yours: Array, truth: NumericJacobian, allowed: CheckSettings, sensitivity: Array
) -> Verdicts:
    r"""Return the verdicts on a Jacobian ``(m, n)``.

    A component within its tolerance is right only if the tolerance is small: less than a tenth
    of the derivative, or a thousandth of the slopes around the point, or `atol`. Otherwise a
    wrong value would lie within it as well.

    Parameters
    ----------
    yours : ndarray (m, n)
        The Jacobian under test; nan is wrong.
    truth : NumericJacobian
        The numeric derivatives to compare with.
    allowed : CheckSettings
        The relative and the absolute tolerance.
    sensitivity : ndarray (m, n)
        How far the Jacobian itself changes between neighbouring inputs, added to the tolerance.
        It is ignored next to a kink, where the Jacobian jumps.
    """
    margin = truth.bar + allowed.atol
    excuse = np.where(truth.smooth, sensitivity, 0.0)
    low = np.fmin(truth.left, truth.right)  # at the edge of the domain one side is nan
    high = np.fmax(truth.left, truth.right)
    low, high = (
        low - allowed.rtol * np.abs(low) - margin,
        high + allowed.rtol * np.abs(high) + margin,
    )
    unknown = np.isnan(low) | np.isnan(high)
    strict = (low <= yours) & (yours <= high)
    inside = (low - excuse <= yours) & (yours <= high + excuse)
    same = yours == truth.value
    size = np.fmax(np.fmax(np.abs(yours), np.abs(truth.value)), _OF_RISE * truth.rise)
    limit = np.fmax(max(TRUSTED, allowed.rtol) * size, allowed.atol)
    vague = inside & ~truth.final & ~(truth.bar <= limit)
    excused = inside & ~strict & (np.abs(yours - truth.value) > limit)
    unjudged = np.isfinite(yours) & (vague | (~same & (excused | unknown)))
    return Verdicts(wrong=~(inside | same | unjudged), unjudged=unjudged)


@dataclass(frozen=True)
class Doubt:
    """Elements ``(m, n)`` that a numeric method alone cannot judge.

    Attributes
    ----------
    wrong : ndarray of bool
        Elements that it judges wrong.
    entries : ndarray of bool
        Those, and all elements whose error bar is too wide.
    zero : ndarray of bool
        Elements that are zero in both Jacobians.
    size : ndarray
        The relative difference.
    """

    wrong: BoolArray
    entries: BoolArray
    zero: BoolArray
    size: Array


def doubt(yours: Array, truth: NumericJacobian, verdicts: Verdicts, atol: float) -> Doubt:
    """Return the elements that a numeric method alone cannot judge, or only coarsely."""
    size = np.abs(yours - truth.value) / (truth.bar + np.abs(truth.value))
    coarse = ~(truth.bar <= np.fmax(_FINE * np.abs(truth.value), atol))
    open_ = ~truth.final & ~np.isnan(yours)
    return Doubt(
        wrong=verdicts.wrong & open_,
        entries=(verdicts.wrong | verdicts.unjudged | coarse) & open_,
        zero=(yours == 0) & (truth.value == 0),
        size=np.nan_to_num(size, nan=np.inf),
    )
