"""Elementary functions of expansions, under mpmath's names: the series are FLINT's.

Where FLINT has no series of a function, it is made of others by operations on whole series:
exponentials, a quotient, the reversion of the inverse function's series.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

from difflab.balls.jets import (
    TERMS,
    Fault,
    Jet,
    ObstacleKind,
    composed,
    integer_power,
    jet,
    sign_of,
    terms,
    worse,
)
from difflab.balls.library import (
    LONGEST,
    Ball,
    Series,
    arb,
    arb_series,
    expanded,
    hull,
    on_ball,
    shown,
    whole,
)

mpf = jet

SHARP = 60
"""Correct bits of a series' constant term above which the value is not computed separately."""


def analytic(
    series: Series,
    value: Callable[[Ball], Ball],
    name: str,
    kind: ObstacleKind = "undecided",
    domain: str = "",
    more: int = 0,
) -> Callable[[Any], Jet]:
    """Return a function of an expansion.

    Parameters
    ----------
    series : callable
        Its series at ``arb_series([value, 1])``.
    value : callable
        Its value.
    name, domain : str
        For messages: the function, and where it is analytic.
    kind : str
        The obstacle outside that domain.
    more : int
        How many terms `series` loses.
    """

    def function(argument: Any) -> Jet:
        x = jet(argument)
        at = x.value if type(x.value) is arb else arb(x.value)
        if x.slopes:
            coefficients = expanded(series, at, terms(x), more)
            if not coefficients[0].rel_accuracy_bits() > SHARP:
                coefficients[0] = on_ball(value, at)
        else:
            coefficients = [on_ball(value, at)]
        for entry in coefficients:
            if not entry.is_finite():
                return _faulty(x, at, coefficients[0])
        return composed(x, coefficients)

    def _faulty(x: Jet, at: Ball, value: Ball) -> Jet:
        where = f"{name} is analytic for {domain}" if domain else f"{name} could not be bounded"
        fault = Fault(kind, f"{where}; its argument is {shown(at)}", at.is_exact())
        if not at.is_finite():
            fault = Fault("undecided", f"the argument of {name} is not known")
        return Jet(value, fault=worse(x.fault, fault))

    return function


def _flint(name: str, kind: ObstacleKind = "undecided", domain: str = "") -> Callable[[Any], Jet]:
    """Return a function that FLINT has on balls and on series."""
    value = getattr(arb, name)
    return analytic(getattr(arb_series, name), value, name, kind, domain)


def of_derivatives(
    derivative: Callable[[Ball, int], Ball], name: str, domain: str = ""
) -> Callable[[Any], Jet]:
    """Return a function of an expansion, of which ``derivative(x, k)`` is the k-th derivative."""

    def series(s: Any) -> Any:
        return arb_series([derivative(s[0], k) / factorial(k) for k in range(s.prec)], s.prec)

    kind: ObstacleKind = "edge" if domain else "undecided"
    return analytic(series, lambda v: derivative(v, 0), name, kind, domain)


def by_inverse(forward: Series, backward: Callable[[Ball], Ball]) -> Series:
    """Return the series of a function by reversion of its inverse function's."""

    def series(s: Any) -> Any:
        at = backward(s[0])
        coefficients = forward(arb_series([at, 1], TERMS))
        if not at.is_finite() or coefficients[1].contains(0):
            return arb_series([at, arb.nan(), arb.nan()], TERMS)
        shifted = arb_series([0, *(coefficients[k] for k in range(1, TERMS))], TERMS)
        return shifted.reversion() + at

    return series


def _sinh(s: Any) -> Any:
    return (s.exp() - (-s).exp()) / 2


def _cosh(s: Any) -> Any:
    return (s.exp() + (-s).exp()) / 2


# For a large argument these use exponentials that underflow, not ones that overflow.
def _tanh(s: Any) -> Any:
    if s[0].mid() > 0:
        return 2 * ((-2 * s).exp() + 1).inv() - 1
    return 1 - 2 * ((2 * s).exp() + 1).inv()


