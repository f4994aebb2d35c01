"""The table of stabilisation rules.

A rule of the table is a pattern and a replacement, both formulas of the language. Operands are
rewritten first, so a pattern uses forms that are already stable (``log(-expm1(x))`` for
log(1 − eˣ)). The first rule that applies is used.

Sources: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., ch. 1 and 2;
M. Mächler, Accurately Computing log(1 − exp(−|a|)), 2012; P. Blanchard, D. J. Higham and
N. J. Higham, Accurately Computing the Log-Sum-Exp and Softmax Functions, 2021.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, SupportsIndex

from difflab.primitives import dhypot, divide, log, log1p, power, sqrt, subtract
from difflab.stabilisation.matching import Form, Rule


class TableRule(Rule):
    """A rule of the table, pickled by name: it is one object in every process."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        if rule_of_table(self.name) is self:
            return rule_of_table, (self.name,)
        return super().__reduce_ex__(protocol)


def rule_of_table(name: str) -> Rule | None:
    """Return the rule of the table with that name."""
    return next((rule for rule in RULES if rule.name == name), None)


_OVERFLOW = "the exponential overflows or underflows before the logarithm is applied"
_CANCEL = "two nearly equal numbers are subtracted"
_ROUNDED = "1 + x loses the digits of a small x to rounding"

LOGARITHM = TableRule(
    "log(Σeˣ), log(s·eˣ), log(softmax)",
    "logsumexp(x), log(s) + x, log_softmax",
    _OVERFLOW,
    "log(exp(a) + exp(b) + exp(c))",
    {"a": 1000.0, "b": 999.0, "c": -1000.0},
    rows=(log,),
)
LOG1P = TableRule(
    "log1p(eˣ), log1p(-eˣ)",
    "softplus(x), log1mexp(x)",
    _OVERFLOW,
    "log1p(exp(x))",
    {"x": 1000.0},
    rows=(log1p,),
)
RATIO = TableRule(
    "eˣ/Σeˣ, a/(1 + eˣ), eᵃ/eᵇ",
    "softmax(x), a·sigmoid(-x), exp(a - b)",
    "the sum overflows, and in reverse mode its square does at half the exponent",
    "1/(1 + exp(-x))",
    {"x": -700.0},
    rows=(divide,),
)
SQUARES = TableRule(
    "sqrt(x² + y² + …)",
    "hypot(x, y), norm",
    "the squares overflow or underflow although the root does not",
    "sqrt(x^2 + y^2)",
    {"x": 1e200, "y": 1e200},
    rows=(sqrt, power),
)
VARIANCE = TableRule(
    "mean(x²) - mean(x)²",
    "mean((x - mean(x))²)",
    _CANCEL,
    "v: [4]; mean(v^2) - mean(v)^2",
    {"v": [1e8, 100000001.0, 100000002.0, 100000004.0]},
    rows=(subtract,),
)


def _rule(
    why: str,
    plain: str,
    stable: str,
    *,
    pattern: Form | None = None,
    replacement: Form | None = None,
    example: str | None = None,
    **danger: float,
) -> TableRule:
    """Return a rule of the table; omitted forms are the plain or the stable form as shown."""
    example = example or plain
    return TableRule(plain, stable, why, example, danger, pattern or example, replacement or stable)


_difference, _rounded = partial(_rule, _CANCEL), partial(_rule, _ROUNDED)
_exponentials = partial(_rule, "the exponentials overflow, and cancel near 0")


def _both(of_sum: str, of_x: str, stable: str) -> tuple[Rule, Rule]:
    """Return the rules of ``f(x + h) - f(x)`` and of ``f(x) - f(x + h)``."""
    return (
        _difference(f"{of_sum} - {of_x}", stable, x=1.0, h=1e-12),
        _difference(f"{of_x} - {of_sum}", f"-({stable})", x=1.0, h=1e-12),
    )


def _conjugate(root: str, rest: str, written: str | None = None) -> Iterator[Rule]:
    """Yield the rules of ``±root ± q`` with a ``root`` of q² and something more, of r.

    ``root - abs(q)`` is ``rest``, in which ``{}`` stands for ``root + abs(q)``; what is added is 0
    for the sign of q that cancels, and so is its slope. ``written`` is how people write the root.
    """
    forms = (
        ("{} - q", "{} + 2*max(-q, 0)", "q", 1e8),
        ("q - {}", "-({}) - 2*max(-q, 0)", "q", 1e8),
        ("-q - {}", "-({}) - 2*max(q, 0)", "-q", -1e8),
    )
    for plain, stable, size, q in forms:
        # abs(q), whose slope at 0 is 1 instead of 0: with it the whole has the right one there.
        absolute = f"({size} + 2*max(-({size}), 0))"
        yield _difference(
            plain.format(written or root),
            stable.format(rest.format(f"({root} + abs(q))")),
            pattern=plain.format(root),
            replacement=stable.format(rest.format(f"({root} + {absolute})")),
            q=q,
            r=3.0,
        )


