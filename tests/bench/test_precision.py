"""Work against precision: formulas of known order and weights, wrong methods seen as such."""

from __future__ import annotations

import math

import numpy as np
import pytest

import difflab as dl
from difflab.bench.accuracy import AccuracyCase
from difflab.bench.precision import (
    FORMULAS,
    LAYOUT,
    CentralFormula,
    central_weights,
    draw,
    front,
    tasks,
)
from difflab.lab.sweep import run
from difflab.methods.protocol import Problem
from difflab.methods.registry import own
from tests.bench.picture_checks import check_picture, texts


@pytest.mark.parametrize(
    ("pairs", "published"),
    [  # Fornberg 1988, Table 1
        (1, [1 / 2]),
        (2, [2 / 3, -1 / 12]),
        (3, [3 / 4, -3 / 20, 1 / 60]),
        (4, [4 / 5, -1 / 5, 4 / 105, -1 / 280]),
    ],
)
def test_the_weights_are_fornbergs(pairs, published):
    np.testing.assert_allclose(central_weights(pairs), published, rtol=1e-12)


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.name)
def test_a_formula_is_exact_for_polynomials_up_to_its_order(formula):
    degree = 2 * formula.pairs
    function = dl.parse(f"x: [2]; [x[0]^{degree}*x[1], x[1]^{degree}]")
    problem = Problem(function.values, 2, 2, function)
    x = np.array([0.5, 1.5])
    found = CentralFormula(formula.pairs, 0.0625).prepare(problem)(x)
    expected = [
        [degree * 0.5 ** (degree - 1) * 1.5, 0.5**degree],
        [0, degree * 1.5 ** (degree - 1)],
    ]
    np.testing.assert_allclose(found.value, expected, rtol=1e-11, atol=1e-11)
    assert found.evaluations == 2 * 2 * formula.pairs


def exponential(x=1.0):
    function = dl.parse("exp(x)")
    return AccuracyCase(function, np.array([x]), np.array([[math.exp(x)]]), "exp(x)", "x = 1")


def test_higher_orders_reach_smaller_errors_and_automatic_ones_the_last_digit(tmp_path):
    methods = [own()[name] for name in ("finite-forward", "richardson", "reverse")]
    every = tasks(exponential(), methods, 1000.0, per_decade=2)
    rows = {row["method"]: row for row in run(tmp_path / "p.csv", LAYOUT, every)}
    assert {row["status"] for row in rows.values()} == {"ok"}
    errors = {name: row["relative_error"] for name, row in rows.items()}
    assert errors["reverse"] < 3e-16
    assert 1e-11 < errors["finite-forward"] < 1e-6
    assert 1e-12 < errors["central, order 2"] < 1e-8
    assert errors["central, order 2"] > errors["central, order 4"] > errors["central, order 8"]
    assert [rows[one.name]["evaluations"] for one in FORMULAS] == [2, 4, 6, 8, 12, 16]
    assert all(row["call_seconds"] > 0 for row in rows.values())


def test_a_method_that_fails_is_a_row(tmp_path):
    class Failing:
        name, family, orders, summary = "failing", "numeric", (1,), ""

        def missing(self):
            return None

        def prepare(self, problem):
            raise ZeroDivisionError("no")

    rows = run(tmp_path / "p.csv", LAYOUT, tasks(exponential(), [Failing()], 9.0, per_decade=1))
    assert (rows[-1]["status"], rows[-1]["message"]) == ("failed", "ZeroDivisionError: no")


def test_front():
    points = {"a": (2.0, 1.0), "b": (1.0, 1.0), "c": (3.0, 0.1), "d": (4.0, 0.1)}
    assert front(points) == ["b", "c"]


def picture_rows():
    rows = []
    for name, error, call in (("reverse", 0.0, 1e-6), ("finite-forward", 1e-8, 1e-5)):
        row = {"expression": "x $y$ <b>", "point": "x = 1", "method": name, "status": "ok"}
        row |= {"absolute_error": error, "relative_error": error, "message": ""}
        rows.append(row | {"call_seconds": call, "prepare_seconds": 1e-3})
    return [*rows, rows[0] | {"method": "jax", "status": "unsupported", "message": "pip install"}]


def test_the_picture_in_every_format():
    check_picture(draw, picture_rows())
    check_picture(draw, picture_rows()[-1:])


def test_the_picture_names_errors_times_and_the_absent():
    shown = texts(draw(picture_rows()))
    assert "finite-forward: 1.0e-8 in 10.0 µs" in shown
    assert "jax: pip install" in shown
