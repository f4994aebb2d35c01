"""Boxes with exactly one root, against formulas and mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.balls.evaluation import evaluated
from difflab.balls.jets import Undecided
from difflab.balls.library import arb
from difflab.balls.roots import approximated, enclosed_root
from difflab.graph.control import Solution
from difflab.graph.evaluate import ArrayInterpreter
from difflab.lab.domain.judging import truths
from difflab.lab.domain.referees import FEW, Referees
from difflab.methods.protocol import Problem


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


TWO_ROOTS = "sin(root(x^2 - a*b, x, a))*b + exp(root(t*exp(t) - a, t, 1))"


@pytest.mark.parametrize("order", [1, 2])
def test_the_solver_runs_once_for_all_points(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the derivatives are those of the explicit solutions √(ab) and W(a)."""
    points = np.random.default_rng(0).uniform(0.5, 2.0, (50, 2))
    batches: list[Any] = []
    run = Solution.run

    def counted(self: Any, on: Any, values: Any, batch: Any) -> Any:
        if isinstance(on, ArrayInterpreter):
            batches.append(batch)
        return run(self, on, values, batch)

    monkeypatch.setattr(Solution, "run", counted)
    found = truths(dl.parse(TWO_ROOTS), points, order, (order, 2))
    assert batches == [(50,), (50,)]

    def exact(a: Any, b: Any) -> Any:
        return mpmath.sin(mpmath.sqrt(a * b)) * b + mpmath.exp(mpmath.lambertw(a).real)

    with mpmath.workdps(40):
        for place in range(0, 50, 10):
            at = tuple(points[place].tolist())
            orders = [(1, 0), (0, 1)] if order == 1 else [(2, 0), (1, 1), (1, 1), (0, 2)]
            known = [float(mpmath.diff(exact, at, one)) for one in orders]
            np.testing.assert_allclose(found[place].ravel(), known, rtol=1e-14)


def test_a_point_whose_solver_was_not_run_before_is_solved() -> None:
    f = dl.parse("root(x^3 - a, x, 1)")
    with approximated(f, np.array([[8.0]])):
        (near,) = evaluated(f, [arb(8)], 80, order=1)
        (other,) = evaluated(f, [arb(27)], 80, order=1)
    assert float(near.value) == pytest.approx(2, rel=1e-15)
    assert float(other.slopes[0]) == pytest.approx(1 / 27, rel=1e-15)
    (after,) = evaluated(f, [arb(8)], 80, order=1)
    assert float(after.value) == float(near.value)


def test_what_cannot_be_sent_is_judged_block_after_block() -> None:
    """Threads would share FLINT's working precision; what has a solver is sent to processes."""

    class Square(dl.CustomFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

        @staticmethod
        def jvp(ctx: Any, x_dot: Any) -> Any:
            return x_dot

    points = np.linspace(1.0, 3.0, FEW + 1)[:, None]
    own = dl.trace(lambda a: Square.apply(a), 1.0)
    with Referees(Problem.of(own), len(points)) as referees:
        assert referees.processes == 1
        assert referees.judge(points[:3], []).done()
    solver = dl.parse("root(x^3 - a, x, 1)")
    with Referees(Problem.of(solver), len(points)) as referees:
        assert not referees.judge(points[:3], []).done()
    with Referees(Problem.of(dl.parse("sin(a)")), len(points)) as referees:
        assert not referees.judge(points[:3], []).done()
