"""Inverse functions in printed C and Python, which have none: by iterations from a close value.

`erfinv` takes two steps of Halley's method with C's erf and erfc from S. Winitzki's approximation
(2008); `lambertw` is its kernel, written out.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

__all__ = ["ERFINV", "ERFINV_PYTHON", "lambertw_c", "lambertw_python", "wrapped"]

_ROOT = math.sqrt(math.pi) / 2
_WINITZKI = 0.147


def _horner(coefficients: Sequence[float], x: str) -> str:
    """Return a polynomial as nested products."""
    text = repr(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        text = f"{coefficient!r} + {x} * ({text})"
    return text


def wrapped(text: str) -> str:
    """Return a statement over several lines, indented as in the body of a function."""
    return textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="        ")


def _halley(step: int) -> str:
    """Return the definition of the next value, from yₖ."""
    y, u = f"y{step}", f"u{step}"
    gap = f"size < 0.5 ? erf({y}) - size : q - erfc({y})"
    return f"""\
    const double {u} =
        ({gap}) * ({_ROOT!r} * exp({y} * {y}));
    const double y{step + 1} = {y} - {u} / (1.0 + {y} * {u});"""


ERFINV = f"""\
static double erfinv(double x)
{{
    const double size = fabs(x);
    const double q = 1.0 - size;
    const double l = log(q * (1.0 + size));
    const double t = {2 / (math.pi * _WINITZKI)!r} + 0.5 * l;
    const double far = sqrt(sqrt(t * t - l / {_WINITZKI!r}) - t);
    const double y0 = size < 0.1 ? {_ROOT!r} * size : far;
{_halley(0)}
{_halley(1)}
    const double y = x < 0.0 ? -y2 : y2;
    return size < 1.0 ? y : size == 1.0 ? x / q : NAN;
}}"""

ERFINV_PYTHON = f"""\
def erfinv(x):
    size = fabs(x)
    q = 1.0 - size
    if not size < 1.0:
        return copysign(inf, x) if size == 1.0 else nan
    logarithm = log(q * (1.0 + size))
    t = {2 / (math.pi * _WINITZKI)!r} + 0.5 * logarithm
    y = sqrt(sqrt(t * t - logarithm / {_WINITZKI!r}) - t) if size >= 0.1 else {_ROOT!r} * size
    for _ in range(2):
        gap = erf(y) - size if size < 0.5 else q - erfc(y)
        step = gap * ({_ROOT!r} * exp(y * y))
        y -= step / (1.0 + y * step)
    return copysign(y, x)"""


def _fritsch(step: int) -> str:
    """Return the definition of the next value, from wₖ."""
    w, r, s, q = (f"{letter}{step}" for letter in "wrsq")
    return f"""\
    const double {r} = log(x / {w}) - {w};
    const double {s} = 1.0 + {w};
    const double {q} = 2.0 * {s} * ({s} + {2 / 3!r} * {r});
    const double w{step + 1} = {w} * (1.0 + {r} / {s} * (({q} - {r}) / ({q} - 2.0 * {r})));"""


def lambertw_c(branch: float, rest: float, near: float, series: Sequence[float]) -> str:
    """Return Lambert's W function in C, given the constants of its kernel."""
    expansion = wrapped(f"const double close = {_horner(series, 'p')};")
    return f"""\
static double lambertw(double x)
{{
    const double p = sqrt({2 * math.e!r} * ((x + {branch!r}) + {rest!r}));
{expansion}
    const double l = log1p(x);
    const double w0 = l * (1.0 - log1p(l) / (2.0 + l));
{_fritsch(0)}
{_fritsch(1)}
    const double far = x == 0.0 || x > 1.7976931348623157e308 ? x : w2;
    return p >= {near!r} ? far : close;
}}"""


def lambertw_python(branch: float, rest: float, near: float, series: Sequence[float]) -> str:
    """Return Lambert's W function in Python, given the constants of its kernel."""
    value = wrapped(f"    return ({_horner(series, 'p')})")
    return f"""\
def lambertw(x):
    square = {2 * math.e!r} * ((x + {branch!r}) + {rest!r})
    p = sqrt(square) if square >= 0.0 else nan
    if not p >= {near!r}:
{value}
    if x == 0.0 or x == inf:
        return x
    logarithm = log1p(x)
    w = logarithm * (1.0 - log1p(logarithm) / (2.0 + logarithm))
    for _ in range(2):
        rest, slope = log(x / w) - w, 1.0 + w
        weight = 2.0 * slope * (slope + {2 / 3!r} * rest)
        w *= 1.0 + rest / slope * ((weight - rest) / (weight - 2.0 * rest))
    return w"""
