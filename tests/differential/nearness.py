"""How near the answers of two implementations of one program must be."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["assert_close", "cancelled", "close", "reach"]


def assert_close(found: Any, wanted: Any, tolerance: float, what: str = "") -> None:
    """Raise AssertionError unless results have one shape, and differ by at most a share.

    The tolerance is one of the largest number wanted, and of 1.
    """
    assert np.shape(found) == np.shape(wanted), f"{what}: {np.shape(found)}, not {np.shape(wanted)}"
    room = tolerance * max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=room, err_msg=what)


def cancelled(values: list[Any]) -> bool:
    """Whether a value is what rounding left of a sum, of whose root no digit is right."""
    return any(np.any((np.abs(numbers) < 1e-12) & (numbers != 0)) for numbers in values)


def reach(values: list[Any]) -> float:
    """Return the largest number of a run, or one over the smallest, between 1 and 1000.

    A value is rounded relative to such numbers, a slope (of 1/x, say) relative to their squares,
    a second derivative relative to their cubes, though what is left may be zero.
    """
    found = [1.0]
    for numbers in values:
        sizes = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
        found += [float(sizes.max(initial=1.0)), float(1 / sizes.min(initial=1.0))]
    return min(max(found), 1e3)


def close(ours: Any, theirs: Any, tolerance: float, tolerant: bool, allowed: float = 0.0) -> bool:
    """Whether two answers agree; a missing gradient is one of zeros.

    Where a branch is not taken, PyTorch multiplies what it holds by zero, and gives nan for
    infinities there: such numbers are not compared, nor are infinite second derivatives, which
    depend on how a rule is written.
    """
    if ours is None or theirs is None:
        rest = theirs if ours is None else ours
        return rest is None or not np.any(rest[np.isfinite(rest)] if tolerant else rest)
    if ours.shape != theirs.shape:
        return False
    finite = np.isfinite(theirs)
    if not finite.all():
        known = finite | (not tolerant)
        ours, theirs = ours[known], theirs[known]
        finite = np.isfinite(theirs)
        if not np.array_equal(abs(ours[~finite]), abs(theirs[~finite]), equal_nan=True):
            return False  # the sign of infinity is that of a zero, which sums do not agree on
        ours, theirs = ours[finite], theirs[finite]
    bound = tolerance * np.abs(theirs).max(initial=0.0) + 1e-300 + allowed
    return bool(np.all(np.abs(ours - theirs) <= bound))
