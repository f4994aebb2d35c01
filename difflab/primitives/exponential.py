"""Exponentials, logarithms and the functions built on them."""

from __future__ import annotations

import math

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import kernels

__all__ = [
    "dlog",
    "dlog1mexp",
    "dsigmoid",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1mexp",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "sigmoid",
    "softplus",
]

REAL = (-3.0, 3.0)
POSITIVE = (0.2, 4.0)

exp: Primitive = Primitive(
    name="exp",
    arity=1,
    kernel="exp",
    rule=elementwise(lambda t, y, x: t * y),
    names=("exp",),
    sympy="exp",
    mpmath="exp",
    c="exp({0})",
    python="exp({0})",
    latex="e^{{{0}}}",
    samples=(REAL,),
)
exp2: Primitive = Primitive(
    name="exp2",
    arity=1,
    kernel="exp2",
    rule=elementwise(lambda t, y, x: t * (y * math.log(2))),
    names=("exp2",),
    sympy=lambda sympy, x: 2**x,
    mpmath=lambda mp, x: mp.mpf(2) ** x,
    c="exp2({0})",
    python="exp2({0})",
    latex="2^{{{0}}}",
    samples=(REAL,),
)
expm1: Primitive = Primitive(
    name="expm1",
    arity=1,
    kernel="expm1",
    rule=elementwise(lambda t, y, x: t * exp(x)),
    names=("expm1",),
    sympy=lambda sympy, x: sympy.exp(x) - 1,
    mpmath="expm1",
    c="expm1({0})",
    python="expm1({0})",
    latex="e^{{{0}}} - 1",
    samples=(REAL,),
)
log: Primitive = Primitive(
    name="log",
    arity=1,
    kernel="log",
    rule=elementwise(lambda t, y, x: t * dlog(x)),
    names=("log", "ln"),
    sympy="log",
    mpmath="log",
    c="log({0})",
    python="log({0})",
    latex="\\ln\\left({0}\\right)",
    samples=(POSITIVE,),
    defined="x > 0",
)
dlog: Primitive = Primitive(
    name="dlog",
    arity=1,
    kernel=kernels.log_derivative,
    rule=elementwise(lambda t, y, x: -(t * (y * y))),
    c="({0} >= 0.0 ? 1.0 / {0} : NAN)",
    python="(1.0 / {0} if {0} >= 0.0 else nan)",
    samples=(POSITIVE,),
    defined="x > 0",
    expansion=lambda x: 1 / x,
)
log2: Primitive = Primitive(
    name="log2",
    arity=1,
    kernel="log2",
    rule=elementwise(lambda t, y, x: t * (dlog(x) * (1 / math.log(2)))),
    names=("log2",),
    sympy=lambda sympy, x: sympy.log(x) / sympy.log(2),
    mpmath=lambda mp, x: mp.log(x, 2),
    c="log2({0})",
    python="log2({0})",
    latex="\\log_2\\left({0}\\right)",
    samples=(POSITIVE,),
    defined="x > 0",
)
log10: Primitive = Primitive(
    name="log10",
    arity=1,
    kernel="log10",
    rule=elementwise(lambda t, y, x: t * (dlog(x) * (1 / math.log(10)))),
    names=("log10",),
    sympy=lambda sympy, x: sympy.log(x) / sympy.log(10),
    mpmath="log10",
    c="log10({0})",
    python="log10({0})",
    latex="\\log_{{10}}\\left({0}\\right)",
    samples=(POSITIVE,),
    defined="x > 0",
)
log1p: Primitive = Primitive(
    name="log1p",
    arity=1,
    kernel="log1p",
    rule=elementwise(lambda t, y, x: t * dlog(1 + x)),
    names=("log1p",),
    sympy=lambda sympy, x: sympy.log(1 + x),
    mpmath="log1p",
    c="log1p({0})",
    python="log1p({0})",
    latex="\\ln\\left(1 + {0}\\right)",
    samples=((-0.7, 3.0),),
    defined="x > -1",
)
sigmoid: Primitive = Primitive(
    name="sigmoid",
    arity=1,
    kernel=kernels.sigmoid,
    rule=elementwise(lambda t, y, x: t * dsigmoid(x)),
    names=("sigmoid",),
    sympy=lambda sympy, x: 1 / (1 + sympy.exp(-x)),
    mpmath=lambda mp, x: 1 / (1 + mp.exp(-x)),
    c="sigmoid({0})",
    python="sigmoid({0})",
    latex="\\sigma\\left({0}\\right)",
    samples=(REAL,),
)
dsigmoid: Primitive = Primitive(
    name="dsigmoid",
    arity=1,
    kernel=kernels.sigmoid_derivative,
    rule=elementwise(lambda t, y, x: t * (y * (sigmoid(-x) - sigmoid(x)))),
    c="dsigmoid({0})",
    python="dsigmoid({0})",
    samples=(REAL,),
    expansion=lambda x: sigmoid(x) * sigmoid(-x),
)
softplus: Primitive = Primitive(
    name="softplus",
    arity=1,
    kernel=kernels.softplus,
    rule=elementwise(lambda t, y, x: t * sigmoid(x)),
    names=("softplus",),
    sympy=lambda sympy, x: sympy.log(1 + sympy.exp(x)),
    mpmath=lambda mp, x: mp.log1p(mp.exp(x)),
    c="softplus({0})",
    python="softplus({0})",
    latex="\\ln\\left(1 + e^{{{0}}}\\right)",
    samples=(REAL,),
)
# The rest is what sums and differences of exponentials become when they are stabilised; for
# `log1mexp` see M. Mächler, Accurately Computing log(1 − exp(−|a|)), 2012.
logaddexp: Primitive = Primitive(
    name="logaddexp",
    arity=2,
    kernel=kernels.logaddexp,
    rule=elementwise(
        lambda t, y, a, b: t * sigmoid(a - b),
        lambda t, y, a, b: t * sigmoid(b - a),
    ),
    names=("logaddexp",),
    sympy=lambda sympy, a, b: sympy.log(sympy.exp(a) + sympy.exp(b)),
    mpmath=lambda mp, a, b: max(a, b) + mp.log1p(mp.exp(-abs(a - b))),
    c="logaddexp({0}, {1})",
    python="(max({0}, {1}) + log1p(exp(-fabs({0} - ({1})))) if {0} != {1} else {0} + log(2.0))",
    latex="\\ln\\left(e^{{{0}}} + e^{{{1}}}\\right)",
    samples=(POSITIVE, REAL),  # positive: at its zeros rounding the operands loses every digit
    commutative=True,
)
log1mexp: Primitive = Primitive(
    name="log1mexp",
    arity=1,
    kernel=kernels.log1mexp,
    rule=elementwise(lambda t, y, x: t * dlog1mexp(x)),
    names=("log1mexp",),
    sympy=lambda sympy, x: sympy.log(1 - sympy.exp(x)),
    mpmath=lambda mp, x: mp.log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x)),
    c="({0} > -0.6931471805599453 ? log(-expm1({0})) : log1p(-exp({0})))",
    python="(log(-expm1({0})) if {0} > -0.6931471805599453 else log1p(-exp({0})))",
    latex="\\ln\\left(1 - e^{{{0}}}\\right)",
    samples=((-3.0, -0.2),),
    defined="x < 0",
)
dlog1mexp: Primitive = Primitive(
    name="dlog1mexp",
    arity=1,
    kernel=kernels.log1mexp_derivative,
    rule=elementwise(lambda t, y, x: t * (y * (1 - y))),
    c="dlog1mexp({0})",
    python="dlog1mexp({0})",
    samples=((-3.0, -0.2),),
    defined="x < 0",
    expansion=lambda x: -1 / expm1(-x),
)
