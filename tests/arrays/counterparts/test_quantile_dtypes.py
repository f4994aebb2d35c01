"""Quantiles of float32 have the dtype of NumPy's promotion: the values' for Python's numbers.

NumPy's own functions follow it from 2.4.6; before, a share that is a float64 is one of Python's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from tests.support.rows import for_each

X = np.linspace(-1.0, 2.0, 7, dtype=np.float32) ** 3


@pytest.mark.parametrize("name", ["percentile", "quantile"])
@for_each(
    "share",
    [0.3, 1, np.float32(0.3), np.float64(0.3), [0.25, 0.6], np.array([0.1, 0.4], np.float32)],
    ids=repr,
)
def test_quantiles_have_numpys_dtype(name: str, share: Any) -> None:
    whole = 1 if name == "quantile" else 100
    q = [whole * part for part in share] if isinstance(share, list) else whole * share
    wanted = getattr(np, name)(X, q)
    found = getattr(np, name)(dl.tensor(X, requires_grad=True, dtype=np.float32), q)
    assert found.dtype == np.result_type(X, np.array(q) if isinstance(share, list) else q)
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-6)


def test_jit_computes_quantiles_in_float32_where_numpy_does() -> None:
    q = np.array([20.0, 70.0], dtype=np.float32)
    found = dl.jit(lambda x: np.percentile(x, q))(X)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.percentile(X, q), rtol=1e-6)
