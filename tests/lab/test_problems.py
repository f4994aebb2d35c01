"""The families are the published functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.graph.function import Function
from difflab.lab.problems import FAMILIES, crossover, helmholtz, logistic, nested_sine, product


def at(f: Function, name: str, size: int) -> float:
    return float(f(**FAMILIES[name].point(size)))


def test_logistic_map_has_the_values_of_the_survey(reference: Any) -> None:
    for row in reference("baydin")["logistic_values"]:
        f = dl.parse(logistic(row["n"]))
        # The map is chaotic: an ULP grows like the derivative.
        allowed = 4 * math.ulp(1.0) * (1 + abs(float(row["dl"])))
        assert float(f(float(row["x"]))) == pytest.approx(float(row["l"]), abs=allowed)


def test_helmholtz_is_the_published_function(reference: Any) -> None:
    cases = [case for case in reference("helmholtz") if "baydin" in case["id"]]
    assert len(cases) == 9
    for case in cases:
        n = len(case["vars"])
        point = {name: float(text) for name, text in case["point"].items()}
        assert FAMILIES["helmholtz"].point(n) == point
        assert at(dl.parse(helmholtz(n)), "helmholtz", n) == pytest.approx(
            float(case["value"]), rel=1e-12
        )


@pytest.mark.parametrize("n", [2, 5, 40])
def test_speelpennings_product_at_its_point(n: int) -> None:
    """∏ i/(i + 1) is 1/(n + 1)."""
    assert at(dl.parse(product(n)), "product", n) == pytest.approx(1 / (n + 1))


def test_rosenbrock_at_the_customary_start() -> None:
    """One link at (-1.2, 1) is 24.2, one at (1, -1.2) is 100·2.2² = 484."""
    f = dl.parse(FAMILIES["rosenbrock"].text(4))
    assert at(f, "rosenbrock", 4) == pytest.approx(24.2 + 484 + 24.2)
    assert float(f(1.0, 1.0, 1.0, 1.0)) == 0.0


@pytest.mark.parametrize("n", [1, 2, 40])
def test_nested_sine_is_the_iteration(n: int) -> None:
    x = y = 0.3
    for _ in range(n):
        y = math.sin(x + y)
    assert float(dl.parse(nested_sine(n))(x)) == pytest.approx(y, rel=1e-14)


@pytest.mark.parametrize("family", ["logistic", "nested"])
def test_iterations_of_size_zero_or_one_are_texts_too(family: str) -> None:
    assert dl.parse(FAMILIES[family].text(1)).inputs == ("x",)


def test_the_modes_cross_where_inputs_equal_outputs() -> None:
    def operations(n: int, m: int, mode: str) -> int:
        return int(dl.count(dl.jacobian(dl.parse(crossover(n, m)), mode=mode)).operations)

    assert operations(20, 2, "reverse") < operations(20, 2, "forward") / 4
    assert operations(2, 20, "forward") < operations(2, 20, "reverse") / 4
    assert 0.5 < operations(10, 10, "reverse") / operations(10, 10, "forward") < 2


def test_crossover_has_the_shape_asked_for() -> None:
    f = dl.parse(crossover(7, 3))
    assert (f.n, f.m) == (7, 3)
    assert np.isfinite(f.values(np.linspace(0.3, 0.7, 7))).all()


def test_every_family_says_where_it_comes_from() -> None:
    for name, family in FAMILIES.items():
        f = dl.parse(family.text(3))
        assert math.isfinite(at(f, name, 3)), name
        assert set(family.point(3)) == set(f.inputs)
        assert family.title
        assert family.source
