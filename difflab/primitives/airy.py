"""Airy functions and their derivatives, by SciPy: the solutions of y″ = x·y (DLMF 9.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import portable_bessel
from difflab.primitives.portable import special, special_function

__all__ = ["airyai", "airyaiprime", "airybi", "airybiprime"]


def _airy(index: int) -> Callable[..., Any]:
    """Return one of SciPy's four results; beyond its range, their limits and waves."""

    def kernel(xp: ModuleType, x: Any) -> Any:
        at = xp.maximum(xp.minimum(x, FAR) if index < 2 else x, WAVES)
        value = special_function(xp, "airy")(at)[index]
        value = xp.where(xp.isnan(value) & (x > 0), xp.inf, value) if index >= 2 else value
        return xp.where(x < WAVES, _wave(xp, index, xp.maximum(-x, -WAVES)), value)

    return kernel


def _wave(xp: ModuleType, index: int, z: Any) -> Any:
    """Return Ai, Ai′, Bi or Bi′ at -z, the first two terms of DLMF 9.7.9 to 9.7.12."""
    size = xp.minimum(z, NO_PHASE)
    phase = (2 / 3) * (size * xp.sqrt(size))
    angle = phase - 0.25 * math.pi
    cosine, sine = xp.cos(angle), xp.sin(angle)
    if index == 0:
        wave = cosine + 5 / 72 * sine / phase
    elif index == 1:
        wave = sine + 7 / 72 * cosine / phase
    elif index == 2:
        wave = 5 / 72 * cosine / phase - sine
    else:
        wave = cosine - 7 / 72 * sine / phase
    root = xp.sqrt(xp.sqrt(z))
    amplitude = root if index % 2 else 1.0 / root
    return math.sqrt(1 / math.pi) * amplitude * wave


FAR = 110.0
"""Beyond it Ai and Ai′ are 0 in float64."""
WAVES = -1e6
"""Below it they are waves of a known phase; SciPy's are nan below -1.05e6."""
NO_PHASE = 1e10
"""Beyond it no digit of the phase is left, only the amplitude."""

airyai: Primitive = special(
    name="airyai",
    ulps=12.0,
    kernel=_airy(0),
    portable=portable_bessel.airy(second=False, prime=False),
    rule=elementwise(lambda t, y, x: t * airyaiprime(x)),
    latex="\\operatorname{{Ai}}\\left({0}\\right)",
    glyph="Ai",
    samples=((0.1, 0.6),),
)
airyaiprime: Primitive = special(
    name="airyaiprime",
    ulps=12.0,
    kernel=_airy(1),
    portable=portable_bessel.airy(second=False, prime=True),
    rule=elementwise(lambda t, y, x: t * (x * airyai(x))),
    mpmath=lambda mp, x: mp.airyai(x, derivative=1),
    latex="\\operatorname{{Ai}}'\\left({0}\\right)",
    glyph="Ai′",
    samples=((0.1, 0.6),),
)
airybi: Primitive = special(
    name="airybi",
    kernel=_airy(2),
    portable=portable_bessel.airy(second=True, prime=False),
    rule=elementwise(lambda t, y, x: t * airybiprime(x)),
    latex="\\operatorname{{Bi}}\\left({0}\\right)",
    glyph="Bi",
    samples=((0.1, 3.0),),
)
airybiprime: Primitive = special(
    name="airybiprime",
    kernel=_airy(3),
    portable=portable_bessel.airy(second=True, prime=True),
    rule=elementwise(lambda t, y, x: t * (x * airybi(x))),
    mpmath=lambda mp, x: mp.airybi(x, derivative=1),
    latex="\\operatorname{{Bi}}'\\left({0}\\right)",
    glyph="Bi′",
    samples=((0.1, 3.0),),
)
