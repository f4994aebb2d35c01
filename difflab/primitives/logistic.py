"""The logistic function and what belongs to it: its integral, and the logarithm of a sum."""

from __future__ import annotations

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import kernels
from difflab.primitives.trigonometric import tanh

__all__ = ["dsigmoid", "logaddexp", "sigmoid", "softplus", "tanh_of_half"]

REAL = (-3.0, 3.0)
POSITIVE = (0.2, 4.0)

sigmoid: Primitive = Primitive(
    name="sigmoid",
    kernel=kernels.sigmoid,
    names=("sigmoid", "expit"),
    ufunc="expit",
    rule=elementwise(lambda t, y, x: t * dsigmoid(x)),
    sympy=lambda sympy, x: 1 / (1 + sympy.exp(-x)),
    flint="sigmoid",
    latex="\\sigma\\left({0}\\right)",
    glyph="σ",
    python_function="""\
def sigmoid(x):
    decay = exp(x if x < 0.0 else -x)
    return (decay if x < 0.0 else 1.0) / (1.0 + decay)""",
    c_function="""\
static double sigmoid(double x)
{
    const double decay = exp(x < 0.0 ? x : -x);
    return (x < 0.0 ? decay : 1.0) / (1.0 + decay);
}""",
    samples=(REAL,),
)
dsigmoid: Primitive = Primitive(
    name="dsigmoid",
    kernel=kernels.sigmoid_derivative,
    rule=elementwise(lambda t, y, x: -(t * (y * tanh_of_half(x)))),  # tanh(x/2) = σ(x) − σ(−x)
    python_function="""\
def dsigmoid(x):
    return sigmoid(x) * sigmoid(-x)""",
    c_function="""\
static double dsigmoid(double x)
{
    return sigmoid(x) * sigmoid(-x);
}""",
    samples=(REAL,),
    expansion=lambda x: sigmoid(x) * sigmoid(-x),
)
# It is σ(x) − σ(−x), without the cancellation near 0; its derivative is that of 2σ.
tanh_of_half: Primitive = Primitive(
    name="tanh_of_half",
    kernel=lambda xp, x: xp.tanh(0.5 * x),
    rule=elementwise(lambda t, y, x: t * (2 * dsigmoid(x))),
    c="tanh(0.5 * ({0}))",
    samples=(REAL,),
    expansion=lambda x: tanh(0.5 * x),
)
softplus: Primitive = Primitive(
    name="softplus",
    kernel=kernels.softplus,
    rule=elementwise(lambda t, y, x: t * sigmoid(x)),
    sympy=lambda sympy, x: sympy.log(1 + sympy.exp(x)),
    mpmath=lambda mp, x: mp.log1p(mp.exp(x)),
    flint="softplus",
    latex="\\ln\\left(1 + e^{{{0}}}\\right)",
    python_function="""\
def softplus(x):
    return (x if x > 0.0 else 0.0) + log1p(exp(-x if x > 0.0 else x))""",
    c_function="""\
static double softplus(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}""",
    samples=(REAL,),
)
# What the logarithm of a sum of exponentials becomes when it is stabilised.
logaddexp: Primitive = Primitive(
    name="logaddexp",
    kernel=kernels.logaddexp,
    rule=elementwise(
        lambda t, y, a, b: t * sigmoid(a - b),
        lambda t, y, a, b: t * sigmoid(b - a),
    ),
    sympy=lambda sympy, a, b: sympy.log(sympy.exp(a) + sympy.exp(b)),
    mpmath=lambda mp, a, b: max(a, b) + mp.log1p(mp.exp(-abs(a - b)) if a != b else 1),
    flint="logaddexp",
    python="(max({0}, {1}) + log1p(exp(-fabs({0} - ({1})))) if {0} != {1} else {0} + log(2.0))",
    latex="\\ln\\left(e^{{{0}}} + e^{{{1}}}\\right)",
    c_function="""\
static double logaddexp(double a, double b)
{
    return a == b ? a + 0.6931471805599453 : (a > b ? a : b) + log1p(exp(-fabs(a - b)));
}""",
    samples=(POSITIVE, REAL),  # positive: at its zeros rounding the operands loses every digit
    commutative=True,
)
