"""Printed digamma and exponential integrals, executed in C and Python, against mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.language import printers
from tests.support.languages import C

NAMES = ("digamma", "e1", "ei")
ULPS = {"digamma": 8.0, "e1": 12.0, "ei": 8.0}
ATOL = 4e-15
"""Near zeros, where only the absolute error is small."""
TRUTHS: dict[str, Callable[[Any], Any]] = {
    "digamma": mpmath.digamma,
    "e1": mpmath.e1,
    "ei": mpmath.ei,
}


def points(name: str) -> list[float]:
    """Return random points of every part of the definition, and the ends of these parts."""
    rng = np.random.default_rng(5)
    size = [*np.exp(rng.uniform(-300, 6.5, 150)), *rng.uniform(0, 60, 250), 1.0, 10.0, 40.0, 714.0]
    below = [-float(x) for x in rng.uniform(0.01, 60, 200)]
    return [float(x) for x in size] + ([] if name == "e1" else below)


def wrong(name: str, compute: Callable[[float], float]) -> list[tuple[float, float, float]]:
    """Return the points where a value is too far from mpmath's, with both values."""
    found = []
    with mpmath.workdps(40):
        for x in points(name):
            truth, value = TRUTHS[name](mpmath.mpf(x)), compute(x)
            size = abs(float(truth))
            # Subtractions of what vanishes together, 1 below and above the zeros, have no digits.
            allowed = max(ULPS[name] * math.ulp(size), ATOL if size < 1 and name != "e1" else 0.0)
            if not abs(value - truth) <= allowed:
                found.append((x, value, float(truth)))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_printed_python_agrees_with_mpmath(name: str) -> None:
    names: dict[str, Any] = {}
    exec(printers.python(dl.parse(f"{name}(x)"), "f"), names)
    assert not wrong(name, names["f"])


@pytest.mark.skipif(not C.there, reason="needs gcc")
def test_printed_c_agrees_with_mpmath(tmp_path: Path) -> None:
    functions = [dl.parse(f"{name}(x)") for name in NAMES]
    at = [np.array(points(name))[:, None] for name in NAMES]
    for name, x, y in zip(NAMES, at, C.values(functions, at, tmp_path), strict=True):
        found = dict(zip(x[:, 0].tolist(), y[:, 0].tolist(), strict=True))
        assert not wrong(name, found.__getitem__), name
