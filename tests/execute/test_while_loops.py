"""`while_loop` of plain values: machine code takes over with the results of Python's loop."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.execute import arithmetic_code, while_loops, workers
from difflab.execute.targets.llvm import libraries
from difflab.graph.pytree import flatten

pytest.importorskip("llvmlite", reason="the rest of a long loop is machine code: llvmlite")

STEPS = 9_000
MATRIX = np.array([0.25, -0.5, 0.125])
RATE = np.float64(0.999)


def in_python(cond: Callable[[Any], Any], body: Callable[[Any], Any], value: Any) -> Any:
    """Return what Python's own loop returns."""
    while cond(value):
        value = body(value)
    return value


def scaled(x: Any, factor: Any = 0.75) -> Any:
    return x * factor + 0.5


def steps_in_python(body: Callable[[Any], Any], run: Callable[[], Any]) -> tuple[Any, int]:
    """Return the result of a call, and how often `body` ran."""
    count = 0

    def look(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is body.__code__

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        found = run()
    finally:
        sys.setprofile(before)
    return found, count


def assert_same(found: Any, wanted: Any) -> None:
    """Hold types and bits to Python's loop."""
    leaves, structure = flatten(found)
    others, expected = flatten(wanted)
    assert structure == expected
    for one, other in zip(leaves, others, strict=True):
        assert type(one) is type(other)
        if type(one) is int:
            assert one == other
            continue
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def below(v: Any) -> Any:
    return v[0] < STEPS


LOOPS: dict[str, tuple[Any, Any, Any]] = {
    "counter and float": (below, lambda v: (v[0] + 1, v[1] * 0.999 + 0.5), (0, 1.0)),
    "numpy's scalar": (below, lambda v: (1 + v[0], v[1] * RATE - 0.5), (0, np.float64(1.0))),
    "one number": (lambda x: x < 5e3, lambda x: x + 0.25, 0.0),
    "an array": (below, lambda v: (v[0] + 1, v[1] * 0.5 + MATRIX), (0, np.ones(3))),
    "root": (below, lambda v: (v[0] + 1, 0.5 * (v[1] + 2.0 / v[1])), (0, 1.0)),
    "backwards": (lambda v: v[0] > 0, lambda v: (v[0] - 1, v[1] + v[0] * 0.1), (STEPS, 0.0)),
    "helper": (below, lambda v: (v[0] + 1, scaled(v[1])), (0, 3.0)),
    "dict": (
        lambda v: v["k"] < STEPS,
        lambda v: {"k": v["k"] + 1.0, "x": abs(v["x"] - 1.5) * 0.75},
        {"k": 0.0, "x": 0.1},
    ),
    "unpacked": (below, lambda v: (lambda k, x: (k + 1, x / 3 + x))(*v), (0, 1e-3)),
    "zeros": (below, lambda v: (v[0] + 1, v[1] * -1.0, -v[2]), (0, 0.0, np.zeros(2))),
    "chosen": (
        below,
        lambda v: (v[0] + 1, np.where(v[1] > 1.0, v[1] * 0.5, np.sqrt(v[1]) * 3.0)),
        (0, np.array([0.3, 0.7])),
    ),
    "logistic": (below, lambda v: (v[0] + 1, 3.9 * v[1] * (1 - v[1])), (0, 0.3)),
    "exponentials": (
        below,
        lambda v: (v[0] + 1, np.exp(-v[1]), np.log(v[2] + 2.5), 1 / (1 + np.exp(-v[3]))),
        (0, 0.5, np.float64(1.0), np.linspace(-2.0, 2.0, 11)),
    ),
    "waves": (
        lambda v: abs(np.cos(v[0] * 1e-4)) > 1e-4,
        lambda v: (v[0] + 1, np.sin(v[1]) + 0.5, np.tanh(np.arctan(v[2]) * 2.0)),
        (0, np.float64(0.1), np.linspace(-1.0, 1.0, 5)),
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_results_are_those_of_pythons_loop(name: str) -> None:
    cond, body, first = LOOPS[name]
    wanted = in_python(cond, body, first)
    assert_same(dl.while_loop(cond, body, first), wanted)
    workers.finish()
    found, steps = steps_in_python(body, lambda: dl.while_loop(cond, body, first))
    assert_same(found, wanted)
    assert name == "unpacked" or steps < 300  # code with `*` is left to Python


def test_another_function_of_the_same_code_is_compiled_already() -> None:
    def loop(rate: float, shift: Any) -> tuple[Any, int]:
        body = lambda v: (v[0] + 1, v[1] * rate + shift)  # noqa: E731
        found, steps = steps_in_python(body, lambda: dl.while_loop(below, body, (0, np.ones(2))))
        assert_same(found, in_python(below, body, (0, np.ones(2))))
        return found, steps

    shift = np.array([1.0, 2.0])
    loop(0.5, shift)
    workers.finish()
    assert loop(0.5, shift.copy())[1] < 300
    shift *= 3.0  # is read at each call
    found, steps = loop(0.5, shift)
    assert found[1] == pytest.approx(2 * shift)
    assert steps < 300
    assert loop(0.25, shift)[0][1] == pytest.approx(shift / 0.75)


def test_arrays_that_are_equal_when_the_code_is_prepared_keep_their_places() -> None:
    one, other = np.zeros(2), np.zeros(2)
    body = lambda v: (v[0] + 1, v[1] * 0.5 + one - 0.5 * other)  # noqa: E731
    for change in (0.0, 1.0):
        one += change
        assert_same(
            dl.while_loop(below, body, (0, np.ones(2))), in_python(below, body, (0, np.ones(2)))
        )
        workers.finish()


@pytest.mark.parametrize(
    "use",
    [
        lambda array, x: x * 0.5 + array * 2.0,
        lambda array, x: x * 0.5 + np.sqrt(array),
        lambda array, x: x * 0.5 - (-array),
        lambda array, x: x * 0.5 + array[1],
        lambda array, x: np.where(x > array[0], x * 0.5, array[1]),
    ],
)
def test_numbers_computed_of_an_array_around_the_code_follow_it(use: Any) -> None:
    array = np.zeros(2)
    body = lambda v: (v[0] + 1, use(array, v[1]))  # noqa: E731
    for change in (0.0, 0.0, 1.0, 1.0, 2.0):
        array += change * np.array([1.0, 3.0])
        assert_same(
            dl.while_loop(below, body, (0, np.ones(2))), in_python(below, body, (0, np.ones(2)))
        )
        workers.finish()


def test_only_values_of_the_loop_are_computed() -> None:
    """From 1.0 this loop does not end, nor would an interpreter that waits for its work."""
    code = (
        "import difflab as dl; from difflab.execute import workers\n"
        "for _ in range(2):\n"
        "    print(dl.while_loop(lambda v: v[0] != 20_000, lambda v: (v[0] + 2, v[1]), (0, 1.0)))\n"
        "    workers.finish()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30
    )
    assert done.stdout == "(20000, 1.0)\n" * 2


class TestSideEffects:
    """What code does beside computing, it does in each step."""

    def test_lists_and_variables(self) -> None:
        seen: list[float] = []
        count = 0

        def body(v: Any) -> Any:
            nonlocal count
            count += 1
            seen.append(v[1])
            return v[0] + 1, v[1] * 0.5

        for _ in range(2):
            dl.while_loop(below, body, (0, 1.0))
            workers.finish()
        assert count == len(seen) == 2 * STEPS
        assert seen[:3] == [1.0, 0.5, 0.25]

    def test_output(self, capsys: pytest.CaptureFixture[str]) -> None:
        def body(v: Any) -> Any:
            print(v[0])
            return v[0] + 1, v[1] * 0.5

        dl.while_loop(lambda v: v[0] < 6_000, body, (0, 1.0))
        workers.finish()
        dl.while_loop(lambda v: v[0] < 6_000, body, (0, 1.0))
        assert capsys.readouterr().out.count("\n") == 12_000

    @pytest.mark.parametrize(
        "body",
        [
            lambda v: (v[0] + 1, np.sqrt(v[1], v[1])),
            lambda v: (v[0] + 1, np.add(v[1], 0.5, v[1])),
            lambda v: (v[0] + 1, np.add(v[1], 0.5, out=v[1])),
        ],
    )
    def test_arrays_that_are_written_to(self, body: Any) -> None:
        given = np.ones(2)
        found = dl.while_loop(below, body, (0, given))
        workers.finish()
        again = dl.while_loop(below, body, (0, given))
        assert_same(found, in_python(below, body, (0, np.ones(2))))
        assert_same(again, found)

    def test_an_array_around_the_code_that_is_written_to(self) -> None:
        scratch = np.array([1.0, -2.0])
        body = lambda v: (v[0] + 1, v[1] * 0.75 + np.negative(scratch, scratch))  # noqa: E731
        for _ in range(2):
            scratch[:] = [1.0, -2.0]
            found = dl.while_loop(below, body, (0, np.ones(2)))
            scratch[:] = [1.0, -2.0]
            assert_same(found, in_python(below, body, (0, np.ones(2))))
            workers.finish()

    def test_state_that_changes_at_each_call(self) -> None:
        numbers = iter(range(10**9))
        body = lambda v: (next(numbers), v[1] * 0.5)  # noqa: E731
        dl.while_loop(below, body, (0, 1.0))
        workers.finish()
        assert dl.while_loop(below, body, (0, 1.0))[0] == STEPS + 1
        assert next(numbers) == STEPS + 2


class TestErrorsAndWarnings:
    """What Python raises and NumPy warns of."""

    @pytest.mark.parametrize("start", [10_000, 5])
    def test_a_division_by_zero(self, start: int) -> None:
        body = lambda v: (v[0] - 1, 1.0 / v[0])  # noqa: E731
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                dl.while_loop(lambda v: v[0] > -3, body, (start, 0.0))
            workers.finish()

    def test_a_division_by_zero_that_leaves_no_trace(self) -> None:
        body = lambda v: (v[0] - 1, 1.0 / (1.0 / v[0]))  # noqa: E731
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                dl.while_loop(lambda v: v[0] > -3, body, (10_000, 0.0))
            workers.finish()

    def test_an_overflow(self) -> None:
        body = lambda v: (v[0] + 1, v[1] * 1.5)  # noqa: E731
        for _ in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert dl.while_loop(below, body, (0, 1.0)) == (STEPS, np.inf)  # a Python float
            with pytest.warns(RuntimeWarning, match="overflow"):
                dl.while_loop(below, body, (0, np.float64(1.0)))
            workers.finish()

    def test_numpys_own_handling_of_underflow(self) -> None:
        body = lambda v: (v[0] + 1, v[1] * 0.5)  # noqa: E731
        for _ in range(2):
            assert dl.while_loop(below, body, (0, np.float64(1.0)))[1] == 0.0
            workers.finish()
        with np.errstate(under="raise"), pytest.raises(FloatingPointError):
            dl.while_loop(below, body, (0, np.float64(1.0)))


class TestIntegers:
    """Python's integers do not round."""

    def test_large_counters(self) -> None:
        cond = lambda v: v[0] < 2**53 + STEPS  # noqa: E731
        body = lambda v: (v[0] + 1, v[1] + 0.5)  # noqa: E731
        first = (2**53 - 10_000, 0.0)
        for _ in range(2):
            assert dl.while_loop(cond, body, first)[0] == 2**53 + STEPS
            workers.finish()

    @pytest.mark.parametrize(
        "body",
        [
            lambda v: (v[0] + 1, v[1] * 3),
            lambda v: (v[0] + 1, v[1] + v[0] * v[0]),
            lambda v: (v[0] + 1, -v[1]),
            lambda v: (v[0] + 1, v[1] + v[0]),
        ],
    )
    def test_products_and_sums(self, body: Any) -> None:
        cond = lambda v: v[0] < 9_000  # noqa: E731
        for _ in range(2):
            assert_same(dl.while_loop(cond, body, (0, 1)), in_python(cond, body, (0, 1)))
            workers.finish()

    def test_powers_beyond_what_floats_hold(self) -> None:
        cond = lambda v: v[0] < STEPS  # noqa: E731

        def body(v: Any) -> Any:
            square = v[0] * v[0]
            return v[0] + 1, square * square * square * square - v[1]

        for _ in range(2):
            assert_same(dl.while_loop(cond, body, (0, 0.0)), in_python(cond, body, (0, 0.0)))
            workers.finish()


@pytest.mark.parametrize("name", sorted(libraries.NUMPY))
def test_functions_have_the_bits_of_numpys(name: str) -> None:
    """As NumPy and the C library may round them differently."""
    function = libraries.NUMPY[name]
    shift = 3.0 if name == "acosh" else 0.25
    first = (0, np.linspace(0.0, 0.5, 37))
    body = lambda v: (v[0] + 1, abs(function(0.25 * v[1] + shift)) * 0.3)  # noqa: E731
    wanted = in_python(below, body, first)
    for steps_at_most in (STEPS + 10, 300):
        found, steps = steps_in_python(body, lambda: dl.while_loop(below, body, first))
        assert_same(found, wanted)
        assert steps < steps_at_most
        workers.finish()


def test_functions_are_left_to_numpy_whose_inner_loops_are_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(libraries.NUMPY, "cos", np.frompyfunc(np.cos, 1, 1))  # of objects
    monkeypatch.setattr(while_loops, "inner_loop", libraries.inner_loop.__wrapped__)
    assert while_loops.inner_loop("cos") == 0
    monkeypatch.setattr(while_loops, "_PREPARED", {})
    while_loops._code.cache_clear()
    body = lambda v: (v[0] + 1, np.cos(v[1]) - 0.125)  # noqa: E731
    for _ in range(2):
        found, steps = steps_in_python(body, lambda: dl.while_loop(below, body, (0, 1.0)))
        assert_same(found, in_python(below, body, (0, 1.0)))
        assert steps >= STEPS
        workers.finish()


def test_an_inner_loop_of_other_bits_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    other = libraries.inner_loop("expm1")
    monkeypatch.setattr(libraries, "loop_of", lambda *_: other)
    assert libraries.inner_loop.__wrapped__("exp") == 0


def test_code_that_is_no_arithmetic() -> None:
    state: Any = [1.0]

    class Holder:
        rate = 0.5

    around: list[Any] = [
        lambda v: v.append(1),
        lambda v: state[0] * v,
        lambda v: Holder.rate * v,
        lambda v: v if v > 0 else -v,
        lambda v: [x for x in v],  # noqa: C416
        lambda v: v**2,
        lambda v: v // 2,
        lambda v: np.floor(v),
        lambda v: float(v),
        lambda v: (lambda: v)(),
        lambda *v: v,
        print,
    ]
    for function in around:
        assert arithmetic_code.arithmetic([function]) is None, function


def test_every_instruction_of_plain_arithmetic_is_known() -> None:
    """So that a new version of Python does not leave all loops to its interpreter."""

    def body(v: Any) -> Any:
        k, x = v
        y = scaled(x) - MATRIX[0] / 3.0
        return k + 1, np.where(y < 2.0, abs(y), -np.sqrt(x))

    assert isinstance(body.__code__, CodeType)
    assert arithmetic_code.arithmetic([body, below]) is not None


def test_what_is_prepared_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(while_loops, "_MOST", 2)
    monkeypatch.setattr(while_loops, "_PREPARED", {})
    for number in range(5):
        dl.while_loop(below, lambda v: (v[0] + 1, v[1] * 0.5 + number), (0, 1.0))  # noqa: B023
        workers.finish()
        assert len(while_loops._PREPARED) <= 2
