"""Baydin et al. (2018): the logistic map of Table 1, and the traces of Tables 2 and 3.

Figure 3 is in tests/bench/test_accuracy.py, swell in test_swell.py beside it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from difflab.autodiff import gradient, value_and_gradient
from difflab.bench.swell import tree_operations
from difflab.graph.counts import count
from difflab.lab.problems import logistic
from difflab.language import parse
from difflab.methods.differentiate import differentiate
from difflab.referee.referee import refer

DATA = Path(__file__).parents[1] / "data"
BAYDIN = json.loads((DATA / "baydin.json").read_text())
ROWS = BAYDIN["table1"]["rows"]
ITERATES = BAYDIN["logistic_values"]
SEED = BAYDIN["tables2_3"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"n{row['n']}")
def test_table_1_expressions_are_one_function_and_its_derivative(row: dict) -> None:
    for x in np.linspace(0.05, 0.95, 7):
        value, slope = value_and_gradient(parse(row["l"]))(x)
        np.testing.assert_allclose(
            parse(logistic(row["n"])).values(np.array([x])), value, rtol=1e-12, atol=1e-14
        )
        for kind in ("dl_unsimplified", "dl_simplified"):
            printed = parse(row[kind])
            found = float(printed(x) if printed.n else printed())
            # Baydin's simplified forms are expanded polynomials, which cancel.
            assert found == pytest.approx(slope[0], rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"n{row['n']}")
def test_table_1_has_as_many_operations_as_are_printed(row: dict) -> None:
    for kind, operations in row["ops_as_written"].items():
        # The data counts the minus of (-8 + 16*x); in the language -8 is a number.
        assert tree_operations(parse(row[kind])) == operations - row[kind].count("(-8")


@pytest.mark.parametrize("case", ITERATES, ids=lambda case: f"{case['x']}-{case['n']}")
def test_iterates_of_the_logistic_map(case: dict) -> None:
    function = parse(logistic(case["n"]))
    point = np.array([float(case["x"])])
    # Each iterate may multiply the rounding error by four, as it does the derivative.
    rtol = 2.0**-51 * 2 ** case["n"]
    np.testing.assert_allclose(function.values(point), [float(case["l"])], rtol=rtol)
    for mode in ("forward", "reverse"):
        found = gradient(function, mode).values(point)
        np.testing.assert_allclose(found, [float(case["dl"])], rtol=rtol)
    truth = refer(function, point.tolist(), timeout=100.0)
    np.testing.assert_allclose(truth.jacobian, [[float(case["dl"])]], rtol=2.3e-16)
    assert count(gradient(function)).operations <= 4 * max(count(function).operations, 1)


def test_tables_2_and_3() -> None:
    function = parse(SEED["f"])
    value, _ = value_and_gradient(function)(2.0, 5.0)
    assert float(value) == 11.652071455223084 == float(SEED["y"])
    truth = [float(SEED["grad"][name]) for name in function.inputs]
    assert truth == [5.5, 1.7163378145367738]
    for mode in ("forward", "reverse"):
        found = gradient(function, mode)(2.0, 5.0)
        assert np.all(np.abs(found - truth) <= 2 * np.spacing(truth))
    assert count(function).operations == 5


@pytest.mark.parametrize(
    "method", ["symbolic", "finite-forward", "finite-central", "richardson", "complex-step"]
)
def test_every_method_finds_the_seeds_gradient(method: str) -> None:
    found = differentiate(parse(SEED["f"]), [2.0, 5.0], method=method)
    truth = np.array([5.5, 1.7163378145367738])
    error = np.zeros(2) if found.error is None else found.error
    assert np.all(np.abs(found.value - truth) <= error + 2 * np.spacing(truth))
    rtol = {"finite-forward": 1e-7, "finite-central": 1e-9, "richardson": 1e-12}.get(method, 4e-16)
    np.testing.assert_allclose(found.value, truth, rtol=rtol)
