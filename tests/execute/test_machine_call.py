"""Calls by machine code are the general call: same results, same errors, for every argument."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import re
import sys
import threading
import weakref
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, UnsupportedError
from difflab.execute import Compiled, compile, point_calls, workers
from difflab.execute.targets.llvm import machine_call
from difflab.execute.targets.llvm.entry_code import CALL
from difflab.execute.targets.llvm.machine_call import entry
from difflab.execute.targets.llvm.python_objects import VectorcallBase, layouts
from difflab.graph.pytree import flatten

pytest.importorskip("llvmlite")

SEED = "ln(x1) + x1*x2 - sin(x2)"
# Baydin et al. 2018, Tables 2 and 3.
VALUE, SLOPE = 11.652071455223084, [5.5, 2.0 - math.cos(5.0)]
RELEASE = sys.platform in ("linux", "darwin") and sys.implementation.name == "cpython"
RELEASE = RELEASE and not hasattr(sys, "gettotalrefcount") and "t" not in sys.abiflags

machine = pytest.mark.skipif(
    layouts() is None, reason="this interpreter's objects have no known layout"
)


@pytest.fixture(autouse=True)
def _loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use machine code from the first call on, not when a function has been called often."""
    found = layouts()
    if found is not None:
        entry(found)
    monkeypatch.setattr(point_calls, "FEW_CALLS", 0)


class Real(float):
    """A subclass of float, which has a value of its own."""

    def __float__(self) -> float:
        return 3.0


class Array(np.ndarray[Any, Any]):
    """A subclass of arrays."""


class Failing:
    """An argument whose conversion raises."""

    def __float__(self) -> float:
        raise ZeroDivisionError("an argument's own error")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("an argument's own error")


def seed(**options: Any) -> Compiled:
    return compile(dl.value_and_gradient(dl.parse(SEED)), "native", **options)


def network() -> Compiled:
    def loss(W: Any, x: Any, s: Any) -> Any:
        return np.sum(np.tanh(x @ W) * s)

    return compile(dl.trace(dl.value_and_grad(loss, argnums=(0, 1, 2)), *NETWORK), "native")


NETWORK = (np.linspace(-1, 1, 24).reshape(8, 3), np.linspace(0, 1, 8), 1.5)


def chain(n: int) -> dl.Function:
    terms = (f"sin(x[{i}]*x[{i + 1}])*exp(-x[{i}]^2)/(1 + x[{i + 1}]^2)" for i in range(n - 1))
    return dl.value_and_gradient(dl.parse(f"x: [{n}]\n" + " + ".join(terms)))


def general(fast: Compiled) -> Callable[..., Any]:
    """Return the call without machine code."""
    return partial(type(fast).__call__, fast)


def passed_on(fast: Compiled) -> list[Any]:
    """Return a list of the calls that machine code passes on from now on."""
    calls: list[Any] = []
    own = fast.general

    def recorded(*args: Any) -> Any:
        calls.append(args)
        return own(*args)

    vars(fast)["general"] = recorded
    return calls


def outcome(call: Callable[[], Any]) -> Any:
    """Return the types and bits of what a call returns, or the error that it raises."""
    try:
        found = call()
    except Exception as error:
        lines = re.sub(r" \(\S+, line \d+\)", "", str(error)).splitlines()
        return type(error), [
            line for line in lines if not line.startswith((" ", "/"))
        ]  # not the call's
    return bits(found)


def bits(found: Any) -> Any:
    if isinstance(found, tuple | list):
        return type(found), [bits(part) for part in found]
    if isinstance(found, dict):
        return {key: bits(part) for key, part in found.items()}
    array = np.asarray(found)
    return type(found), array.dtype.str, array.shape, array.tobytes()


