"""Referees compute in contexts of their own: of other threads, and of the user's precision."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath.libmp import gammazeta

import difflab as dl
from difflab.referee import referee
from difflab.referee.by_values import reference_by_values
from difflab.referee.differences import PointSampler
from difflab.referee.referee import Reference, refer
from difflab.referee.values import STIRLING, ExactValues, _by_stirling, own_context

CASES = [
    ("sqrt(x^2 + 1e-300) + sin(y)", [0.0, 2.0], 1),  # refined at many digits
    ("exp(sin(x))*y^1.5", [0.7, 3.0], 1),
    ("gamma(x)*loggamma(y)", [2.5, 1e3], 1),
    ("abs(x) + cbrt(y)", [0.0, 0.0], 1),
    ("log(x)*zeta(y, 1)", [3.0, 2.5], 2),
]


@pytest.fixture
def differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave no derivative to ball arithmetic."""
    monkeypatch.setattr(referee, "PROVING", 0.0)


def at_each_evaluation(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    values = PointSampler.values

    def watched(self: PointSampler, shifts: dict[int, Any]) -> list[Any]:
        action()
        return values(self, shifts)

    monkeypatch.setattr(PointSampler, "values", watched)


def facts(found: Reference) -> tuple[Any, ...]:
    parts = (found.exact, found.left, found.right)
    exact = [[number._mpf_ for number in part.flat] for part in parts]
    return exact, found.regularity.tolist(), found.bounds.tolist(), found.evaluations


@pytest.mark.usefixtures("differences")
def test_two_threads_judge_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def judged(case: tuple[str, list[float], int]) -> tuple[Any, ...]:
        return facts(refer(dl.parse(case[0]), case[1], order=case[2], timeout=600.0))

    alone = [judged(case) for case in CASES]
    for k, case in enumerate(CASES):
        together = Barrier(2)

        def step(together: Barrier = together) -> None:
            with suppress(BrokenBarrierError):  # the other one is done
                together.wait(600.0)

        def ended(case: tuple[str, list[float], int], together: Barrier = together) -> Any:
            try:
                return judged(case)
            finally:
                together.abort()

        with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
            at_each_evaluation(patch, step)
            found = list(pool.map(ended, (case, CASES[k - 1])))
        assert found == [alone[k], alone[k - 1]]


@pytest.mark.usefixtures("differences")
def test_the_precision_of_the_user_is_never_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    before = gammazeta.MAX_GAMMA_TAYLOR_PREC
    at_each_evaluation(
        monkeypatch, lambda: seen.add((mpmath.mp.prec, gammazeta.MAX_GAMMA_TAYLOR_PREC))
    )
    with mpmath.workprec(77):
        for text, point, order in CASES:
            judge = referee.Referee.of(dl.parse(text), point, order=order, timeout=600.0)
            judge.reference()
            judge.sensitivity([(0, 0)])
    assert seen == {(77, before)}


@pytest.mark.usefixtures("differences")
def test_the_answer_is_that_of_any_precision_of_the_user() -> None:
    usual = facts(refer(dl.parse("exp(x)*y"), [0.7, 3.0]))
    by_values = facts(reference_by_values(lambda x: x**3, [0.3]))
    with mpmath.workdps(3):
        assert facts(refer(dl.parse("exp(x)*y"), [0.7, 3.0])) == usual
        assert facts(reference_by_values(lambda x: x**3, [0.3])) == by_values


@pytest.mark.parametrize("name", ["gamma", "rgamma", "loggamma", "fac", "digamma", "zeta"])
def test_functions_around_gamma_are_those_of_mpmath(name: str) -> None:
    mp = own_context()
    for digits in (20, int(STIRLING * 0.302) + 20):
        with mp.workdps(digits), mpmath.workdps(digits + 10):
            for x in (0.7, 2.5, -1.5, 40.25):
                expected = getattr(mpmath, name)(mpmath.mpf(x))
                gap = abs(expected - getattr(mp, name)(mp.mpf(x)))
                assert gap <= abs(expected) * mpmath.mpf(10) ** (2 - digits)


def test_code_that_calls_mpmath_sees_the_digits_that_it_needs() -> None:
    found = referee.Referee(lambda x: [mpmath.exp(x[0])], [1.0]).reference()
    with mpmath.workdps(60):
        assert abs(found.exact[0, 0] - mpmath.e) < mpmath.mpf(10) ** -30
    assert mpmath.mp.prec == 53


def test_gamma_needs_no_table_of_coefficients_at_many_digits() -> None:
    mp, tables = own_context(), _by_stirling()["gamma_taylor_cache"]
    assert isinstance(tables, dict)
    tables.clear()
    with mp.workprec(2 * STIRLING):
        mp.gamma(2.3)
        mp.loggamma(0.7)
    assert not tables
    with mp.workprec(STIRLING // 2):
        mp.gamma(2.3)
    assert tables


def test_a_table_may_be_added_while_another_thread_looks_for_one() -> None:
    tables: Any = _by_stirling()["gamma_taylor_cache"]
    tables.clear()
    tables.update({1: [], 2: []})
    for digits in tables:
        tables[digits + 10] = []
    assert sorted(tables) == [1, 2, 11, 12]
    tables.clear()


@pytest.mark.parametrize("text", ["sin(sin(sin(x)))", "iterate(y = x; 3 times; sin(y))"])
def test_loops_and_evaluations_keep_the_context_of_their_numbers(text: str) -> None:
    f, mp = dl.parse(text), own_context()
    with mp.workdps(50), mpmath.workdps(60):
        x = mpmath.mpf(0.7)
        expected = mpmath.sin(mpmath.sin(mpmath.sin(x)))
        with mpmath.workdps(5):
            (found,) = ExactValues(f, context=mp)([mp.mpf(0.7)])
            (evaluated,) = dl.evaluate(f, [mp.mpf(0.7)])
        for value in (np.asarray(each, dtype=object).item() for each in (found, evaluated)):
            assert value.context is mp
            assert abs(expected - value) < mpmath.mpf(10) ** -48
