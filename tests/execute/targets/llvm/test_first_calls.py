"""The first calls of a function of vectors, by NumPy, have the bits of the machine code after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.execute import workers
from difflab.execute.lower.schedule import Schedule
from difflab.execute.targets.llvm import first_calls
from difflab.execute.targets.llvm.first_calls import FirstCalls
from difflab.graph.function import Function
from difflab.graph.repetition import rolled

pytest.importorskip("llvmlite")

from difflab.execute.targets.llvm.arrays import NativeArrays

TERMS = (
    "sin(x[{i}]*x[{j}])*exp(-x[{i}]^2)/(1 + x[{j}]^2)",
    "tanh(x[{i}]) + x[{j}]^3",
    "log1p(x[{i}]^2)*sin(x[{j}])",
    "where(x[{i}] > x[{j}], exp(x[{i}]), sin(x[{j}]))",
    "2*x[{i}] - where(s > s, x[{i}], x[{j}])",
    "sqrt(1 + x[{i}]^2)*max(x[{i}], x[{j}])",
)
WITHOUT_GRADIENT = (
    "sin(s*x[{j}])*cos(x[0])",
    "abs(x[{i}])^2.5 - exp(s)",
    "atan2(x[{i}], x[{j}])*s",
)
"""Whose derivative by `s` is a sum, which machine code adds in vectors."""


def bits(values: Any) -> list[bytes]:
    return [np.asarray(value).tobytes() for value in values]


def of_terms(term: str, n: int) -> Function:
    terms = " + ".join(term.format(i=i, j=i + 1) for i in range(n - 1))
    return dl.parse(f"x: [{n}]\n{terms}")


def points(function: Function) -> list[list[Any]]:
    draw = np.random.default_rng(7).normal
    ends = [np.zeros(s) if s else 0.0 for s in function.input_shapes]
    return [[draw(size=s) if s else float(draw()) for s in function.input_shapes], ends]


@pytest.mark.parametrize("n", [33, 40, 64, 71])
@pytest.mark.parametrize("term", [*TERMS, *WITHOUT_GRADIENT])
def test_terms_and_their_gradient(term: str, n: int) -> None:
    functions = [of_terms(term, n)]
    if term in TERMS:
        functions.append(dl.value_and_gradient(functions[0]))
    for function in functions:
        schedule = Schedule.of(rolled(function, least=0))
        first, native = FirstCalls(schedule), NativeArrays(schedule)
        for point in points(function):
            assert bits(first(point)) == bits(native(point))


def test_a_choice_between_numbers_is_as_long_as_its_vector() -> None:
    n = 71
    terms = (f"2*x[{i}] - where(s > s, x[{i}], x[{(7 * i + 1) % n}])" for i in range(n))
    f = dl.value_and_gradient(dl.parse(f"x: [{n}]\n{' + '.join(terms)}"))
    schedule = Schedule.of(rolled(f, least=0))
    first, native = FirstCalls(schedule), NativeArrays(schedule)
    for point in points(f):
        assert bits(first(point)) == bits(native(point))


@pytest.mark.parametrize("apart", [1, 5])  # 1: the parts are joined in registers; 5: in memory
@pytest.mark.parametrize("n", [40, 42, 45, 47])
def test_functions_beside_sums_into_places(n: int, apart: int) -> None:
    """The last elements of a sum into places are added in narrower vectors, alone."""
    f = dl.parse(
        f"x: [{n}]\na = 2*x[{apart}:]\nb = 3*x[:-{apart}]\n"
        f"w = scatter(a at [{apart}:], b at [:-{apart}], [{n}])\n"
        "[w, sin(a), exp(b), tanh(a), log1p(b^2)]"
    )
    schedule = Schedule.of(f)
    first, native = FirstCalls(schedule), NativeArrays(schedule)
    for point in points(f):
        assert bits(first(point)) == bits(native(point))


@pytest.mark.parametrize(
    "text",
    [
        "x: [40]\nsum(sin(x))",  # machine code adds in vectors
        "x: [40]\nexp(x) > 1",
        "x: [40]\ngamma(x)",
        "x: [6, 7]\nsin(x)",  # which axis lies in a vector?
        "x: [40, 40]\nx@x",
        "x: [5000]\nsin(x)",
    ],
)
def test_what_machine_code_computes_at_once(text: str) -> None:
    with pytest.raises(UnsupportedError):
        FirstCalls(Schedule.of(dl.parse(text)))


def test_checked_code_checks_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    with pytest.raises(UnsupportedError):
        FirstCalls(Schedule.of(dl.parse("x: [40]\nsin(x)")))


@pytest.mark.parametrize("packed", [False, True])
def test_calls_go_over(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    f = dl.value_and_gradient(of_terms(TERMS[0], 45))
    x = np.linspace(-1.0, 1.0, 45)
    fast = dl.compile(f, packed=packed)
    native = dl.compile(f, "native", packed=packed)
    expected = bits(native(x))
    assert "native" not in vars(fast._choice.point)
    assert all(bits(fast(x)) == expected for _ in range(300))
    workers.finish()
    assert bits(fast(x)) == bits(fast(x.tolist())) == expected
    assert "native" in vars(fast._choice.point)


def test_machine_code_follows_without_a_layout_of_objects() -> None:
    f = of_terms(TERMS[0], 45)
    first = FirstCalls(Schedule.of(rolled(f, least=0)))
    x = np.linspace(-1.0, 1.0, 45)
    expected = bits(first([x]))
    for _ in range(first_calls.MOST_CALLS):
        assert bits(first([x])) == expected
    assert "native" in vars(first)


def test_results_share_no_memory() -> None:
    first = FirstCalls(Schedule.of(dl.parse("x: [40]\n[x, x[1:], sin(x)]")))
    x = np.ones(40)
    for result in first([x]):
        result[...] = 2.0
    assert x.tolist() == [1.0] * 40
