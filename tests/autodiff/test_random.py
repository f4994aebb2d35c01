"""Random expressions: all methods agree, and both modes keep the laws of the derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from difflab.autodiff import gradient, hessian, hvp, jacobian, jvp, value_and_gradient, vjp
from difflab.errors import UnsupportedError
from difflab.graph.counts import count
from difflab.graph.function import Function
from difflab.lab.compare import compare
from difflab.language import parse
from difflab.methods.protocol import Problem
from difflab.methods.symbolic.method import SYMBOLIC
from difflab.referee.referee import refer
from difflab.testing.strategies import cases, expressions, points

Case = tuple[str, dict[str, float]]
Array = NDArray[np.float64]

QUICK = ["finite-forward", "finite-central", "richardson", "complex-step", "forward", "reverse"]
RTOL = 1e-10  # of the largest entry: expressions nest a dozen operations, some ill-conditioned


def posed(case: Case) -> tuple[Function, Array]:
    text, at = case
    function = parse(text)
    return function, np.array([at[name] for name in function.inputs])


def assert_close(found: Any, truth: Any, rtol: float = RTOL) -> None:
    scale = max(1.0, float(np.max(np.abs(truth))))
    np.testing.assert_allclose(np.ravel(found), np.ravel(truth), rtol=0, atol=rtol * scale)


@settings(max_examples=60)
@given(cases())
def test_all_methods_agree_with_the_referee(case: Case) -> None:
    text, at = case
    result = compare(text, at=at, methods=QUICK, timing=False)
    assert result.agreed
    for row in result.methods:
        if row.name == "complex-step" and row.status == "unsupported":
            continue
        assert row.status == "ok"
        assert row.verdict in ("agree", "convention", "inconclusive")


@settings(max_examples=60)
@given(cases())
def test_most_verdicts_are_plain_agreement(case: Case) -> None:
    """Where the referee finds the point smooth, automatic differentiation simply agrees."""
    function, point = posed(case)
    truth = refer(function, point.tolist(), timeout=100.0)
    if truth.status == "smooth":
        for mode in ("forward", "reverse"):
            assert_close(gradient(function, mode).values(point), truth.jacobian)


@settings(max_examples=25)
@given(cases(max_leaves=6))
def test_sympy_agrees(case: Case) -> None:
    function, point = posed(case)
    try:
        prepared = SYMBOLIC.prepare(Problem(function.values, function.n, function.m, function))
    except UnsupportedError:
        reject()  # such as the derivative of a rounding; Hypothesis fails if that is common
    if refer(function, point.tolist()).status != "smooth":
        reject()  # the two choose otherwise at a kink, such as max(sin(x), sin(y)) at 0
    assert_close(prepared(point).value, gradient(function).values(point))


@given(cases())
def test_forward_and_reverse_agree(case: Case) -> None:
    function, point = posed(case)
    forward, reverse = (jacobian(function, mode).values(point) for mode in ("forward", "reverse"))
    assert_close(forward, reverse, 1e-12)
    value, slope = np.split(value_and_gradient(function).values(point), [1])
    assert value == function.values(point)
    np.testing.assert_array_equal(slope, reverse)


@given(st.tuples(expressions(), expressions()), points(), st.integers(0, 2**32 - 1))
def test_duality(texts: tuple[str, str], at: dict[str, float], seed: int) -> None:
    """⟨ȳ, Jẋ⟩ = ⟨Jᵀȳ, ẋ⟩ for functions of several outputs that share subexpressions."""
    function = parse(f"[({texts[0]}) + x, ({texts[1]})*y, ({texts[0]})*({texts[1]}), x + y]")
    point = np.array([at[name] for name in function.inputs])
    rng = np.random.default_rng(seed)
    x_dot, y_bar = rng.normal(size=function.n), rng.normal(size=function.m)
    y_dot = jvp(function).values(np.concatenate([point, x_dot]))[function.m :]
    x_bar = vjp(function).values(np.concatenate([point, y_bar]))[function.m :]
    matrix = jacobian(function).values(point).reshape(function.m, function.n)
    assert_close(y_dot, matrix @ x_dot, 1e-12)
    assert_close(x_bar, matrix.T @ y_bar, 1e-12)
    assert_close(y_bar @ y_dot, x_bar @ x_dot, 1e-12)


@settings(max_examples=50)
@given(cases(), st.integers(0, 2**32 - 1))
def test_second_derivatives(case: Case, seed: int) -> None:
    function, point = posed(case)
    matrix = hessian(function).values(point).reshape(function.n, function.n)
    assert_close(matrix, matrix.T)
    for mode in ("forward", "reverse"):
        assert_close(jacobian(gradient(function, mode), "reverse").values(point), matrix)
    direction = np.random.default_rng(seed).normal(size=function.n)
    along = hvp(function).values(np.concatenate([point, direction]))
    assert_close(along, matrix @ direction)


@settings(max_examples=25)
@given(cases(max_leaves=6))
def test_second_derivatives_agree_with_the_referee(case: Case) -> None:
    function, point = posed(case)
    truth = refer(function, point.tolist(), order=2, timeout=100.0)
    if truth.status == "smooth":
        assert_close(hessian(function).values(point), truth.jacobian)


@given(expressions(), expressions(), points())
def test_the_rules_of_differentiation(f: str, g: str, at: dict[str, float]) -> None:
    """Sum, product and chain rule, with the derivatives of the parts taken separately."""

    def at_point(text: str) -> tuple[Any, Array]:
        function = parse(f"0*x + 0*y + ({text})")
        value, *slope = value_and_gradient(function).values(np.array([at["x"], at["y"]]))
        return value, np.array(slope)

    (u, du), (v, dv) = at_point(f), at_point(g)
    assert_close(at_point(f"({f}) + ({g})")[1], du + dv, 1e-12)
    assert_close(at_point(f"({f})*({g})")[1], u * dv + v * du, 1e-12)
    assert_close(at_point(f"sin({f})")[1], np.cos(u) * du, 1e-12)


@given(cases())
def test_reverse_gradient_takes_at_most_four_functions(case: Case) -> None:
    function, _ = posed(case)
    assert count(gradient(function)).operations <= 4 * count(function).operations


@given(cases())
def test_a_batch_is_its_points(case: Case) -> None:
    function, point = posed(case)
    batch = point + np.linspace(0, 1e-3, 5)[:, None]
    derivative = gradient(function)
    together = derivative.values(batch)
    alone = np.array([derivative.values(row) for row in batch])
    assert_close(together, alone, 1e-14)
