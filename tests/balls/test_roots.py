"""Boxes with exactly one root, against formulas and mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl

pytest.importorskip("flint")

from difflab.balls.jets import Undecided
from difflab.balls.roots import enclosed_root


def test_a_box_holds_the_root() -> None:
    (x,) = enclosed_root(lambda x: ([x[0] ** 2 - 2], [[2 * x[0]]]), [1.4])
    assert (x**2).contains(2)
    assert float(x.rad()) < 1e-14


@pytest.mark.parametrize("shift", [0, 1])
def test_a_double_root_and_none_are_undecided(shift: int) -> None:
    system = lambda x: ([x[0] ** 2 + shift], [[2 * x[0]]])  # noqa: E731
    with pytest.raises(Undecided):
        enclosed_root(system, [0.5])


@mpmath.workdps(40)
def test_second_derivatives_of_a_system() -> None:
    text = "a: []; b: []; c = [a, b]; x = root(x*x*x + [x[1], x[0]] - c, x, c); x[0]"
    f = dl.parse(text)
    at = {"a": 1.7, "b": 1.3}
    found = dl.enclose(f, at=at, order=2)

    def exact(a: Any, b: Any) -> Any:
        system = lambda x, y: [x**3 + y - a, y**3 + x - b]  # noqa: E731
        return mpmath.findroot(system, (float(found.value.lower), 0.7))[0]

    for order, value in (
        ((1, 0), found.jacobian.lower[0, 0]),
        ((0, 1), found.jacobian.lower[0, 1]),
    ):
        assert value == pytest.approx(float(mpmath.diff(exact, (1.7, 1.3), order)), rel=1e-12)
    cross = float(mpmath.diff(exact, (1.7, 1.3), (1, 1)))
    assert found.hessian.lower[0, 1] == pytest.approx(cross, rel=1e-8)
    np.testing.assert_allclose(dl.hessian(f)(1.7, 1.3), found.hessian.lower, rtol=1e-9)


def test_an_enclosure_over_a_box_holds_every_root() -> None:
    f = dl.parse("root(x*exp(x) - a, x, 1)")
    found = dl.enclose(f, at={"a": (1.0, 1.2)})
    for a in (1.0, 1.1, 1.2):
        w = float(mpmath.lambertw(a).real)
        assert found.value.lower <= w <= found.value.upper
        assert found.jacobian.lower[0, 0] <= w / (a * (1 + w)) <= found.jacobian.upper[0, 0]
