"""The logistic function, its integral, and the logarithm of a sum of exponentials."""

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
    latex="\\sigma\\left({0}\\right)",
    glyph="σ",
    samples=(REAL,),
)
dsigmoid: Primitive = Primitive(
    name="dsigmoid",
    kernel=kernels.sigmoid_derivative,
    portable=lambda xp, x: sigmoid(x) * sigmoid(-x),
    rule=elementwise(lambda t, y, x: -(t * (y * tanh_of_half(x)))),  # tanh(x/2) = σ(x) − σ(−x)
    samples=(REAL,),
    expansion=lambda x: sigmoid(x) * sigmoid(-x),
)
# It is σ(x) − σ(−x), without the cancellation near 0; its derivative is that of 2σ.
tanh_of_half: Primitive = Primitive(
    name="tanh_of_half",
    kernel=lambda xp, x: xp.tanh(0.5 * x),
    rule=elementwise(lambda t, y, x: t * (2 * dsigmoid(x))),
    samples=(REAL,),
    expansion=lambda x: tanh(0.5 * x),
)
softplus: Primitive = Primitive(
    name="softplus",
    kernel=kernels.softplus,
    rule=elementwise(lambda t, y, x: t * sigmoid(x)),
    sympy=lambda sympy, x: sympy.log(1 + sympy.exp(x)),
    mpmath=lambda mp, x: mp.log1p(mp.exp(x)),
    latex="\\ln\\left(1 + e^{{{0}}}\\right)",
    samples=(REAL,),
)
# The stabilised form of the logarithm of a sum of exponentials.
logaddexp: Primitive = Primitive(
    name="logaddexp",
    portable=lambda xp, a, b: (
        xp.where(a > b, a, b) + xp.log1p(xp.exp(-xp.abs(xp.where(a == b, 0.0, a - b))))
    ),
    kernel=kernels.logaddexp,
    rule=elementwise(
        lambda t, y, a, b: t * sigmoid(a - b),
        lambda t, y, a, b: t * sigmoid(b - a),
    ),
    sympy=lambda sympy, a, b: sympy.log(sympy.exp(a) + sympy.exp(b)),
    mpmath=lambda mp, a, b: max(a, b) + mp.log1p(mp.exp(-abs(a - b)) if a != b else 1),
    latex="\\ln\\left(e^{{{0}}} + e^{{{1}}}\\right)",
    samples=(POSITIVE, REAL),  # positive: at its zeros rounding the operands loses every digit
    commutative=True,
)
