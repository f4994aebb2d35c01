"""`compile`: how compiled functions are called, what they refuse, and what they are made of."""

from __future__ import annotations

import copy
import math
import pickle
import sys
import threading
import tracemalloc
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, PointError, UnsupportedError
from difflab.execute import compile
from difflab.execute.choice import FEW_POINTS

SEED = "ln(x1) + x1*x2 - sin(x2)"
# Baydin et al. 2018, Tables 2 and 3.
VALUE, SLOPE = 11.652071455223084, [5.5, 2.0 - math.cos(5.0)]
NATIVE = pytest.param(
    "native",
    marks=pytest.mark.skipif(not find_spec("llvmlite"), reason="llvmlite is not installed"),
)
TARGETS = pytest.mark.parametrize("target", ["auto", "python", "numpy", NATIVE])


def seed() -> dl.Function:
    return dl.value_and_gradient(dl.parse(SEED))


@TARGETS
def test_the_seed_at_a_point(target: str) -> None:
    fast = compile(seed(), target)
    calls: list[Any] = [fast(2.0, 5.0), fast(2, 5), fast(x2=5.0, x1=2.0), fast(2.0, x2=5)]
    calls += [fast(*np.array([2.0, 5.0])), compile(seed(), target, packed=True)([2, 5])]
    for value, slope in calls:
        assert type(value) is float
        assert value == pytest.approx(VALUE, rel=1e-15)
        assert isinstance(slope, np.ndarray)
        np.testing.assert_allclose(slope, SLOPE, rtol=1e-15)


@TARGETS
def test_results_have_the_shapes_that_the_function_gives_them(target: str) -> None:
    f = dl.parse("w: [2]; [w[0]*y, w, exp(y)]")
    for g in (f, dl.jacobian(f), dl.hessian(dl.parse("x*y*sin(z)"))):
        fast = compile(g, target)
        packed = compile(g, target, packed=True)
        for batch in [(), (1,), (3,), (2, 4), (0,), (FEW_POINTS + 1,)]:
            rng = np.random.default_rng(1)
            values = [rng.uniform(1, 2, batch + shape) for shape in g.input_shapes]
            parts = [v.reshape((*batch, math.prod(v.shape[len(batch) :]))) for v in values]
            flat = np.concatenate(parts, axis=-1)
            expected, found, again = g(*values), fast(*values), packed(flat)
            for a, b, c in zip(*map(as_tuple, (expected, found, again)), strict=True):
                assert np.shape(a) == np.shape(b) == np.shape(c)
                np.testing.assert_allclose(b, a, rtol=1e-15)
                np.testing.assert_allclose(c, a, rtol=1e-15)


def as_tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


@TARGETS
def test_undefined_points_are_nan_and_inf_as_in_numpy(target: str) -> None:
    fast = compile(seed(), target)
    for x1, value, slope in [(0.0, -math.inf, math.inf), (-1.0, math.nan, math.nan)]:
        found, gradient = fast(x1, 5.0)
        np.testing.assert_equal([found, gradient[0]], [value, slope])
        np.testing.assert_allclose(gradient[1], x1 - math.cos(5.0))
    assert compile(dl.parse("exp(x)"), target)(1000.0) == math.inf
    assert compile(dl.parse("x^3"), target)(1e200) == math.inf
    assert compile(dl.parse("x/(y - y)"), target)(-1.0, 2.0) == -math.inf


@TARGETS
def test_a_branch_that_is_not_taken_is_zero(target: str) -> None:
    gradient = compile(dl.gradient(dl.parse("where(x > 0, sqrt(x), 0)")), target)
    assert gradient(0.0).tolist() == [0.0]
    assert gradient(-1.0).tolist() == [0.0]
    assert gradient(4.0).tolist() == [0.25]


@TARGETS
@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        ((), {}, "no value is given for the inputs x1, x2"),
        ((2.0,), {}, "no value is given for the input x2"),
        ((1.0, 2.0, 3.0), {}, "has 2 inputs"),
        ((1.0,), {"x3": 2.0}, "no input 'x3'"),
        ((1.0, 2.0), {"x1": 2.0}, "given twice"),
        ((1.0, "2"), {}, "not a number"),
        ((1.0, 2j), {}, "real numbers"),
        ((np.ones(2), np.ones(3)), {}, "differ in shape"),
    ],
)
def test_wrong_arguments_are_refused(
    target: str, args: tuple[Any, ...], kwargs: dict[str, Any], says: str
) -> None:
    with pytest.raises(PointError, match=says):
        compile(seed(), target)(*args, **kwargs)


