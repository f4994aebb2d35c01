"""SciPy's universal functions at edges of their domains: nan, infinity, zero, negative numbers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import special

import difflab as dl

EDGES = (np.nan, -np.inf, -1.0, 0.0, 0.5, 2.0, np.inf)
PAIRS = np.array(list(itertools.product(EDGES, EDGES)))


@pytest.mark.parametrize("name", ["rel_entr", "kl_div", "huber", "pseudo_huber"])
def test_functions_of_two_arguments_have_scipys_values_at_edges(name: str) -> None:
    function: Any = getattr(special, name)
    with np.errstate(all="ignore"):
        expected = function(*PAIRS.T)
        found = dl.trace(lambda x, y: function(x, y), 1.0, 1.0)(*PAIRS.T)
    if (
        name == "pseudo_huber"
    ):  # SciPy's is nan at delta = inf, whose limit is r²/2, and 0 at (nan, 0)
        kept = np.isfinite(PAIRS[:, 0])
        found, expected = found[kept], expected[kept]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
