"""The table of stabilisation rules.

A rule of the table is a pattern and a replacement, both written with difflab's operations.
Operands are rewritten first, so a pattern uses forms that are already stable
(``log(-expm1(x))`` for log(1 − eˣ)). The first rule that applies is used. Those of quotients whose
numerators are Taylor remainders are in `difflab.stabilisation.remainders`.

Sources: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., ch. 1 and 2;
M. Mächler, Accurately Computing log(1 − exp(−|a|)), 2012; P. Blanchard, D. J. Higham and
N. J. Higham, Accurately Computing the Log-Sum-Exp and Softmax Functions, 2021.
"""

from __future__ import annotations

from functools import partial
from typing import Any, SupportsIndex

from difflab.primitives import (
    acosh,
    asinh,
    atanh,
    cos,
    cosh,
    dhypot,
    divide,
    erf,
    erfc,
    exp,
    expm1,
    hypot,
    log,
    log1mexp,
    log1p,
    logcosh,
    power,
    sech,
    sigmoid,
    sin,
    sinh,
    sqrt,
    square_difference,
    subtract,
    tanh,
    versine,
)
from difflab.stabilisation.matching import NodeFunction, Rule
from difflab.stabilisation.remainders import REMAINDERS

__all__ = ["LOG1P", "LOGARITHM", "RATIO", "RULES", "SQUARES", "VARIANCE"]


class TableRule(Rule):
    """A rule of the table, pickled by name because its functions cannot be pickled."""

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
    danger: dict[str, Any],
    pattern: NodeFunction,
    replacement: NodeFunction,
    example: str | None = None,
) -> TableRule:
    """Return a rule of the table whose plain form, unless `example` is given, is its example."""
    return TableRule(plain, stable, why, example or plain, danger, pattern, replacement)


_difference = partial(_rule, _CANCEL)
_rounded = partial(_rule, _ROUNDED)

