"""Loops that take the same steps, merged: what is returned, and what is left alone."""

from typing import Any

import numpy as np

import difflab as dl
from difflab.graph.passes.shared_steps import steps_once

XS = np.arange(1.0, 7.0).reshape(3, 2)


def loops(f: dl.Function) -> int:
    return int(f.graph.matching(lambda row: row.name == "scan").sum())


def running(c: Any, x: Any) -> Any:
    return 0.5 * c + x, c * x


def test_results_of_every_merged_loop_stay_its_own() -> None:
    def all_of_it(c: Any, xs: Any) -> Any:
        one, products = dl.scan(running, c, xs)
        two, (squares, sums) = dl.scan(lambda c, x: (0.5 * c + x, (c * c, np.sum(c))), c, xs)
        return one, products[1:], products[0, 1], two, squares, sums[-1], sums[::-1]

    c, wanted = np.array([1.0, -2.0]), []
    f = dl.trace(all_of_it, c, XS)
    before, carry = [], c
    for x in XS:
        before.append(carry)
        carry = 0.5 * carry + x
    products = np.array(before) * XS
    squares, sums = np.array(before) ** 2, np.sum(before, axis=1)
    wanted = [carry, products[1:], products[0, 1], carry, squares, sums[-1], sums[::-1]]
    merged = steps_once(f)
    assert (loops(f), loops(merged)) == (2, 1)
    for way in (merged, dl.compile(f, "numpy"), dl.compile(f)):
        for found, value in zip(way(c, XS), wanted, strict=True):
            np.testing.assert_array_equal(found, value)


def test_loops_that_carry_something_else_stay_apart() -> None:
    def different(c: Any, xs: Any) -> Any:
        one = dl.scan(running, c, xs)[0]
        other = dl.scan(lambda c, x: (0.25 * c + x, c), c, xs)[0]
        turned = dl.scan(running, c, xs, reverse=True)[0]
        return one, other, turned, dl.scan(running, c, xs[::-1])[0]

    f = dl.trace(different, np.ones(2), XS)
    assert loops(f) == loops(steps_once(f)) == 4


def test_a_value_and_its_gradient_take_the_steps_once() -> None:
    def loss(c: Any, xs: Any) -> Any:
        last, products = dl.scan(running, c, xs)
        return np.sum(last * last) + np.sum(products)

    f = dl.trace(loss, np.ones(2), XS)
    both = dl.value_and_gradient(f)
    merged = steps_once(both)
    assert (loops(both), loops(merged)) == (3, 2)
    c = np.array([0.5, -1.5])
    for found, wanted in zip(merged(c, XS), both(c, XS), strict=True):
        np.testing.assert_array_equal(found, wanted)