@TARGETS
def test_an_array_is_not_taken_number_by_number(target: str) -> None:
    fast = compile(dl.parse("w: [2]; w[0]*w[1]*y"), target)
    assert fast([2.0, 3.0], 5.0) == 30.0
    with pytest.raises(PointError, match="has 2 inputs"):
        fast(2.0, 3.0, 5.0)


def test_packed_points_of_a_wrong_length_are_refused() -> None:
    with pytest.raises(PointError, match="2 elements"):
        compile(seed(), packed=True)([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((SEED,), "str cannot be compiled"),
        ((dl.parse("x"), "fortran"), "no target 'fortran'"),
        ((dl.parse("x"), "numpy", 0), "positive integer"),
    ],
)
def test_wrong_settings_are_refused(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(InputError, match=says):
        compile(*arguments)


def traced() -> dl.Function:
    return dl.trace(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2) / 2, np.ones(6))


def test_arrays_go_to_numpy_and_python_says_why_not() -> None:
    f = dl.value_and_gradient(traced())
    with pytest.raises(UnsupportedError, match="computes with"):
        compile(f, "python")
    fast = compile(f)
    assert fast.reason.startswith("numpy: ")
    rng = np.random.default_rng(2)
    for batch in [(), (7,), (2, 3)]:
        x = rng.normal(size=(*batch, 6))
        for found, expected in zip(fast(x), f(x), strict=True):
            assert np.shape(found) == np.shape(expected)
            np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_results_are_the_callers_own() -> None:
    for f, x in [(dl.gradient(traced()), np.arange(6.0)), (dl.parse("w: [2]; w"), np.ones(2))]:
        fast = compile(f, "numpy")
        first = fast(x)
        kept = first.copy()
        fast(x + 1)
        np.testing.assert_array_equal(first, kept)
        first[...] = 0.0
        np.testing.assert_array_equal(x, np.arange(6.0) if x.size == 6 else np.ones(2))


@pytest.mark.parametrize("target", ["auto", "numpy", "native"])
def test_arrays_that_are_ready_are_not_looked_at_one_by_one(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if target == "native":
        pytest.importorskip("llvmlite")
    fast = compile(seed(), target)
    a, b = np.linspace(0.5, 3.0, 40), np.linspace(-1.0, 1.0, 40)
    expected = fast(a, b)
    arranged: list[int] = []
    real = dl.Function.arranged

    def counted(self: dl.Function, args: Any, kwargs: Any) -> Any:
        arranged.append(1)
        return real(self, args, kwargs)

    monkeypatch.setattr(dl.Function, "arranged", counted)
    others = [
        (a.astype(">f8"), b),
        (a.tolist(), b),
        (np.ma.array(a), b),
        (np.float64(0.5), b),
        (np.array(0.5), b),
        (a[:1], b),
    ]
    np.testing.assert_array_equal(fast(0.5, b)[1][:1], expected[1][:1])
    for number, (x, y) in enumerate([(a, b), *others]):
        value, slope = fast(x, y)
        assert len(arranged) == number
        size = 40 if np.size(x) == 40 else 1
        np.testing.assert_array_equal(value[:size], expected[0][:size])
        np.testing.assert_array_equal(slope[:size], expected[1][:size])
    with pytest.raises(PointError, match="the batches of the inputs differ in shape"):
        fast(a, b[:7])


def test_auto_says_why_and_takes_both() -> None:
    fast = compile(seed())
    assert fast.target == "auto"
    assert "python up to" in fast.reason
    assert ("native for more" if find_spec("llvmlite") else "numpy for more") in fast.reason
    for points in (1, FEW_POINTS, FEW_POINTS + 1, 1000):
        a = np.linspace(0.5, 3.0, points)
        value, slope = fast(a, 5.0)
        np.testing.assert_allclose(value, np.log(a) + a * 5 - np.sin(5), rtol=1e-14)
        np.testing.assert_allclose(slope[:, 0], 1 / a + 5, rtol=1e-14)


def test_source_holds_no_name_of_the_users() -> None:
    hostile = dl.parse("evil_name*exp(second_name)")
    for target in ("python", "numpy"):
        assert "_name" not in compile(hostile, target).source


def test_powers_are_products_each_computed_once() -> None:
    source = compile(dl.parse("x^4 + x*x + 1/x + x^-1"), "numpy").source
    assert source.count("multiply") == 2
    assert "power" not in source
    assert compile(dl.parse("x^-2"))(1e-155) == math.inf
    assert compile(dl.parse("x^-2"))(1e-154) == pytest.approx(1e308, rel=1e-14)


def test_what_two_kernels_share_is_computed_once() -> None:
    # The derivative takes sigmoid(x) and its companion, which is sigmoid(x)·sigmoid(-x).
    source = compile(dl.gradient(dl.parse("sigmoid(x)^2")), "numpy").source
    assert source.count(" exp(") == 2


def test_large_graphs_come_in_pieces() -> None:
    terms = 3000
    text = "\n".join(
        ["v0 = x*y", *(f"v{k} = sin(v{k - 1}) + y/{k}" for k in range(1, terms)), f"v{terms - 1}"]
    )
    f = dl.value_and_gradient(dl.parse(text))
    fast = compile(f, "python")
    assert fast.source.count("def piece") > 5
    longest = max(len(part.splitlines()) for part in fast.source.split("def piece"))
    assert longest < 500
    found, expected = fast(0.3, 0.7), f(0.3, 0.7)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-11)
    assert math.isnan(compile(dl.parse(f"{text} + log(x)"), "python")(-1.0, 0.5))


