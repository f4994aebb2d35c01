"""Stored gradients: names, shapes, precisions and non-finite components are compared too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflab.errors import InputError
from difflab.testing.suites.regression import GradientRegression, RegressionMismatch


def stored(path: Path, gradients: Any) -> GradientRegression:
    with pytest.raises(RegressionMismatch, match="stored for the first time"):
        GradientRegression(path)(gradients)
    return GradientRegression(path)


def test_every_difference_is_named(tmp_path: Path) -> None:
    check = stored(tmp_path / "g.json", {"a": [1.0, 2.0], "b": 3.0})
    check({"a": [1.0, 2.0], "b": 3.0})
    for other, line in (
        ({"a": [1.0, 2.0]}, "b: stored, and not computed now"),
        ({"a": [1.0, 2.0], "b": 3.0, "c": 1.0}, "c: computed, and not stored"),
        ({"a": [[1.0, 2.0]], "b": 3.0}, r"a: was float64 \(2,\), is float64 \(1, 2\)"),
        ({"a": np.float32([1.0, 2.0]), "b": 3.0}, r"a: was float64 \(2,\), is float32 \(2,\)"),
        ({"a": [1.0, np.nan], "b": 3.0}, r"a\[1\]: was 2.0, is nan"),
    ):
        with pytest.raises(RegressionMismatch, match=line):
            check(other)


@pytest.mark.parametrize(
    ("dtype", "within", "beyond"), [("float64", 1e-11, 1e-9), ("float32", 1e-5, 1e-3)]
)
def test_the_tolerance_follows_the_precision(
    tmp_path: Path, dtype: str, within: float, beyond: float
) -> None:
    gradient = np.array([1.0, -1000.0], dtype=dtype)
    check = stored(tmp_path / "g.json", gradient)
    check((gradient * (1 + within)).astype(dtype))
    with pytest.raises(RegressionMismatch):
        check((gradient * (1 + beyond)).astype(dtype))
    check((gradient * (1 + beyond)).astype(dtype), rtol=2 * beyond)


def test_a_small_component_may_differ_by_the_rounding_of_the_largest(tmp_path: Path) -> None:
    check = stored(tmp_path / "g.json", [1e8, 1e-8])
    check([1e8, 1e-8 + 1e-8])
    with pytest.raises(RegressionMismatch, match=r"gradient\[1\]"):
        check([1e8, 1e-4])


def test_values_that_are_not_finite_are_kept(tmp_path: Path) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0.1])
    check = stored(tmp_path / "g.json", values)
    check(values)
    with pytest.raises(RegressionMismatch, match=r"gradient\[1\]: was inf, is -inf"):
        check(np.array([np.nan, -np.inf, -np.inf, 0.1]))


def test_what_is_not_an_array_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gradient is not an array of real numbers"):
        GradientRegression(tmp_path / "g.json")("text")


def test_the_parts_of_a_tree_are_named(tmp_path: Path) -> None:
    compare = GradientRegression(tmp_path / "stored.json")
    tree: dict[str, Any] = {"layer": {"w": np.ones((2, 2)), "b": [np.zeros(3), 1.0]}, "scale": 2.0}
    with pytest.raises(RegressionMismatch, match="stored for the first time"):
        compare(tree)
    compare(tree)
    tree["layer"]["b"][0][1] = 0.5
    with pytest.raises(RegressionMismatch, match=r'layer\["b"\]\[0\]\[1\]: was 0.0, is 0.5'):
        compare(tree)
    del tree["scale"]
    with pytest.raises(RegressionMismatch, match="scale: stored, and not computed now"):
        compare(tree)
