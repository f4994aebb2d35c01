"""An evaluation of mpmath that does not return is stopped at the referee's time limit."""

from __future__ import annotations

import math
from importlib.util import find_spec
from time import sleep
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.balls import limit as limit_module
from difflab.errors import MethodTimeout
from difflab.lab.domain import judging
from difflab.lab.domain.answers import Answers
from difflab.methods.protocol import Family
from difflab.referee import referee as referee_module
from difflab.referee.proofs import Proof
from difflab.referee.referee import Referee, refer


class Clock:
    """How often a process was asked, and for how long it was allowed to take."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.limits: list[float] = []
        monkeypatch.setattr(referee_module, "in_process", self)

    def __call__(self, task: Any, *asked: Any, timeout: float, grace: float) -> Any:
        self.limits.append(timeout + grace)
        raise MethodTimeout("stopped")


@pytest.mark.parametrize("text", ["besselj(1e6, x*1e6)", "gammainc(1e7, x*1e7)"])
def test_one_evaluation_that_does_not_return_is_stopped(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    monkeypatch.setattr(referee_module, "prove", lambda f, x, order, s: Proof.blank((1, 1)))
    with pytest.raises(MethodTimeout, match="one evaluation takes longer than the time limit of 5"):
        refer(dl.parse(text), [0.5], timeout=5.0)
    assert len(clock.limits) == 1
    assert clock.limits[0] <= 5.25


def test_a_process_that_does_not_return_is_gone() -> None:
    """The sum of mpmath takes minutes; its process is killed, and the next one answers."""
    hanging = Referee.of(dl.parse("betainc(1e6, 2e6, x)"), [0.5], timeout=0.5)
    found = hanging.reference() if find_spec("flint") else None  # proved by ball arithmetic
    if found is None:
        with pytest.raises(MethodTimeout):
            hanging.reference()
    else:
        assert found.proved.all()
        assert hanging.sensitivity([(0, 0)]) == {}
    assert not any(worker.alive for worker in limit_module._workers)
    assert refer(dl.parse("besselj(1, x)"), [0.5], timeout=60.0).status == "smooth"


def test_where_no_evaluation_returns_a_domain_is_judged_at_few_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[float] = []

    def late(function: Any, point: Any, **_: Any) -> Any:
        tried.append(point[0])
        sleep(0.02)
        raise MethodTimeout("one evaluation takes longer than the time limit of 0.01 s")

    monkeypatch.setattr(Referee, "of", late)
    monkeypatch.setattr(judging, "prove", lambda f, x, order, s: Proof.blank((1, 1)))
    points = np.linspace(0.1, 0.9, 20)[:, None]
    silent = Answers(Family.NUMERIC, np.full((20, 1, 1), math.nan), None)
    found = judging.judged(dl.parse("betainc(1e6, 2e6, x)"), points, [silent], 1, 0.01)
    assert len(tried) == judging.PATIENT
    assert "time limit" in found.methods[0].reasons[19]
