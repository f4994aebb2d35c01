"""The compiled first pass is the first pass: its values, its errors, and where it gives up."""

from __future__ import annotations

import copy
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import difflab as dl
from difflab.differences.first import DifferenceRule
from difflab.errors import PointError
from difflab.methods.numeric import compiled_stencil
from difflab.methods.numeric.compiled_stencil import CompiledStencil, suits
from difflab.methods.numeric.finite import CENTRAL, FORWARD, RICHARDSON, Differences
from difflab.methods.protocol import Problem

SEED = "ln(x1) + x1*x2 - sin(x2)"
RULE = RICHARDSON.rule

SMOOTH = [
    (SEED, [2.0, 5.0]),
    ("exp(-x^2/2)*sin(3*y) + sqrt(x*x + y*y + 1)", [0.3, -1.2]),
    ("x^2", [3.0]),
    ("[x*y, sin(x) + y, exp(y)]", [0.7, 1.1]),
    ("sin(1000*x)", [2.0e-3]),
    ("1e-200*x^3 + 1e-200*x", [2.0]),
    ("[sin(x), 3*y, 5]", [0.4, 2.0]),  # with entries that are zero
]


HARD = [
    ("abs(x)", [0.0]),  # a kink
    ("max(x, y)", [1.0, 1.0]),
    ("sqrt(x)", [0.0]),  # an edge
    ("ln(x)", [-1.0]),  # outside
    ("0.5/x", [0.0]),  # a pole
    ("where(x < 1, 0, 1)", [1.0]),  # a jump
    ("sin(1e7*x)", [1.0]),  # steps that are too long
    ("x^2", [0.0]),  # no relative accuracy
    ("max(x - 1e-9, 0)", [0.0]),  # flat beside the point only
    ("log(1 + x)", [1e-17]),  # flat by rounding
    ("max(x - 1.2, 0) + 5", [1.0]),  # constant, but for the longest step
    ("x*x + 0*sqrt(x - 0.7)", [1.0]),  # outside of the domain with the longest step
]


def first_pass(function: dl.Function, rule: DifferenceRule = RULE) -> CompiledStencil:
    found = CompiledStencil.of(function, rule)
    assert found is not None
    return found


@pytest.mark.parametrize("method", [RICHARDSON, CENTRAL, FORWARD], ids=lambda method: method.name)
@pytest.mark.parametrize(("text", "x"), SMOOTH)
def test_it_gives_what_the_method_gives(method: Differences, text: str, x: list[float]) -> None:
    function, point = dl.parse(text), np.array(x)
    fast = dl.compile(function, "python", packed=True)

    def values(points: np.ndarray) -> np.ndarray:
        """Return values one point at a time, so that both take them from Python's floats."""
        return np.array([np.ravel(fast(row)) for row in points])

    plain = method.prepare(Problem(values, function.n, function.m))(point)
    compiled = first_pass(function, method.rule)
    found = compiled(point)
    assert found is not None
    value, error = found
    assert compiled.evaluations == plain.evaluations
    np.testing.assert_allclose(value, plain.value.ravel(), rtol=1e-14)
    # Errors of some roundings are told from differences, which the order of sums changes.
    np.testing.assert_allclose(error, plain.error.ravel(), rtol=0.25)
    assert (np.abs(value - dl.jacobian(function).values(point).ravel()) <= error).all()


@pytest.mark.parametrize(("text", "x"), [*HARD, ("1/x", [np.nan]), ("x", [np.inf])])
def test_it_gives_up_where_the_first_pass_does_not_converge(text: str, x: list[float]) -> None:
    assert first_pass(dl.parse(text))(np.array(x)) is None


@pytest.mark.parametrize("method", [RICHARDSON, CENTRAL, FORWARD], ids=lambda method: method.name)
@pytest.mark.parametrize(("text", "x"), [*SMOOTH, *HARD])
def test_it_gives_up_where_the_method_goes_on(
    method: Differences, text: str, x: list[float]
) -> None:
    """The method evaluates more points exactly where the compiled first pass gives nothing."""
    function, point = dl.parse(text), np.array(x)
    compiled = first_pass(function, method.rule)
    plain = method.prepare(Problem(function.values, function.n, function.m, function))(point)
    goes_on = plain.evaluations > compiled.evaluations or np.isnan(plain.value).any()
    assert (compiled(point) is None) == goes_on


@settings(max_examples=40, deadline=None)
@given(st.floats(-3, 3), st.floats(0.1, 5), st.floats(-3, 3))
def test_the_error_holds(x: float, frequency: float, phase: float) -> None:
    found = WAVE(np.array([frequency, phase, x]))
    if found is not None:
        inner = frequency * x + phase
        expected = [math.cos(inner) * slope for slope in (x, 1.0, frequency)]
        value, error = found
        assert (np.abs(value - expected) <= error).all()


WAVE = first_pass(dl.parse("sin(frequency*x + phase)"))


def test_python_runs_it_without_llvmlite(monkeypatch: pytest.MonkeyPatch) -> None:
    native = first_pass(dl.parse(SEED))(np.array([2.0, 5.0]))
    monkeypatch.setattr(compiled_stencil, "available", lambda: False)
    plain = first_pass(dl.parse(SEED))(np.array([2.0, 5.0]))
    assert native is not None
    assert plain is not None
    np.testing.assert_allclose(np.hstack(plain), np.hstack(native), rtol=1e-13)


