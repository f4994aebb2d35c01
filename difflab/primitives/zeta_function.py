"""The zeta function of Riemann and Hurwitz, Σ 1/(n + q)ˢ, as SciPy's ``zeta(s, q)``.

The derivative by s is no function of the table: it is refused.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from difflab.core.primitive import Primitive, elementwise
from difflab.errors import UnsupportedError
from difflab.primitives import portable_gamma
from difflab.primitives.portable import special, special_function

__all__ = ["zeta"]


def _zeta(xp: ModuleType, s: Any, q: Any) -> Any:
    """Return SciPy's function for q > 0; below, it has values for some s only."""
    return xp.where(q > 0, special_function(xp, "zeta")(s, xp.where(q > 0, q, 1.0)), xp.nan)


def _refused(t: Any, y: Any, s: Any, q: Any) -> NoReturn:
    raise UnsupportedError(
        "the derivative of the zeta function by its first argument has no closed form; give it a"
        " number, or differentiate by finite differences"
    )


zeta: Primitive = special(
    name="zeta",
    kernel=_zeta,
    ufunc="_zeta",  # the name of scipy.special.zeta's universal function
    portable=portable_gamma.zeta,
    rule=elementwise(_refused, lambda t, y, s, q: -(t * (s * zeta(s + 1, q)))),
    mpmath=lambda mp, s, q: mp.zeta(s, q) if s > 1 and q > 0 else mp.nan,
    latex="\\zeta\\left({0}, {1}\\right)",
    glyph="ζ",
    samples=((2.0, 2.0), (0.4, 4.0)),
    defined="a number s > 1 and q > 0",
)
