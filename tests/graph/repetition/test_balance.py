"""Long sums as trees: the same terms, few additions from each to the total."""

from __future__ import annotations

import numpy as np

import difflab as dl
from difflab.graph.function import Function
from difflab.graph.repetition import balanced


def depth(function: Function) -> int:
    levels: list[int] = []
    for _, args in function.graph.rows():
        levels.append(1 + max((levels[arg] for arg in args), default=0))
    return max(levels)


def test_terms_are_near_the_total() -> None:
    n = 1000
    text = "".join(f" {'+-'[i % 2]} x[{i}]^2" for i in range(n))
    function = dl.parse(f"x: [{n}]\ns = 0{text}\n[s, s*x[0]]")
    found = balanced(function)
    assert depth(function) > n
    assert depth(found) < 18
    x = np.arange(n, dtype=np.float64)  # whole numbers are added exactly
    np.testing.assert_array_equal(found.values(x), function.values(x))
    assert found.values(x)[0] == np.sum(x[::2] ** 2) - np.sum(x[1::2] ** 2)
    assert (found.inputs, found.output_names) == (function.inputs, function.output_names)


def test_partial_sums_that_are_used_stay() -> None:
    long = " + ".join(f"x{i}" for i in range(50))
    function = dl.parse(
        f"a = {long}\nb = a + " + " + ".join(f"y{i}" for i in range(50)) + "\n[b, a]"
    )
    found = balanced(function)
    point = np.arange(100.0)
    np.testing.assert_array_equal(found.values(point), function.values(point))


def test_short_sums_stay() -> None:
    function = dl.parse("a + b + c")
    assert balanced(function) is function