def _sech(s: Any) -> Any:
    decay = (-s if s[0].mid() > 0 else s).exp()
    return 2 * decay * (1 + decay * decay).inv()


def _sigmoid(s: Any) -> Any:
    if s[0].mid() > 0:
        return (1 + (-s).exp()).inv()
    return s.exp() * (1 + s.exp()).inv()


def _log_cosh(s: Any) -> Any:
    size = s if s[0].mid() > 0 else -s
    if size[0].mid() < 1:
        return _cosh(s).log()
    return size + (1 + (-2 * size).exp()).log() - arb.const_log2()


def _log_cosh_value(v: Ball) -> Ball:
    if abs(v.mid()) < 1:
        half = (v / 2).sinh()
        return (2 * half * half).log1p()
    return abs(v) + (-2 * abs(v)).exp().log1p() - arb.const_log2()


def _softplus(s: Any) -> Any:
    return s + (1 + (-s).exp()).log() if s[0].mid() > 0 else (1 + s.exp()).log()


def _softplus_value(v: Ball) -> Ball:
    return v + (-v).exp().log1p() if v.mid() > 0 else v.exp().log1p()


def _log_gamma(s: Any) -> Any:
    """The series of ln|Γ|."""
    if s[0] > 0:
        return s.lgamma()
    reciprocal = s.rgamma()
    return -(reciprocal if reciprocal[0] > 0 else -reciprocal).log()


def _polygamma(order: int) -> Callable[[Any], Jet]:
    more = order + 1

    def series(s: Any) -> Any:
        derivative = _log_gamma(s)
        for _ in range(more):
            derivative = derivative.derivative()
        return derivative

    return analytic(
        series, lambda v: expanded(series, v, 1, more)[0], "polygamma", "pole", POLES, more
    )


POLES = "x not 0, -1, -2, …"
UNIT = "-1 < x < 1"

exp = _flint("exp")
expm1 = analytic(lambda s: s.exp() - 1, lambda v: v.expm1(), "expm1")
natural = analytic(arb_series.log, arb.log, "ln", "edge", "x > 0")
log1p = analytic(lambda s: (1 + s).log(), lambda v: v.log1p(), "log1p", "edge", "x > -1")
sqrt = _flint("sqrt", "edge", "x > 0")
sin = _flint("sin")
cos = _flint("cos")
tan = _flint("tan", "pole", "cos(x) ≠ 0")
asin = _flint("asin", "edge", UNIT)
acos = _flint("acos", "edge", UNIT)
atan = _flint("atan")
sinh = analytic(_sinh, lambda v: v.sinh(), "sinh")
cosh = analytic(_cosh, lambda v: v.cosh(), "cosh")
tanh = analytic(_tanh, lambda v: v.tanh(), "tanh")
sech = analytic(_sech, lambda v: v.sech(), "sech")
sigmoid = analytic(_sigmoid, lambda v: _sigmoid(arb_series([v], 1))[0], "sigmoid")
logcosh = analytic(_log_cosh, _log_cosh_value, "logcosh")
asinh = analytic(by_inverse(_sinh, lambda v: v.asinh()), lambda v: v.asinh(), "asinh")
acosh = analytic(
    by_inverse(_cosh, lambda v: v.acosh()), lambda v: v.acosh(), "acosh", "edge", "x > 1"
)
atanh = analytic(by_inverse(_tanh, lambda v: v.atanh()), lambda v: v.atanh(), "atanh", "edge", UNIT)
softplus = analytic(_softplus, _softplus_value, "softplus")
erf = _flint("erf")
erfc = _flint("erfc")
derf = analytic(
    lambda s: s.erf().derivative(), lambda v: arb_series([v, 1], 2).erf()[1], "derf", more=1
)
gamma = _flint("gamma", "pole", POLES)
loggamma = analytic(
    _log_gamma, lambda v: _log_gamma(arb_series([v], 1))[0], "loggamma", "pole", POLES
)
digamma = analytic(
    lambda s: _log_gamma(s).derivative(), lambda v: v.digamma(), "digamma", "pole", POLES, 1
)


