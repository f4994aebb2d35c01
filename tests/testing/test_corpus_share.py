"""A share of the graders' corpus: right gradients pass, planted faults are found.

All of it, 1,000 right gradients and 1,200 faults, takes minutes.
"""

from __future__ import annotations

import pytest

from benchmarks.graders.corpus import PLANTED, RIGHT, GradientCase, case
from difflab.testing import GradientMismatch, GradientUnjudged, check_gradient

STRIDE = 29  # coprime to the number of classes of faults


def test_right_gradients_raise_no_alarm() -> None:
    alarms = []
    for number in RIGHT[::STRIDE]:
        right = case(number)
        try:
            check_gradient(right.f, right.g, right.x)
        except GradientMismatch as error:
            alarms.append((number, str(error)))
    assert not alarms


@pytest.mark.parametrize("start", range(2))
def test_planted_faults_are_found(start: int) -> None:
    missed = [n for n in PLANTED[7 * start :: 2 * STRIDE] if not found(case(n))]
    assert not missed


def found(planted: GradientCase) -> bool:
    try:
        check_gradient(planted.f, planted.g, planted.x)
    except GradientUnjudged:
        return False
    except GradientMismatch:
        return True
    return False
