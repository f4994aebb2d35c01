"""Airy functions and their derivatives, by SciPy: the solutions of y″ = x·y (DLMF 9.2)."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives.special_kernels import special_function

__all__ = ["airyai", "airyaiprime", "airybi", "airybiprime"]


def _airy(index: int) -> Callable[..., Any]:
    """Return one of SciPy's four results; beyond its range, their limits."""

    def kernel(xp: ModuleType, x: Any) -> Any:
        found = special_function(xp, "airy")(xp.minimum(x, FAR) if index < 2 else x)[index]
        return xp.where(xp.isnan(found) & (x > 0), xp.inf, found) if index >= 2 else found

    return kernel


FAR = 110.0
"""Beyond it Ai and Ai′ are 0 in float64."""

airyai: Primitive = Primitive(
    name="airyai",
    reserved=False,
    kernel=_airy(0),
    rule=elementwise(lambda t, y, x: t * airyaiprime(x)),
    c="",
    javascript="airy({0}, false, false)",
    latex="\\operatorname{{Ai}}\\left({0}\\right)",
    glyph="Ai",
    notation="airyai",
    samples=((0.1, 0.6),),
    analytic=False,
)
airyaiprime: Primitive = Primitive(
    name="airyaiprime",
    reserved=False,
    kernel=_airy(1),
    rule=elementwise(lambda t, y, x: t * (x * airyai(x))),
    mpmath=lambda mp, x: mp.airyai(x, derivative=1),
    flint="airyaiprime",
    c="",
    javascript="airy({0}, false, true)",
    latex="\\operatorname{{Ai}}'\\left({0}\\right)",
    glyph="Ai′",
    notation="airyaiprime",
    samples=((0.1, 0.6),),
    analytic=False,
)
airybi: Primitive = Primitive(
    name="airybi",
    reserved=False,
    kernel=_airy(2),
    rule=elementwise(lambda t, y, x: t * airybiprime(x)),
    c="",
    javascript="airy({0}, true, false)",
    latex="\\operatorname{{Bi}}\\left({0}\\right)",
    glyph="Bi",
    notation="airybi",
    samples=((0.1, 3.0),),
    analytic=False,
)
airybiprime: Primitive = Primitive(
    name="airybiprime",
    reserved=False,
    kernel=_airy(3),
    rule=elementwise(lambda t, y, x: t * (x * airybi(x))),
    mpmath=lambda mp, x: mp.airybi(x, derivative=1),
    flint="airybiprime",
    c="",
    javascript="airy({0}, true, true)",
    latex="\\operatorname{{Bi}}'\\left({0}\\right)",
    glyph="Bi′",
    notation="airybiprime",
    samples=((0.1, 3.0),),
    analytic=False,
)
