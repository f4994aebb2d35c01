"""Measuring: samples, repeats and budgets on a clock that the test winds."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflab.lab.measure import (
    FIRST_CALL,
    PREPARED,
    SAMPLES,
    CallCost,
    MethodCall,
    SelfMeasured,
    answer,
    in_turns,
    prepare,
)
from difflab.lab.sampling import TimeSampler, spread
from difflab.methods import timer as meter
from difflab.methods.protocol import Estimate, Problem

X = np.zeros(1)


class Clock:
    """A clock that moves only when work is done."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(meter, "perf_counter", clock)
    monkeypatch.setattr(meter, "WAITED", "/proc/self/no-such-file")
    return clock


class Worker:
    """A method and its derivative; both take the time they are told to."""

    size = None
    operations = None

    def __init__(self, work: Callable[[int], None], preparing: Callable[[int], None]) -> None:
        self.work = work
        self.preparing = preparing
        self.calls = 0
        self.prepared = 0

    def prepare(self, problem: Problem) -> Any:
        self.prepared += 1
        self.preparing(self.prepared)
        return self

    def __call__(self, x: Any) -> Estimate:
        self.calls += 1
        self.work(self.calls)
        return Estimate(np.zeros((1, 1)), None, 0)


def timed_call(prepared: Any, x: Any) -> CallCost:
    """Return the cost of one call, or raise its exception."""
    (cost,) = in_turns([MethodCall(prepared, x)])
    if isinstance(cost, CallCost):
        return cost
    raise cost


def sampled(run: Callable[[int], float]) -> list[float]:
    sampler = TimeSampler(run, budget=0.5)
    for _ in range(SAMPLES):
        sampler.take()
    return sampler.samples


def test_a_slow_first_call_does_not_count(clock: Clock) -> None:
    worker = Worker(lambda call: clock.work(0.02 if call == 1 else 1e-5), lambda _: None)
    cost = timed_call(worker, X)
    assert cost.seconds == pytest.approx(1e-5)
    assert all(seconds >= cost.seconds for seconds in cost.samples)


class Timed(Worker):
    """A method as `answer` takes it."""

    orders = (1,)

    def missing(self) -> None:
        return None


def answered(clock: Clock, monkeypatch: pytest.MonkeyPatch, prepare: float, first: float) -> Any:
    """Return the call of a method with a limit of 10 s, all clocks being the test's."""
    monkeypatch.setattr("difflab.lab.measure.perf_counter", clock)
    monkeypatch.setattr("difflab.methods.timer.monotonic", clock)
    method = Timed(
        lambda call: clock.work(first if call == 1 else 1e-3), lambda _: clock.work(prepare)
    )
    problem: Any = Problem(lambda points: points, 1, 1, timeout=10.0)
    return answer(method, problem, X).call  # type: ignore[arg-type]


