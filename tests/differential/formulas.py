"""Random formulas over every function of the language, with points of extreme magnitudes.

A formula is drawn as bytes, some for each operation, and written as a program of the language. The
functions are read from the table; nothing is listed by hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from difflab.core.primitive import Primitive
from difflab.errors import DifflabError
from difflab.language import parse
from difflab.language.calls import CALLS
from difflab.language.scope import RESERVED
from difflab.primitives import TABLE, airy
from tests.support.orders import orders

__all__ = ["VARIABLES", "Formula", "formulas"]

PLAIN = ("x", "y", "z", "w")
VARIABLES = ("x", "e", "gamma", "w")
"""Inputs, two of them named like a constant and a function of the language."""
CONSTANTS = ("2", "0.5", "1", "0", "3", "(-1)", "1.5", "(-0.5)", "3.14", "1e-8", "40", "(-700)")
CONSTANTS = (*CONSTANTS, "1e160", "7", "(-2)", "1e-310")
EXPONENTS = ("2", "0.5", "(-1)", "3", "1.5", "(-0.5)", "0", "1", "(-2)", "2.5", "4", "7")
MAGNITUDES = (1.0, 0.5, 0.0, -1.0, 2.0, -0.0, 3.0, -2.5, 40.0, -40.0, 700.0, -800.0, 1e-8)
MAGNITUDES = (*MAGNITUDES, 1e-160, 1e154, -1e300, 5e-324, -1e-310, math.inf)
MAGNITUDES = (*MAGNITUDES, -0.0, *2 * (-math.inf, math.nan), math.nan)
FROM_MAGNITUDES = 160
"""Bytes below it stand for magnitudes, those from it on for random numbers."""
FROM_LAST, FROM_VALUES = 112, 192
"""Bytes below them stand for the last value as an operand, and for any earlier one."""
LONGEST = 9
"""Operations in one formula."""
POINTS = 10
POWERS = 5
"""Copies of the power among the words, for its exponents are many functions."""


@dataclass(frozen=True)
class Word:
    """A function or an operator: how a call of it is written."""

    template: str
    arity: int
    truth: bool = False
    orders: int = 0
    """How many of the first arguments must be whole numbers, as for polygamma."""
    power: bool = False
    """Whether the second argument is an exponent."""


@dataclass(frozen=True)
class Formula:
    """A program of the language and the points at which it is computed."""

    text: str
    points: tuple[tuple[float, ...], ...]
    choice: int
    """A number below 256 that says which checks are made."""


def _of_row(row: Primitive) -> list[Word]:
    places = ", ".join(f"{{{k}}}" for k in range(row.arity or 0))
    count = orders(row)
    words = [Word(f"{name}({places})", row.arity or 0, orders=count) for name in row.names[:1]]
    if row.infix and row.arity == 1:
        words.append(Word(f"({row.infix} {{0}})", 1, row.boolean))
    elif row.infix:
        power = row.name == "power"
        words.append(Word(f"({{0}} {row.infix} {{1}})", 2, row.boolean, power=power))
    return words


def _of_calls() -> list[Word]:
    """Return the words that are compositions and take numbers."""
    words = []
    for call in CALLS.values():
        template = f"{call.name}({', '.join(f'{{{k}}}' for k in range(call.least))})"
        try:
            function = parse(template.format(*PLAIN[: call.least]))
        except DifflabError:
            continue
        if function.output_shapes == [()] and not call.needs_list:
            words.append(Word(template, call.least))
    return words


def _words() -> list[Word]:
    """Return all words but the Airy functions, for some of which mpmath takes minutes."""
    rows = [
        row
        for row in TABLE.values()
        if row.shape is None and row.arity is not None and row.name not in airy.__all__
    ]
    words = [word for row in rows for word in _of_row(row)]
    known = list({word.template: word for word in [*words, *_of_calls()]}.values())
    return known + POWERS * [word for word in known if word.power]


WORDS = _words()
BYTES = 1 + max(word.arity for word in WORDS)
"""Bytes of one operation: its word and its operands."""


def _written(variables: int, operations: Iterable[bytes]) -> str:
    """Return the program that the bytes stand for: each line computes with those before it."""
    values = list(VARIABLES[:variables])
    lines = [f"{name}: []" for name in values if name in RESERVED]
    word = WORDS[0]
    for number, (which, *picks) in enumerate(operations):
        word = WORDS[which % len(WORDS)]
        operands = [_operand(pick, values, word.arity) for pick in picks[: word.arity]]
        for place in range(word.orders):
            operands[place] = str(picks[place - 1] % 4)
        if word.power and picks[1] < FROM_VALUES:
            operands[1] = EXPONENTS[picks[1] % len(EXPONENTS)]
        values.append(f"t{number}")
        lines.append(f"t{number} = {word.template.format(*operands)}")
    if word.truth:
        lines.append(f"where({values[-1]}, {VARIABLES[0]}, 1.5)")
    else:
        lines[-1] = lines[-1].partition(" = ")[2]
    return "; ".join(lines)


def _operand(pick: int, values: Sequence[str], arity: int) -> str:
    if pick < FROM_LAST:
        return values[-1]
    if pick < FROM_VALUES or arity == 1:
        return values[-1 - pick % len(values)]
    return CONSTANTS[pick % len(CONSTANTS)]


def _coordinate(byte: int, place: int) -> float:
    if byte < FROM_MAGNITUDES:
        return MAGNITUDES[byte % len(MAGNITUDES)]
    share = (byte * 0.6180339887498949 + place * 0.7548776662466927) % 1.0
    return round(8 * share - 4, 6) if byte % 4 else 10 ** (24 * share - 12)


def _formula(code: bytes, coordinates: bytes) -> Formula:
    numbers = [_coordinate(byte, place) for place, byte in enumerate(coordinates)]
    size = len(VARIABLES)
    points = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    points[-1] += [1.0] * (size - len(points[-1]))
    operations = [code[start : start + BYTES] for start in range(2, len(code), BYTES)]
    operations[-1] = operations[-1].ljust(BYTES, b"\0")
    text = _written(1 + code[1] % size, operations)
    return Formula(text, tuple(map(tuple, points)), code[0])


_MOST = 2 + BYTES * LONGEST
_CODES = st.one_of(  # one operation, some, and many
    st.binary(min_size=2 + BYTES, max_size=2 + BYTES),
    st.binary(min_size=2 + BYTES, max_size=_MOST),
    st.binary(min_size=2 * _MOST // 3, max_size=_MOST),
)
_COORDINATES = st.binary(min_size=16, max_size=4 * POINTS)


@st.composite
def formulas(draw: st.DrawFn) -> Formula:
    """Return a formula; those of few operations at few points come first."""
    return _formula(draw(_CODES), draw(_COORDINATES))
