"""Comparisons of Python code: the code is run, with its graph or without one."""

import math
import random
import time

import numpy as np
import pytest

import difflab as dl
from difflab.errors import DomainError, GraphMismatchError, InputError, PointError
from difflab.lab.compare import compare
from difflab.lab.domain.compare import compare_domain
from difflab.methods.peers.jacobi import JACOBI
from difflab.methods.peers.numdifftools import NUMDIFFTOOLS

NUMERIC = ["finite-forward", "finite-central", "richardson"]


def rows(result):
    return {row.name: row for row in result.methods}


def branch(x, y):
    return x * y * y if x > y else x


def table(x):
    return math.sin(x) * math.exp(-x)


def root(x):
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle**3 < x else (low, middle)
    return low


def by_type(x):
    return x * (3.0 if isinstance(x, np.ndarray | np.float64) else 1.0)


@pytest.mark.parametrize(
    ("code", "at", "gradient"),
    [
        (branch, {"x": 3.0, "y": 2.0}, [4.0, 12.0]),
        (branch, {"x": 1.0, "y": 2.0}, [1.0, 0.0]),
        (table, {"x": 1.2}, [math.exp(-1.2) * (math.cos(1.2) - math.sin(1.2))]),
        (root, {"x": 8.0}, [1 / 12]),
        (
            lambda v, s: np.sum(v * v) * s if s > 1 else s,
            {"v": np.array([1.0, 2.0]), "s": 3.0},
            [6.0, 12.0, 5.0],
        ),
    ],
    ids=["branch", "other branch", "math", "bisection", "array"],
)
def test_code_without_a_graph_is_compared_by_its_values(code, at, gradient):
    result = compare(code, at, timing=False)
    found = rows(result)
    assert result.agreed
    assert "no graph" in result.environment["code"]
    for name in ("forward", "reverse"):
        assert found[name].status == "unsupported"
        assert found[name].message.startswith("the Python code cannot be traced: ")
    assert found["symbolic"].status == "unsupported"
    for name in NUMERIC:
        assert found[name].status == "ok"
        assert found[name].verdict in ("agree", "inconclusive")
    assert found["richardson"].verdict == "agree"
    assert found["richardson"].jacobian[0] == pytest.approx(gradient, rel=1e-6, abs=1e-9)
    assert result.reference.jacobian[0] == pytest.approx(gradient, rel=1e-6, abs=1e-9)
    assert 4 <= result.reference.digits <= 16
    assert not result.reference.proved


@pytest.mark.parametrize("method", [JACOBI, NUMDIFFTOOLS], ids=lambda m: m.name)
def test_packages_of_differences_call_code(method):
    pytest.importorskip(method.name)
    result = compare(table, {"x": 1.2}, methods=[method.name], timing=False)
    row = result.methods[0]
    assert row.verdict == "agree", row.message
    right = math.exp(-1.2) * (math.cos(1.2) - math.sin(1.2))
    assert row.jacobian[0, 0] == pytest.approx(right, rel=1e-7)


@pytest.mark.parametrize("name", ["jax", "torch", "autograd"])
def test_packages_that_trace_python_are_given_code(name):
    pytest.importorskip(name)
    ran = compare(branch, {"x": 3.0, "y": 2.0}, methods=[name], timing=False).methods[0]
    assert (ran.verdict, ran.jacobian.tolist()) == ("agree", [[4.0, 12.0]])
    refused = compare(table, {"x": 1.2}, methods=[name], timing=False).methods[0]
    assert refused.status == "unsupported"


def test_numeric_methods_differentiate_the_code_not_its_graph():
    result = compare(by_type, {"x": 2.0}, timing=False, verify=False)
    found = rows(result)
    assert found["reverse"].jacobian[0, 0] == 1.0
    for name in NUMERIC:
        assert found[name].jacobian[0, 0] == pytest.approx(3.0, rel=1e-6), name
        assert found[name].verdict == "disagree"


def test_a_graph_of_another_function_is_an_error():
    with pytest.raises(GraphMismatchError, match="at x = 2 the code gives 6, the graph 2"):
        compare(by_type, {"x": 2.0}, timing=False)
    with pytest.raises(GraphMismatchError, match="the code gives"):
        dl.compare(by_type, over={"x": (1, 2)}, points=5)


def test_one_more_run_of_the_code():
    ran = []

    def counted(x):
        ran.append(type(x))
        return x * x

    compare(counted, {"x": 2.0}, methods=["reverse"], timing=False)
    assert [kind.__name__ for kind in ran] == ["Node", "float64"]
    ran.clear()
    compare(counted, {"x": 2.0}, methods=["reverse"], timing=False, verify=False)
    assert [kind.__name__ for kind in ran] == ["Node"]