POSITIONAL: dict[str, Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "floats": lambda: ((2.0, 5.0), {}),
    "special floats": lambda: ((-0.0, math.inf), {}),
    "nan": lambda: ((math.nan, 1e-320), {}),
    "ints": lambda: ((2, 5), {}),
    "large ints": lambda: ((2**53 + 1, 10**400), {}),
    "bools": lambda: ((True, False), {}),
    "mixed": lambda: ((2.0, 5), {}),
    "float64": lambda: ((np.float64(2.0), np.float64(5.0)), {}),
    "float32": lambda: ((np.float32(2.1), 5.0), {}),
    "int64": lambda: ((np.int64(2), np.uint8(5)), {}),
    "arrays without axes": lambda: ((np.array(2.0), np.array(5.0)), {}),
    "a batch": lambda: ((np.array([2.0, 3.0]), 5.0), {}),
    "lists": lambda: (([2.0, 3.0], [5.0, 6.0]), {}),
    "a subclass": lambda: ((Real(2.0), 5.0), {}),
    "decimals": lambda: ((Decimal("2.5"), 5.0), {}),
    "fractions": lambda: ((Fraction(5, 2), 5.0), {}),
    "long doubles": lambda: ((np.longdouble(2.5), 5.0), {}),
    "halves": lambda: ((np.float16(2.5), 5.0), {}),
    "a masked number": lambda: ((np.ma.masked, 5.0), {}),
    "a masked array": lambda: ((np.ma.array(2.0), 5.0), {}),
    "complex": lambda: ((2j, 5.0), {}),
    "text": lambda: (("2.0", 5.0), {}),
    "None": lambda: ((2.0, None), {}),
    "None behind": lambda: ((2.0, 5.0, None), {}),
    "one": lambda: ((2.0,), {}),
    "none": lambda: ((), {}),
    "three": lambda: ((2.0, 5.0, 7.0), {}),
    "very many": lambda: ((1.0,) * 300, {}),
    "keywords": lambda: ((), {"x2": 5.0, "x1": 2.0}),
    "a keyword": lambda: ((2.0,), {"x2": 5.0}),
    "a keyword twice": lambda: ((2.0, 5.0), {"x2": 5.0}),
    "an unknown keyword": lambda: ((2.0, 5.0), {"y": 5.0}),
    "one array": lambda: ((np.array([2.0, 5.0]),), {}),
    "its own error": lambda: ((2.0, Failing()), {}),
    "a tensor": lambda: ((dl.tensor(2.0), 5.0), {}),
    "out": lambda: ((2.0, 5.0), {"out": (np.zeros(()), np.zeros(2))}),
    "out, None": lambda: ((2.0, 5.0), {"out": None}),
    "out of a batch": lambda: (
        (np.array([2.0, 3.0]), 5.0),
        {"out": (np.zeros(2), np.zeros((2, 2)))},
    ),
    "out and a keyword": lambda: ((2.0,), {"x2": 5.0, "out": (np.zeros(()), np.zeros(2))}),
    "out and one": lambda: ((2.0,), {"out": (np.zeros(()), np.zeros(2))}),
}


@machine
@pytest.mark.parametrize("kind", POSITIONAL)
def test_arguments_by_position(kind: str) -> None:
    fast = seed()
    args, named = POSITIONAL[kind]()
    expected = outcome(lambda: general(fast)(*args, **named))
    args, named = POSITIONAL[kind]()
    assert outcome(lambda: fast(*args, **named)) == expected
    direct = kind in ("floats", "special floats", "nan", "out")
    calls = passed_on(fast)
    outcome(lambda: fast(*args, **named))
    assert bool(calls) is not direct


def read_only() -> np.ndarray[Any, Any]:
    array = np.array([2.0, 5.0])
    array.flags.writeable = False
    return array


def unaligned() -> np.ndarray[Any, Any]:
    array = np.frombuffer(bytearray(17), np.float64, 2, 1)
    array[:] = 2.0, 5.0
    return array


PACKED: dict[str, Callable[[], Any]] = {
    "contiguous": lambda: np.array([2.0, 5.0]),
    "read-only": read_only,
    "a part": lambda: np.array([1.0, 2.0, 5.0, 1.0])[1:3],
    "strided": lambda: np.array([2.0, 0.0, 5.0, 0.0])[::2],
    "reversed": lambda: np.array([5.0, 2.0])[::-1],
    "repeated": lambda: np.broadcast_to(2.0, (2,)),
    "unaligned": unaligned,
    "byte-swapped": lambda: np.array([2.0, 5.0], ">f8"),
    "float32": lambda: np.array([2.0, 5.0], np.float32),
    "ints": lambda: np.array([2, 5]),
    "bools": lambda: np.array([True, False]),
    "objects": lambda: np.array([2.0, 5.0], object),
    "complex": lambda: np.array([2.0, 5.0], complex),
    "times": lambda: np.array([2, 5], "m8[s]"),
    "a subclass": lambda: np.array([2.0, 5.0]).view(Array),
    "masked": lambda: np.ma.array([2.0, 5.0], mask=[False, True]),
    "a list": lambda: [2.0, 5.0],
    "a tuple": lambda: (2.0, 5.0),
    "a number": lambda: 2.0,
    "no axes": lambda: np.array(2.0),
    "too short": lambda: np.array([2.0]),
    "too long": lambda: np.array([2.0, 5.0, 7.0]),
    "empty": lambda: np.empty(0),
    "a batch": lambda: np.array([[2.0, 5.0], [3.0, 6.0]]),
    "a batch of one": lambda: np.array([[2.0, 5.0]]),
    "a batch of none": lambda: np.empty((0, 2)),
    "None": lambda: None,
    "text": lambda: "25",
    "its own error": Failing,
}
DIRECT = ("contiguous", "read-only", "a part")


@machine
@pytest.mark.parametrize("kind", PACKED)
def test_packed_arguments(kind: str) -> None:
    fast = seed(packed=True)
    points = PACKED[kind]()
    expected = outcome(lambda: general(fast)(points))
    assert outcome(lambda: fast(points)) == expected
    calls = passed_on(fast)
    outcome(lambda: fast(points))
    assert bool(calls) is not (kind in DIRECT)


