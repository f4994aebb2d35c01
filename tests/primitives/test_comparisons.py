"""Comparisons at equal numbers, zeros of both signs, infinities and nan, against NumPy."""

from __future__ import annotations

from itertools import product

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.primitives import TABLE

EDGES = [-np.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, np.inf, np.nan]
COMPARISONS = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


@pytest.mark.parametrize("sign", COMPARISONS)
@pytest.mark.parametrize("target", ["python", "numpy", "native"])
def test_every_pair_of_edges_compares_as_in_numpy(sign: str, target: str) -> None:
    x, y = (side.ravel() for side in np.meshgrid(EDGES, EDGES))
    compare = dl.compile(dl.parse(f"where(x {sign} y, 1, 0)"), target=target)
    expected = COMPARISONS[sign](x, y).astype(float)
    assert [float(compare(a, b)) for a, b in zip(x, y, strict=True)] == expected.tolist()


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_referee_compares_as_numpy(name: str) -> None:
    row = TABLE[COMPARISONS[name].__name__]
    for a, b in product(EDGES, EDGES):
        assert bool(row.mpmath(mpmath, mpmath.mpf(a), mpmath.mpf(b))) == COMPARISONS[name](a, b)
