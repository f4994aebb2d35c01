"""The cheapest dtypes: tolerance, code, refusals, and random programs at fresh points."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.errors import DomainError, InputError, PointError
from difflab.rounding.assignment import compiled
from difflab.rounding.dtypes import cheapest_dtypes

OVER = {"x": (0.5, 4.0), "y": (-2.0, 2.0)}
HEADS = ("sin", "exp", "sqrt", "tanh", "cos", "sigmoid")


def program(rng: np.random.Generator) -> str:
    """Return a random program of two inputs whose values stay moderate."""
    values, lines = ["x", "y"], []
    for number in range(int(rng.integers(3, 7))):
        a, b = rng.choice(values, 2)
        kind = int(rng.integers(0, 5))
        if kind == 0:
            head = str(rng.choice(HEADS))
            text = f"sqrt(1 + {a}*{a})" if head == "sqrt" else f"{head}({a}/4)"
        else:
            text = f"{a} {'+-*/'[kind - 1]} " + (f"(2 + sin({b}))" if kind == 4 else b)
        lines.append(f"t{number} = {text}")
        values.append(f"t{number}")
    return "\n".join([*lines, f"{values[-1]} + 0.1*{values[-2]}*x + y"])


def truth(text: str, x: float, y: float) -> np.ndarray:
    """Return value and gradient by mpmath's values and differences."""
    function = dl.parse(text, ["x", "y"])
    with mpmath.workdps(60):
        at = [mpmath.mpf(x), mpmath.mpf(y)]
        step = mpmath.mpf(10) ** -20

        def value(a: mpmath.mpf, b: mpmath.mpf) -> mpmath.mpf:
            given = {"x": a, "y": b}
            return mpmath.mpf(dl.evaluate(function, [given[n] for n in function.inputs])[0])

        slopes = {
            "x": (value(at[0] + step, at[1]) - value(at[0] - step, at[1])) / (2 * step),
            "y": (value(at[0], at[1] + step) - value(at[0], at[1] - step)) / (2 * step),
        }
        return np.array([float(value(*at)), *(float(slopes[n]) for n in function.inputs)])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_random_programs_keep_the_tolerance_at_fresh_points(seed: int, tolerance: float) -> None:
    rng = np.random.default_rng(seed)
    text = program(rng)
    function = dl.parse(text, ["x", "y"])
    over = {name: OVER[name] for name in function.inputs}
    found = cheapest_dtypes(function, over, tolerance=tolerance, points=256)
    assert found.bits <= found.bits_of_double
    code = compiled(found.code)
    sample = rng.uniform(*np.array(list(OVER.values())).T, (300, 2))
    expected = np.array([truth(text, x, y) for x, y in sample])
    columns = [list(OVER).index(name) for name in function.inputs]
    sizes = np.abs(expected)
    groups = sizes[:, :1], np.max(sizes[:, 1:], axis=1, keepdims=True)
    floors = [np.median(group) for group in groups]
    for point, wanted, value, slope in zip(sample, expected, *groups, strict=True):
        y, gradient = code(*point[columns])
        errors = np.abs(np.array([y, *gradient], dtype=np.float64) - wanted)
        assert errors[0] <= tolerance * max(value[0], floors[0])
        assert np.all(errors[1:] <= tolerance * max(slope[0], floors[1]))


def test_a_loose_tolerance_takes_narrow_dtypes_and_a_tight_one_wide_ones() -> None:
    text, over = "ln(x)*y - sin(y)", {"x": (0.5, 4.0), "y": (1.0, 2.0)}
    bits = [cheapest_dtypes(text, over, tolerance=t).bits for t in (3e-2, 1e-5, 1e-12)]
    assert bits[0] < bits[1] < bits[2]
    assert set(cheapest_dtypes(text, over, tolerance=1e-12).counts) == {"float64"}


def test_the_code_gives_the_values_of_the_assignment() -> None:
    found = cheapest_dtypes("exp(x)*y + sqrt(x*x + 1)", {"x": (0, 15), "y": (1, 2)}, tolerance=1e-2)
    assert {"float16", "float32"} <= set(found.counts)
    code = compiled(found.code)
    points = np.random.default_rng(0).uniform([0, 1], [15, 2], (50, 2))
    run = found.values(points)
    for point, expected in zip(points, run, strict=True):
        value, gradient = code(*point)
        assert value.dtype == np.float32  # 6e6 is too large for float16
        np.testing.assert_allclose([value, *gradient], expected, rtol=2**-22)
    names = {each.text: each for each in found.operations}
    assert names["exp(x)"].refused.startswith("overflows in float16: 3.2")
    assert sum(each.saved for each in found.operations) == found.bits_of_double - found.bits