RULES: tuple[Rule, ...] = (
    # --- quotients of exponentials, whole functions first -------------------------------------
    _exponentials(
        "(eˣ - e⁻ˣ)/(eˣ + e⁻ˣ)",
        "tanh(x)",
        pattern="(2*sinh(x))/(exp(x) + exp(-x))",
        example="(exp(x) - exp(-x))/(exp(x) + exp(-x))",
        x=800.0,
    ),
    _rule("both overflow", "sinh(x)/cosh(x)", "tanh(x)", x=800.0),
    _exponentials(
        "(eˣ - 1)/(eˣ + 1)",
        "tanh(x/2)",
        pattern="expm1(x)/(exp(x) + 1)",
        replacement="tanh(0.5*x)",
        example="(exp(x) - 1)/(exp(x) + 1)",
        x=800.0,
    ),
    _exponentials(
        "(1 - eˣ)/(1 + eˣ)",
        "-tanh(x/2)",
        pattern="(-expm1(x))/(1 + exp(x))",
        replacement="-tanh(0.5*x)",
        example="(1 - exp(-2*x))/(1 + exp(-2*x))",
        x=-400.0,
    ),
    _difference(
        "(eˣ - e⁻ˣ)/2", "sinh(x)", pattern="(2*sinh(x))/2", example="(exp(x) - exp(-x))/2", x=1e-9
    ),
    _rule(
        "the derivative is a difference of nearly equal numbers",
        "x/sqrt(x² + y²)",
        "the derivative of hypot(x, y)",
        pattern="x/hypot(x, y)",
        replacement=lambda x, y: dhypot(x, y),
        x=1.0,
        y=1e-9,
    ),
    RATIO,
    # --- logarithms ---------------------------------------------------------------------------
    _rule(
        "1 - eˣ cancels for small x, and is 1 for large negative x",
        "log(1 - eˣ)",
        "log1mexp(x)",
        pattern="log(-expm1(x))",
        example="log(1 - exp(x))",
        x=-1e-12,
    ),
    _rule(
        "the exponential overflows, and cancels near 0",
        "log(eˣ - 1)",
        "x + log1mexp(-x)",
        pattern="log(expm1(x))",
        example="log(exp(x) - 1)",
        x=800.0,
    ),
    _rule("cosh overflows, and is 1 near 0", "log(cosh(x))", "logcosh(x)", x=800.0),
    LOGARITHM,
    _rounded("log((1 + x)/(1 - x))", "2·atanh(x)", x=1e-12),
    _rule(
        "the sum cancels for negative x and is 1 near 0",
        "log(x + sqrt(x² + 1))",
        "asinh(x)",
        pattern="log(x + hypot(x, 1))",
        x=-1e5,
    ),
    _rule(
        "the square overflows, and the sum is 1 near 1",
        "log(x + sqrt(x² - 1))",
        "acosh(x)",
        pattern="log(x + sqrt(square_difference(x, 1)))",
        x=1e200,
    ),
    _rounded("log(1 + x)", "log1p(x)", x=1e-12),
    _rounded("log(1 - x)", "log1p(-x)", x=1e-12),
    LOG1P,
    # --- differences --------------------------------------------------------------------------
    VARIANCE,
    _difference("eˣ - 1", "expm1(x)", example="exp(x) - 1", x=1e-12),
    _difference("1 - eˣ", "-expm1(x)", example="1 - exp(x)", x=1e-12),
    _difference("eˣ - e⁻ˣ", "2·sinh(x)", example="exp(x) - exp(-x)", x=1e-9),
    _difference("1 - cos(x)", "versine(x) = 2·sin(x/2)²", replacement="versine(x)", x=1e-6),
    _difference("cos(x) - 1", "-versine(x) = -2·sin(x/2)²", replacement="-versine(x)", x=1e-6),
    _difference("1 - cos(x)²", "sin(x)²", x=1e-6),
    _difference("1 - sin(x)²", "cos(x)²", x=1.5707),
    _difference("1 - tanh(x)²", "sech(x)²", x=20.0),
    _rule(
        "the squares are rounded before nearly equal numbers are subtracted",
        "x² - y²",
        "square_difference(x, y) = (x - y)·(x + y)",
        replacement="square_difference(x, y)",
        x=1.0000001,
        y=1.0,
    ),
    _difference("1 - sigmoid(x)", "sigmoid(-x)", x=30.0),
    _difference("1 - tanh(x)", "2·sigmoid(-2x)", replacement="2*sigmoid(-2*x)", x=15.0),
    _difference("1 - erf(x)", "erfc(x)", x=5.0),
    _difference("1 - erfc(x)", "erf(x)", x=1e-9),
    _difference(
        "log(1 + x) - log(1 - x)",
        "2·atanh(x)",
        pattern="log1p(x) - log1p(-x)",
        x=1e-12,
    ),
    # --- differences of a function's values ---------------------------------------------------
    *_both("1/(x + h)", "1/x", "-h/x/(x + h)"),
    *_both("1/(x - h)", "1/x", "h/x/(x - h)"),
    *_both("cos(x + h)", "cos(x)", "-2*sin(x + h/2)*sin(h/2)"),
    *_both("sin(x + h)", "sin(x)", "2*cos(x + h/2)*sin(h/2)"),
    _difference("cos(x + h) - cos(x - h)", "-2*sin(x)*sin(h)", x=1.0, h=1e-12),
    _difference("sin(x + h) - sin(x - h)", "2*cos(x)*sin(h)", x=1.0, h=1e-12),
    *_both("tan(x + h)", "tan(x)", "sin(h)/(cos(x)*cos(x + h))"),
    *_both("atan(x + h)", "atan(x)", "atan2(h, 1 + x*(x + h))"),
    *_both("cbrt(x + h)", "cbrt(x)", "h/(cbrt(x + h)^2 + cbrt(x + h)*cbrt(x) + cbrt(x)^2)"),
    # --- roots --------------------------------------------------------------------------------
    _difference(
        "sqrt(x² + 1) - 1",
        "x·(x/(hypot(x, 1) + 1))",
        pattern="hypot(x, 1) - 1",
        example="sqrt(1 + x^2) - 1",
        x=1e-7,
    ),
    _difference("sqrt(1 + x) - 1", "x/(sqrt(1 + x) + 1)", x=1e-12),
    _difference(
        "1 - sqrt(1 - x²)",
        "x·(x/(1 + sqrt(1 - x²)))",
        pattern="1 - sqrt(square_difference(1, x))",
        replacement="x*(x/(1 + sqrt(square_difference(1, x))))",
        x=1e-7,
    ),
    _difference("1 - sqrt(1 - x)", "x/(1 + sqrt(1 - x))", x=1e-12),
    _difference(
        "sqrt(x + a) - sqrt(x)",
        "a/(sqrt(x + a) + sqrt(x))",
        pattern="sqrt(x + a) - sqrt(x)",
        example="sqrt(x + 1) - sqrt(x)",
        x=1e14,
    ),
    _difference("sqrt(a) - sqrt(b)", "(a - b)/(sqrt(a) + sqrt(b))", a=2.0000000001, b=2.0),
    *_conjugate("hypot(q, r)", "r*(r/{})", "sqrt(q^2 + r^2)"),
    *_conjugate("sqrt(square_difference(q, r))", "-(r*(r/{}))", "sqrt(q^2 - r^2)"),
    *_conjugate("sqrt(q^2 + r)", "r/{}"),
    *_conjugate("sqrt(q^2 - r)", "-(r/{})"),
    SQUARES,
    # --- quotients of Taylor remainders: numerators cancel near 0, more so in each derivative ---
    _difference("(exp(x) - 1)/x", "exp_remainder(1, 0, x)", pattern="expm1(x)/x", x=1e-5),
    _difference(
        "(exp(x) - 1 - x)/x^2", "exp_remainder(2, 0, x)", pattern="(expm1(x) - x)/x^2", x=1e-5
    ),
    _difference("ln(1 + x)/x", "log_remainder(1, 0, x)", pattern="log1p(x)/x", x=1e-5),
    _difference("sin(x)/x", "cos_remainder(1, 0, x)", x=1e-5),
    _difference("tan(x)/x", "cos_remainder(1, 0, x)/cos(x)", x=1e-5),
    _difference("(1 - cos(x))/x^2", "cos_remainder(2, 0, x)", pattern="versine(x)/x^2", x=1e-5),
    _difference("(1 - cos(x))/x", "x·cos_remainder(2, 0, x)", pattern="versine(x)/x", x=1e-5),
    _difference("(x - sin(x))/x^3", "cos_remainder(3, 0, x)", x=1e-3),
    _difference("(sin(x) - x)/x^3", "-cos_remainder(3, 0, x)", x=1e-3),
    _difference("sinh(x)/x", "cosh_remainder(1, 0, x)", x=1e-5),
    _difference("(cosh(x) - 1)/x^2", "cosh_remainder(2, 0, x)", x=1e-3),
    _difference("(sinh(x) - x)/x^3", "cosh_remainder(3, 0, x)", x=1e-3),
    _difference("(x - sinh(x))/x^3", "-cosh_remainder(3, 0, x)", x=1e-3),
    _difference(
        "tanh(x)/x",
        "cosh_remainder(1, 0, x)·sech(x) for |x| < 2",
        # It overflows far out, where no digit is lost. The other form than the plain one there
        # is not rewritten again.
        replacement="where(abs(x) < 2, cosh_remainder(1, 0, x)*sech(x), (1/x)*tanh(x))",
        x=1e-5,
    ),
)
