"""Fourier transforms of arrays of expansions."""

from __future__ import annotations

from functools import partial

from difflab.balls.jets import Jet
from difflab.balls.library import arb, exactly, fmpq
from difflab.primitives.fourier_sums import complex_form, inverse_form, real_form

__all__ = ["fft", "irfft", "rfft"]


def _angle(k: int, n: int) -> tuple[Jet, Jet]:
    """Return the cosine and the sine of 2πk/n; as fractions where they are 0 or ±1."""
    turn = fmpq(2 * k, n)
    return Jet(exactly(arb.cos_pi_fmpq(turn))), Jet(exactly(arb.sin_pi_fmpq(turn)))


fft = partial(complex_form, _angle)
rfft = partial(real_form, _angle)
irfft = partial(inverse_form, _angle)
