"""Under "auto" one point goes over to machine code: when it pays, unnoticed, with the same bits."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute import Compiled, point_calls, workers
from difflab.execute import point_calls as same
from difflab.execute.lower.scalar import LIBRARY, expression_form
from difflab.execute.lower.schedule import ScalarProgram, ScheduledStep
from difflab.execute.point_calls import PointCalls, same_bits, worth_compiling
from difflab.execute.targets.llvm.libraries import llvm
from difflab.execute.targets.llvm.python_objects import layouts
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.execute.targets.python.target import FEW_CALLS, PythonTarget
from difflab.primitives import TABLE, scatter
from tests.execute.test_machine_call import bits, passed_on

pytest.importorskip("llvmlite")

machine = pytest.mark.skipif(
    layouts() is None, reason="this interpreter's objects have no known layout"
)
SEED = "ln(x1) + x1*x2 - sin(x2)"
FEW = 5
SPECIAL = (0.0, 1.0, 0.5, 2.0, 2.5, 3.0, 0.4, 0.3, 0.65, 0.69, 37.0, 710.0, 745.2, 1e22, 5e-324)
SPECIAL = (*SPECIAL, 1e-310, 1e-160, 1e154, 1.7e308, math.inf, 4503599627370497.5, 1 - 2**-53)
SIGNED = [*SPECIAL, *[-number for number in SPECIAL], math.nan]
MANY = 100


@pytest.fixture(autouse=True)
def _few_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let some calls pay for machine code."""
    monkeypatch.setattr(point_calls, "worth_compiling", lambda *_: FEW)
    yield
    workers.finish()


def seed(**options: Any) -> Compiled:
    return dl.compile(dl.value_and_gradient(dl.parse(SEED)), **options)


def went_over(fast: Compiled, *args: Any) -> bool:
    """Call as often as it takes, and return whether machine code is called from then on."""
    for _ in range(FEW + 1):
        fast(*args)
    workers.finish()
    return "_machine_call" in vars(fast)


def with_expressions() -> list[Primitive]:
    kinds = {
        row: tuple("truth" if k in row.truths else "number" for k in range(row.arity))
        for row in TABLE.values()
        if row.arity is not None and 0 < row.arity <= 3
    }
    return [row for row, kind in kinds.items() if expression_form(row, kind) is not None]


def points_of(row: Primitive, rng: np.random.Generator) -> list[list[float]]:
    arity = row.arity or 0
    special = list(itertools.product(SIGNED, repeat=min(arity, 2)))
    fixed = [[*point, *rng.choice(SIGNED, arity - len(point)).tolist()] for point in special]
    size = 10.0 ** rng.uniform(-3, 3, (MANY, arity))
    return [*fixed, *(rng.normal(size=(MANY, arity)) * size).tolist()]


NAMES = [row.name for row in with_expressions() if not row.truths and not row.boolean]


@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_the_bits_of_its_python_expression(
    name: str, rng: np.random.Generator
) -> None:
    row = TABLE[name]
    arity = row.arity or 0
    program = ScalarProgram(arity)
    program.steps.append(ScheduledStep(arity, row, tuple(range(arity)), {}))
    program.outputs.append(np.array(arity))
    try:
        native = NativeTarget(program, [()] * arity, 1, forms=expression_form)
    except UnsupportedError:
        pytest.skip("no machine code")
    python = PythonTarget(program, [()] * arity)
    for point in points_of(row, rng):
        (expected,), (found,) = python.point(point), native.point(point)
        assert bits(found) == bits(expected) or expected != expected != found != found, point


def test_rows_that_have_an_expression() -> None:
    expected = "add divide multiply negative power sqrt exp log sin cos tan tanh atan2 sigmoid"
    expected += " softplus where maximum floor logaddexp xlogy clip relu logcosh"
    assert set(expected.split()) <= {row.name for row in with_expressions()}
    own = "hypot gamma erf erfinv digamma sum matmul"  # Python's own, SciPy's, NumPy's kernels
    assert not set(own.split()) & {row.name for row in with_expressions()}
    assert expression_form(TABLE["add"], ("truth", "number")) is None  # a whole number in Python
    assert expression_form(TABLE["logical_and"], ("number", "number")) is None


