"""Chosen points are short, deterministic, inside the domain and away from kinks."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest

import difflab as dl
from difflab.diagnose.points import choose_point
from difflab.errors import DomainError
from difflab.referee.referee import refer

DOMAINS = [
    "ln(x1) + x1*x2 - sin(x2)",
    "asin(x) + acosh(y)",
    "log(x - 1000)",
    "log(-x)",
    "sqrt(x*y - 50)",
    "log(1 - x - y)",
    "acosh(x*y)*asin(x)",
    "log(log(log(x)))",
    "atanh(x*y)*sqrt(1 - z^2)",
    "exp(exp(exp(x)))",
    "x^y + gamma(z)",
    "1/(x - y) + 1/(x + y)",
    "sqrt(x - 0.5)*sqrt(3 - x)",
    "where(x > 0, sqrt(x), sqrt(-x))",
]


@pytest.mark.parametrize("text", DOMAINS)
def test_the_function_is_smooth_at_the_point(text: str) -> None:
    f = dl.parse(text)
    point = choose_point(f)
    assert tuple(point) == f.inputs
    assert math.isfinite(f(**point))
    assert refer(f, list(point.values())).status == "smooth"


@pytest.mark.parametrize(
    "text",
    [
        "floor(x) + abs(y - 1.9)",
        "max(x, y)*max(y, z)",
        "relu(x - 1.9)",
        "clip(x, 1.9, 3)",
        "round(1000*x)",
        "where(x > 1.9, x, 2*x)",
    ],
)
def test_kinks_are_kept_away_from(text: str) -> None:
    f = dl.parse(text)
    assert refer(f, list(choose_point(f).values())).status == "smooth"


def test_a_kink_that_is_everywhere_is_no_reason_to_give_up() -> None:
    assert choose_point(dl.parse("abs(x - x) + x"))["x"] > 0


def test_points_are_the_same_every_time_and_differ_by_seed() -> None:
    f = dl.parse("x*y + log(z - 7)")
    assert choose_point(f) == choose_point(f)
    assert len({tuple(choose_point(f, seed).values()) for seed in range(5)}) == 5


def test_numbers_are_short_and_differ() -> None:
    point = choose_point(dl.parse("a + b*c + d^2 + exp(g) + log(h - 20)"))
    assert len(set(point.values())) == len(point)
    for number in point.values():
        digits = f"{number:g}".replace(".", "").strip("-0")
        assert float(f"{number:.2g}") == number
        assert digits[-1] != "5"


def test_arrays_get_nested_lists() -> None:
    f = dl.parse("x: [2, 3]; y: [2]; sum(log(x)) + sum(sqrt(y - 30))")
    point = choose_point(f)
    assert np.shape(point["x"]) == (2, 3)
    assert np.shape(point["y"]) == (2,)
    assert np.isfinite(f(**point))


def test_an_untaken_branch_may_be_undefined() -> None:
    f = dl.parse("where(x < 1000000, x, log(-1 - x^2))")
    assert math.isfinite(f(**choose_point(f)))


def test_without_inputs_the_point_is_empty() -> None:
    assert choose_point(dl.parse("pi + 1")) == {}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x + sqrt(-x^2 - 1)", "sqrt(-x^2 - 1)"),
        ("y*x + log(0*x)", "log(0*x)"),
        ("acosh(cos(x)/2) + sqrt(y)", "acosh(cos(x)/2)"),
    ],
)
def test_no_point_names_what_was_undefined(text: str, place: str) -> None:
    with pytest.raises(DomainError, match="no point found") as caught:
        choose_point(dl.parse(text))
    assert caught.value.span is not None
    start, end = caught.value.span
    assert text[start:end] == place


def test_a_domain_for_each_of_thousands_of_inputs() -> None:
    n = 2000
    f = dl.parse(" + ".join(f"log(x{i} - 10)*asin(y{i})*sqrt(-z{i} - 2)" for i in range(n)))
    point = choose_point(f)
    assert all(point[f"x{i}"] > 10 and point[f"z{i}"] < -2 for i in range(n))
    assert math.isfinite(f(**point))


def test_the_branch_that_makes_the_output_undefined_counts_as_taken() -> None:
    """min(nan, x) is nan: the comparison did not keep the nan out."""
    f = dl.parse("min(log(x - 2), x)")
    assert math.isfinite(f(**choose_point(f)))


@pytest.mark.parametrize("text", ["sqrt(max(x - 2.7, 0))", "acos(tanh(9*x))"])
def test_edges_of_domains_are_kept_away_from(text: str) -> None:
    f = dl.parse(text)
    assert refer(f, list(choose_point(f).values())).jacobian[0, 0] != 0


def test_a_point_on_an_edge_is_better_than_none() -> None:
    f = dl.parse("asin(max(cos(x), 1))")
    assert float(f(**choose_point(f))) == math.asin(1)


def test_the_speed_of_the_machine_does_not_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    f = dl.parse("log(x - 1000)*sqrt(x*y - 50000) + log(-z)")
    expected = choose_point(f)
    seconds = itertools.count(0, 1000)
    clock = partial(next, seconds)
    monkeypatch.setattr("difflab.diagnose.points.perf_counter", clock, raising=False)
    assert choose_point(f) == expected


def test_a_search_in_a_large_graph_has_fewer_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    f = dl.parse("sqrt(-1 - x^2) + y")
    monkeypatch.setattr("difflab.diagnose.points._VISITS", 7 * len(f.graph))
    with pytest.raises(DomainError, match="undefined at 7 of 7 points"):
        choose_point(f)