@machine
@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), {}),
        ((np.ones(2), None), {}),
        ((np.ones(2), (np.zeros(()), np.zeros(2))), {}),
        ((np.ones(2), None, None), {}),
        ((), {"points": np.ones(2)}),
        ((np.ones(2),), {"other": 1}),
        ((np.ones(2),), {"out": None}),
        ((np.ones(2),), {"out": None, "other": 1}),
    ],
)
def test_packed_calls_of_another_form(args: Any, named: Any) -> None:
    fast = seed(packed=True)
    assert outcome(lambda: fast(*args, **named)) == outcome(lambda: general(fast)(*args, **named))


def frozen() -> np.ndarray[Any, Any]:
    array = np.zeros(2)
    array.flags.writeable = False
    return array


BAD_OUT: dict[str, tuple[Callable[[], Any], str]] = {
    "one array": (lambda: np.zeros(3), r"out is \*, and the results are \(\*, \*\)"),
    "too few": (lambda: (np.zeros(()),), r"out is \(\*,\)"),
    "too many": (lambda: (np.zeros(()), np.zeros(2), np.zeros(1)), r"out is \(\*, \*, \*\)"),
    "a list": (lambda: [np.zeros(()), np.zeros(2)], r"out is \[\*, \*\]"),
    "a shape": (lambda: (np.zeros(()), np.zeros(3)), r"out\[1\] has the shape \(3,\)"),
    "a long number": (lambda: (np.zeros(1), np.zeros(2)), r"out\[0\] has the shape \(1,\)"),
    "float32": (lambda: (np.zeros(()), np.zeros(2, "f4")), r"out\[1\] has the dtype <f4"),
    "swapped": (lambda: (np.zeros(()), np.zeros(2, ">f8")), r"out\[1\] has the dtype >f8"),
    "ints": (lambda: (np.zeros((), int), np.zeros(2)), r"out\[0\] has the dtype <i8"),
    "strided": (lambda: (np.zeros(()), np.zeros(4)[::2]), r"out\[1\] is not contiguous"),
    "read-only": (lambda: (np.zeros(()), frozen()), r"out\[1\] is read-only"),
    "a float": (lambda: (0.0, np.zeros(2)), r"out\[0\] is of type float"),
}


