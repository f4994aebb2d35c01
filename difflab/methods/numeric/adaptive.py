"""First derivatives from values: choice of steps and sides, and error estimates.

One batch of values on a short ladder of steps settles ordinary functions; components
that it does not settle are passed to `rescue`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.methods.numeric.extrapolation import solve, tail
from difflab.methods.numeric.rules import DifferenceRule, FirstDerivatives
from difflab.methods.numeric.stencil import (
    LEAD,
    StencilSampler,
    ladder,
    lead_points,
    noise_of,
    probe,
    scale_of,
)
from difflab.methods.numeric.wide_search import SUSPECT, rescue

__all__ = ["first_derivatives"]

Array = NDArray[np.float64]


# Maximum elements of the arrays of quotients: components are processed in blocks.
_ENTRIES = 1 << 22


class _CenterValues(NamedTuple):
    """The values at x, the bound on their errors, and the relative rounding of their type."""

    center: Array
    noise: Array
    eps: float


def first_derivatives(rule: DifferenceRule, sampler: StencilSampler, x: Array) -> FirstDerivatives:
    """Return the first derivatives of every output in every component at `x`."""
    scale = scale_of(x)
    with np.errstate(all="ignore"):
        found = _first_pass(rule, sampler, x, scale)
        if (found.error < rule.tolerance * np.abs(found.value)).all():
            return found
        open_ = ~rule.settles(found)
        search = (open_ | found.flat).any(axis=1)
        if search.any():
            found.error[open_] = np.inf
            rescue(rule, sampler, x, np.flatnonzero(search), found)
    return found


def _first_pass(
    rule: DifferenceRule, sampler: StencilSampler, x: Array, scale: Array
) -> FirstDerivatives:
    """Evaluate the short ladder of steps, in one batch if memory allows."""
    judge = _forward if rule.central is None else _central
    units, n = rule.signed_units, x.size
    block = max(1, _ENTRIES // (len(units) * sampler.m))
    if n <= block and LEAD + units.size * n <= sampler.rows:
        lead, body, moved = probe(sampler, x, scale, units)
        near = _CenterValues(lead[0], *noise_of(lead))
        parts = [judge(rule, sampler, x, np.arange(n), scale, near, body, moved)]
    else:
        lead = sampler(lead_points(x, scale))
        near = _CenterValues(lead[0], *noise_of(lead))
        parts = []
        for start in range(0, n, block):
            chosen = np.arange(start, min(start + block, n))
            body, moved = ladder(sampler, x, chosen, units * scale[chosen])
            parts.append(judge(rule, sampler, x, chosen, scale, near, body, moved))
    value, error, flat = (
        parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    )
    return FirstDerivatives(value, error, flat, scale, *near)


_Judged = tuple[Array, Array, NDArray[np.bool_]]


def _central(
    rule: DifferenceRule,
    sampler: StencilSampler,
    x: Array,
    chosen: NDArray[np.intp],
    scale: Array,
    near: _CenterValues,
    body: Array,
    moved: Array,
) -> _Judged:
    """Return value, error and flatness of central differences from the sampled values."""
    weights = rule.central or rule.onesided
    levels = len(rule.units)
    center, noise, eps = near
    up, down, size = body[:levels], body[levels:], np.abs(body)
    width = (moved[:levels] - moved[levels:])[:, :, None]
    level = np.maximum(2.0 * noise, (2.0 * eps) * np.maximum(size[:levels], size[levels:]))
    quotients = ((up - down) / width).reshape(levels, -1)
    rounding = (level / width).reshape(levels, -1)
    value, error, pick = solve(weights, quotients, rounding)
    if not rule.strict:
        error = np.maximum(error, tail(weights, quotients, rounding, pick))
    # Over the whole width 2h this is half the difference of the one-sided quotients.
    curvature = ((up + down - 2.0 * center) / width).reshape(levels, -1)
    half_jump = np.abs((weights.jump @ curvature)[pick, np.arange(pick.size)])
    error += np.where(half_jump > error, half_jump, 0.0)
    return _judged(value, error, quotients, scale[chosen])


def _forward(
    rule: DifferenceRule,
    sampler: StencilSampler,
    x: Array,
    chosen: NDArray[np.intp],
    scale: Array,
    near: _CenterValues,
    body: Array,
    moved: Array,
) -> _Judged:
    """Return value, error and flatness of forward differences from the sampled values."""
    levels = len(rule.units)
    center, noise, eps = near
    width = (moved - x[chosen])[:, :, None]
    level = np.maximum(noise, eps * np.abs(body))
    quotients = ((body - center) / width).reshape(levels, -1)
    rounding = (level / width).reshape(levels, -1) * 2.0
    value, error, pick = solve(rule.onesided, quotients, rounding)
    error = np.maximum(error, tail(rule.onesided, quotients, rounding, pick))
    # A kink is visible only from the other side: one more point per component, at its step.
    steps = rule.units[rule.onesided.level, 0]
    step = steps[pick.reshape(chosen.size, -1)].min(axis=1) * scale[chosen]
    behind, back = ladder(sampler, x, chosen, -step[None, :])
    gap = np.abs(((center - behind[0]) / (x[chosen] - back[0])[:, None]).ravel() - value)
    return _judged(value, np.fmax(error, gap), quotients, scale[chosen])


def _judged(value: Array, error: Array, quotients: Array, scale: Array) -> _Judged:
    shape = (scale.size, -1)
    value = value.reshape(shape)
    flat = value == 0
    if np.count_nonzero(flat):
        flat &= quotients.any(axis=0).reshape(shape) | (scale < SUSPECT)[:, None]
    return value, error.reshape(shape), flat