def test_rows_without_machine_code_run_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_stencil, "CALLS", 2)
    f = dl.parse("gamma(x)*y")
    for _ in range(5):
        found = dl.differentiate(f, np.array([2.5, 1.5]))
        expected = np.array([1.5, 1.0]) * math.gamma(2.5) * np.array([0.7031566406452432, 1.0])
        np.testing.assert_allclose(found.value, expected, rtol=1e-11)  # digamma(2.5) = 0.703…


class Doubled(dl.CustomFunction):
    """2·x, in Python that no target can spell."""

    @staticmethod
    def forward(ctx: object, x: float) -> float:
        return np.asarray(x) * 2

    @staticmethod
    def backward(ctx: object, y_bar: float) -> float:
        return y_bar * 2


def test_user_functions_are_differentiated_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_stencil, "CALLS", 2)
    f = dl.trace(lambda x, y: Doubled.apply(x) * y, 1.0, 1.0)
    for _ in range(5):
        found = dl.differentiate(f, np.array([2.0, 3.0]))
        np.testing.assert_allclose(found.value, [6.0, 4.0], rtol=1e-11)


def test_what_is_too_large_or_not_numbers_does_not_suit() -> None:
    assert suits(dl.parse(SEED), RULE)
    assert not suits(dl.parse("x: [3]\nsum(x*x)"), RULE)
    assert not suits(dl.parse(" + ".join(f"sin(x{i})" for i in range(40))), RULE)
    assert not suits(dl.parse("2"), RULE)


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> list[dl.Function]:
    """Record what is compiled, which happens after three calls."""
    seen: list[dl.Function] = []

    def of(function: dl.Function, rule: DifferenceRule) -> CompiledStencil | None:
        seen.append(function)
        return CompiledStencil.of(function, rule)

    monkeypatch.setattr(compiled_stencil, "CALLS", 3)
    monkeypatch.setattr(compiled_stencil, "CompiledStencil", SimpleNamespace(of=of))
    return seen


def test_repeated_calls_are_compiled_once(compiling: list[dl.Function]) -> None:
    f = dl.parse(SEED)
    found = [dl.differentiate(f, np.array([2.0, 5.0])) for _ in range(6)]
    assert compiling == [f]
    for one in found:
        assert one.method == "richardson"
        assert one.evaluations == 37
        assert one.value.shape == one.error.shape == (2,)
        np.testing.assert_allclose(one.value, [5.5, 1.7163378145367738], rtol=1e-12)
        assert (one.error > 0).all()
        assert (one.error < 1e-11).all()


def test_shapes_of_repeated_calls(compiling: list[dl.Function]) -> None:
    one, several = dl.parse("x^3"), dl.parse("[x*y, x + y]")
    cases = [
        (one, 2.0, (), 12.0),
        (one, {"x": 2.0}, (1,), [12.0]),
        (one, [2.0], (1,), [12.0]),
        (several, {"y": 3.0, "x": 2.0}, (2, 2), [[3.0, 2.0], [1.0, 1.0]]),
        (several, np.array([2, 3]), (2, 2), [[3.0, 2.0], [1.0, 1.0]]),
    ]
    for f, x, shape, expected in cases:
        for _ in range(5):
            found = dl.differentiate(f, x)
            assert np.shape(found.value) == np.shape(found.error) == shape
            np.testing.assert_allclose(found.value, expected, rtol=1e-12)
    assert compiling == [one, several]


def test_points_that_do_not_converge_are_searched_again(compiling: list[dl.Function]) -> None:
    f = dl.parse("abs(x)")
    found = [dl.differentiate(f, 0.0) for _ in range(6)]
    assert compiling == [f]
    assert all(one.error == found[0].error >= 1 for one in found)
    for bad in (np.nan, [1.0, 2.0], "x", {"y": 1.0}, np.array([np.inf])):
        with pytest.raises(PointError):
            dl.differentiate(f, bad)


def test_other_methods_are_not_compiled(compiling: list[dl.Function]) -> None:
    f = dl.parse(SEED)
    for method in ("complex-step", "forward", "reverse"):
        for _ in range(5):
            dl.differentiate(f, np.array([2.0, 5.0]), method)
    for _ in range(5):
        dl.differentiate(f, np.array([2.0, 5.0]), order=2)
    assert not compiling


def test_compiled_code_is_not_stored_with_the_function(compiling: list[dl.Function]) -> None:
    f = dl.parse(SEED)
    for _ in range(5):
        dl.differentiate(f, np.array([2.0, 5.0]))
    assert f.derived_cache
    for other in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        assert other == f
        assert not other.derived_cache


def test_a_method_that_is_called_often_is_prepared_for_it() -> None:
    f, x = dl.parse(SEED), np.array([2.0, 5.0])
    seldom = RICHARDSON.prepare(Problem(f.values, f.n, f.m, f))
    often = RICHARDSON.prepare(Problem(f.values, f.n, f.m, f, often=True))
    assert seldom.compiled is None
    assert often.compiled is not None
    assert often(x).value.shape == often(x).error.shape == (1, 2)
    np.testing.assert_allclose(often(x).value, seldom(x).value, rtol=1e-12)
    assert often(x).evaluations == seldom(x).evaluations
    outside = np.array([-1.0, 5.0])
    assert np.isnan(often(outside).value).any() == np.isnan(seldom(outside).value).any()