@pytest.mark.parametrize("target", ["native", "auto", "python", "numpy"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", BAD_OUT)
def test_memory_that_results_cannot_be_written_to(kind: str, packed: bool, target: str) -> None:
    fast = compile(dl.value_and_gradient(dl.parse(SEED)), target, packed=packed)
    args = (np.array([2.0, 5.0]),) if packed else (2.0, 5.0)
    make, message = BAD_OUT[kind]
    out = make()
    with pytest.raises(InputError, match=message):
        fast(*args, out=out)
    for array in out:
        np.testing.assert_array_equal(array, 0)  # nothing is written before all is checked


@pytest.mark.parametrize("target", ["native", "auto", "python", "numpy"])
def test_results_in_given_memory(target: str) -> None:
    f = dl.value_and_gradient(dl.parse(SEED))
    fast, packed = compile(f, target), compile(f, target, packed=True)
    point, pairs = np.array([2.0, 5.0]), np.array([[2.0, 5.0], [2.0, 5.0]])
    calls: list[tuple[tuple[int, ...], Callable[..., Any]]] = [
        ((), partial(fast, 2.0, 5.0)),
        ((), partial(fast, 2, x2=5)),
        ((), partial(packed, point)),
        ((), partial(packed, [2, 5])),
        ((2,), partial(fast, point[:1].repeat(2), 5.0)),
        ((2,), partial(packed, pairs)),
    ]
    for batch, call in calls:
        out = np.full(batch, np.nan), np.full((*batch, 2), np.nan)
        assert call(out=out) is out
        np.testing.assert_allclose(out[0], VALUE, rtol=1e-15)
        np.testing.assert_allclose(out[1], np.broadcast_to(SLOPE, (*batch, 2)), rtol=1e-15)
    slope = compile(dl.gradient(dl.parse(SEED)), target, packed=True)
    assert slope(point, out=point) is point  # the memory of the argument itself
    np.testing.assert_allclose(point, SLOPE, rtol=1e-15)


@pytest.mark.parametrize("target", ["native", "auto", "python", "numpy"])
def test_memory_for_results_that_inputs_share(target: str) -> None:
    # The arguments are read before a result is written.
    gradient = compile(dl.gradient(dl.parse(SEED)), target, packed=True)
    whole = np.array([2.0, 5.0, 0.0])
    assert gradient(whole[:2], out=whole[:2]).base is whole
    np.testing.assert_array_equal(whole, [*SLOPE, 0.0])
    whole[:2] = 2.0, 5.0
    gradient(whole[:2], out=whole[1:])
    np.testing.assert_array_equal(whole, [2.0, *SLOPE])
    n = 30  # read where it is, not copied
    x = np.linspace(0.1, 1.0, n + 1)
    vectors = dl.gradient(dl.parse(f"x: [{n}]\nsum(sin(x)*exp(x))"))
    fast = compile(vectors, "auto" if target == "python" else target, packed=True)
    expected = np.cos(x[:n]) * np.exp(x[:n]) + np.sin(x[:n]) * np.exp(x[:n])
    fast(x[:n], out=x[1:])
    np.testing.assert_allclose(x[1:], expected, rtol=1e-14)


@machine
def test_memory_of_subclasses_of_arrays() -> None:
    fast = seed(packed=True)
    out = np.zeros(()).view(Array), np.zeros(2).view(Array)
    calls = passed_on(fast)
    found = fast(np.array([2.0, 5.0]), out=out)
    assert found is out
    assert calls
    np.testing.assert_array_equal(out[1], SLOPE)


@pytest.mark.parametrize("target", ["native", "auto", "numpy"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("n", [5, 20_000])
def test_batches_in_the_memory_of_an_earlier_call(n: int, packed: bool, target: str) -> None:
    fast = compile(dl.value_and_gradient(dl.parse(SEED)), target, packed=packed)
    draw = np.random.default_rng(n)
    points, others = draw.uniform(0.5, 3.0, (2, n, 2))
    given = [[x] if packed else list(np.ascontiguousarray(x.T)) for x in (points, others)]
    value, gradient = out = fast(*given[0])
    expected = bits(fast(*given[1]))
    assert fast(*given[1], out=out) is out
    assert bits((value, gradient)) == expected
    rows = np.empty(n), np.empty((n, 2))  # in C's order
    fast(*given[1], out=rows)
    assert bits(rows) == expected


@machine
@pytest.mark.parametrize("n", [50, 20_000])
def test_batches_are_written_to_memory_at_once(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = seed()
    x, y = np.random.default_rng(1).uniform(0.5, 3.0, (2, n))
    out = fast(x, y)

    def copied(*_: Any) -> Any:
        raise AssertionError("the results were copied")

    monkeypatch.setattr("difflab.execute.compiled.written", copied)
    fast(y, x, out=out)
    assert bits(out) == bits(fast(y, x))
    for memory in (
        (out[0], np.empty((n, 2))),  # rows
        (x, out[1]),  # an input
        (out[1][:, 0], out[1]),  # another result
        (out[0][::2], out[1]),
    ):
        with pytest.raises(AssertionError, match="copied"):
            fast(x, y, out=memory)


@pytest.mark.parametrize("target", ["native", "numpy"])
def test_batches_in_memory_that_inputs_share(target: str) -> None:
    fast = compile(dl.gradient(dl.parse(SEED)), target)
    memory = np.random.default_rng(2).uniform(0.5, 3.0, (3, 20_000))
    x, y = memory[:2].copy()
    fast(memory[0], memory[1], out=memory[1:].T)
    assert bits(memory[1:].T) == bits(fast(x, y))


def test_an_input_named_out_is_an_input() -> None:
    for target in ("native", "python", "numpy"):
        fast = compile(dl.parse("2*out"), target)
        assert fast(out=3.0) == fast(3.0) == 6.0
        into = np.zeros(())
        compile(dl.parse("2*out"), target, packed=True)(np.array([3.0]), out=into)
        assert into == 6.0


def test_memory_for_results_that_are_no_numbers() -> None:
    with pytest.raises(UnsupportedError, match="out= takes results"):
        seed()(dl.tensor(2.0), 5.0, out=(np.zeros(()), np.zeros(2)))


def reads_batches(fast: Compiled) -> Compiled:
    """Let machine code read the arrays of batches from now on."""
    fast(np.ones((100, fast.function.n))) if fast.packed else fast(
        *[np.ones(100)] * fast.function.n
    )
    fast._install(None, fast._batch_code())
    return fast


GRID = np.linspace(0.5, 3.0, 5000), np.linspace(-3.0, 3.0, 5000)
BATCHES = {
    "a vector's width": (GRID[0][:8], GRID[1][:8]),
    "no whole vectors": (GRID[0][:1003], GRID[1][:1003]),
    "parts": (GRID[0][7:99], GRID[1][1:93]),
    "one array": (GRID[0], GRID[0]),
    "read-only": (np.broadcast_to(GRID[0], (1, 5000))[0], GRID[1]),
    "out of the domain": (-GRID[0], GRID[1] * math.inf),
}
OTHERS = {
    "few points": (GRID[0][:1], GRID[1][:1]),
    "no points": (GRID[0][:0], GRID[1][:0]),
    "many points": (np.resize(GRID[0], 70_000), np.resize(GRID[1], 70_000)),
    "steps": (GRID[0][::2], GRID[1][:2500]),
    "backwards": (GRID[0][::-1], GRID[1]),
    "two axes": (GRID[0].reshape(50, 100), GRID[1].reshape(50, 100)),
    "axes of different numbers": (GRID[0][:100], GRID[1][:100].reshape(1, 100)),
    "lengths": (GRID[0], GRID[1][:4999]),
    "length 1": (GRID[0], GRID[1][:1]),
    "a float": (GRID[0], 2.0),
    "a float first": (2.0, GRID[1]),
    "a number of NumPy": (np.float64(2.0), GRID[1]),
    "no axis": (np.array(2.0), np.array(5.0)),
    "single": (GRID[0].astype(np.float32), GRID[1]),
    "whole": (np.arange(1, 100), np.arange(1, 100)),
    "big-endian": (GRID[0].astype(">f8"), GRID[1]),
    "unaligned": (np.frombuffer(bytes(1) + GRID[0].tobytes(), np.uint8)[1:].view(float), GRID[1]),
    "complex": (GRID[0] + 0j, GRID[1]),
    "a subclass": (GRID[0].view(Array), GRID[1]),
    "a list": (GRID[0].tolist(), GRID[1]),
    "none": (None, GRID[1]),
    "one argument": (GRID[0],),
    "three arguments": (*GRID, GRID[0]),
}
ROWS = np.stack(GRID, 1)
PACKED_BATCHES = {
    "a vector's width": ROWS[:8],
    "no whole vectors": ROWS[:1003],
    "parts": ROWS[7:99],
    "many points": np.resize(ROWS, (65_536, 2)),
    "read-only": np.broadcast_to(ROWS, (1, 5000, 2))[0],
    "out of the domain": ROWS * [-1.0, math.inf],
}
PACKED_OTHERS = {
    "few points": ROWS[:7],
    "one": ROWS[:1],
    "no points": ROWS[:0],
    "more points than a block": np.resize(ROWS, (70_000, 2)),
    "steps": ROWS[::2],
    "backwards": ROWS[::-1],
    "columns": np.asfortranarray(ROWS),
    "columns of more": np.resize(ROWS, (5000, 3))[:, :2],
    "three axes": ROWS.reshape(50, 100, 2),
    "one column": ROWS[:, :1].copy(),
    "three columns": np.resize(ROWS, (5000, 3)),
    "no columns": np.empty((100, 0)),
    "three numbers": np.ones(3),
    "a float": 2.0,
    "no axis": np.array(2.0),
    "single": ROWS.astype(np.float32),
    "whole": np.arange(1, 201).reshape(100, 2),
    "big-endian": ROWS.astype(">f8"),
    "unaligned": np.frombuffer(bytes(1) + ROWS.tobytes(), np.uint8)[1:].view(float).reshape(-1, 2),
    "complex": ROWS + 0j,
    "a subclass": ROWS.view(Array),
    "a masked array": np.ma.array(ROWS),
    "a list": ROWS[:100].tolist(),
    "none": None,
}


@machine
@pytest.mark.parametrize("kind", [*BATCHES, *OTHERS])
@pytest.mark.parametrize("point", [True, False])
def test_batches_by_position(kind: str, point: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not point:
        monkeypatch.setattr(point_calls, "FEW_CALLS", 1000)
    for made in (dl.value_and_gradient, dl.gradient, lambda f: f):
        f = made(dl.parse(SEED))
        fast, args = reads_batches(compile(f, "native")), {**BATCHES, **OTHERS}[kind]
        assert fast._has_point_code is point
        expected = outcome(lambda args=args, f=f: compile(f, "native")(*args))
        calls = passed_on(fast)
        assert outcome(lambda fast=fast, args=args: fast(*args)) == expected
        assert bool(calls) is (kind in OTHERS)
        assert bits(fast(2.0, 5.0)) == bits(compile(f, "native")(2.0, 5.0))


@machine
@pytest.mark.parametrize("kind", [*PACKED_BATCHES, *PACKED_OTHERS])
def test_packed_batches(kind: str) -> None:
    points = {**PACKED_BATCHES, **PACKED_OTHERS}[kind]
    for made in (dl.value_and_gradient, dl.gradient, lambda f: f):
        fast = reads_batches(compile(made(dl.parse(SEED)), "native", packed=True))
        kept = copy.deepcopy(points)
        expected = outcome(lambda fast=fast: general(fast)(points))
        calls = passed_on(fast)
        assert outcome(lambda fast=fast: fast(points)) == expected
        assert bool(calls) is (kind in PACKED_OTHERS)
        assert bits(points) == bits(kept)
        x = np.array([2.0, 5.0])
        assert bits(fast(x)) == bits(general(fast)(x))


@machine
@pytest.mark.parametrize("points", [8, 9, 31, 33, 1000, 4096, 4099])
@pytest.mark.parametrize("n", [2, 3, 17, 30])
def test_packed_batches_of_a_vector(n: int, points: int) -> None:
    rows = np.random.default_rng(points).normal(size=(points, n))
    for target in ("native", "auto"):
        fast = reads_batches(compile(chain(n), target, packed=True))
        expected = [bits(general(fast)(rows)), bits(compile(chain(n), target)(rows))]
        calls = passed_on(fast)
        assert [bits(fast(rows))] * 2 == expected
        code = vars(fast)["_machine_call"].batch
        assert code is not None
        assert bool(calls) is not (code.least <= points <= code.most)


@machine
def test_packed_batches_in_given_memory() -> None:
    fast = reads_batches(seed(packed=True))
    value, slope = fast(ROWS)
    assert value.flags.owndata
    assert slope.flags.owndata
    assert slope.flags.f_contiguous
    assert not any(np.may_share_memory(each, ROWS) for each in (value, slope))
    expected, again = bits((value, slope)), fast(ROWS[::-1].copy())
    assert bits((value, slope)) == expected
    for out in (again, (np.empty(5000), np.empty((5000, 2)))):
        assert fast(ROWS, out=out) is out
        assert bits(out) == expected
    assert bits(fast(ROWS, out=None)) == expected
    point = np.empty(()), np.empty(2)
    for wrong in (point, (value, slope.T), (value,), value):
        wanted = outcome(lambda out=wrong: general(fast)(ROWS, out=out))
        assert wanted[0] is InputError
        assert outcome(lambda out=wrong: fast(ROWS, out=out)) == wanted


def during(finalizer: Callable[[], Any], call: Callable[[], Any]) -> Any:
    """Return what a call returns; up to 3.11 garbage is collected in it, by its new tuple."""
    finalized: list[Any] = []

    class Garbage:
        def __del__(self) -> None:
            finalized.append(finalizer())

    thresholds = gc.get_threshold()
    gc.collect()
    gc.disable()
    garbage = Garbage()
    garbage.itself = garbage  # type: ignore[attr-defined]
    del garbage
    gc.set_threshold(1)
    kept = [[] for _ in range(9)]  # more new objects than the threshold
    try:
        gc.enable()
        found = call()
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert len(finalized) == 1
    assert len(kept) == 9
    return found


@machine
@pytest.mark.parametrize("packed", [False, True])
def test_a_finalizer_that_runs_in_a_batch_does_not_change_it(packed: bool) -> None:
    fast = reads_batches(seed(packed=packed))
    given, others = ((ROWS,), (ROWS[::-1].copy(),)) if packed else (GRID, GRID[::-1])
    expected = bits(fast(*given))
    assert bits(during(lambda: fast(*others), lambda: fast(*given))) == expected


@machine
@pytest.mark.parametrize("packed", [False, True])
def test_a_finalizer_that_resizes_the_arrays_of_a_batch(packed: bool) -> None:
    fast = reads_batches(seed(packed=packed))
    given = [ROWS.copy()] if packed else [column.copy() for column in GRID]
    others = [np.ones((50, 2))] if packed else [np.ones(50), np.ones(50)]

    def shrink() -> None:
        fast(*others)
        for array in given:
            array.resize((9, *array.shape[1:]), refcheck=False)

    whole = bits(fast(*given))
    found = bits(during(shrink, lambda: fast(*given)))
    assert found in (whole, bits(general(fast)(*given)))
    assert len(given[0]) == 9


@machine
@pytest.mark.parametrize("packed", [False, True])
def test_a_finalizer_beside_which_another_thread_begins_a_batch(packed: bool) -> None:
    fast = reads_batches(seed(packed=packed))
    given = (ROWS,) if packed else GRID
    expected = bits(fast(*given))
    words, busy = vars(fast)["_machine_call"]._call, CALL.index("busy")
    words[busy] = 0
    assert bits(during(lambda: words.__setitem__(busy, 1), lambda: fast(*given))) == expected
    assert words[busy] == 1  # the tables are the other thread's
    words[busy] = 0
    assert bits(fast(*given)) == expected


@machine
def test_batches_are_stored_by_columns() -> None:
    fast = reads_batches(seed())
    value, gradient = fast(*GRID)
    assert value.flags.c_contiguous
    assert gradient.flags.f_contiguous
    assert gradient[:, 0].flags.c_contiguous
    kept = bits((value, gradient))
    again = fast(GRID[1], GRID[0])
    assert bits((value, gradient)) == kept
    assert not any(map(np.may_share_memory, again, (value, gradient)))
    assert fast(*GRID, out=again) is again
    assert bits(again) == kept


@machine
def test_batches_of_other_functions() -> None:
    named = dl.trace(lambda a, b: {"one": a * np.sin(b), "two": (a + b, a)}, 1.0, 2.0)
    square = dl.hessian(dl.parse(SEED))
    for f, reads in ((named, True), (dl.parse("x < y"), False), (square, False)):
        for packed, args in ((False, GRID), (True, (ROWS,))):
            fast = compile(f, "native", packed=packed)
            expected = bits(fast(*args))
            fast._install(None, fast._batch_code())
            calls = passed_on(fast)
            assert bits(fast(*args)) == expected
            assert bool(calls) is not reads


@machine
@pytest.mark.parametrize("packed", [False, True])
def test_batches_go_over_when_there_have_been_some(
    packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(point_calls, "FEW_CALLS", 3)
    fast = compile(dl.value_and_gradient(dl.parse(SEED)), packed=packed)
    batch, one = ((ROWS,), (np.array([2.0, 5.0]),)) if packed else (GRID, (2.0, 5.0))
    first, point = bits(fast(*batch)), bits(fast(*one))
    calls = passed_on(fast)
    for _ in range(2):
        assert bits(fast(*batch)) == first
    workers.finish()
    assert len(calls) == 2
    assert bits(fast(*batch)) == first
    assert len(calls) == 2
    assert bits(fast(*one)) == point
    assert fast.go_over()
    assert bits(fast(*one)) == point
    assert bits(fast(*batch)) == first
    assert len(calls) == 2


@machine
@pytest.mark.parametrize("packed", [False, True])
def test_threads_share_a_function_of_batches(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_call, "LONG", 1)  # other threads run during each call
    fast = reads_batches(seed(packed=packed))
    points = [(ROWS + k,) if packed else (GRID[0] + k, GRID[1] - k) for k in range(4)]
    expected = [bits(general(fast)(*args)) for args in points]
    wrong: list[int] = []

    def work(k: int) -> None:
        wrong.extend(k for _ in range(200) if bits(fast(*points[k])) != expected[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(points))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@machine
def test_functions_of_arrays() -> None:
    fast = network()
    W, x, s = NETWORK
    frozen_x = x.copy()
    frozen_x.flags.writeable = False
    direct = [(W, x, s), (W, frozen_x, s)]
    others = [
        (np.asfortranarray(W), x, s),
        (W, np.repeat(x, 2)[::2], s),
        (W, x.astype(np.float32), s),
        (W, x.astype(">f8"), s),
        (W, x, 2),
        (W, x, np.float64(1.5)),
        (W.view(Array), x, s),
        (W.tolist(), x, s),
        (W.T, x, s),
        (W, x[:-1], s),
        (W, x, None),
    ]
    expected = [outcome(lambda a=args: general(fast)(*a)) for args in direct + others]
    calls = passed_on(fast)
    assert [outcome(lambda a=args: fast(*a)) for args in direct] == expected[: len(direct)]
    assert not calls
    assert [outcome(lambda a=args: fast(*a)) for args in others] == expected[len(direct) :]
    assert len(calls) == len(others) - 2  # the method takes other orders in memory itself


@machine
def test_structures_of_results() -> None:
    functions: list[Callable[..., Any]] = [
        lambda x, y: {"b": x * y, "a": (x + y, [np.sin(x)])},
        lambda x, y: [x * y],
        lambda x, y: (x * y,),
        lambda x, y: (x * y, x - y),
        lambda x, y: {"a": [x, None, y * x], "b": ()},
        lambda x, y: (x > y, x * y),
    ]
    for function in functions:
        for points in ((2.0, 5.0), (np.array([2.0, 3.0]), np.array([5.0, 7.0]))):
            fast = compile(dl.trace(function, *points), "native")
            assert outcome(lambda: fast(*points)) == outcome(lambda: general(fast)(*points))  # noqa: B023
            found, structure = flatten(fast(*points))
            assert structure == flatten(fast.function(*points))[1]
            wanted = flatten(function(*points))[0]
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-15)


@machine
@pytest.mark.parametrize("n", [10, 60, 200])
def test_chains_of_every_size(n: int) -> None:
    f = chain(n)
    for target in ("native", "auto"):
        fast = compile(f, target, packed=True)
        x, out = np.linspace(0.1, 1.0, n), (np.zeros(()), np.zeros(n))
        value, slope = general(fast)(x)
        calls = passed_on(fast)
        assert bits(fast(x)) == bits((value, slope))
        assert fast(x, out=out) is out
        assert bits(out[1]) == bits(slope)
        assert out[0] == value
        assert not calls or target == "auto"
        plain = compile(f, target)
        assert bits(plain(x)) == bits((value, slope))


@machine
def test_results_share_no_memory() -> None:
    fast = seed(packed=True)
    x = np.array([2.0, 5.0])
    first = fast(x)[1]
    kept = first.copy()
    assert first.flags.owndata
    fast(np.array([3.0, 7.0]))
    np.testing.assert_array_equal(first, kept)


COUNTED, FEW = 100_000, 100


@machine
def test_reference_counts_stay_level() -> None:
    fast, packed, arrays = reads_batches(seed()), reads_batches(seed(packed=True)), network()
    a, b, x = 2.5, 5.5, np.array([2.0, 5.0])
    out, bad = (np.zeros(()), np.zeros(2)), (np.zeros(()), np.zeros(3))
    dictionary = reads_batches(compile(dl.trace(lambda u: {"a": u * 2.0}, 1.0), "native"))
    objects = [
        fast, packed, arrays, dictionary, a, b, x, out, *out, bad, *bad, *NETWORK, None, float,
        tuple, np.ndarray, x.dtype, "out", ("out",), type(fast), type(packed), *GRID, ROWS,
    ]  # fmt: skip

    def calls(count: int) -> None:
        for _ in range(count):
            fast(a, b)
            fast(*GRID)
            packed(x)
            packed(ROWS)
            packed(x, out=out)
            dictionary(a)
            dictionary(GRID[0])
            arrays(*NETWORK)
        for _ in range(count // 100):  # passed on, some with an error
            fast(2, b)
            fast(a, x2=b)
            with pytest.raises(InputError):
                packed(x, out=bad)

    calls(200)
    gc.collect()
    before, blocks = [sys.getrefcount(each) for each in objects], sys.getallocatedblocks()
    calls(COUNTED)
    gc.collect()
    after = [sys.getrefcount(each) for each in objects]
    grown = sys.getallocatedblocks() - blocks
    assert max(abs(new - old) for new, old in zip(after, before, strict=True)) < FEW
    assert grown < FEW


@machine
def test_the_code_lives_as_long_as_the_callable() -> None:
    gc.disable()
    try:
        fast = seed()
        reference, held = weakref.ref(fast), weakref.ref(vars(fast)["_machine_call"])
        method, entry = fast.__call__, partial(fast, 2.0)
        del fast
        gc.collect()
        assert method(2.0, 5.0)[0] == entry(5.0)[0] == pytest.approx(VALUE, rel=1e-15)
        del method, entry
        assert reference() is None  # without a search for cycles
        assert held() is None
    finally:
        gc.enable()


@machine
@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_machine_code_is_used_when_a_function_is_called_often(
    packed: bool, loaded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = point_calls.FEWEST_CALLS
    monkeypatch.setattr(point_calls, "FEW_CALLS", count)
    monkeypatch.setattr(point_calls, "loaded", lambda: loaded)
    for fast in (seed(packed=packed), compile(chain(300), "auto", packed=packed)):
        x = np.linspace(2.0, 5.0, fast.function.n)
        args = (x,) if packed or fast.function.n > 2 else tuple(x.tolist())
        first = bits(fast(*args))
        for _ in range(count - 2):
            assert bits(fast(*args)) == first
        assert "_machine_call" not in vars(fast)
        assert bits(fast(*args)) == first
        workers.finish()
        assert "_machine_call" in vars(fast)
        calls = passed_on(fast)
        assert bits(fast(*args)) == first
        assert not calls


@machine
def test_copies_are_compiled_again() -> None:
    for fast in (seed(), seed(packed=True)):
        args = (np.array([2.0, 5.0]),) if fast.packed else (2.0, 5.0)
        for made in (copy.copy(fast), copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
            calls = passed_on(made)
            assert bits(made(*args)) == bits(fast(*args))
            assert not calls
            assert vars(made)["_machine_call"] is not vars(fast)["_machine_call"]
    bare = type(fast).__new__(type(fast))  # nothing is set for it, so its method is called
    with pytest.raises(AttributeError):
        bare(2.0)


@machine
def test_the_object_keeps_its_attributes() -> None:
    fast = seed()
    assert isinstance(fast, Compiled)
    assert fast.target == "native"
    assert fast.reason == "native: as requested"
    assert "define" in fast.source
    assert "compiled" in repr(fast)
    assert callable(fast)
    assert fast.__call__(2.0, 5.0) is not None
    assert next(map(fast, [2.0], [5.0]))[0] == pytest.approx(VALUE, rel=1e-15)


@machine
@pytest.mark.parametrize("n", [4, 200])
def test_threads(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_call, "LONG", 1)  # other threads run during each call
    fast = compile(chain(n), "native", packed=True)
    points = [np.linspace(0.1, 1.0 + k, n) for k in range(8)]
    expected = [bits(general(fast)(x)) for x in points]
    wrong: list[int] = []

    def work(k: int) -> None:
        out = (np.zeros(()), np.zeros(n))
        for _ in range(300):
            fast(points[k], out=out)
            if bits(fast(points[k])) != expected[k] or bits(out[1]) != expected[k][1][1]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(points))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("missing", ["layouts", "entry", "enable_vectorcall"])
def test_an_unknown_interpreter_has_the_general_call(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_call, missing, lambda *_: None)
    fast, packed = seed(), seed(packed=True)
    assert "_machine_call" not in vars(fast)
    assert fast(2.0, 5.0)[0] == pytest.approx(VALUE, rel=1e-15)
    out = np.zeros(()), np.zeros(2)
    assert packed(np.array([2.0, 5.0]), out=out) is out
    np.testing.assert_allclose(out[1], SLOPE, rtol=1e-15)


@pytest.mark.skipif(not RELEASE, reason="not a release build of CPython on Linux or macOS")
def test_release_builds_have_layouts() -> None:
    assert layouts() is not None
    assert issubclass(Compiled, VectorcallBase)