def test_a_graph_that_was_verified_says_so():
    result = compare(lambda x: np.sin(x), {"x": 2.0}, methods=["reverse"], timing=False)
    assert result.environment["code"] == "run at the point: its values are the graph's"
    assert "code" not in compare("sin(x)", {"x": 2.0}, methods=["reverse"]).environment


def slow(x):
    if not hasattr(x, "__difflab_apply__"):
        time.sleep(600)
    return x * x


def test_a_run_beyond_the_time_limit_is_a_reason_in_the_row():
    found = rows(compare(slow, {"x": 2.0}, timing=False, timeout=0.2, methods=["reverse"]))
    assert found["reverse"].verdict == "agree"
    told = "the graph was not compared with the code: one run of the code takes longer than 0.2 s"
    assert told in found["reverse"].message


def test_slow_code_without_a_graph_has_rows_too():
    code = lambda x: slow(x) if x > 0 else x  # noqa: E731
    found = rows(compare(code, {"x": 2.0}, timing=False, timeout=0.2))
    assert found["richardson"].status == "timeout"
    assert found["richardson"].message == "one run of the code takes longer than 0.2 s"
    assert found["reverse"].status == "unsupported"


@pytest.mark.parametrize(
    ("draw", "source"), [(random.random, "Python's random"), (np.random.random, "numpy.random")]
)
def test_code_that_draws_is_refused_by_name(draw, source):
    code = lambda x: x * draw() if x > 0 else x  # noqa: E731
    with pytest.raises(InputError, match=rf"differ: it draws random numbers from {source}"):
        compare(code, {"x": 2.0}, timing=False)


def test_what_the_code_raises_is_an_error_of_the_input():
    with pytest.raises(InputError, match="table raised TypeError at x = "):
        compare(table, {"x": np.ones(2)}, timing=False)
    with pytest.raises(DomainError, match="undefined at x = 2: its value is nan"):
        compare(lambda x: math.nan if x > 0 else x, {"x": 2.0}, timing=False)
    with pytest.raises(PointError, match="is traced at a point"):
        dl.compare(table)
    with pytest.raises(InputError, match="unknown parameter of table 'y'"):
        dl.compare(table, {"y": 1.0})


def test_trees_are_arguments():
    def loss(model, x):
        return np.sum(model["w"] * x) + model["b"]

    result = dl.compare(
        loss, {"model": {"w": np.ones(2), "b": 1.0}, "x": 3.0}, methods=["reverse"], timing=False
    )
    assert [v.name for v in result.expression.inputs] == ["model_b", "model_w", "x"]
    assert result.methods[0].jacobian.tolist() == [[1.0, 3.0, 3.0, 2.0]]


def test_second_derivatives_of_code_with_a_graph():
    result = compare(lambda x, y: x * x * y, {"x": 2.0, "y": 3.0}, order=2, timing=False)
    assert result.agreed
    assert rows(result)["richardson"].jacobian == pytest.approx(
        np.array([[6.0, 4.0], [4.0, 0.0]]), abs=1e-6
    )


# --- over a domain -------------------------------------------------------------------------------


def test_a_domain_of_code_without_a_graph():
    found = compare_domain(branch, {"x": (0, 2), "y": (0.5, 1)}, points=30)
    richardson = next(row for row in found.methods if row.name == "richardson")
    assert richardson.shares["agree"] == 1.0
    reverse = next(row for row in found.methods if row.name == "reverse")
    assert (reverse.status, found.agreed) == ("unsupported", True)


def test_a_domain_needs_no_point_and_compares_at_every_one():
    def late(x, y):
        k = 2.0 if isinstance(x, float) and x > 1.9 else 1.0
        return k * x + y

    with pytest.raises(GraphMismatchError, match=r"at x = 1\.9"):
        compare_domain(late, {"x": (0, 2), "y": (0, 1)}, points=200, methods=["reverse"])
    found = compare_domain(late, {"x": (0, 1), "y": (0, 1)}, points=50, methods=["reverse"])
    assert found.environment["code"] == "run at 50 points of 50: its values are the graph's"


def test_a_domain_of_an_array():
    code = lambda v, s: np.sum(v * v) * s  # noqa: E731
    found = compare_domain(
        code, {"v": (1, 2)}, {"v": np.ones(3), "s": 2.0}, points=10, methods=["reverse"]
    )
    assert (found.box.fixed, found.points.shape) == ({"s": 2.0}, (10, 4))
