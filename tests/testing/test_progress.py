"""Long checks count their evaluations on a terminal, and write nothing elsewhere."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from difflab.testing import GradientMismatch, check_gradient
from difflab.testing.checker.probe import evaluations_shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second pass at every look at the clock."""
    ticks = iter(range(10**9))
    monkeypatch.setattr("difflab.core.progress.monotonic", lambda: float(next(ticks)))


def opaque(x: Any) -> float:
    return float(np.sum(np.asarray(x, dtype=np.float64) ** 2))


@pytest.mark.usefixtures("clock")
def test_a_terminal_shows_the_count_and_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    calls = []

    def f(x: Any) -> float:
        calls.append(x)
        return opaque(x)

    check_gradient(f, lambda x: 2 * x, np.linspace(1.0, 2.0, 1200))
    lines = terminal.getvalue().split("\r")
    assert f"check_gradient: 1,200 components, {len(calls):,} evaluations" in lines[-2]
    assert lines[-1] == "\x1b[K"


@pytest.mark.usefixtures("clock")
def test_the_line_is_cleared_before_a_failure_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with pytest.raises(GradientMismatch, match=r"wrong in 3 of 3"):
        check_gradient(lambda p: opaque(p["w"]), lambda p: {"w": 3 * p["w"]}, {"w": np.ones(3)})
    assert "3 components" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_short_checks_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr("difflab.core.progress.monotonic", lambda: 0.0)
    check_gradient(opaque, lambda x: 2 * x, [1.0, 2.0])
    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("stream", [io.StringIO, lambda: None])
def test_what_is_no_terminal_gets_nothing(
    monkeypatch: pytest.MonkeyPatch, stream: Callable[[], Any]
) -> None:
    monkeypatch.setattr(sys, "stderr", stream())
    check_gradient(opaque, lambda x: 2 * x, [1.0, 2.0])
    with evaluations_shown(opaque, 1) as f:
        assert f is opaque
    assert sys.stderr is None or sys.stderr.getvalue() == ""


@pytest.mark.usefixtures("clock")
def test_messages_are_the_same_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.exp(2 * x))

    # What the truth is taken from, which the message says, would depend on the machine's speed.
    monkeypatch.setattr("difflab.testing.checker.truth._TIMEOUT", 600.0)
    said = []
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        with pytest.raises(GradientMismatch) as told:
            check_gradient(f, lambda x: np.exp(2 * x), [0.5, 1.0])
        said.append(str(told.value))
    assert said[0] == said[1]