def log(x: Any, base: int | None = None) -> Jet:
    """Return the logarithm, the natural one unless a base is given."""
    logarithm = natural(x)
    return logarithm if base is None else logarithm / natural(base)


def log10(x: Any) -> Jet:
    """Return the decimal logarithm."""
    return log(x, 10)


def logaddexp(one: Any, two: Any) -> Jet:
    """Return log(eᵃ + eᵇ)."""
    a, b = jet(one), jet(two)
    if arb(a.value).mid() < arb(b.value).mid():
        a, b = b, a
    return a + softplus(b - a)


def within(
    function: Callable[..., Jet], outside: Callable[..., bool], name: str, domain: str
) -> Callable[..., Jet]:
    """Return a function that is nan outside of its domain, where FLINT's is continued.

    Parameters
    ----------
    function : callable
        The function of expansions.
    outside : callable
        Whether balls of the arguments are outside of the domain for certain.
    name, domain : str
        For messages.
    """

    def guarded(*arguments: Any) -> Jet:
        jets = [jet(argument) for argument in arguments]
        balls = [arb(argument.value) for argument in jets]
        if not outside(*balls):
            return function(*arguments)
        at = ", ".join(map(shown, balls))
        fault: Fault | None = Fault("edge", f"{name} is defined for {domain}, not for {at}", True)
        for argument in jets:
            fault = worse(argument.fault, fault)
        return Jet(arb.nan(), fault=fault)

    return guarded


def entr(argument: Any) -> Jet:
    """Return -x log x, 0 at x = 0, where its slope is infinite."""
    x = jet(argument)
    if x.value == 0:
        fault = Fault("edge", "entr has an infinite slope at 0", True)
        return Jet(arb(0), fault=worse(x.fault, fault) if x.varies else x.fault)
    return -x * natural(x)


def _times_logarithm(name: str, logarithm: Callable[[Any], Jet]) -> Callable[[Any, Any], Jet]:
    """Return x·log z, 0 where x is 0."""

    def product(factor: Any, argument: Any) -> Jet:
        x, z = jet(factor), jet(argument)
        slope, is_zero = x * logarithm(z), x.value == 0
        if arb(slope.value).is_finite() or not is_zero or arb(z.value).is_nan():
            return slope
        reason = f"the slope of {name} is a logarithm, whose argument is {shown(arb(z.value))}"
        return Jet(
            arb(0), fault=worse(slope.fault, Fault("edge", reason, True)) if x.varies else x.fault
        )

    return product


xlogy = _times_logarithm("xlogy", natural)
xlog1py = _times_logarithm("xlog1py", log1p)


def polygamma(order: Any, x: Any) -> Jet:
    """Return the derivative of digamma of a constant order."""
    constant = jet(order)
    k = None if constant.varies else whole(constant.value)
    if k is None or not 0 <= k <= LONGEST - 5:
        reason = f"the order of polygamma is {shown(constant.value)}"
        return Jet(arb.nan(), fault=Fault("undecided", reason))
    return digamma(x) if k == 0 else _polygamma(k)(x)


def power(x: Any, exponent: Any) -> Jet:
    """Return xᵖ on x > 0; for an integer constant p for every x, without a pole."""
    x, p = jet(x), jet(exponent)
    count = None if p.varies else whole(p.value)
    if count is not None:
        return integer_power(x, count)
    base, at = arb(x.value), arb(p.value)
    if base > 0:
        if p.varies:
            return exp(p * natural(x))
        return analytic(lambda s: s**at, lambda v: v**at, "power")(x)
    value, integer = arb.nan(), whole(p.value)
    if integer is not None and (base < 0 or at > 0):
        value = base**integer
    elif base == 0 and at > 0:
        value = arb(0)
    fault = Fault(
        "edge",
        f"a power is analytic for a base above 0; its base is {shown(base)}",
        base.is_exact() and at.is_exact(),
    )
    if not value.is_finite() or x.varies or p.varies:
        return Jet(value, fault=worse(worse(x.fault, p.fault), fault))
    return Jet(value)


