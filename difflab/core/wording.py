"""Numbers, counts and names as text in messages, tables, pictures and pages."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from difflab.errors import InputError

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


PROBLEM = "problem:"
"""Before the name of a problem of the library, where a formula is expected."""

_LISTED = 12  # names that a message lists
_COMPARED = 1000  # names among which a similar one is sought
_COMMENT = re.compile(r"#[^\n]*")


def counted(number: int, noun: str) -> str:
    """Return ``1 input``, ``2,048 inputs``.

    Examples
    --------
    >>> counted(1, "input"), counted(2048, "input")
    ('1 input', '2,048 inputs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def similar_names(
    name: object, known: Iterable[str], count: int = 1, cutoff: float = 0.6
) -> list[str]:
    """Return the known names most similar to an unknown one, at most `count`.

    Exchanged letters are the likeliest mistake: ``sni`` is sin rather than si.
    """
    from difflib import get_close_matches  # most names are known

    text = str(name)
    near = get_close_matches(text, list(islice(known, _COMPARED)), max(count, 5), cutoff)
    return sorted(near, key=lambda each: sorted(each) != sorted(text))[:count]


def did_you_mean(
    name: object,
    known: Iterable[str],
    count: int = 1,
    cutoff: float = 0.6,
    spelled: Callable[[str], str] = repr,
) -> str:
    """Return the question whether a similar name is meant; empty if none is similar.

    Examples
    --------
    >>> did_you_mean("sni", ["si", "sin", "cos"]), did_you_mean("q", ["sin", "cos"])
    ("did you mean 'sin'?", '')
    """
    near = similar_names(name, known, count, cutoff)
    return f"did you mean {' or '.join(map(spelled, near))}?" if near else ""


def unknown_name(kind: str, name: object, known: Sequence[str]) -> InputError:
    """Return the error for a name of a kind of which others are known.

    Examples
    --------
    >>> print(unknown_name("format", "cvs", ["csv", "json"]).render())
    unknown format 'cvs'; did you mean 'csv'?
    hint: one of: csv, json
    """
    guess = did_you_mean(name, known)
    listed = ", ".join(known[:_LISTED]) + (", …" if len(known) > _LISTED else "")
    message = f"unknown {kind} {name!r}" + (f"; {guess}" if guess else "")
    return InputError(message, hint=f"one of: {listed}")


def names_problem(text: str) -> bool:
    """Return whether a text names a problem of the library instead of being a formula.

    Examples
    --------
    >>> names_problem("problem:mgh/beale"), names_problem("x^2"), names_problem("problem:loss")
    (True, False, False)
    """
    return text.startswith(PROBLEM) and "/" in text and "\n" not in text


def without_comments(text: str) -> str:
    r"""Return a program without its comments, whose lines stay.

    Examples
    --------
    >>> without_comments("# Kepler\nx - e*sin(x)  # anomaly")
    '\nx - e*sin(x)  '
    """
    return _COMMENT.sub("", text)


def joined(text: str) -> str:
    r"""Return a text of several lines in one, without the comments of all lines but the last.

    Examples
    --------
    >>> joined("# Kepler\n a = sin(x)  # of the anomaly\nx - 0.1*a  # rad")
    'a = sin(x); x - 0.1*a  # rad'
    >>> joined("(\n  a\n  + b\n)")
    '(a + b)'
    """
    lines = [line.strip() for line in text.splitlines()]
    if len(lines) > 1:
        lines = [without_comments(line).rstrip() for line in lines[:-1]] + lines[-1:]
    parts: list[str] = []
    depth = 0
    for line in filter(None, lines):
        # Inside brackets a line end is a blank, and none is needed beside them.
        tight = line.startswith((")", "]")) or bool(parts and parts[-1].endswith(("(", "[")))
        if parts:
            parts.append("; " if depth <= 0 else "" if tight else " ")
        parts.append(line)
        depth += sum(map(line.count, "([")) - sum(map(line.count, ")]"))
    return "".join(parts)