@machine
@pytest.mark.parametrize("packed", [False, True])
def test_the_door_goes_over(packed: bool) -> None:
    fast, out = seed(packed=packed), (np.zeros(()), np.zeros(2))
    call = (np.array([2.0, 5.0]),) if packed else (2.0, 5.0)
    first, reason = bits(fast(*call)), fast.reason
    assert first == bits(seed(target="python", packed=packed)(*call))
    assert went_over(fast, *call)
    assert fast.reason == f"{reason}; machine code of the same bits took over one point"
    calls = passed_on(fast)
    assert bits(fast(*call)) == first
    assert fast(*call, out=out) is out
    assert bits(out[1]) == first[1][1]
    assert not calls
    other = ([2, 5],) if packed else (np.float64(2.0), 5)
    assert bits(fast(*other)) == first
    assert calls


@machine
def test_arrays_of_a_formula_go_over() -> None:
    f = dl.value_and_gradient(dl.parse("x: [3]\nexp(x[0])*sin(x[0]*x[1]) + x[1]/x[2]"))
    x = np.array([0.3, -1.7, 2.9])
    fast, expected = dl.compile(f), bits(dl.compile(f, target="python")(x))
    assert bits(fast(x)) == expected
    assert went_over(fast, x)
    assert bits(fast(x)) == expected


@machine
def test_jitted_functions_go_over() -> None:
    def f(a: Any, b: Any) -> Any:
        return {"f": np.log(a) + a * b, "g": [np.sin(b)]}

    fast = dl.jit(f)
    for _ in range(FEW + 1):
        first = fast(2.0, 5.0)
    workers.finish()
    compiled = fast.traces[0].compiled
    assert "_machine_call" in vars(compiled)
    calls = passed_on(compiled)
    assert fast(2.0, 5.0) == first == {"f": math.log(2.0) + 10.0, "g": [math.sin(5.0)]}
    assert not calls


@machine
def test_jitted_functions_of_arrays_go_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(point_calls, "FEW_CALLS", FEW)
    monkeypatch.setattr(point_calls, "FEWEST_CALLS", FEW)

    def f(x: Any) -> Any:
        return np.sum(np.tanh(x) * x)

    fast, x = dl.jit(f, target="native"), np.arange(3.0)
    first = bits(fast(x))
    for _ in range(FEW):
        fast(x)
    workers.finish()
    compiled = fast.traces[0].compiled
    assert "_machine_call" in vars(compiled)
    compiled._arrays._workspaces.clear()  # of calls without machine code, which need a new one
    monkeypatch.setattr(type(compiled._arrays), "workspace", None)
    assert bits(fast(x)) == first


@machine
@pytest.mark.parametrize("text", ["gamma(x)*y", "hypot(x, y)", "x < y", "erf(x) + y"])
def test_functions_without_the_same_bits_stay(text: str) -> None:
    fast = dl.compile(dl.parse(text))
    first = bits(fast(2.0, 0.7))
    assert not went_over(fast, 2.0, 0.7)
    assert bits(fast(2.0, 0.7)) == first


@machine
def test_undefined_and_overflowing_operations() -> None:
    f = dl.value_and_gradient(dl.parse("log(x)/y + exp(x*y) + x^y"))
    began, fast = dl.compile(f, target="python"), dl.compile(f)
    assert went_over(fast, 2.0, 3.0)
    calls = passed_on(fast)
    for x, y in itertools.product(SIGNED, repeat=2):
        pair = zip(fast(x, y), began(x, y), strict=True)
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in pair), (x, y)
    assert not calls


@machine
@pytest.mark.parametrize(
    "text",
    [
        "sin(x[0]*x[1])^2/(1 + exp(-x[8])) - x[2]^3*log(x[3])",
        "where(x[0] > x[1], x[8]^0.1, max(x[2], x[3]))*-0.5",
        "1/(x[0] - x[0]) + exp(1e3*x[1])",  # raises in Python
    ],
)
def test_interpreted_calls_have_the_bits_of_the_code(text: str) -> None:
    f = dl.value_and_gradient(dl.parse(f"x: [9]\n{text}"))
    fast = dl.compile(f, "python", packed=True)
    x = np.linspace(0.3, 1.1, 9)
    found = [bits(fast(x)) for _ in range(FEW_CALLS + 2)]
    assert "run" in vars(fast._python)
    assert all(each == found[-1] for each in found)


