"""Rows of arrays where their derivatives are small, or smooth though a rule would not see it."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import difflab as dl
from tests.support.rows import for_each

LOGITS = [
    [40.0, 0.0],
    [0.0, 40.0],
    [700.0, 3.0, -1.0],
    [0.3, 0.1, -2.0],
    [1.0, 1.0],
    [36.8, 0.0, 36.8],
]


def shares(x: list[float]) -> list[mpmath.mpf]:
    parts = [mpmath.exp(mpmath.mpf(v)) for v in x]
    return [part / sum(parts) for part in parts]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@for_each("x", LOGITS)
def test_shares_that_round_to_1_have_derivatives(x: list[float], name: str, mode: str) -> None:
    """Of p = softmax(x): pᵢ(δᵢₖ − pₖ), which is 1e-18 for the logits 40 and 0, where p₀ is 1."""
    found = dl.jacobian(dl.parse(f"x: [{len(x)}]; {name}(x)"), mode)
    if name == "logsumexp":
        found = dl.jacobian(found, mode)
    with mpmath.workdps(700):
        p = shares(x)
        scale = [mpmath.mpf(1)] * len(x) if name == "log_softmax" else p
        wanted = [
            [float(scale[i] * ((i == k) - p[k])) for k in range(len(x))] for i in range(len(x))
        ]
    np.testing.assert_allclose(found(np.array(x)), wanted, rtol=1e-14, atol=0)