def test_after_a_long_preparation_the_first_call_is_not_the_time(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine: 9 s of 10 to prepare, and a first call of 0.6 s, which compiles."""
    (cost,) = in_turns([answered(clock, monkeypatch, 9.0, 0.6)])
    assert isinstance(cost, CallCost)
    assert cost.seconds == pytest.approx(1e-3)
    assert (len(cost.samples), cost.noted("proved")) == (SAMPLES, "proved")


def test_a_first_call_that_is_reported_is_named(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cost,) = in_turns([answered(clock, monkeypatch, 1.0, 6.0)])
    assert cost == CallCost((6.0,), None, first=True)
    assert cost.noted() == FIRST_CALL
    assert cost.noted("proved") == f"proved; {FIRST_CALL}"


def test_repeats_double_until_a_sample_is_long_enough(clock: Clock) -> None:
    repeats = []

    def run(count: int) -> float:
        repeats.append(count)
        return count * 1e-4

    assert sampled(run) == pytest.approx([1e-4] * SAMPLES)
    assert repeats[:4] == [1, 2, 4, 8]
    assert repeats[3:] == [8] * SAMPLES


def test_time_that_others_had_the_processor_is_not_counted(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each call runs for a millisecond, and every second one waits for seven before it can."""
    told, calls = tmp_path / "schedstat", itertools.count()
    waited = 0

    def call() -> None:
        nonlocal waited
        if next(calls) % 2:
            waited += 7_000_000
            clock.work(7e-3)
            told.write_text(f"0 {waited} 0\n")
        clock.work(1e-3)

    told.write_text("0 0 0\n")
    monkeypatch.setattr(meter, "WAITED", str(told))
    assert meter.elapsed(call, 10) == pytest.approx(10e-3)
    worker = Worker(lambda _: call(), lambda _: call())
    assert timed_call(worker, X).samples == pytest.approx([1e-3] * SAMPLES)
    _, samples = prepare(worker, Problem(lambda points: points, 1, 1))
    assert samples == pytest.approx([1e-3] * (PREPARED - 1))


def test_a_call_beyond_the_budget_is_made_once() -> None:
    counts: list[int] = []

    def run(count: int) -> float:
        counts.append(count)
        return 2.0 * count

    assert sampled(run) == [2.0]
    assert counts == [1]


def test_the_budget_bounds_the_samples() -> None:
    assert len(sampled(lambda count: 0.2 * count)) == 2


def test_what_slows_the_machine_for_a_while_slows_all_alike(clock: Clock) -> None:
    # The machine becomes three times as slow after a third of the time and stays so.
    def worker() -> Worker:
        return Worker(lambda _: clock.work(1e-3 if clock.now < 0.01 else 3e-3), lambda _: None)

    first, second = in_turns([MethodCall(worker(), X), MethodCall(worker(), X)])
    assert isinstance(first, CallCost)
    assert isinstance(second, CallCost)
    assert first.seconds == pytest.approx(second.seconds)
    assert sum(first.samples) == pytest.approx(sum(second.samples), rel=0.1)


def test_a_call_that_fails_ends_no_other(clock: Clock) -> None:
    def fails(call: int) -> None:
        if call > 5:
            raise ZeroDivisionError("at the sixth call")

    broken = Worker(lambda call: fails(call) or clock.work(1e-3), lambda _: None)
    sound = Worker(lambda _: clock.work(1e-3), lambda _: None)
    failure, cost = in_turns([MethodCall(broken, X), MethodCall(sound, X)])
    assert str(failure) == "at the sixth call"
    assert isinstance(cost, CallCost)
    assert len(cost.samples) == SAMPLES
    with pytest.raises(ZeroDivisionError):
        timed_call(broken, X)


@pytest.mark.parametrize(
    ("samples", "expected"), [([2.0], 0.0), ([1.0, 2.0, 3.0], 0.5), ([5.0] * 9, 0.0)]
)
def test_the_spread_is_that_of_the_quartiles(samples: list[float], expected: float) -> None:
    assert spread(samples) == expected


def test_memory_of_slow_calls_is_not_traced(clock: Clock) -> None:
    assert timed_call(Worker(lambda _: clock.work(0.3), lambda _: None), X).peak_bytes is None
    quick = timed_call(Worker(lambda _: clock.work(1e-3), lambda _: None), X)
    assert quick.peak_bytes is not None


def test_memory_is_that_of_the_arrays() -> None:
    worker = Worker(lambda _: np.ones(250_000).sum(), lambda _: None)
    peak = timed_call(worker, X).peak_bytes
    assert peak is not None
    assert 2_000_000 <= peak < 2_200_000


@pytest.mark.parametrize(
    ("seconds", "samples"), [(1e-3, (1e-3,) * (PREPARED - 1)), (0.1, (0.1,))], ids=str
)
def test_first_imports_are_no_part_of_preparing(
    seconds: float, samples: tuple[float, ...], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def preparing(time: int) -> None:
        if time == 1:
            monkeypatch.setitem(sys.modules, "imported_to_prepare", sys)
            clock.work(0.2)
        clock.work(seconds)

    worker = Worker(lambda _: None, preparing)
    _, found = prepare(worker, Problem(lambda points: points, 1, 1))
    assert found == pytest.approx(samples)


def test_what_imports_nothing_is_prepared_again_only_if_that_is_quick(clock: Clock) -> None:
    worker = Worker(lambda _: None, lambda _: clock.work(0.1))
    _, samples = prepare(worker, Problem(lambda points: points, 1, 1))
    assert (samples, worker.prepared) == (pytest.approx((0.1,)), 1)


def test_what_is_slow_to_prepare_is_prepared_once(clock: Clock) -> None:
    worker = Worker(lambda _: None, lambda _: clock.work(3.0))
    _, samples = prepare(worker, Problem(lambda points: points, 1, 1))
    assert (samples, worker.prepared) == ((3.0,), 1)


class Remote(Worker):
    """A derivative that reads the clock itself."""

    prepare_seconds = 0.25

    def elapsed(self, x: Any, repeats: int) -> float:
        return 0.001 * repeats

    def peak_bytes(self, x: Any) -> int:
        return 4321


def test_a_derivative_elsewhere_measures_itself(clock: Clock) -> None:
    remote = Remote(lambda _: clock.work(9.0), lambda _: clock.work(9.0))
    assert isinstance(remote, SelfMeasured)
    prepared, samples = prepare(remote, Problem(lambda points: points, 1, 1))
    assert samples == (0.25,)
    assert timed_call(prepared, X) == CallCost((0.001,) * SAMPLES, 4321)
    assert remote.calls == 0