def test_no_call_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed, own = threading.Event(), same.NativeTarget.point_code

    def slow(self: Any) -> Any:
        assert allowed.wait(600)
        return own(self)

    monkeypatch.setattr(same.NativeTarget, "point_code", slow)
    fast = seed()
    first = bits(fast(2.0, 5.0))
    for _ in range(10 * FEW):
        assert bits(fast(2.0, 5.0)) == first
    assert "_machine_call" not in vars(fast)
    allowed.set()
    workers.finish()
    assert "_machine_call" in vars(fast)
    assert bits(fast(2.0, 5.0)) == first


def test_threads_take_short_turns_during_the_work_only() -> None:
    before = sys.getswitchinterval()
    seen: list[float] = []
    workers.begin(lambda: seen.append(sys.getswitchinterval()))
    workers.finish()
    assert seen[0] < before == sys.getswitchinterval()
    try:
        workers.begin(lambda: sys.setswitchinterval(0.01))
        workers.finish()
        assert sys.getswitchinterval() == 0.01  # as the program wished meanwhile
    finally:
        sys.setswitchinterval(before)


def test_work_that_fails_is_dropped() -> None:
    done: list[int] = []
    workers.begin(lambda: 1 // 0)
    workers.begin(lambda: done.append(1))
    workers.finish()
    assert done == [1]


@machine
def test_threads_that_call_while_it_goes_over() -> None:
    f = dl.value_and_gradient(dl.parse("sin(x*y)*exp(-x^2)/(1 + y^2)"))
    began, fast = dl.compile(f, target="python"), dl.compile(f)
    points = np.random.default_rng(3).normal(size=(8, 400, 2)).tolist()
    wrong: list[Any] = []

    def work(own: list[list[float]]) -> None:
        wrong.extend(point for point in own if bits(fast(*point)) != bits(began(*point)))

    threads = [threading.Thread(target=work, args=(own,)) for own in points]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    workers.finish()
    assert "_machine_call" in vars(fast)
    work([point for own in points for point in own])
    assert not wrong


@machine
def test_copies_begin_anew() -> None:
    fast = seed()
    assert went_over(fast, 2.0, 5.0)
    for made in (copy.copy(fast), copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        assert "_machine_call" not in vars(made)
        assert bits(made(2.0, 5.0)) == bits(fast(2.0, 5.0))
        assert went_over(made, 2.0, 5.0)
        assert bits(made(2.0, 5.0)) == bits(fast(2.0, 5.0))


def test_a_library_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise OSError("a broken library")

    monkeypatch.setattr("difflab.execute.targets.llvm.engine._joined", broken)
    fast = seed()
    first = bits(fast(2.0, 5.0))
    assert not went_over(fast, 2.0, 5.0)
    assert bits(fast(2.0, 5.0)) == first


@pytest.mark.parametrize(
    "what", ["difflab.execute.choice.available", "difflab.execute.point_calls.layouts"]
)
def test_without_llvmlite_or_in_other_interpreters_calls_stay(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(what, lambda: None)
    fast = seed()
    assert "calls" not in type(fast).__call__.__globals__
    assert not went_over(fast, 2.0, 5.0)


def test_another_library_of_functions_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    llvm()
    program = ScalarProgram(1)
    program.steps.append(ScheduledStep(1, TABLE["sin"], (0,), {}))
    program.outputs.append(np.array(1))
    assert same_bits(program, [()]) is not None
    same._is_shared.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(same.math, "sin", lambda x: math.tan(x) * math.cos(x))
        assert same_bits(program, [()]) is None
    same._is_shared.cache_clear()
    assert all(name in vars(math) for name in LIBRARY)


def test_calls_that_pay() -> None:
    counts = [worth_compiling(operations, True) for operations in (1, 10, 100, 1000)]
    assert counts == sorted(counts, reverse=True)  # code of more operations saves more
    assert worth_compiling(2000, True) > 200
    assert worth_compiling(10, False) > worth_compiling(10, True)


SCRIPT = """
import sys
import difflab as dl
from difflab.execute import point_calls, workers
point_calls.worth_compiling = lambda *_: 1
fast = dl.compile(dl.parse("sin(x)*y"))
print(fast(2.0, 5.0))
print(fast(2.0, 5.0))
{}
"""
FORK = """
import os
child = os.fork()
if child == 0:
    fast = dl.compile(dl.parse("cos(x)*y"))
    fast(2.0, 5.0)
    fast(2.0, 5.0)
    workers.finish()
    os._exit(0 if "_machine_call" in vars(fast) or point_calls.layouts() is None else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


PRINTS = """
for _ in range(3000):
    print(fast(2.0, 5.0))
    fast(2.0, 5.0)
"""


@pytest.mark.parametrize("then", ["", "raise SystemExit(0)", PRINTS, FORK])
def test_a_process_that_ends_or_forks_meanwhile(then: str) -> None:
    if then is FORK and not hasattr(os, "fork"):
        pytest.skip("no fork on this platform")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(then)], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert set(map(float, done.stdout.split())) == {math.sin(2.0) * 5.0}


def is_planned(fast: Compiled) -> bool:
    """Return whether a compiled function has its operations, without asking it for them."""
    return "_steps" in vars(fast)


PLANNED_LATE = (
    SEED,
    "x: [3]; x[0]*x[1] + x[2]^2",
    "x < y",
    "2*x^-1 + x^3 + 1/7",
    "x: [3]; [x[2], x[0]]",
    "exp(x)*sqrt(y)",
)


@pytest.mark.parametrize("text", PLANNED_LATE)
@pytest.mark.parametrize("packed", [False, True])
def test_the_first_call_has_the_bits_of_the_later_ones(text: str, packed: bool) -> None:
    function = dl.parse(text)
    for derived in (function, *([dl.gradient(function)] if function.m == 1 else [])):
        for scale in (0.7, -3.0, 1e200, 0.0, math.inf):
            point = scale * np.arange(1.0, derived.n + 1)
            fast = dl.compile(derived, packed=packed)
            args = [point] if packed else derived.split(point)
            args = [arg if arg.ndim else float(arg) for arg in args]
            first = bits(fast(*args))
            assert bits(fast(*args)) == first
            assert is_planned(fast)
            assert bits(dl.compile(derived, "python", packed=packed)(*args)) == first


def test_the_second_call_plans_what_the_first_one_evaluates() -> None:
    fast = seed()
    first = fast(2.0, 5.0)
    assert not is_planned(fast)
    assert bits(fast(2.0, 5.0)) == bits(first)
    assert is_planned(fast)
    assert type(fast).__mro__.count(Compiled) == 1


def test_a_plan_that_is_interrupted_is_made_by_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fast = seed()
    first = fast(2.0, 5.0)

    def interrupted(self: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PointCalls, "specialised", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fast(2.0, 5.0)
    other = seed()
    for each in (fast, other, other):
        assert bits(each(2.0, 5.0)) == bits(first)
    calls = [vars(type(each))["__call__"].__code__.co_code for each in (fast, other)]
    assert calls[0] == calls[1]


@pytest.mark.parametrize(
    "used",
    [
        lambda fast: fast.reason,
        lambda fast: fast(np.ones(3), 5.0),
        lambda fast: pickle.loads(pickle.dumps(fast))(2.0, 5.0),
        lambda fast: copy.copy(fast),
        lambda fast: fast(2.0, 5.0, out=(np.empty(()), np.empty(2))),
    ],
)
def test_what_is_more_than_a_call_at_a_point_plans(used: Any) -> None:
    fast = seed()
    used(fast)
    assert is_planned(fast)
    assert bits(fast(2.0, 5.0)) == bits(seed()(2.0, 5.0))


def test_parts_that_are_added_up_are_planned_at_once() -> None:
    keys = (((0, 2, 1),), ((1, 3, 1),))
    added = dl.trace(lambda x: scatter(x[:2], x[1:], keys=keys, shape=(3,)), np.ones(3))
    fast = dl.compile(added, packed=True)
    assert fast(np.array([1.0, 2.0, 4.0])).tolist() == [1.0, 4.0, 4.0]
    assert is_planned(fast)


def test_threads_plan_once() -> None:
    fast, made = seed(), []
    plan = fast._plan
    vars(fast)["_plan"] = lambda found: (made.append(1), plan(found))
    fast(2.0, 5.0)
    expected, found = bits(seed()(2.0, 5.0)), []
    threads = [threading.Thread(target=lambda: found.append(bits(fast(2.0, 5.0)))) for _ in "1234"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    assert found == [expected] * 4
