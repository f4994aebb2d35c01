"""Exponentials, logarithms and the functions built on them."""

from __future__ import annotations

from difflab.core.apply import constant
from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import kernels
from difflab.primitives.recurrences import logarithm, reciprocal

__all__ = [
    "dlog",
    "dlog1mexp",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1mexp",
    "log1p",
    "log2",
    "log10",
]

REAL = (-3.0, 3.0)
POSITIVE = (0.2, 4.0)

exp: Primitive = Primitive(
    name="exp",
    rule=elementwise(lambda t, y, x: t * y),
    latex="e^{{{0}}}",
    samples=(REAL,),
)
exp2: Primitive = Primitive(
    name="exp2",
    rule=elementwise(lambda t, y, x: t * (y * log(constant(2, x)))),
    sympy=lambda sympy, x: 2**x,
    mpmath=lambda mp, x: mp.mpf(2) ** x,
    flint=lambda fl, x: fl.power(2, x),
    latex="2^{{{0}}}",
    samples=(REAL,),
)
expm1: Primitive = Primitive(
    name="expm1",
    rule=elementwise(lambda t, y, x: t * exp(x)),
    sympy=lambda sympy, x: sympy.exp(x) - 1,
    mpmath="expm1",
    latex="e^{{{0}}} - 1",
    samples=(REAL,),
)
log: Primitive = Primitive(
    name="log",
    rule=elementwise(lambda t, y, x: t * dlog(x)),
    names=("log", "ln"),
    latex="\\ln\\left({0}\\right)",
    glyph="ln",
    taylor=logarithm(lambda x: dlog(x)),
    samples=(POSITIVE,),
    defined="x > 0",
)
dlog: Primitive = Primitive(
    name="dlog",
    kernel=kernels.log_derivative,
    rule=elementwise(lambda t, y, x: -(t * (y * y))),
    glyph="1/x",
    taylor=reciprocal,
    samples=(POSITIVE,),
    defined="x > 0",
    expansion=lambda x: 1 / x,
)
log2: Primitive = Primitive(
    name="log2",
    rule=elementwise(lambda t, y, x: t * (dlog(x) / log(constant(2, x)))),
    sympy=lambda sympy, x: sympy.log(x) / sympy.log(2),
    mpmath=lambda mp, x: mp.log(x, 2),
    latex="\\log_2\\left({0}\\right)",
    samples=(POSITIVE,),
    defined="x > 0",
)
log10: Primitive = Primitive(
    name="log10",
    rule=elementwise(lambda t, y, x: t * (dlog(x) / log(constant(10, x)))),
    sympy=lambda sympy, x: sympy.log(x) / sympy.log(10),
    mpmath="log10",
    latex="\\log_{{10}}\\left({0}\\right)",
    samples=(POSITIVE,),
    defined="x > 0",
)
log1p: Primitive = Primitive(
    name="log1p",
    rule=elementwise(lambda t, y, x: t * dlog(1 + x)),
    sympy=lambda sympy, x: sympy.log(1 + x),
    mpmath="log1p",
    latex="\\ln\\left(1 + {0}\\right)",
    samples=((-0.7, 3.0),),
    defined="x > -1",
)
# The stabilised forms of differences of exponentials; for `log1mexp` see
# M. Mächler, Accurately Computing log(1 − exp(−|a|)), 2012.
log1mexp: Primitive = Primitive(
    name="log1mexp",
    kernel=kernels.log1mexp,
    rule=elementwise(lambda t, y, x: t * dlog1mexp(x)),
    sympy=lambda sympy, x: sympy.log(1 - sympy.exp(x)),
    mpmath=lambda mp, x: mp.log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x)),
    flint=lambda fl, x: fl.log(-fl.expm1(x)),
    latex="\\ln\\left(1 - e^{{{0}}}\\right)",
    samples=((-3.0, -0.2),),
    defined="x < 0",
)
dlog1mexp: Primitive = Primitive(
    name="dlog1mexp",
    portable=lambda xp, x: xp.where(
        x < 0, xp.exp(x) / xp.expm1(x), xp.where(x == 0, -xp.inf, xp.nan)
    ),
    kernel=kernels.log1mexp_derivative,
    rule=elementwise(lambda t, y, x: t * (y * (1 - y))),
    samples=((-3.0, -0.2),),
    defined="x < 0",
    expansion=lambda x: -1 / expm1(-x),
)