def test_an_accumulation_needs_more_digits_than_its_terms() -> None:
    """The sum 1 + x of a small x is wide, the terms are not: float32 alone does not do."""
    text = "(1e4 + x) - 1e4 + y"
    over = {"x": (1.0, 2.0), "y": (1.0, 2.0)}
    found = cheapest_dtypes(text, over, tolerance=1e-4)
    kinds = {each.text: each.dtype for each in found.operations}
    assert kinds["1e4 + x"] == "float64"
    assert kinds["x"] == "float32"
    assert kinds["y"] == "float32"


def test_arrays_and_several_outputs() -> None:
    text = "W: [2, 3]; x: [3]; v = tanh(W @ x); [sum(v), v[0]*x[1]]"
    over = {"x": (-1.0, 1.0)}
    found = cheapest_dtypes(text, over, {"W": np.full((2, 3), 0.25)}, tolerance=1e-4, points=64)
    assert set(found.counts) <= {"float32", "float16"}
    value = compiled(found.code)(np.full((2, 3), 0.25), np.array([0.1, 0.2, 0.3]))
    assert float(value[0]) == pytest.approx(2 * np.tanh(0.15), rel=1e-4)


def test_loops_have_no_code_and_are_verified_as_graphs() -> None:
    text = "iterate(y = x; 4 times; y*0.9 + 0.1)"
    found = cheapest_dtypes(text, {"x": (0, 1)}, tolerance=1e-3, points=64)
    assert found.code == ""
    assert found.verified <= 1


def test_an_impossible_tolerance_names_point_and_output() -> None:
    with pytest.raises(PointError, match=r"tolerance 1e-06 is beyond float64: at x = .*gradient"):
        cheapest_dtypes("(1 - cos(x))/x^2", {"x": (1e-6, 1e-3)}, tolerance=1e-6)


def test_a_function_undefined_in_the_domain_names_the_operation() -> None:
    with pytest.raises(DomainError, match=r"log\(-.* in float64 at x = "):
        cheapest_dtypes("log(x)", {"x": (-1, 1)}, tolerance=1e-3)


def test_other_errors() -> None:
    with pytest.raises(InputError, match="tolerance is a positive number"):
        cheapest_dtypes("x", {"x": (0, 1)}, tolerance=0)
    with pytest.raises(InputError, match="unknown dtype"):
        cheapest_dtypes("x", {"x": (0, 1)}, tolerance=1e-3, dtypes=["float8"])
    with pytest.raises(PointError, match="needs an interval"):
        cheapest_dtypes("x", {}, tolerance=1e-3)


def test_bfloat16_is_stored_and_not_computed_in() -> None:
    pytest.importorskip("ml_dtypes")
    found = cheapest_dtypes(
        "x*y + exp(x)", {"x": (1, 2), "y": (1, 2)}, tolerance=5e-2, dtypes=["bfloat16", "float32"]
    )
    assert "bfloat16" in found.counts
    value, _ = compiled(found.code)(1.5, 1.25)
    assert float(value) == pytest.approx(1.5 * 1.25 + np.exp(1.5), rel=5e-2)


def test_results_of_size_0_are_kept() -> None:
    """No error is allowed in a result that is 0 everywhere, and none is made."""
    assert dl.cheapest_dtypes("x*0", {"x": (1, 2)}, tolerance=1e-3).counts == {"float16": 2}
    found = dl.cheapest_dtypes("[x, 3]", {"x": (1, 2)}, tolerance=1e-3)
    assert found.counts == {"float16": 1}  # 2^-11 is half of the tolerance


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"over": None}, "over of cheapest_dtypes is a mapping"),
        ({"floor": "a"}, "floor is a number"),
        ({"floor": -1.0}, "floor is a number"),
        ({"f": lambda x: x}, "takes the text of a formula or a Function"),
    ],
)
def test_invalid_arguments_are_named(given: dict[str, Any], message: str) -> None:
    given = {"f": "x^2", "over": {"x": (1, 2)}, "tolerance": np.float32(1e-3), **given}
    with pytest.raises(InputError, match=message):
        dl.cheapest_dtypes(**given)
