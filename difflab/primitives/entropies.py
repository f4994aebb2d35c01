"""Products of a number and a logarithm, 0 where the number is 0, and the logarithm of the odds."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives.arithmetic import divide
from difflab.primitives.exponential import log, log1p
from difflab.primitives.piecewise import equal, logical_and, where
from difflab.primitives.portable import special

__all__ = ["dlogit", "entr", "logit", "xlog1py", "xlogy"]

POSITIVE = (0.5, 4.0)
AT_ZERO = "derivative 0 in the second argument where both x and the logarithm's argument are 0"


def _dlogit(xp: ModuleType, x: Any) -> Any:
    """Return 1/(x(1 - x)) in [0, 1], and nan outside."""
    return xp.where((x < 0) | (x > 1), xp.nan, 1.0 / (x * (1.0 - x)))


def _both_zero(x: Any, z: Any) -> Any:
    """Return where x/z is the convention 0; elsewhere it is smooth, also where x is 0.

    There the derivative is written as (-x) log z, whose value is 0 as well: its derivative by x is
    the 1/z = inf of x/z, so that second derivatives are symmetric.
    """
    return logical_and(equal(x, 0), equal(z, 0))


def _product(sympy: Any, x: Any, z: Any) -> Any:
    """Return x log z in SymPy, whose derivative of a case is that of the case only.

    So the case x = 0, whose slope would be 0, stands only where log z may be infinite.
    """
    product = x * sympy.log(z)
    return product if z.is_positive else sympy.Piecewise((0, sympy.Eq(x, 0)), (product, True))


xlogy: Primitive = Primitive(
    name="xlogy",
    portable=lambda xp, x, y: xp.where((x == 0) & (y == y), 0.0, x * xp.log(y)),
    reserved=False,
    kernel="special.xlogy",
    rule=elementwise(
        lambda t, y, x, z: t * log(z),
        lambda t, y, x, z: t * where(_both_zero(x, z), xlogy(-x, z), divide(x, z)),
    ),
    sympy=_product,
    mpmath=lambda mp, x, z: mp.mpf(0) if x == 0 else x * mp.log(z),
    latex="{0} \\ln\\left({1}\\right)",
    samples=(POSITIVE, (0.2, 4.0)),
    defined="y > 0, or x = 0",
    convention=AT_ZERO,
)
xlog1py: Primitive = Primitive(
    name="xlog1py",
    portable=lambda xp, x, y: xp.where((x == 0) & (y == y), 0.0, x * xp.log1p(y)),
    reserved=False,
    kernel="special.xlog1py",
    rule=elementwise(
        lambda t, y, x, z: t * log1p(z),
        lambda t, y, x, z: t * where(_both_zero(x, 1 + z), xlog1py(-x, z), divide(x, 1 + z)),
    ),
    sympy=lambda sympy, x, z: _product(sympy, x, 1 + z),
    mpmath=lambda mp, x, z: mp.mpf(0) if x == 0 else x * mp.log1p(z),
    latex="{0} \\ln\\left(1 + {1}\\right)",
    samples=(POSITIVE, (-0.7, 3.0)),
    defined="y > -1, or x = 0",
    convention=AT_ZERO,
)
entr: Primitive = special(
    name="entr",
    portable=lambda xp, x: xp.where(
        x > 0, -x * xp.log(x), xp.where(x == 0, 0.0, xp.where(x < 0, -xp.inf, x))
    ),
    kernel="special.entr",
    rule=elementwise(lambda t, y, x: -(t * (log(x) + 1))),
    sympy=lambda sympy, x: sympy.Piecewise((0, sympy.Eq(x, 0)), (-x * sympy.log(x), True)),
    mpmath=lambda mp, x: mp.mpf(0) if x == 0 else -x * mp.log(x),
    latex="-{0} \\ln\\left({0}\\right)",
    samples=(POSITIVE,),
    defined="x > 0",
)
logit: Primitive = special(
    name="logit",
    portable=lambda xp, x: xp.where(
        (x < 0.3) | (x > 0.65), xp.log(x / (1.0 - x)), xp.log1p((2.0 * x - 1.0) / (1.0 - x))
    ),
    kernel="special.logit",
    rule=elementwise(lambda t, y, x: t * dlogit(x)),
    sympy=lambda sympy, x: sympy.log(x / (1 - x)),
    latex="\\ln\\frac{{{0}}}{{1 - {0}}}",
    samples=((0.1, 0.45),),
    defined="0 < x < 1",
)
dlogit: Primitive = Primitive(
    name="dlogit",
    kernel=_dlogit,
    rule=elementwise(lambda t, y, x: t * (y * (y * (2 * x - 1)))),
    samples=((0.1, 0.45),),
    expansion=lambda x: 1 / (x * (1 - x)),
    analytic=False,
)