def dpower(x: Any, exponent: Any) -> Jet:
    """Return p xᵖ⁻¹, and 0 for p = 0."""
    p = jet(exponent)
    if whole(p.value) == 0 and not p.varies:
        return Jet(arb(0))
    return p * power(x, p - 1)


def dpower_exponent(base: Any, exponent: Any) -> Jet:
    """Return xᵖ log x, and its limit 0 at x = 0 for p > 0."""
    x, p = jet(base), jet(exponent)
    powered = power(x, p)
    if x.value == 0 and p.value > 0:
        return powered
    return powered * natural(x)


def dhypot(one: Any, two: Any) -> Jet:
    """Return a/√(a² + b²), and 0 at the origin."""
    a = jet(one)
    root = hypot(a, two)
    if root.value == 0:
        fault = Fault("jump", "the slope of hypot jumps at the origin", True)
        return Jet(arb(0), fault=fault if root.varies else None)
    return a / root


def cbrt(argument: Any) -> Jet:
    """Return the real cube root."""
    x = jet(argument)
    sign = sign_of(x)
    if sign == -1:
        return -cbrt(-x)
    if sign == 1:
        third = arb(1) / 3
        return analytic(lambda s: s**third, lambda v: v.root(3), "cbrt")(x)
    at = arb(x.value)
    value = hull([-_cube_root(-at.lower()), _cube_root(at.upper())])
    fault = Fault(
        "edge", f"cbrt has an infinite slope at 0; its argument is {shown(at)}", sign == 0
    )
    return Jet(value, fault=worse(x.fault, fault) if x.varies else None)


def _cube_root(v: Ball) -> Ball:
    return v.root(3) if v > 0 else arb(0) if v == 0 else -((-v).root(3))


def hypot(a: Any, b: Any) -> Jet:
    """Return √(a² + b²)."""
    return root_of_squares(jet(a) ** 2 + jet(b) ** 2)


def root_of_squares(squares: Jet) -> Jet:
    """Return the square root of a sum of squares, which has a kink at 0."""
    sign = sign_of(squares)
    if sign == 1:
        return sqrt(squares)
    at = arb(squares.value)
    value = arb(0) if sign == 0 else arb(0).union(at.upper().sqrt())
    if not at.is_finite():
        return Jet(arb.nan(), fault=squares.fault)
    fault = Fault("kink", f"the root of a sum of squares, which is {shown(at)}", sign == 0)
    return Jet(value, fault=worse(squares.fault, fault) if squares.varies else None)


def atan2(y: Any, x: Any) -> Jet:
    """Return the angle of (x, y) between -π and π."""
    y, x = jet(y), jet(x)
    above, right = sign_of(y), sign_of(x)
    if right == 1:
        return atan(y / x)
    if above in (1, -1):
        return half_turn() * above - atan(x / y)
    if right == -1 and above == 0 and not y.varies:
        return half_turn() * 2
    known = above == 0 and right is not None
    value = arb(0) if known and right == 0 else arb.pi() * arb(0, 1)
    if known and right == -1:
        value = arb.pi()
    fault = Fault(
        "jump",
        f"atan2 jumps at y = 0 for x ≤ 0; y is {shown(y.value)} and x is {shown(x.value)}",
        known,
    )
    return Jet(value, fault=worse(worse(x.fault, y.fault), fault))


def half_turn() -> Jet:
    """Return π/2."""
    return Jet(arb.pi() / 2)