RULES: tuple[Rule, ...] = (
    # --- quotients of exponentials, whole functions first -------------------------------------
    TableRule(
        "(eˣ - e⁻ˣ)/(eˣ + e⁻ˣ)",
        "tanh(x)",
        "the exponentials overflow, and cancel near 0",
        "(exp(x) - exp(-x))/(exp(x) + exp(-x))",
        {"x": 800.0},
        lambda x: (2 * sinh(x)) / (exp(x) + exp(-x)),
        lambda x: tanh(x),
    ),
    TableRule(
        "sinh(x)/cosh(x)",
        "tanh(x)",
        "both overflow",
        "sinh(x)/cosh(x)",
        {"x": 800.0},
        lambda x: sinh(x) / cosh(x),
        lambda x: tanh(x),
    ),
    TableRule(
        "(eˣ - 1)/(eˣ + 1)",
        "tanh(x/2)",
        "the exponentials overflow, and cancel near 0",
        "(exp(x) - 1)/(exp(x) + 1)",
        {"x": 800.0},
        lambda x: expm1(x) / (exp(x) + 1),
        lambda x: tanh(0.5 * x),
    ),
    TableRule(
        "(1 - eˣ)/(1 + eˣ)",
        "-tanh(x/2)",
        "the exponentials overflow, and cancel near 0",
        "(1 - exp(-2*x))/(1 + exp(-2*x))",
        {"x": -400.0},
        lambda x: -expm1(x) / (1 + exp(x)),
        lambda x: -tanh(0.5 * x),
    ),
    _difference(
        "(eˣ - e⁻ˣ)/2",
        "sinh(x)",
        {"x": 1e-9},
        lambda x: (2 * sinh(x)) / 2,
        lambda x: sinh(x),
        "(exp(x) - exp(-x))/2",
    ),
    TableRule(
        "x/sqrt(x² + y²)",
        "the derivative of hypot(x, y)",
        "the derivative is a difference of nearly equal numbers",
        "x/sqrt(x^2 + y^2)",
        {"x": 1.0, "y": 1e-9},
        lambda x, y: x / hypot(x, y),
        lambda x, y: dhypot(x, y),
    ),
    RATIO,
    # --- logarithms ---------------------------------------------------------------------------
    TableRule(
        "log(1 - eˣ)",
        "log1mexp(x)",
        "1 - eˣ cancels for small x, and is 1 for large negative x",
        "log(1 - exp(x))",
        {"x": -1e-12},
        lambda x: log(-expm1(x)),
        lambda x: log1mexp(x),
    ),
    TableRule(
        "log(eˣ - 1)",
        "x + log1mexp(-x)",
        "the exponential overflows, and cancels near 0",
        "log(exp(x) - 1)",
        {"x": 800.0},
        lambda x: log(expm1(x)),
        lambda x: x + log1mexp(-x),
    ),
    TableRule(
        "log(cosh(x))",
        "logcosh(x)",
        "cosh overflows, and is 1 near 0",
        "log(cosh(x))",
        {"x": 800.0},
        lambda x: log(cosh(x)),
        lambda x: logcosh(x),
    ),
    LOGARITHM,
    _rounded(
        "log((1 + x)/(1 - x))",
        "2·atanh(x)",
        {"x": 1e-12},
        lambda x: log((1 + x) / (1 - x)),
        lambda x: 2 * atanh(x),
    ),
    TableRule(
        "log(x + sqrt(x² + 1))",
        "asinh(x)",
        "the sum cancels for negative x and is 1 near 0",
        "log(x + sqrt(x^2 + 1))",
        {"x": -1e5},
        lambda x: log(x + hypot(x, 1)),
        lambda x: asinh(x),
    ),
    TableRule(
        "log(x + sqrt(x² - 1))",
        "acosh(x)",
        "the square overflows, and the sum is 1 near 1",
        "log(x + sqrt(x^2 - 1))",
        {"x": 1e200},
        lambda x: log(x + sqrt(square_difference(x, 1))),
        lambda x: acosh(x),
    ),
    _rounded("log(1 + x)", "log1p(x)", {"x": 1e-12}, lambda x: log(1 + x), lambda x: log1p(x)),
    _rounded("log(1 - x)", "log1p(-x)", {"x": 1e-12}, lambda x: log(1 - x), lambda x: log1p(-x)),
    LOG1P,
    # --- differences --------------------------------------------------------------------------
    VARIANCE,
    _difference(
        "eˣ - 1", "expm1(x)", {"x": 1e-12}, lambda x: exp(x) - 1, lambda x: expm1(x), "exp(x) - 1"
    ),
    _difference(
        "1 - eˣ", "-expm1(x)", {"x": 1e-12}, lambda x: 1 - exp(x), lambda x: -expm1(x), "1 - exp(x)"
    ),
    _difference(
        "eˣ - e⁻ˣ",
        "2·sinh(x)",
        {"x": 1e-9},
        lambda x: exp(x) - exp(-x),
        lambda x: 2 * sinh(x),
        "exp(x) - exp(-x)",
    ),
    _difference(
        "1 - cos(x)",
        "versine(x) = 2·sin(x/2)²",
        {"x": 1e-6},
        lambda x: 1 - cos(x),
        lambda x: versine(x),
    ),
    _difference(
        "cos(x) - 1",
        "-versine(x) = -2·sin(x/2)²",
        {"x": 1e-6},
        lambda x: cos(x) - 1,
        lambda x: -versine(x),
    ),
    _difference(
        "1 - cos(x)²",
        "sin(x)²",
        {"x": 1e-6},
        lambda x: 1 - cos(x) ** 2,
        lambda x: sin(x) ** 2,
        "1 - cos(x)^2",
    ),
    _difference(
        "1 - sin(x)²",
        "cos(x)²",
        {"x": 1.5707},
        lambda x: 1 - sin(x) ** 2,
        lambda x: cos(x) ** 2,
        "1 - sin(x)^2",
    ),
    _difference(
        "1 - tanh(x)²",
        "sech(x)²",
        {"x": 20.0},
        lambda x: 1 - tanh(x) ** 2,
        lambda x: sech(x) ** 2,
        "1 - tanh(x)^2",
    ),
    TableRule(
        "x² - y²",
        "square_difference(x, y) = (x - y)·(x + y)",
        "the squares are rounded before nearly equal numbers are subtracted",
        "x^2 - y^2",
        {"x": 1.0000001, "y": 1.0},
        lambda x, y: x**2 - y**2,
        lambda x, y: square_difference(x, y),
    ),
    _difference(
        "1 - sigmoid(x)",
        "sigmoid(-x)",
        {"x": 30.0},
        lambda x: 1 - sigmoid(x),
        lambda x: sigmoid(-x),
    ),
    _difference(
        "1 - tanh(x)",
        "2·sigmoid(-2x)",
        {"x": 15.0},
        lambda x: 1 - tanh(x),
        lambda x: 2 * sigmoid(-2 * x),
    ),
    _difference("1 - erf(x)", "erfc(x)", {"x": 5.0}, lambda x: 1 - erf(x), lambda x: erfc(x)),
    _difference("1 - erfc(x)", "erf(x)", {"x": 1e-9}, lambda x: 1 - erfc(x), lambda x: erf(x)),
    # --- roots --------------------------------------------------------------------------------
    _difference(
        "sqrt(x² + 1) - 1",
        "x·(x/(hypot(x, 1) + 1))",
        {"x": 1e-7},
        lambda x: hypot(x, 1) - 1,
        lambda x: x * (x / (hypot(x, 1) + 1)),
        "sqrt(1 + x^2) - 1",
    ),
    _difference(
        "sqrt(1 + x) - 1",
        "x/(sqrt(1 + x) + 1)",
        {"x": 1e-12},
        lambda x: sqrt(1 + x) - 1,
        lambda x: x / (sqrt(1 + x) + 1),
    ),
    _difference(
        "1 - sqrt(1 - x²)",
        "x·(x/(1 + sqrt(1 - x²)))",
        {"x": 1e-7},
        lambda x: 1 - sqrt(square_difference(1, x)),
        lambda x: x * (x / (1 + sqrt(square_difference(1, x)))),
        "1 - sqrt(1 - x^2)",
    ),
    _difference(
        "1 - sqrt(1 - x)",
        "x/(1 + sqrt(1 - x))",
        {"x": 1e-12},
        lambda x: 1 - sqrt(1 - x),
        lambda x: x / (1 + sqrt(1 - x)),
    ),
    _difference(
        "sqrt(x + a) - sqrt(x)",
        "a/(sqrt(x + a) + sqrt(x))",
        {"x": 1e14},
        lambda x, a: sqrt(x + a) - sqrt(x),
        lambda x, a: a / (sqrt(x + a) + sqrt(x)),
        "sqrt(x + 1) - sqrt(x)",
    ),
    _difference(
        "sqrt(a) - sqrt(b)",
        "(a - b)/(sqrt(a) + sqrt(b))",
        {"a": 2.0000000001, "b": 2.0},
        lambda a, b: sqrt(a) - sqrt(b),
        lambda a, b: (a - b) / (sqrt(a) + sqrt(b)),
    ),
    SQUARES,
    *(_difference(*entry) for entry in REMAINDERS),
)
