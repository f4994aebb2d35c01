"""Forward and reverse mode as methods: published values, counts, refusals."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from difflab.errors import MethodTimeout, UnsupportedError
from difflab.graph.repetition import rolled
from difflab.graph.trace import trace
from difflab.language import parse
from difflab.methods.automatic import FORWARD, REVERSE, Automatic
from difflab.methods.differentiate import differentiate
from difflab.methods.protocol import Family, Method, Problem

BOTH = pytest.mark.parametrize("method", [FORWARD, REVERSE], ids=["forward", "reverse"])


def problem(text: str, **settings: Any) -> Problem:
    function = parse(text)
    return Problem(function.values, function.n, function.m, function, **settings)


@BOTH
def test_it_is_a_method(method: Automatic) -> None:
    assert isinstance(method, Method)
    assert method.family is Family.AUTOMATIC
    assert method.missing() is None


@BOTH
def test_the_seed_expression(method: Automatic) -> None:
    # Baydin et al. 2018, Tables 2 and 3.
    prepared = method.prepare(problem("ln(x1) + x1*x2 - sin(x2)"))
    estimate = prepared(np.array([2.0, 5.0]))
    assert estimate.value.tolist() == [[5.5, 2.0 - math.cos(5.0)]]
    assert (estimate.error, estimate.evaluations) == (None, 0)
    # 1/x1 + x2 and x1 - cos(x2): four operations over x1, x2 and the 1, six or seven nodes.
    assert prepared.operations == 4
    assert prepared.size is not None
    assert prepared.size.tree is not None
    assert prepared.size.tree >= prepared.operations


@BOTH
def test_jacobian_of_several_outputs(method: Automatic) -> None:
    prepared = method.prepare(problem("[x*y, x + y, exp(x)]"))
    assert prepared(np.array([0.0, 3.0])).value.tolist() == [[3, 0], [1, 1], [1, 0]]


@BOTH
def test_hessian(method: Automatic) -> None:
    prepared = method.prepare(problem("x^2*y + z", order=2))
    assert prepared(np.array([3.0, 5.0, 1.0])).value.tolist() == [[10, 6, 0], [6, 0, 0], [0, 0, 0]]


@BOTH
def test_a_constant_has_a_derivative(method: Automatic) -> None:
    assert method.prepare(problem("x*0 + 7"))(np.array([5.0])).value.tolist() == [[0.0]]


def test_reverse_mode_shares_what_forward_mode_repeats() -> None:
    """∏xᵢ, i = 1…40: reverse needs at most 3n - 6 = 114 products, forward one set per input."""
    product = problem("*".join(f"x{i}" for i in range(40)))
    reverse, forward = REVERSE.prepare(product), FORWARD.prepare(product)
    assert reverse.operations is not None
    assert forward.operations is not None
    assert reverse.operations <= 114
    assert forward.operations > 4 * reverse.operations
    x = np.linspace(0.5, 1.5, 40)
    expected = [np.prod(np.delete(x, i)) for i in range(40)]
    for prepared in (reverse, forward):
        assert prepared(x).value[0] == pytest.approx(expected, rel=1e-14)


@BOTH
def test_python_code_is_traced(method: Automatic) -> None:
    found = differentiate(lambda x: np.sin(x[0]) * x[1], [0.0, 3.0], method=method.name)
    assert found.value.tolist() == [3.0, 0.0]
    assert differentiate(lambda x: x * x, 3.0, method=method.name).value == 6.0


def values(points: Any) -> Any:
    return np.sin(points[:, :1]) * points[:, 1:]


@BOTH
def test_values_alone_are_traced(method: Automatic) -> None:
    prepared = method.prepare(Problem(values, 2, 1))
    assert prepared(np.array([0.0, 3.0])).value.tolist() == [[3.0, 0.0]]


@BOTH
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (lambda x: x if x > 0 else -x, "branch"),
        (lambda x: math.sin(x), "math"),
        (lambda x: np.linalg.norm(np.array([float(x)])), "NumPy|traced|number"),
        (lambda x: {}["x"] if not isinstance(x, float) else x, "KeyError"),
    ],
)
def test_code_that_cannot_be_traced_says_why(method: Automatic, code: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=f"cannot be traced: .*({reason})"):
        differentiate(code, 2.0, method=method.name)


def test_what_would_never_end_is_not_begun() -> None:
    """10,000 inputs over 30,000 nodes: forward mode has no chance, reverse mode needs one sweep."""
    text = " + ".join(f"sin(x{i})*x{i + 1}" for i in range(10_000))
    long = problem(text, timeout=1.0)
    with pytest.raises(MethodTimeout, match=r"not started: 10,001 forward sweeps .* limit is 1 s"):
        FORWARD.prepare(long)
    x = np.full(10_001, 0.5)
    gradient = REVERSE.prepare(long)(x).value[0]
    middle = math.sin(0.5) + 0.5 * math.cos(0.5)
    assert gradient[1:-1] == pytest.approx([middle] * 9_999)


def test_every_number_of_an_array_is_a_sweep() -> None:
    with pytest.raises(MethodTimeout, match="20,000 forward sweeps"):
        FORWARD.prepare(problem("x: [20000]; sum(sin(x))", timeout=0.1))
    with pytest.raises(MethodTimeout, match="20,000 reverse sweeps"):
        REVERSE.prepare(problem("x: [20000]; sin(x)", timeout=0.1))


def test_sparse_sweeps_are_cheap_and_begun() -> None:
    """Many inputs alone are no reason to refuse: each sweep touches few nodes."""
    text = "[" + ", ".join(f"x{i}^2" for i in range(300)) + "]"
    for method in (FORWARD, REVERSE):
        value = method.prepare(problem(text))(np.arange(300.0)).value
        assert np.array_equal(value, np.diag(2 * np.arange(300.0)))


@BOTH
def test_the_target_is_the_one_asked_for(method: Automatic) -> None:
    for target in ("auto", "python", "numpy"):
        prepared: Any = method.prepare(problem("x*y", target=target))
        assert prepared.fast.target == target
        assert prepared(np.array([2.0, 3.0])).value.tolist() == [[3.0, 2.0]]


@BOTH
def test_a_target_that_cannot_is_no_support(method: Automatic) -> None:
    f = trace(lambda x: np.sum(np.sin(x) ** 2), np.ones(3))
    with pytest.raises(UnsupportedError, match="'python' computes with scalars"):
        method.prepare(Problem(f.values, f.n, f.m, f, target="python"))


@BOTH
@pytest.mark.parametrize("order", [1, 2])
def test_sizes_do_not_depend_on_what_counts_as_large(
    method: Automatic, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large functions are differentiated on vectors elsewhere; here operations are on numbers."""
    text = "x: [3]\n" + " + ".join(f"sin({i}*x[{i % 3}])*x[{(i + 1) % 3}]" for i in range(40))
    f = parse(text)
    found = []
    for least in (10**9, 0):
        repeating = partial(rolled, least=least)
        monkeypatch.setattr("difflab.autodiff.functions.flat.rolled", repeating)
        monkeypatch.setattr("difflab.autodiff.functions.flat.LEAST_NODES", least)
        prepared: Any = method.prepare(Problem(f.values, f.n, f.m, f, order))
        found.append((prepared.operations, prepared.size))
    assert found[0] == found[1]
    assert found[0][0] > 100
