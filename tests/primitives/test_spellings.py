"""Walks the table: every spelling of every row is executed and held to the row's kernel.

The kernel is the rule at the edges too: zeros, infinities, nan, subnormal and huge numbers. Not
kept is the sign of a zero. The kernels themselves are held to mpmath in `test_table.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
from numpy.typing import NDArray

import difflab as dl
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute.lower.scalar import guarded
from difflab.graph.function import Function
from difflab.graph.interpreters import MpmathInterpreter, SympyInterpreter
from difflab.language import printers
from difflab.primitives import TABLE
from tests.support.languages import JAVASCRIPT, LANGUAGES, C, Language
from tests.support.rows import failures, for_each
from tests.support.special_rows import FARTHER, OF_ORDERS

Array = NDArray[np.float64]

TINY = 5e-324
FINITE = [0.0, 0.5, 1.0, 2.5, 40.0, 700.0, TINY, 1e-310, -0.5, -1.0, -2.5, -40.0, -700.0]
"""Edges that are real numbers, which have no second zero."""
DIGITS = 800
"""700 modulo 5e-324, and log(1 + 1e-310), need as many."""
SYMPY_LACKS = {"round"}
EDGES = [0.0, 1.0, 0.5, 2.5, 3.0, 40.0, 700.0, 800.0, 1e-160, 1e160, 1e300, TINY, 1e-310, math.inf]
EDGES = [*EDGES, *(-x for x in EDGES), math.nan]
PAIRS = 3000
"""Drawn where there are more combinations of edges."""
ULPS = {"erfc": 8.0, "gamma": 16.0, "dcbrt": 8.0, "dpower_exponent": 8.0, "e1": 16.0, "ei": 16.0}
ULPS |= {"besselj": 16.0, "bessely": 16.0, "besseli": 32.0, "besselk": 16.0}
ULPS |= {"gammainc": 512.0, "gammaincc": 512.0}
ULPS |= dict.fromkeys(("airyai", "airyaiprime", "airybi", "airybiprime"), 2048.0)
ULPS |= {"dawsn": 16.0}
ULPS |= {"beta": 8192.0, "betaln": 4096.0}  # of parameters of some hundreds
"""SciPy's special functions and products of two roundings; `OTHER_ULPS` for every other row."""
OTHER_ULPS = 4.0
FEW_DIGITS = {"bessely": 60, "besselk": 60, "log_remainder": 60}
"""Instead of `DIGITS`, for which mpmath takes ten seconds a value of an integer order.

The hypergeometric form of the remainder needs no digits for those that 1 + x would lose.
"""
NEAR_ZEROS, NEAR_ZEROS_ATOL = {"loggamma", "digamma", "ei"}, 2.0**-49
"""Near the zeros of these, such as 1 and 2, only the absolute error is small."""

SPELLED = {
    name: row
    for name, row in TABLE.items()
    if row.shape is None and name not in FARTHER and row.arity is not None
}


def points(row: Primitive) -> Array:
    """Return sampled points, then combinations of edges."""
    rng = np.random.default_rng(11)
    boxes = np.array(row.samples)
    sampled = rng.uniform(boxes[:, 0], boxes[:, 1], (40, len(boxes)))
    every = list(itertools.product(EDGES, repeat=len(boxes)))
    if len(every) > PAIRS:
        every = [every[k] for k in rng.choice(len(every), PAIRS, replace=False)]
    found: Array = np.concatenate([sampled, every])
    for position in row.truths:
        found[:, position] = found[:, position] > 0.7
    return found


