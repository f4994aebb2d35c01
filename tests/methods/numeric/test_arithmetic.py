"""The first pass is stated once: on float64 and, for compilation, on nodes of a graph."""

from __future__ import annotations

import numpy as np
import pytest

import difflab as dl
from difflab.differences import first
from difflab.methods.numeric import compiled_stencil
from difflab.methods.numeric.finite import CENTRAL, FORWARD, RICHARDSON, Differences


@pytest.mark.parametrize("method", [RICHARDSON, CENTRAL, FORWARD], ids=lambda method: method.name)
def test_a_change_of_the_first_pass_reaches_the_compiled_one(
    method: Differences, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, x = dl.parse("exp(x)*y"), np.array([0.5, 2.0])
    name = "_forward" if method.rule.central is None else "_central"
    judge = getattr(first, name)

    def doubled(*arguments: object) -> object:
        value, error, quotients = judge(*arguments)
        return 2.0 * value, error, quotients

    plain = dl.differentiate(f, x, method.name).value
    monkeypatch.setattr(first, name, doubled)
    recorded = compiled_stencil.stencil_function(f, method.rule).values(x)
    np.testing.assert_allclose(recorded[:2], 2.0 * plain, rtol=1e-12)
    np.testing.assert_allclose(dl.differentiate(f, x, method.name).value, 2.0 * plain, rtol=1e-12)
