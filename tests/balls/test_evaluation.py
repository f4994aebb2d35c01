"""Every working precision encloses the same derivatives, those with exact fractions too."""

from __future__ import annotations

import mpmath
import pytest

import difflab as dl
from difflab.balls.evaluation import PRECISIONS, evaluated
from difflab.balls.library import arb


@pytest.mark.parametrize("bits", PRECISIONS)
def test_a_cancelling_quotient(bits: int) -> None:
    """The derivative of (1 - cos x)/x² near 0 is -x/12 + x³/180 - …"""
    (found,) = evaluated(dl.parse("(1 - cos(x))/x^2"), [arb(1e-8)], bits, order=1)
    with mpmath.workdps(60):
        x = mpmath.mpf(1e-8)
        value, slope = (1 - mpmath.cos(x)) / x**2, -x / 12 + x**3 / 180
    assert found.value.overlaps(arb(mpmath.nstr(value, 25)))
    assert found.slopes[0].overlaps(arb(mpmath.nstr(slope, 25)))


@pytest.mark.parametrize("bits", PRECISIONS)
def test_powers_of_fractions(bits: int) -> None:
    (found,) = evaluated(dl.parse("x^3 + 1/x^2"), [arb(0.75)], bits, order=2)
    assert arb(found.value).overlaps(arb(27) / 64 + arb(16) / 9)
    assert arb(found.slopes[0]).overlaps(arb(27) / 16 - arb(128) / 27)
    assert found.curves is not None
    assert arb(found.curves[0, 0]).overlaps(arb(9) / 2 + arb(512) / 27)