def kernel(row: Primitive, at: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(row.computer(np)(*at.T), dtype=float)


def assert_spelled(row: Primitive, at: Array, found: Sequence[float], what: str) -> None:
    expected, got = kernel(row, at), np.asarray(found, dtype=float)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    allowed = ULPS.get(row.name, OTHER_ULPS) * np.spacing(np.abs(expected))
    if row.name in NEAR_ZEROS:
        allowed = np.maximum(allowed, NEAR_ZEROS_ATOL)
    with np.errstate(all="ignore"):
        wrong = np.flatnonzero(~(same | (np.abs(got - expected) <= allowed)))
    told = [f"{at[k].tolist()}: {got[k]}, not {expected[k]}" for k in wrong[:6]]
    assert not told, f"{row.name} in {what} at {'; '.join(told)}"


def function_of(row: Primitive) -> Function:
    """Return the function that is one row."""

    def call(*args: Any) -> Any:
        return row(*(arg != 0 if k in row.truths else arg for k, arg in enumerate(args)))

    return dl.trace(call, *(0.0 for _ in row.samples))


@for_each("name", SPELLED)
def test_python_gives_the_kernels_value_or_raises(name: str) -> None:
    """Where `math` raises the kernel has no finite value, or the spelling overflows on the way."""
    row = SPELLED[name]
    at = points(row)
    names: dict[str, Any] = {}
    exec(printers.python(function_of(row), "f"), names)
    expected, kept, found = kernel(row, at), [], []
    for place, point in enumerate(at.tolist()):
        try:
            found.append(float(names["f"](*point)))
            kept.append(place)
        except (ArithmeticError, ValueError):
            assert not math.isfinite(expected[place]) or expected[place] == 0.0, (name, point)
    assert len(kept) >= 40
    assert_spelled(row, at[kept], found, "Python")


@for_each("name", SPELLED)
def test_the_guarded_spelling_gives_the_kernels_value_everywhere(name: str) -> None:
    row = SPELLED[name]
    at = points(row)
    template, names = guarded(row)
    letters = "abcd"[: row.arity]
    spelled = eval(f"lambda {', '.join(letters)}: {template.format(*letters)}", dict(names))
    assert_spelled(row, at, [spelled(*point) for point in at.tolist()], "guarded Python")


@pytest.mark.parametrize("language", [C, JAVASCRIPT, *LANGUAGES], ids=lambda each: each.name)
def test_printed_code_gives_the_kernels_value_everywhere(
    language: Language, tmp_path: Path
) -> None:
    if not language.there:
        pytest.skip(f"needs {language.needed}")
    at = [points(row) for row in SPELLED.values()]
    every = language.values([function_of(row) for row in SPELLED.values()], at, tmp_path)
    with failures(len(SPELLED)) as noted:
        for row, each, found in zip(SPELLED.values(), at, every, strict=True):
            with noted(row.name):
                assert_spelled(row, each, found[:, 0].tolist(), language.name)


def real_points(row: Primitive, number: int) -> Array:
    """Return combinations of finite edges at which the kernel is finite: all in the domain."""
    rng = np.random.default_rng(17)
    boxes = [FINITE if low < high else [low] for low, high in row.samples]
    every = list(itertools.product(*boxes))
    if len(every) > number:
        every = [every[k] for k in rng.choice(len(every), number, replace=False)]
    at = np.array(every)
    for position in row.truths:
        at[:, position] = at[:, position] > 0.7
    return at[np.isfinite(kernel(row, at))]


def defined(row: Primitive, point: Sequence[float], value: float) -> bool:
    """Whether a value is one of the real function, not undefined where a convention states it."""
    with np.errstate(all="ignore"):
        at_kink = row.kinks is not None and row.kinks(*map(np.float64, point)) == 0
    return not (math.isnan(value) and (at_kink or row.expansion is not None))


EXACT = [
    name
    for name, row in TABLE.items()
    if row.shape is None and row.samples and name != "float32"  # refused: no true derivative
]


@for_each("name", EXACT)
def test_mpmath_gives_the_kernels_value_at_real_edges(name: str) -> None:
    row, compute = TABLE[name], MpmathInterpreter().operation(TABLE[name])
    at, found, kept = real_points(row, 60), [], []
    with mpmath.workdps(FEW_DIGITS.get(name, DIGITS)):
        for place, point in enumerate(at.tolist()):
            args = [mpmath.mpf(x) for x in point]
            for position in row.truths:
                args[position] = bool(point[position])
            value = float(compute(*args))
            if defined(row, point, value):
                kept.append(place)
                found.append(value)
    assert_spelled(row, at[kept], found, "mpmath")


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("heaviside", (math.nan,)),
        ("clip", (1.0, math.nan, 2.0)),
        ("clip", (1.0, 0.5, math.nan)),
        ("logaddexp", (math.inf, math.inf)),
        ("logaddexp", (-math.inf, -math.inf)),
    ],
)
def test_mpmath_propagates_nan_and_infinities(name: str, point: tuple[float, ...]) -> None:
    found = float(MpmathInterpreter().operation(TABLE[name])(*map(mpmath.mpf, point)))
    assert_spelled(TABLE[name], np.array([point]), [found], "mpmath")


@for_each("name", sorted(set(EXACT) - SYMPY_LACKS))
def test_sympy_gives_the_kernels_value_at_real_edges(name: str) -> None:
    row, compute = TABLE[name], SympyInterpreter().operation(TABLE[name])
    at, found, kept = real_points(row, 20), [], []
    digits = FEW_DIGITS.get(name, DIGITS)
    for place, point in enumerate(at.tolist()):
        args: list[Any] = [sympy.Rational(*x.as_integer_ratio()) for x in point]
        for position in row.truths:
            args[position] = sympy.true if point[position] else sympy.false
        value = sympy.sympify(compute(*args))
        number = (
            float(bool(value))
            if row.boolean
            else complex(value.evalf(digits, maxn=2 * digits)).real
        )
        if defined(row, point, number):
            kept.append(place)
            found.append(number)
    assert_spelled(row, at[kept], found, "SymPy")


def test_every_row_on_numbers_is_printed() -> None:
    """A companion without a function would be printed in other operations than it computes."""
    unprinted = set()
    for name, row in TABLE.items():
        if row.shape is None and row.samples:
            try:
                printers.c(function_of(row))
            except UnsupportedError:
                unprinted.add(name)
    assert unprinted == OF_ORDERS
