"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import kernels
from difflab.primitives.arithmetic import hypot, sqrt

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "dacosh",
    "dasin",
    "datan2",
    "datanh",
    "logcosh",
    "sech",
    "sin",
    "sinh",
    "tan",
    "tanh",
    "versine",
]

REAL = (-3.0, 3.0)
NARROW = (-1.2, 1.2)
UNIT = (-0.9, 0.9)


def _function(
    name: str,
    derivative: Callable[..., Any],
    samples: tuple[float, float],
    kernel: str | None = None,
    latex: str | None = None,
    defined: str = "",
) -> Primitive:
    """Return the row of a function that every library has under the same name."""
    return Primitive(
        name=name,
        kernel=kernel or name,
        rule=elementwise(derivative),
        latex=f"{latex or chr(92) + name}\\left({{0}}\\right)",
        samples=(samples,),
        defined=defined,
    )


sin: Primitive = _function("sin", lambda t, y, x: t * cos(x), REAL)
cos: Primitive = _function("cos", lambda t, y, x: -(t * sin(x)), REAL)
tan: Primitive = _function("tan", lambda t, y, x: t * (1 + y * y), NARROW, defined="cos(x) ≠ 0")
asin: Primitive = _function(
    "asin", lambda t, y, x: t * dasin(x), UNIT, "arcsin", "\\arcsin", defined="-1 ≤ x ≤ 1"
)
acos: Primitive = _function(
    "acos", lambda t, y, x: -(t * dasin(x)), UNIT, "arccos", "\\arccos", defined="-1 ≤ x ≤ 1"
)
atan: Primitive = _function("atan", lambda t, y, x: t / (1 + x * x), REAL, "arctan", "\\arctan")
sinh: Primitive = _function("sinh", lambda t, y, x: t * cosh(x), REAL)
cosh: Primitive = _function("cosh", lambda t, y, x: t * sinh(x), REAL)
tanh: Primitive = _function("tanh", lambda t, y, x: t * sech(x) * sech(x), REAL)
asinh: Primitive = _function(
    "asinh",
    lambda t, y, x: t / hypot(1, x),
    REAL,
    "arcsinh",
    "\\operatorname{{arsinh}}",
)
acosh: Primitive = _function(
    "acosh",
    lambda t, y, x: t * dacosh(x),
    (1.3, 4.0),
    "arccosh",
    "\\operatorname{{arcosh}}",
    defined="x ≥ 1",
)
atanh: Primitive = _function(
    "atanh",
    lambda t, y, x: t * datanh(x),
    UNIT,
    "arctanh",
    "\\operatorname{{artanh}}",
    defined="-1 < x < 1",
)
sech: Primitive = Primitive(
    name="sech",
    kernel=kernels.sech,
    rule=elementwise(lambda t, y, x: -(t * (y * tanh(x)))),
    samples=(REAL,),
)
logcosh: Primitive = Primitive(
    name="logcosh",
    kernel=kernels.logcosh,
    rule=elementwise(lambda t, y, x: t * tanh(x)),
    sympy=lambda sympy, x: sympy.log(sympy.cosh(x)),
    mpmath=lambda mp, x: mp.log1p(2 * mp.sinh(x / 2) ** 2),
    latex="\\ln\\cosh\\left({0}\\right)",
    samples=(REAL,),
)
versine: Primitive = Primitive(
    name="versine",
    kernel=kernels.versine,
    rule=elementwise(lambda t, y, x: t * sin(x)),
    sympy=lambda sympy, x: 1 - sympy.cos(x),
    mpmath=lambda mp, x: 2 * mp.sin(x / 2) ** 2,
    latex="\\operatorname{{versin}}\\left({0}\\right)",
    samples=(REAL,),
)
atan2: Primitive = Primitive(
    name="atan2",
    kernel=kernels.atan2,
    rule=elementwise(
        lambda t, a, y, x: t * datan2(x, y),
        lambda t, a, y, x: -(t * datan2(y, x)),
    ),
    roles=("y", "x"),
    ufunc="arctan2",
    samples=(REAL, (0.2, 3.0)),
    kinks=lambda y, x: hypot(y, x),
    convention="no derivative at the origin: nan",
)
dasin: Primitive = Primitive(
    name="dasin",
    kernel=kernels.asin_derivative,
    rule=elementwise(lambda t, y, x: t * (x * y * y * y)),
    glyph="asin′",
    samples=(UNIT,),
    expansion=lambda x: 1 / sqrt(1 - x * x),
)
dacosh: Primitive = Primitive(
    name="dacosh",
    kernel=kernels.acosh_derivative,
    # As a sum of fractions, whose derivatives at x = 1 are infinities of one sign.
    rule=elementwise(lambda t, y, x: -0.5 * (t * y * (1 / (x - 1) + 1 / (x + 1)))),
    glyph="acosh′",
    samples=((1.3, 4.0),),
    expansion=lambda x: 1 / (sqrt(x - 1) * sqrt(x + 1)),
)
datanh: Primitive = Primitive(
    name="datanh",
    kernel=kernels.atanh_derivative,
    rule=elementwise(lambda t, y, x: t * (2 * (x * (y * y)))),
    samples=(UNIT,),
    defined="-1 < x < 1",
    expansion=lambda x: 1 / ((1 - x) * (1 + x)),
)
datan2: Primitive = Primitive(
    name="datan2",
    kernel=kernels.atan2_derivative,
    rule=elementwise(
        lambda t, r, x, y: t * (datan2(y, x) * datan2(y, x) - r * r),
        lambda t, r, x, y: -(t * (2 * (r * datan2(y, x)))),
    ),
    glyph="atan2′",
    samples=(REAL, (0.2, 3.0)),
    expansion=lambda x, y: x / (x * x + y * y),
)
