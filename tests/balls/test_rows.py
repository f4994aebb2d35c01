"""Every row of the table in ball arithmetic against mpmath: values, and differences of values.

mpmath uses no derivative rule and none of FLINT's series.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from difflab.balls import elementary, library
from difflab.balls.enclosing import enclosed
from difflab.balls.jets import composed, jet
from difflab.balls.library import arb
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.primitives import TABLE, as_number
from tests.balls.truth import check_contains, check_tight
from tests.primitives.test_arrays import CASES, VALUES_ONLY, indices_of
from tests.primitives.test_table import SAMPLED, function_of, points_of
from tests.support.orders import orders
from tests.support.rows import for_each

ROWS = for_each("name", SAMPLED)
PLACES = [
    (name, k) for name, cases in CASES.items() for k in range(len(cases)) if name not in VALUES_ONLY
]


def point_box(x: Any) -> list[tuple[float, float]]:
    return [(number, number) for number in np.ravel(x).tolist()]


@ROWS
@pytest.mark.parametrize("order", [1, 2])
def test_at_points_of_the_domain_the_bounds_are_beside_the_truth(name: str, order: int) -> None:
    function = function_of(SAMPLED[name])
    for x in points_of(SAMPLED[name]):
        e = enclosed(function, point_box(x), order)
        assert e.smooth, e
        assert e.sharp
        check_tight(e)
        check_contains(e, function, x, order)


@ROWS
def test_over_boxes_of_the_domain_the_bounds_hold_everywhere(name: str) -> None:
    row = SAMPLED[name]
    function = function_of(row)
    draw = np.random.default_rng(7)
    sides = [(low, high) for low, high in row.samples if low < high]
    for share in (0.02, 0.2):
        for x in points_of(row, 3):
            reach = [share * (high - low) for low, high in sides]
            low = [max(c - r, s[0]) for c, r, s in zip(x, reach, sides, strict=True)]
            high = [min(c + r, s[1]) for c, r, s in zip(x, reach, sides, strict=True)]
            e = enclosed(function, list(zip(low, high, strict=True)), 2)
            if not e.smooth:  # a kink may lie in a box; the value is bounded all the same
                e = enclosed(function, list(zip(low, high, strict=True)), 0)
            order = 0 if e.jacobian is None else 2
            for _ in range(3):
                check_contains(e, function, draw.uniform(low, high).tolist(), order)


KINKS = {
    "absolute": (0.0,),
    "sign": (0.0,),
    "relu": (0.0,),
    "heaviside": (0.0,),
    "maximum": (1.5, 1.5),
    "minimum": (-2.0, -2.0),
    "clip": (1.0, 1.0, 2.0),
    "floor": (3.0,),
    "ceil": (-2.0,),
    "round": (2.5,),
    "mod": (6.0, 1.5),
    "hypot": (0.0, 0.0),
    "atan2": (0.0, 0.0),
    "less": (1.0, 1.0),
    "less_equal": (1.0, 1.0),
    "greater": (1.0, 1.0),
    "greater_equal": (1.0, 1.0),
    "equal": (1.0, 1.0),
    "not_equal": (1.0, 1.0),
}


def test_every_row_with_a_kink_has_a_case() -> None:
    assert {name for name, row in TABLE.items() if row.kinks is not None} == set(KINKS)


@for_each("name", KINKS)
def test_a_kink_is_reported_at_the_point_and_in_a_box(name: str) -> None:
    function, x = plain(name), KINKS[name]
    kernel = float(function(*x))
    for reach in (0.0, 0.25):
        e = enclosed(function, [(number - reach, number + reach) for number in x])
        assert not e.smooth
        assert e.obstacles[0].kind in ("kink", "jump")
        assert e.obstacles[0].certain == (reach == 0.0)
        assert np.isnan(e.jacobian.lower).all()
        assert e.value.lower <= kernel <= e.value.upper


def plain(name: str) -> Function:
    """Return the function that applies a row, all of whose arguments are inputs."""
    row, builder = TABLE[name], Builder()
    inputs = [builder.input(letter) for letter in "abcd"[: row.arity]]
    result = row(*(Node(builder, number) for number in inputs))
    node = as_number(result) if row.boolean else result
    return Function.build(builder, inputs, [node.id], ["y"])


EDGES = {
    "ci": (0.0,),
    "log": (0.0,),
    "log2": (-1.0,),
    "log10": (0.0,),
    "log1p": (-1.0,),
    "sqrt": (0.0,),
    "cbrt": (0.0,),
    "asin": (1.0,),
    "acos": (-1.0,),
    "acosh": (1.0,),
    "atanh": (1.0,),
    "divide": (1.0, 0.0),
    "dlog": (0.0,),
    "gamma": (-2.0,),
    "loggamma": (0.0,),
    "digamma": (-1.0,),
    "power": (0.0, 0.5),
    "dasin": (1.0,),
    "dacosh": (1.0,),
    "datanh": (-1.0,),
    "log1mexp": (0.0,),
    "dlog1mexp": (0.0,),
    "mod": (1.0, 0.0),
    "erfinv": (1.0,),
    "erfcinv": (2.0,),
    "lambertw": (-0.4,),
    "e1": (0.0,),
    "beta": (0.0, 1.0),
    "betaln": (1.0, 0.0),
    "ndtri": (1.0,),
    "xlogy": (1.0, 0.0),
    "xlog1py": (1.0, -1.0),
    "entr": (0.0,),
    "logit": (1.0,),
    "ei": (0.0,),
}


def with_orders(name: str) -> bool:
    return orders(TABLE[name]) > 0


def test_every_row_with_a_bounded_domain_has_a_case() -> None:
    bounded = {name for name, row in TABLE.items() if row.defined and row.shape is None}
    assert bounded - {"tan", *filter(with_orders, TABLE)} <= set(EDGES)


@for_each("name", EDGES)
def test_the_edge_of_a_domain_and_a_pole_are_reported(name: str) -> None:
    function, x = plain(name), EDGES[name]
    for reach in (0.0, 0.125):
        e = enclosed(function, [(number - reach, number + reach) for number in x])
        assert not e.smooth
        assert e.obstacles[0].kind in ("edge", "pole", "jump")
        assert np.isnan(e.jacobian.lower).all()
    assert enclosed(plain("tan"), [(1.5, 1.6)]).obstacles[0].kind == "pole"


@for_each(("name", "case"), PLACES)
def test_rows_that_mix_the_numbers_of_arrays(name: str, case: int) -> None:
    arrays, params = CASES[name][case]
    builder = Builder()
    inputs = [builder.input(f"x{k + 1}", x.shape) for k, x in enumerate(arrays)]
    nodes = [Node(builder, node) for node in inputs]
    result = TABLE[name](*nodes, *indices_of(name, case), **params)
    function = Function.build(builder, inputs, [result.id], ["y"])
    x = np.concatenate([array.ravel() for array in arrays])
    e = enclosed(function, point_box(x))
    assert e.smooth
    check_tight(e)
    check_contains(e, function, x.tolist(), 1)
    wide = enclosed(function, [(v - 2.0**-10, v + 2.0**-10) for v in x.tolist()])
    draw = np.random.default_rng(3)
    check_contains(wide, function, (x + draw.uniform(-(2.0**-10), 2.0**-10, x.size)).tolist(), 1)


# --- sabotage ---------------------------------------------------------------------------------


def test_rounding_in_the_wrong_direction_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from difflab.balls import enclosing

    monkeypatch.setattr(
        enclosing, "below", lambda ball: math.nextafter(library.upward(ball), math.inf)
    )
    with pytest.raises(AssertionError):
        test_at_points_of_the_domain_the_bounds_are_beside_the_truth("exp", 1)


def test_a_wrong_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementary, "sin", elementary.cos)
    with pytest.raises(AssertionError):
        test_at_points_of_the_domain_the_bounds_are_beside_the_truth("sin", 1)


def test_a_wrong_coefficient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def sine(argument: Any) -> Any:
        x = jet(argument)
        return composed(x, [x.value.sin(), x.value.cos() * (1 + arb(2) ** -50), arb(0)])

    monkeypatch.setattr(elementary, "sin", sine)
    with pytest.raises(AssertionError):
        test_at_points_of_the_domain_the_bounds_are_beside_the_truth("sin", 1)
