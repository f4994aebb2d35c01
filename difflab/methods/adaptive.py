"""First derivatives from values: the steps, the sides and the error are found here.

May import `difflab.methods` (rescue, rules, stencil, weights) and NumPy.

One batch of values on a short ladder of steps settles ordinary functions; what it does
not settle goes to `rescue`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from difflab.methods.rescue import SUSPECT, rescue
from difflab.methods.rules import Found, Rule
from difflab.methods.stencil import Sampler, ladder, noise_of, probe, scale_of
from difflab.methods.weights import Weights, solve, tail

__all__ = ["first_derivatives"]

Array = NDArray[np.float64]


def first_derivatives(rule: Rule, sampler: Sampler, x: Array) -> Found:
    """Return the first derivatives of every output in every component at `x`."""
    scale = scale_of(x)
    with np.errstate(all="ignore"):
        if rule.central is None:
            found = _forward_pass(rule, sampler, x, scale)
        else:
            found = _central_pass(rule, rule.central, sampler, x, scale)
        if (found.error < rule.tolerance * np.abs(found.value)).all():
            return found
        open_ = ~rule.settles(found)
        search = (open_ | found.flat).any(axis=1)
        if search.any():
            found.error[open_] = np.inf
            rescue(rule, sampler, x, np.flatnonzero(search), found)
    return found


def _central_pass(rule: Rule, weights: Weights, sampler: Sampler, x: Array, scale: Array) -> Found:
    levels = len(rule.units)
    lead, body, moved = probe(sampler, x, scale, rule.both_units)
    noise, eps = noise_of(lead)
    up, down, size = body[:levels], body[levels:], np.abs(body)
    width = (moved[:levels] - moved[levels:])[:, :, None]
    level = np.maximum(2.0 * noise, (2.0 * eps) * np.maximum(size[:levels], size[levels:]))
    quotients = ((up - down) / width).reshape(levels, -1)
    rounding = (level / width).reshape(levels, -1)
    value, error, pick = solve(weights, quotients, rounding)
    if not rule.strict:
        error = np.maximum(error, tail(weights, quotients, rounding, pick))
    # Over the whole width 2h this is half the difference of the one-sided quotients.
    curvature = ((up + down - 2.0 * lead[0]) / width).reshape(levels, -1)
    half_jump = np.abs((weights.jump @ curvature)[pick, np.arange(pick.size)])
    error += np.where(half_jump > error, half_jump, 0.0)
    return _found(value, error, quotients, scale, lead[0], noise, eps)


def _found(
    value: Array,
    error: Array,
    quotients: Array,
    scale: Array,
    center: Array,
    noise: Array,
    eps: float,
) -> Found:
    shape = (scale.size, -1)
    value = value.reshape(shape)
    flat = value == 0
    if np.count_nonzero(flat):
        flat &= quotients.any(axis=0).reshape(shape) | (scale < SUSPECT)[:, None]
    return Found(value, error.reshape(shape), flat, scale, center, noise, eps)


def _forward_pass(rule: Rule, sampler: Sampler, x: Array, scale: Array) -> Found:
    levels = len(rule.units)
    lead, body, moved = probe(sampler, x, scale, rule.units)
    noise, eps = noise_of(lead)
    width = (moved - x)[:, :, None]
    level = np.maximum(noise, eps * np.abs(body))
    quotients = ((body - lead[0]) / width).reshape(levels, -1)
    rounding = (level / width).reshape(levels, -1) * 2.0
    value, error, pick = solve(rule.onesided, quotients, rounding)
    error = np.maximum(error, tail(rule.onesided, quotients, rounding, pick))
    # A kink shows only from the other side: one more point a component, at its step.
    steps = rule.units[levels - len(rule.onesided.value) :, 0]
    step = steps[pick.reshape(x.size, -1)].min(axis=1) * scale
    behind, back = ladder(sampler, x, np.arange(x.size), -step[None, :])
    gap = np.abs(((lead[0] - behind[0]) / (x - back[0])[:, None]).ravel() - value)
    return _found(value, np.fmax(error, gap), quotients, scale, lead[0], noise, eps)
