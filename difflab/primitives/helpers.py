"""Helper functions of printed code that Python's `math` and C99 lack.

A row's code template may call them; printed code includes the definitions of those it uses.
They are accurate where a single expression over `math` is not: in the tails, and at nan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["PYTHON", "C", "used"]

PYTHON: dict[str, str] = {
    "clip": """\
def clip(x, low, high):
    y = x if x > low or x != x else low
    return y if y < high or y != y else high""",
    "sigmoid": """\
def sigmoid(x):
    decay = exp(x if x < 0.0 else -x)
    return (decay if x < 0.0 else 1.0) / (1.0 + decay)""",
    "dsigmoid": """\
def dsigmoid(x):
    return sigmoid(x) * sigmoid(-x)""",
    "softplus": """\
def softplus(x):
    return (x if x > 0.0 else 0.0) + log1p(exp(-x if x > 0.0 else x))""",
    "dlog": """\
def dlog(x):
    return 1.0 / x if x >= 0.0 else nan""",
    "dlog1mexp": """\
def dlog1mexp(x):
    return exp(x) / expm1(x) if x <= 0.0 else nan""",
}
"""Python functions of floats, over `math` and each other, in an order that defines before use."""

C: dict[str, str] = {
    "maximum": """\
static double maximum(double a, double b)
{
    return a > b || a != a ? a : b;
}""",
    "minimum": """\
static double minimum(double a, double b)
{
    return a < b || a != a ? a : b;
}""",
    "modulo": """\
static double modulo(double a, double b)
{
    const double rest = fmod(a, b);
    return rest == 0.0 ? copysign(0.0, b) : (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}""",
    "sigmoid": """\
static double sigmoid(double x)
{
    const double decay = exp(x < 0.0 ? x : -x);
    return (x < 0.0 ? decay : 1.0) / (1.0 + decay);
}""",
    "dsigmoid": """\
static double dsigmoid(double x)
{
    return sigmoid(x) * sigmoid(-x);
}""",
    "logaddexp": """\
static double logaddexp(double a, double b)
{
    return a == b ? a + 0.6931471805599453 : (a > b ? a : b) + log1p(exp(-fabs(a - b)));
}""",
    "softplus": """\
static double softplus(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}""",
    "dlog": """\
static double dlog(double x)
{
    return x >= 0.0 ? 1.0 / x : NAN;
}""",
    "dlog1mexp": """\
static double dlog1mexp(double x)
{
    return x <= 0.0 ? exp(x) / expm1(x) : NAN;
}""",
}
"""C functions, over C99's and each other, in an order that defines before use."""

_WORD = re.compile(r"[A-Za-z_]\w*")


def used(texts: Iterable[str], helpers: dict[str, str]) -> dict[str, str]:
    """Return the helpers that `texts` call, and those that these call, in order.

    Examples
    --------
    >>> list(used(["dsigmoid({0}) + sin({1})"], PYTHON))
    ['sigmoid', 'dsigmoid']
    """
    words = {word for text in texts for word in _WORD.findall(text)}
    for name in reversed(helpers):
        if name in words:
            words |= set(_WORD.findall(helpers[name]))
    return {name: text for name, text in helpers.items() if name in words}
