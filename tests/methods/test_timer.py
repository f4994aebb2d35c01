"""The stopwatch: the time of a thread without what it waits for a processor."""

from __future__ import annotations

import pytest

from difflab.methods.timer import Stopwatch


@pytest.mark.parametrize(("waited", "expected"), [(0.0, 1.0), (0.25, 0.75), (1.5, 0.0)])
def test_time_is_without_waiting_and_never_negative(
    monkeypatch: pytest.MonkeyPatch, waited: float, expected: float
) -> None:
    watch = Stopwatch()
    now, before = 5.0, 2.0
    monkeypatch.setattr("difflab.methods.timer.perf_counter", lambda: now)
    monkeypatch.setattr(watch, "_waited", lambda: before)
    with watch:
        now, before = now + 1.0, before + waited  # what the kernel says is not taken at one moment
        assert watch.seconds() == pytest.approx(expected)
