"""How long a method takes is estimated from the shortest of a few evaluations."""

from __future__ import annotations

import numpy as np
import pytest

import difflab as dl
from difflab.lab import measure
from difflab.methods.protocol import Problem
from difflab.methods.registry import own


def test_one_time_costs_of_the_first_evaluation_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([0.0, 0.09, 1.0, 1.00001, 2.0, 2.00002])
    monkeypatch.setattr(measure, "perf_counter", lambda: next(clock))
    f = dl.parse("x: [3]; sum(sin(x))")
    found = measure.Effort(Problem(f.values, f.n, f.m, f, timeout=10.0), np.ones(3))
    # 30 evaluations for each of 3 inputs: 8.1 s by the first evaluation, 0.9 ms by the second.
    assert not found.is_long(own()["finite-central"])


def test_an_evaluation_that_takes_long_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.2])
    monkeypatch.setattr(measure, "perf_counter", lambda: next(clock))
    f = dl.parse("x: [3]; sum(sin(x))")
    found = measure.Effort(Problem(f.values, f.n, f.m, f, timeout=10.0), np.ones(3))
    assert found.is_long(own()["finite-central"])  # 18 s
