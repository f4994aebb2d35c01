"""Derivatives at many points in one call are those of a call at each point."""

from __future__ import annotations

import numpy as np
import pytest

import difflab as dl
from difflab.methods.protocol import Batched, Problem, stacked
from difflab.methods.registry import own

POINTS = np.array([[2.0, 5.0], [0.3, -1.0], [1.5, 1e-8], [-1.0, 2.0]])  # undefined at the last


@pytest.mark.parametrize("text", ["ln(x1) + x1*x2 - sin(x2)", "[sqrt(x1)*x2, x1/x2]"])
@pytest.mark.parametrize("often", [False, True])
@pytest.mark.parametrize("name", list(own()))
def test_a_batch_is_a_call_at_each_point(name: str, text: str, often: bool) -> None:
    f = dl.parse(text)
    prepared = own()[name].prepare(Problem(f.values, f.n, f.m, f, often=often))
    assert isinstance(prepared, Batched)
    found = prepared.batch(POINTS)
    with np.errstate(all="ignore"):
        single = stacked([prepared(x) for x in POINTS])
    assert found.value.shape == (4, f.m, 2)
    if name in ("symbolic", "complex-step"):
        np.testing.assert_array_equal(found.value, single.value)
    # Code for many points may round otherwise than code for one.
    rough = {"finite-forward": 1e-5, "finite-central": 1e-8}.get(name, 1e-10)
    np.testing.assert_allclose(found.value, single.value, rtol=rough, atol=rough)
    assert (found.error is None) == (single.error is None)
    assert found.evaluations == single.evaluations


def test_second_derivatives_in_a_batch() -> None:
    f = dl.parse("x1^2*x2 + exp(x1)")
    for name, method in own().items():
        prepared = method.prepare(Problem(f.values, f.n, f.m, f, order=2))
        assert isinstance(prepared, Batched)
        found = prepared.batch(POINTS[:2])
        x1, x2 = POINTS[:2].T
        np.testing.assert_allclose(found.value[:, 0, 0], 2 * x2 + np.exp(x1), rtol=1e-4)
        np.testing.assert_allclose(found.value[:, 0, 1], 2 * x1, rtol=1e-4, err_msg=name)
