"""The check of every component on its own, in a dtype coarser than float64."""

from __future__ import annotations

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.differences.scan import scan_line
from difflab.differences.windows import first_half, slope_along
from difflab.testing.components.truth import TRUSTED, NumericJacobian
from difflab.testing.trees.probe import Probe

Array = NDArray[float64]
BoolArray = NDArray[np.bool_]


def coordinate_truth(probe: Probe, rows: Array) -> NumericJacobian:
    """Return the derivatives ``(m, n)`` from values along each component.

    Parameters
    ----------
    probe : Probe
        The values.
    rows : ndarray (m, n)
        The Jacobian under test. It only accounts for the rounding of the arguments.
    """
    value, bar, jump, rise = (np.zeros_like(rows) for _ in range(4))
    along, scale = np.zeros(probe.point.n), _scale(probe)
    for j in range(probe.point.n):
        along[j] = scale[j]
        # Also if the row is zero: a missing term is seen if it matters to the value.
        size = np.maximum(np.abs(rows[:, j]) * scale[j], np.abs(probe.center))
        best = slope_along(
            probe.residual(along, rows, start=j, stop=j + 1),
            probe.rounding,
            first_half(probe.eps, alone=True),
            max(0.1 * np.sqrt(probe.eps), 8.0 * probe.eps) * size,
            most=3,
        ).per(scale[j])
        value[:, j] = rows[:, j] + best.value
        bar[:, j], jump[:, j] = best.bar, best.half_jump
        rise[:, j] = best.rise + np.abs(rows[:, j])
        along[j] = 0.0
    return NumericJacobian(
        value=value,
        bar=bar,
        left=value - jump,
        right=value + jump,
        rise=rise,
        final=np.zeros(rows.shape, dtype=bool),
        smooth=bar <= TRUSTED * np.abs(value),
        noise=np.zeros(len(rows)),
        source=f"polynomials through values of f, {probe.count} evaluations",
    )


def confirmed(probe: Probe, rows: Array, truth: NumericJacobian, wrong: BoolArray) -> BoolArray:
    """Return which components are wrong also by a scan of the values for noise and kinks."""
    result = wrong.copy()
    scale = _scale(probe)
    along = np.zeros(probe.point.n)
    for j in np.flatnonzero(wrong.any(axis=0)):
        along[j] = scale[j]
        changes = probe.residual(along, rows, start=int(j), stop=int(j) + 1)
        scan = scan_line(changes, np.zeros(len(rows)), 1.0, wrong[:, j])
        if scan.windows:
            seen = scan.estimate(np.maximum(scan.noise, probe.rounding))
            room = seen.bar + np.abs(seen.half_jump)
            result[:, j] &= ~(np.isfinite(seen.bar) & (np.abs(seen.value) <= room))
        along[j] = 0.0
    return result


def _scale(probe: Probe) -> Array:
    """Return the displacement of each component."""
    size = np.abs(probe.point.numbers())
    return np.where(size < probe.eps**2, 1.0, size)
