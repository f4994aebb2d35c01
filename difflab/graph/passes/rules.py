"""What stabilisation rewrites: the table of rules.

A rule of the table is a pattern and what takes its place, both written with difflab's
operations; operands are rewritten before what takes them, so a pattern is spelled in forms
that are stable already (``log(-expm1(x))`` for log(1 − eˣ)). Rules about any number of terms
are functions. The order decides: the first that applies is taken.

Sources: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., ch. 1 and 2;
M. Mächler, Accurately Computing log(1 − exp(−|a|)), 2012; P. Blanchard, D. J. Higham and
N. J. Higham, Accurately Computing the Log-Sum-Exp and Softmax Functions, 2021.
May import `matching`, `node`, `primitives`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from difflab.core.primitive import Primitive
from difflab.graph.node import Node
from difflab.graph.passes.matching import Pattern
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
    tanh,
    versine,
)

__all__ = ["RULES", "Rule"]

Form = Callable[..., Node]


@dataclass(frozen=True, eq=False)
class Rule:
    """One rewrite.

    Attributes
    ----------
    plain, stable : str
        What it finds and what it writes, for people.
    why : str
        What goes wrong with the plain form.
    example : str
        A program of the language to which it applies.
    danger : mapping of str to float or list
        A point where the example's plain form, or its derivative, is wrong.
    pattern, replacement : callable or None
        The same for the machine, with the same parameters; None where a function of
        `stabilise` does it.
    rows : tuple of Primitive
        The operations at which a rule without a pattern looks.
    """

    plain: str
    stable: str
    why: str
    example: str
    danger: Mapping[str, Any]
    pattern: Form | None = None
    replacement: Form | None = None
    rows: tuple[Primitive, ...] = ()

    @property
    def name(self) -> str:
        """The rule in one line."""
        return f"{self.plain} → {self.stable}"

    @cached_property
    def compiled(self) -> Pattern | None:
        """The pattern as a graph."""
        return None if self.pattern is None else Pattern(self.pattern)

    @property
    def roots(self) -> tuple[Primitive, ...]:
        """The operations at which the rule can apply."""
        return self.rows if self.compiled is None else self.compiled.rows


_OVERFLOW = "the exponential overflows or vanishes before the logarithm brings it back"
_CANCEL = "two nearly equal numbers are subtracted"
_ROUNDED = "1 + x rounds the digits of a small x away"

LOGARITHM = Rule(
    "log(Σeˣ), log(s·eˣ), log(softmax)",
    "logsumexp(x), log(s) + x, log_softmax",
    _OVERFLOW,
    "log(exp(a) + exp(b) + exp(c))",
    {"a": 1000.0, "b": 999.0, "c": -1000.0},
    rows=(log,),
)
LOG1P = Rule(
    "log1p(eˣ), log1p(-eˣ)",
    "softplus(x), log1mexp(x)",
    _OVERFLOW,
    "log1p(exp(x))",
    {"x": 1000.0},
    rows=(log1p,),
)
RATIO = Rule(
    "eˣ/Σeˣ, a/(1 + eˣ), eᵃ/eᵇ",
    "softmax(x), a·sigmoid(-x), exp(a - b)",
    "the sum overflows, and in reverse mode its square does at half of that",
    "1/(1 + exp(-x))",
    {"x": -700.0},
    rows=(divide,),
)
SQUARES = Rule(
    "sqrt(x² + y² + …)",
    "hypot(x, y), norm",
    "the squares overflow or vanish at half the exponents that the root has",
    "sqrt(x^2 + y^2)",
    {"x": 1e200, "y": 1e200},
    rows=(sqrt, power),
)

RULES: tuple[Rule, ...] = (
    # --- quotients of exponentials, whole functions first -------------------------------------
    Rule(
        "(eˣ - e⁻ˣ)/(eˣ + e⁻ˣ)",
        "tanh(x)",
        "the exponentials overflow, and cancel near 0",
        "(exp(x) - exp(-x))/(exp(x) + exp(-x))",
        {"x": 800.0},
        lambda x: (2 * sinh(x)) / (exp(x) + exp(-x)),
        lambda x: tanh(x),
    ),
    Rule(
        "sinh(x)/cosh(x)",
        "tanh(x)",
        "both overflow",
        "sinh(x)/cosh(x)",
        {"x": 800.0},
        lambda x: sinh(x) / cosh(x),
        lambda x: tanh(x),
    ),
    Rule(
        "(eˣ - 1)/(eˣ + 1)",
        "tanh(x/2)",
        "the exponentials overflow, and cancel near 0",
        "(exp(x) - 1)/(exp(x) + 1)",
        {"x": 800.0},
        lambda x: expm1(x) / (exp(x) + 1),
        lambda x: tanh(0.5 * x),
    ),
    Rule(
        "(1 - eˣ)/(1 + eˣ)",
        "-tanh(x/2)",
        "the exponentials overflow, and cancel near 0",
        "(1 - exp(-2*x))/(1 + exp(-2*x))",
        {"x": -400.0},
        lambda x: -expm1(x) / (1 + exp(x)),
        lambda x: -tanh(0.5 * x),
    ),
    Rule(
        "(eˣ - e⁻ˣ)/2",
        "sinh(x)",
        _CANCEL,
        "(exp(x) - exp(-x))/2",
        {"x": 1e-9},
        lambda x: (2 * sinh(x)) / 2,
        lambda x: sinh(x),
    ),
    Rule(
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
    Rule(
        "log(1 - eˣ)",
        "log1mexp(x)",
        "1 - eˣ cancels for small x, and is 1 for large negative x",
        "log(1 - exp(x))",
        {"x": -1e-12},
        lambda x: log(-expm1(x)),
        lambda x: log1mexp(x),
    ),
    Rule(
        "log(eˣ - 1)",
        "x + log1mexp(-x)",
        "the exponential overflows, and cancels near 0",
        "log(exp(x) - 1)",
        {"x": 800.0},
        lambda x: log(expm1(x)),
        lambda x: x + log1mexp(-x),
    ),
    Rule(
        "log(cosh(x))",
        "logcosh(x)",
        "cosh overflows, and is 1 near 0",
        "log(cosh(x))",
        {"x": 800.0},
        lambda x: log(cosh(x)),
        lambda x: logcosh(x),
    ),
    LOGARITHM,
    Rule(
        "log((1 + x)/(1 - x))",
        "2·atanh(x)",
        _ROUNDED,
        "log((1 + x)/(1 - x))",
        {"x": 1e-12},
        lambda x: log((1 + x) / (1 - x)),
        lambda x: 2 * atanh(x),
    ),
    Rule(
        "log(x + sqrt(x² + 1))",
        "asinh(x)",
        "the sum cancels for negative x and is 1 near 0",
        "log(x + sqrt(x^2 + 1))",
        {"x": -1e5},
        lambda x: log(x + hypot(x, 1)),
        lambda x: asinh(x),
    ),
    Rule(
        "log(x + sqrt(x² - 1))",
        "acosh(x)",
        "the square overflows, and the sum is 1 near 1",
        "log(x + sqrt(x^2 - 1))",
        {"x": 1e200},
        lambda x: log(x + sqrt(square_difference(x, 1))),
        lambda x: acosh(x),
    ),
    Rule(
        "log(1 + x)",
        "log1p(x)",
        _ROUNDED,
        "log(1 + x)",
        {"x": 1e-12},
        lambda x: log(1 + x),
        lambda x: log1p(x),
    ),
    Rule(
        "log(1 - x)",
        "log1p(-x)",
        _ROUNDED,
        "log(1 - x)",
        {"x": 1e-12},
        lambda x: log(1 - x),
        lambda x: log1p(-x),
    ),
    LOG1P,
    # --- differences --------------------------------------------------------------------------
    Rule(
        "eˣ - 1",
        "expm1(x)",
        _CANCEL,
        "exp(x) - 1",
        {"x": 1e-12},
        lambda x: exp(x) - 1,
        lambda x: expm1(x),
    ),
    Rule(
        "1 - eˣ",
        "-expm1(x)",
        _CANCEL,
        "1 - exp(x)",
        {"x": 1e-12},
        lambda x: 1 - exp(x),
        lambda x: -expm1(x),
    ),
    Rule(
        "eˣ - e⁻ˣ",
        "2·sinh(x)",
        _CANCEL,
        "exp(x) - exp(-x)",
        {"x": 1e-9},
        lambda x: exp(x) - exp(-x),
        lambda x: 2 * sinh(x),
    ),
    Rule(
        "1 - cos(x)",
        "versine(x) = 2·sin(x/2)²",
        _CANCEL,
        "1 - cos(x)",
        {"x": 1e-6},
        lambda x: 1 - cos(x),
        lambda x: versine(x),
    ),
    Rule(
        "cos(x) - 1",
        "-versine(x) = -2·sin(x/2)²",
        _CANCEL,
        "cos(x) - 1",
        {"x": 1e-6},
        lambda x: cos(x) - 1,
        lambda x: -versine(x),
    ),
    Rule(
        "1 - cos(x)²",
        "sin(x)²",
        _CANCEL,
        "1 - cos(x)^2",
        {"x": 1e-6},
        lambda x: 1 - cos(x) ** 2,
        lambda x: sin(x) ** 2,
    ),
    Rule(
        "1 - sin(x)²",
        "cos(x)²",
        _CANCEL,
        "1 - sin(x)^2",
        {"x": 1.5707},
        lambda x: 1 - sin(x) ** 2,
        lambda x: cos(x) ** 2,
    ),
    Rule(
        "1 - tanh(x)²",
        "sech(x)²",
        _CANCEL,
        "1 - tanh(x)^2",
        {"x": 20.0},
        lambda x: 1 - tanh(x) ** 2,
        lambda x: sech(x) ** 2,
    ),
    Rule(
        "x² - y²",
        "square_difference(x, y) = (x - y)·(x + y)",
        "the squares are nearly equal, and rounded",
        "x^2 - y^2",
        {"x": 1.0000001, "y": 1.0},
        lambda x, y: x**2 - y**2,
        lambda x, y: square_difference(x, y),
    ),
    Rule(
        "1 - sigmoid(x)",
        "sigmoid(-x)",
        _CANCEL,
        "1 - sigmoid(x)",
        {"x": 30.0},
        lambda x: 1 - sigmoid(x),
        lambda x: sigmoid(-x),
    ),
    Rule(
        "1 - tanh(x)",
        "2·sigmoid(-2x)",
        _CANCEL,
        "1 - tanh(x)",
        {"x": 15.0},
        lambda x: 1 - tanh(x),
        lambda x: 2 * sigmoid(-2 * x),
    ),
    Rule(
        "1 - erf(x)",
        "erfc(x)",
        _CANCEL,
        "1 - erf(x)",
        {"x": 5.0},
        lambda x: 1 - erf(x),
        lambda x: erfc(x),
    ),
    Rule(
        "1 - erfc(x)",
        "erf(x)",
        _CANCEL,
        "1 - erfc(x)",
        {"x": 1e-9},
        lambda x: 1 - erfc(x),
        lambda x: erf(x),
    ),
    # --- roots --------------------------------------------------------------------------------
    Rule(
        "sqrt(x² + 1) - 1",
        "x·(x/(hypot(x, 1) + 1))",
        _CANCEL,
        "sqrt(1 + x^2) - 1",
        {"x": 1e-7},
        lambda x: hypot(x, 1) - 1,
        lambda x: x * (x / (hypot(x, 1) + 1)),
    ),
    Rule(
        "sqrt(1 + x) - 1",
        "x/(sqrt(1 + x) + 1)",
        _CANCEL,
        "sqrt(1 + x) - 1",
        {"x": 1e-12},
        lambda x: sqrt(1 + x) - 1,
        lambda x: x / (sqrt(1 + x) + 1),
    ),
    Rule(
        "1 - sqrt(1 - x²)",
        "x·(x/(1 + sqrt(1 - x²)))",
        _CANCEL,
        "1 - sqrt(1 - x^2)",
        {"x": 1e-7},
        lambda x: 1 - sqrt(square_difference(1, x)),
        lambda x: x * (x / (1 + sqrt(square_difference(1, x)))),
    ),
    Rule(
        "1 - sqrt(1 - x)",
        "x/(1 + sqrt(1 - x))",
        _CANCEL,
        "1 - sqrt(1 - x)",
        {"x": 1e-12},
        lambda x: 1 - sqrt(1 - x),
        lambda x: x / (1 + sqrt(1 - x)),
    ),
    Rule(
        "sqrt(x + a) - sqrt(x)",
        "a/(sqrt(x + a) + sqrt(x))",
        _CANCEL,
        "sqrt(x + 1) - sqrt(x)",
        {"x": 1e14},
        lambda x, a: sqrt(x + a) - sqrt(x),
        lambda x, a: a / (sqrt(x + a) + sqrt(x)),
    ),
    Rule(
        "sqrt(a) - sqrt(b)",
        "(a - b)/(sqrt(a) + sqrt(b))",
        _CANCEL,
        "sqrt(a) - sqrt(b)",
        {"a": 2.0000000001, "b": 2.0},
        lambda a, b: sqrt(a) - sqrt(b),
        lambda a, b: (a - b) / (sqrt(a) + sqrt(b)),
    ),
    SQUARES,
)
