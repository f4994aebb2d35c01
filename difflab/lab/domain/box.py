"""The domain of a comparison: an interval for every input, and points that fill it evenly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.system import require_memory
from difflab.diagnose.point_check import checked_point, packed
from difflab.errors import InputError, PointError
from difflab.graph.function import Function
from difflab.graph.names import shortened

Points = NDArray[float64]
SCALES = ("linear", "log")


@dataclass(frozen=True)
class Range:
    """The interval of an input, and whether points are even in it or in its logarithm."""

    low: float
    high: float
    scale: str = "linear"


@dataclass(frozen=True, eq=False)
class Box:
    """The domain, over the flattened inputs.

    Attributes
    ----------
    ranges : mapping of str to Range
        The inputs that vary, all elements of an array alike.
    fixed : mapping of str to float or ndarray
        The values of the others.
    low, high : ndarray (n,)
        The ends of every flattened input.
    moving : ndarray of int
        The flattened inputs that vary.
    logarithmic : ndarray of bool (n,)
        Those whose points are even in the logarithm.
    """

    ranges: Mapping[str, Range]
    fixed: Mapping[str, Any]
    low: Points
    high: Points
    moving: NDArray[np.intp]
    logarithmic: NDArray[np.bool_]

    def points(self, unit: Points) -> Points:
        """Return points of the domain from points ``(N, d)`` of the unit cube.

        Examples
        --------
        >>> import difflab as dl
        >>> box = box_of(dl.parse("x*y"), {"x": (1.0, 100.0)}, {"y": 3.0}, {"x": "log"})
        >>> box.points(np.array([[0.0], [0.5], [1.0]]))
        array([[  1.,   3.],
               [ 10.,   3.],
               [100.,   3.]])
        """
        points = np.tile(self.low, (len(unit), 1))
        low, high = self.low[self.moving], self.high[self.moving]
        logs = self.logarithmic[self.moving]
        sign = np.where(low < 0, -1.0, 1.0)
        with np.errstate(all="ignore"):
            start, stop = (np.log(np.where(logs, sign * end, 1.0)) for end in (low, high))
            powers = sign * np.exp((1 - unit) * start + unit * stop)
        # Convex, so that an interval longer than the largest number does not overflow.
        moved = np.where(logs, powers, (1 - unit) * low + unit * high)
        points[:, self.moving] = np.clip(moved, low, high)
        return points


def box_of(
    function: Function,
    over: Mapping[str, Any],
    at: Mapping[str, Any] | None = None,
    scale: Mapping[str, str] | None = None,
) -> Box:
    """Return the domain of a function.

    Parameters
    ----------
    over : mapping of str to (float, float)
        The interval of each input that varies; the elements of an array share it.
    at : mapping, optional
        The values of the other inputs.
    scale : mapping of str to str, optional
        ``"log"`` for an input whose points are even in the logarithm.

    Raises
    ------
    PointError
        An interval is none, an input is missing, unknown or given twice, or an interval that
        contains 0 has a logarithmic scale.
    """
    at, scale = dict(at or {}), dict(scale or {})
    if not isinstance(over, Mapping) or not over:
        raise PointError("a domain needs an interval", hint="over={'x': (0.1, 10)}")
    unknown = [name for name in (*over, *scale) if name not in function.inputs]
    if unknown:
        hint = f"the inputs are {shortened(function.inputs)}"
        raise PointError(f"there is no input '{unknown[0]}'", hint=hint)
    ranges = {name: _range(name, over[name], scale.get(name, "linear")) for name in over}
    still = [name for name in scale if name not in over]
    if still:
        raise PointError(f"'{still[0]}' has a scale and no interval")
    both = [name for name in at if name in over]
    if both:
        raise PointError(f"'{both[0]}' has an interval and a value: give one of them")
    missing = [name for name in function.inputs if name not in over and name not in at]
    if missing:
        raise PointError(
            f"the input '{missing[0]}' has neither an interval nor a value",
            hint=f"--over {missing[0]}=0.1:10 or --at {missing[0]}=1.5",
        )
    ends = [
        checked_point(function, {**at, **_ends(function, ranges, s)}, inside=False) for s in "lh"
    ]
    low, high = (packed(function, end) for end in ends)
    names = np.repeat(
        np.arange(len(function.inputs)), [math.prod(shape) for shape in function.input_shapes]
    )
    inputs = function.inputs
    varies = np.array([inputs[k] in ranges for k in names], dtype=bool)
    logs = np.array([inputs[k] in ranges and ranges[inputs[k]].scale == "log" for k in names])
    fixed = {name: ends[0][name] for name in inputs if name not in ranges}
    named = {name: ranges[name] for name in inputs if name in ranges}
    return Box(named, fixed, low, high, np.flatnonzero(varies), logs.astype(bool))


def _ends(function: Function, ranges: Mapping[str, Range], side: str) -> dict[str, Any]:
    """Return the lower or the upper end of every interval, in the shape of its input."""
    shapes = dict(zip(function.inputs, function.input_shapes, strict=True))
    return {
        name: np.full(shapes[name], each.low if side == "l" else each.high)
        for name, each in ranges.items()
    }


def _range(name: str, ends: Any, scale: str) -> Range:
    try:
        low, high = map(float, ends)
    except (TypeError, ValueError):
        raise PointError(
            f"the interval of '{name}' is a pair of numbers, not {ends!r}", hint="(0.1, 10)"
        ) from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise PointError(f"the interval of '{name}' is not finite")
    if not low < high:
        raise PointError(
            f"the lower end of the interval of '{name}' is not below the upper end",
            hint=f"{name}={high:g}:{low:g}"
            if high < low
            else f"give its value: --at {name}={low:g}",
        )
    if scale not in SCALES:
        raise PointError(
            f"unknown scale {scale!r} of '{name}'", hint=f"one of: {', '.join(SCALES)}"
        )
    if scale == "log" and low <= 0 <= high:
        raise PointError(
            f"the interval of '{name}' contains 0, which has no logarithm",
            hint="an interval on one side of 0, or a linear scale",
        )
    return Range(low, high, scale)


def evenly(dimensions: int, count: int, seed: int) -> Points:
    """Return at least `count` points of the unit cube, a scrambled Sobol sequence.

    A power of two of them is drawn, which keeps the balance of the sequence; any first part of
    it fills the cube evenly, too.

    Raises
    ------
    InputError
        There are more dimensions than the sequence has.

    References
    ----------
    A. B. Owen, Scrambling Sobol' and Niederreiter-Xing points, J. Complexity 14, 1998; directions
    by S. Joe and F. Y. Kuo, SIAM J. Sci. Comput. 30, 2008.
    """
    from scipy.stats import qmc

    if dimensions > qmc.Sobol.MAXDIM:
        raise InputError(
            f"a domain has at most {qmc.Sobol.MAXDIM:,} dimensions, not {dimensions:,}"
        )
    power = max(count - 1, 0).bit_length()
    require_memory(16 * dimensions << power, f"{1 << power:,} points of {dimensions:,} numbers")
    points: Points = qmc.Sobol(dimensions, scramble=True, rng=seed).random_base2(power)
    return points
