"""Digamma and the exponential integrals in printed C and Python, which have none.

Digamma is its asymptotic series (DLMF 5.11.2), ten steps further on for small arguments (5.5.2),
reflected for negative ones (5.5.4). E₁ is its power series (6.6.2) up to 1 and its continued
fraction (6.9.1) beyond; Ei its power series (6.6.1) up to 40 and its asymptotic series (6.12.2).
"""

from __future__ import annotations

import math

from difflab.primitives.printed_inverses import wrapped

__all__ = ["DIGAMMA", "DIGAMMA_PYTHON", "E1", "E1_PYTHON", "EI", "EI_PYTHON"]

_EULER = 0.5772156649015329
_STEPS = 10
_BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
"""B₂ₖ/(2k)."""
_NEAR, _FAR = 20, 110
"""Terms of the power series, for 16 digits up to 1 and up to 40."""
_LEVELS = 90
"""Of the continued fraction, for 16 digits from 1 on."""
_CHUNK = 15
"""Nested operations of one line."""


def _nested(name: str, first: str, step: str, last: int) -> tuple[str, str]:
    """Return lines of C for a nested expression, and the name of its value.

    ``step`` writes level `k` around ``{inner}``, the level below it; `first` is below `last`.
    """
    lines, inner = [], first
    for k in range(last, 0, -1):
        inner = step.format(inner=inner, k=float(k), odd=2.0 * k - 1.0, square=float(k * k))
        if k % _CHUNK == 1:
            part = f"{name}{k // _CHUNK}"
            lines.append(wrapped(f"const double {part} = {inner};"))
            inner = part
    return "\n".join(lines), inner


def _logarithmic(last: int, sign: str) -> tuple[str, str]:
    """Return the sum of (±x)ᵏ/(k·k!), divided by ±x."""
    step = f"(1.0 / {{k}} {sign} x / ({{k}} + 1.0) * {{inner}})"
    return _nested("s", "0.0", step, last)


_SUM = " + ".join(f"1.0 / (size + {float(k)!r})" for k in range(_STEPS - 1, 0, -1))
_SERIES = f"square * {_BERNOULLI[-1]!r}"
for _number in reversed(_BERNOULLI[:-1]):
    _SERIES = f"square * ({_number!r} + {_SERIES})"

DIGAMMA = f"""\
static double digamma(double x)
{{
    const double turn = x - floor(x + 0.5);
    const double size = x < 0.0 ? 1.0 - x : x;
{wrapped(f"const double steps = size < {_STEPS}.0 ? {_SUM} + 1.0 / size : 0.0;")}
    const double far = size < {_STEPS}.0 ? size + {_STEPS}.0 : size;
    const double square = 1.0 / (far * far);
{wrapped(f"const double series = {_SERIES};")}
    const double right = log(far) - 0.5 / far - series - steps;
    const double left = turn == 0.0 ? NAN : right - {math.pi!r} / tan({math.pi!r} * turn);
    return x < 0.0 ? left : right;
}}"""

DIGAMMA_PYTHON = f"""\
def digamma(x):
    if x < 0.0:
        turn = x - floor(x + 0.5)
        return digamma(1.0 - x) - {math.pi!r} / tan({math.pi!r} * turn) if turn else nan
    steps = sum(1.0 / (x + k) for k in range({_STEPS - 1}, -1, -1)) if x < {_STEPS}.0 else 0.0
    far = x + {_STEPS}.0 if x < {_STEPS}.0 else x
    square = 1.0 / (far * far)
{wrapped(f"series = ({_SERIES})")}
    return log(far) - 0.5 / far - series - steps"""

_NEAR_LINES, _NEAR_SUM = _logarithmic(_NEAR, "-")
_FRACTION_LINES, _FRACTION = _nested(
    "f", f"(x + {2.0 * _LEVELS + 1.0!r})", "(x + {odd} - {square} / {inner})", _LEVELS
)

E1 = f"""\
static double e1(double x)
{{
{_NEAR_LINES}
{_FRACTION_LINES}
    return x < 0.0 ? NAN
        : x <= 1.0 ? x * {_NEAR_SUM} - {_EULER!r} - log(x) : exp(-x) / {_FRACTION};
}}"""

E1_PYTHON = f"""\
def e1(x):
    if x < 0.0:
        return nan
    if x <= 1.0:
        total = 0.0
        for k in range({_NEAR}, 0, -1):
            total = 1.0 / k - x / (k + 1.0) * total
        return x * total - {_EULER!r} - log(x)
    fraction = x + {2.0 * _LEVELS + 1.0!r}
    for k in range({_LEVELS}, 0, -1):
        fraction = x + (2.0 * k - 1.0) - k * k / fraction
    return exp(-x) / fraction"""

_FAR_LINES, _FAR_SUM = _logarithmic(_FAR, "+")
_ASYMPTOTIC_LINES, _ASYMPTOTIC = _nested("a", "1.0", "(1.0 + {k} / x * {inner})", 40)

EI = f"""\
static double ei(double x)
{{
{_FAR_LINES}
{_ASYMPTOTIC_LINES}
    const double near = x * {_FAR_SUM} + {_EULER!r} + log(x);
    const double far = exp(0.5 * x) * ({_ASYMPTOTIC} / x) * exp(0.5 * x);
    return x < 0.0 ? -e1(-x) : x > 1.7976931348623157e308 ? x : x > 40.0 ? far : near;
}}"""

EI_PYTHON = f"""\
def ei(x):
    if x < 0.0:
        return -e1(-x)
    if x > 1.7976931348623157e308:
        return x
    total = 1.0 if x > 40.0 else 0.0
    if x > 40.0:
        for k in range(40, 0, -1):
            total = 1.0 + k / x * total
        return exp(0.5 * x) * (total / x) * exp(0.5 * x)
    for k in range({_FAR}, 0, -1):
        total = 1.0 / k + x / (k + 1.0) * total
    return x * total + {_EULER!r} + log(x)"""
