"""Numbers as text in messages, tables, pictures and pages: one function for each quantity."""

from __future__ import annotations

import math
from collections.abc import Sequence

ABSENT = "–"
"""The text of a quantity that is unknown or does not apply."""

_PLAIN_DIGITS = 5
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def exact(value: float) -> str:
    """Return a number in its shortest form with all its digits, integers without a point.

    Examples
    --------
    >>> exact(11.652071455223084), exact(5.0), exact(1e300)
    ('11.652071455223084', '5', '1e300')
    """
    return _tidy(repr(float(value)).removesuffix(".0"))


def significant(value: complex, digits: int = 6) -> str:
    """Return a number with at most `digits` significant digits.

    Examples
    --------
    >>> significant(0.6931471805599453), significant(1e6), significant(-0.0)
    ('0.693147', '1e6', '0')
    """
    text = _tidy(f"{value:.{digits}g}")
    return "0" if text == "-0" else text


def error(value: float | None) -> str:
    """Return an error in at most seven characters.

    Examples
    --------
    >>> error(0.0), error(0.5), error(3.14159e-12), error(123456.0), error(None)
    ('0', '0.5', '3.1e-12', '1.2e5', '–')
    """
    if value is None:
        return ABSENT
    plain = not math.isfinite(value) or value == 0 or 0.01 <= abs(value) < 1000
    return f"{value:.3g}" if plain else _tidy(f"{value:.1e}")


def count(value: int | None) -> str:
    """Return an integer of any size in at most six characters.

    Examples
    --------
    >>> count(1719), count(12_345_678), count(7**5000)
    ('1719', '1.2e7', '1e4225')
    """
    if value is None:
        return ABSENT
    if abs(value) < 10**_PLAIN_DIGITS:
        return str(value)
    if abs(value) < 10**300:
        return _tidy(f"{float(value):.1e}")
    return f"1e{int(value.bit_length() * math.log10(2))}"


def seconds(value: float | None) -> str:
    """Return a time with three digits and its unit.

    Examples
    --------
    >>> seconds(2.7e-7), seconds(0.0123456), seconds(75.0), seconds(0.0009999)
    ('270 ns', '12.3 ms', '75.0 s', '1.00 ms')
    """
    if value is None or not math.isfinite(value):
        return ABSENT
    scale, unit = next((pair for pair in _TIMES if value / pair[0] >= 0.9995), _TIMES[-1])
    return f"{_three_digits(value / scale)} {unit}"


def ratio(value: float | None) -> str:
    """Return a ratio with three digits, with separators.

    Examples
    --------
    >>> ratio(0.9512), ratio(12.34), ratio(1234.5), ratio(None)
    ('0.95', '12.3', '1,234', '–')
    """
    return ABSENT if value is None else _three_digits(value)


def percent(share: float) -> str:
    """Return a share as a percentage with at most three digits.

    Examples
    --------
    >>> percent(0.5), percent(1 / 3)
    ('50 %', '33.3 %')
    """
    return f"{100 * share:.3g} %"


def rounded(value: float) -> str:
    """Return a number of at least 1 rounded to one digit, with separators.

    Examples
    --------
    >>> rounded(0.2), rounded(2345.6)
    ('1', '2,000')
    """
    if value < 1:
        return "1"
    magnitude = 10 ** math.floor(math.log10(value))
    return f"{round(value / magnitude) * magnitude:,.0f}"


def bytes_text(value: float) -> str:
    """Return a number of bytes in readable units.

    Examples
    --------
    >>> bytes_text(512), bytes_text(65536), bytes_text(8e9), bytes_text(1e30)
    ('512 bytes', '64 KiB', '7.5 GiB', '8.9e14 PiB')
    """
    unit = 0
    while value >= 1024 and unit < len(_SIZES) - 1:
        value, unit = value / 1024, unit + 1
    text = f"{value:.1e}" if value >= 1e6 else f"{value:.{min(unit, 1)}f}"
    return f"{_tidy(text).removesuffix('.0')} {_SIZES[unit]}"


def shape_text(shape: Sequence[int]) -> str:
    """Return the extents of an array.

    Examples
    --------
    >>> shape_text((4, 3))
    '4×3'
    """
    return "×".join(map(str, shape))


def _three_digits(value: float) -> str:
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{decimals}f}"


def _tidy(text: str) -> str:
    """Return ``1.7e+06`` as ``1.7e6``."""
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if mark else text
