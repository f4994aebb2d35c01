"""The estimate of noise from differences of neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from difflab.differences.sampling import fluctuation, noise_of


@pytest.mark.parametrize("order", [3, 4])
def test_it_is_the_size_of_the_noise(rng: np.random.Generator, order: int) -> None:
    t = np.arange(9.0)
    smooth = 3.0 - t + 0.5 * t**2
    noise = 1e-6 * rng.standard_normal((9, 400))
    found = fluctuation(smooth[:, None] + noise, 1.0, order)
    # The largest of a few differences is about one to two standard deviations.
    assert 0.9e-6 < np.median(found) < 2.2e-6


@pytest.mark.parametrize("order", [3, 4])
def test_polynomials_of_a_lower_degree_are_no_noise(order: int) -> None:
    t = np.arange(8.0)
    assert fluctuation(t[:, None] ** (order - 1), 3.0, order).tolist() == [0.0]
    assert fluctuation(t[:, None] ** order, 3.0, order)[0] > 1.0


def test_a_jump_at_the_point_itself_is_no_noise() -> None:
    lead = np.concatenate([[[1.0]], np.full((8, 1), 5.0)])
    found = noise_of(lead)
    assert found.center.tolist() == [1.0]
    assert found.noise[0] == pytest.approx(2.0**-52)


def test_the_rounding_is_that_of_the_type_of_the_values() -> None:
    found = noise_of(np.full((9, 1), 3.0, dtype=np.float32))
    assert (found.eps, found.noise[0]) == (2.0**-23, pytest.approx(3.0 * 2.0**-23))