def test_many_outputs_come_in_pieces() -> None:
    f = dl.parse("x: [1200]\n" + " + ".join(f"x[{k}]*x[{k + 1}]" for k in range(1199)))
    fast = compile(dl.gradient(f), "python")
    assert fast.source.count("def piece") > 2
    x = np.arange(1200.0)
    expected = np.zeros(1200)
    expected[:-1] += x[1:]
    expected[1:] += x[:-1]
    assert fast(x).tolist() == expected.tolist()


def test_threads_give_what_one_thread_gives() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.uniform(0.5, 3, 300_001), rng.uniform(-3, 3, 300_001)
    one, many = (compile(seed(), "numpy", threads=count)(a, b) for count in (1, 5))
    for left, right in zip(one, many, strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_allclose(one[1][:, 1], a - np.cos(b), rtol=1e-12, atol=1e-14)


def test_one_compiled_function_serves_threads_of_the_users() -> None:
    fast = compile(seed(), "numpy", threads=2)
    points = [np.linspace(1, 2 + k, 200_000) for k in range(4)]
    expected = [fast(p, 5.0)[0] for p in points]
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        for _ in range(3):
            found[k] = fast(points[k], 5.0)[0]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_array_equal(found[k], expected[k])


def test_a_call_allocates_its_results_only() -> None:
    fast = compile(seed(), "numpy", threads=1)
    a, b = np.full(500_000, 2.0), np.full(500_000, 5.0)
    results = fast(a, b)
    size = sum(result.nbytes for result in results)
    del results
    tracemalloc.start()
    try:
        fast(a, b)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size <= peak < size + 100_000


def test_buffers_are_used_again() -> None:
    f = dl.parse("".join(["sin(", *["cos(exp(-("] * 30, "x", *[")))"] * 30, ")"]))
    buffers = {line.partition("# ")[2] for line in compile(f, "numpy").source.splitlines()}
    assert buffers <= {"buffer 0", "result 0"}


def test_compiled_functions_are_copied_and_pickled() -> None:
    for packed in (False, True):
        fast = compile(seed(), packed=packed)
        for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
            args = ([2.0, 5.0],) if packed else (2.0, 5.0)
            assert other(*args)[0] == fast(*args)[0]
            assert other.reason == fast.reason


def test_a_million_operations_need_no_recursion() -> None:
    limit = sys.getrecursionlimit()
    text = "x" + " + sin(x)*0.5" * (2 * limit)
    # Equal terms are one node; the sum is as long as the text.
    fast = compile(dl.parse(text))
    assert fast(1.0) == pytest.approx(1.0 + 2 * limit * math.sin(1.0) * 0.5, rel=1e-11)


@TARGETS
def test_functions_without_inputs_or_operations(target: str) -> None:
    assert compile(dl.parse("2*pi"), target)() == 2 * math.pi
    assert compile(dl.parse("x"), target)(3) == 3.0
    truth = compile(dl.parse("x < 1"), target)
    assert bool(truth(0.0))
    assert truth(np.array([0.0, 2.0])).tolist() == dl.parse("x < 1")(np.array([0.0, 2.0])).tolist()
