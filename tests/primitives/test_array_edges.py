"""Rows of arrays where their derivatives are small, or smooth though a rule would not see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from tests.support.rows import for_each

LOGITS = [
    [40.0, 0.0],
    [0.0, 40.0],
    [700.0, 3.0, -1.0],
    [0.3, 0.1, -2.0],
    [1.0, 1.0],
    [36.8, 0.0, 36.8],
]


def shares(x: list[float]) -> list[mpmath.mpf]:
    parts = [mpmath.exp(mpmath.mpf(v)) for v in x]
    return [part / sum(parts) for part in parts]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@for_each("x", LOGITS)
def test_shares_that_round_to_1_have_derivatives(x: list[float], name: str, mode: str) -> None:
    """Of p = softmax(x): pᵢ(δᵢₖ − pₖ), which is 1e-18 for the logits 40 and 0, where p₀ is 1."""
    found = dl.jacobian(dl.parse(f"x: [{len(x)}]; {name}(x)"), mode)
    if name == "logsumexp":
        found = dl.jacobian(found, mode)
    with mpmath.workdps(700):
        p = shares(x)
        scale = [mpmath.mpf(1)] * len(x) if name == "log_softmax" else p
        wanted = [
            [float(scale[i] * ((i == k) - p[k])) for k in range(len(x))] for i in range(len(x))
        ]
    np.testing.assert_allclose(found(np.array(x)), wanted, rtol=1e-14, atol=0)


SIGNS = np.zeros((3, 3, 3))
"""The sign of a permutation, by which det A = Σ sᵢₖₘ sⱼₗₙ aᵢⱼ aₖₗ aₘₙ/6."""
for _order in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    SIGNS[_order] = 1.0
    SIGNS[_order[::-1]] = -1.0

SINGULAR = [
    [[1.0, 2.0, 0.5], [2.0, 4.0, 1.0], [0.0, 1.0, 3.0]],
    [[1.0, 2.0, -1.0], [2.0, 4.0, -2.0], [-3.0, -6.0, 3.0]],
    [[0.0] * 3] * 3,
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0 + 1e-9]],
]


def derivatives_of(text: str, modes: str) -> list[dl.Function]:
    found = [dl.parse(text)]
    for letter in modes:
        found.append(dl.jacobian(found[-1], "forward" if letter == "f" else "reverse"))
    return found[1:]


@pytest.mark.parametrize("modes", ["ffff", "rfff"])
def test_the_determinant_of_singular_matrices_has_the_derivatives_of_a_polynomial(
    modes: str,
) -> None:
    found = derivatives_of("A: [3, 3]; det(A)", modes)
    third = np.einsum("ikm,jln->ijklmn", SIGNS, SIGNS)
    for matrix in SINGULAR:
        a = np.array(matrix)
        second = np.einsum("ijklmn,mn->ijkl", third, a)
        first = np.einsum("ijkl,kl->ij", second, a) / 2
        for got, wanted in zip(found, (first, second, third, np.zeros((3,) * 8)), strict=True):
            got = np.asarray(got(a)).reshape(wanted.shape)
            np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("target", ["numpy", "native", "exact"])
def test_the_hessian_of_a_determinant_at_singular_matrices_in_every_target(target: str) -> None:
    if target == "native":
        pytest.importorskip("llvmlite", reason="llvmlite compiles machine code")
    of_two = dl.compile(dl.hessian(dl.parse("A: [2, 2]; det(A)")), target)
    wanted = [
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, -1.0, 0.0],
        [0.0, -1.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0],
    ]
    for matrix in ([[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], [[3.0, 1.0], [1.0, 2.0]]):
        np.testing.assert_allclose(of_two(np.array(matrix)), wanted, rtol=0, atol=1e-14)
    of_one = dl.compile(dl.hessian(dl.parse("A: [1, 1]; det(A)")), target)
    assert np.ravel(of_one(np.zeros((1, 1)))).tolist() == [0.0]


SQUARES = [
    ("abs(x)^2", 1, 2.0),
    ("abs(x)*abs(x)", 1, 2.0),
    ("abs(x)^4 + abs(x)^2", 1, 2.0),
    ("hypot(x, y)^2", 2, 2.0),
    ("hypot(x, y)^4 + x^2 + y^2", 2, 2.0),
    ("norm([x, y])^2", 2, 2.0),
    ("sqrt(x^2 + y*y)^2", 2, 2.0),
    ("r = norm([x, y]); 3*(r*r)", 2, 6.0),
    ("(2*abs(x))^2", 1, 8.0),
    ("(abs(-x)/4*3)^2", 1, 1.125),
    ("(norm([x, y])/2)^2", 2, 0.5),
    ("(hypot(x, y)*3)^2", 2, 18.0),
    ("r = -sqrt(x^2 + y^2); r*r", 2, 2.0),
]


@pytest.mark.parametrize("modes", ["ff", "rr", "fr"])
@for_each(("text", "inputs", "size"), SQUARES)
def test_squares_of_norms_are_smooth_at_0(text: str, inputs: int, size: float, modes: str) -> None:
    """They are sums of squares, whose Hessian is a multiple of the identity."""
    function = dl.parse(text)
    hessian = derivatives_of(text, modes)[-1]
    for at in ([0.0] * inputs, [3.0, -4.0][:inputs]):
        found = np.asarray(hessian(*at)).reshape(inputs, inputs)
        if at[0] == 0.0 or "^4" not in text:
            np.testing.assert_allclose(found, size * np.eye(inputs), rtol=1e-15, atol=1e-15)
    along = dl.taylor(lambda t: function(*[t] * inputs), 0.0, 3)
    assert np.ravel(along).tolist() == [0.0, 0.0, inputs * size / 2, 0.0]


WEIGHTS = np.array([1.0, 2.0, 3.0])
SCALED: list[tuple[Callable[[Any], Any], Any]] = [
    (lambda x: np.sum((WEIGHTS * np.abs(x)) ** 2), 2 * WEIGHTS**2),
    (lambda x: np.sum((np.linalg.norm(x[None], axis=1) / 4) ** 2), 1 / 8),
    (lambda x: np.sum((4 * np.linalg.norm(x[:, None], axis=1)) ** 2), 32.0),
    (lambda x: np.linalg.norm(x[None], axis=1)[0] ** 2, 2.0),
    (lambda x: np.sum(np.linalg.norm(x[None], axis=1, keepdims=True) ** 2), 2.0),
    (lambda x: np.sum((np.sqrt(np.sum(x * x)) / WEIGHTS) ** 2), 2 * np.sum(WEIGHTS**-2)),
    (lambda x: (np.linalg.norm(x) * (1 + x[0])) ** 2, 2.0),
    (lambda x: np.sum((np.abs(x).reshape(3, 1) * np.ones((1, 2))) ** 2), 4.0),
    (lambda x: (np.linalg.norm(x) / np.exp(x[1])) ** 2, 2.0),
    (lambda x: np.sum(np.sqrt(np.concatenate([x * x, x**2])) ** 2), 4.0),
    (lambda x: np.sum(np.sqrt((x[:, None] ** 2).T[:1]) ** 2), 2.0),
]
"""Squares of norms that are scaled or viewed, and the diagonals of their Hessians at 0."""


@pytest.mark.parametrize("number", range(len(SCALED)))
def test_squares_of_scaled_norms_are_smooth_at_0(number: int) -> None:
    code, diagonal = SCALED[number]
    zeros, point = np.zeros(3), np.array([0.3, -0.7, 0.2])
    for hessian in (dl.hessian(code), dl.jacfwd(dl.jacrev(code)), dl.jacrev(dl.jacfwd(code))):
        np.testing.assert_allclose(hessian(zeros), np.diag(diagonal * np.ones(3)), rtol=1e-14)
    # Beside 0, where nothing has a kink.
    value, gradient = dl.value_and_grad(code)(point)
    np.testing.assert_allclose(value, code(point), rtol=1e-14)
    step = np.array([1e-6, -2e-6, 1e-6])
    rise = (code(point + step) - code(point - step)) / 2
    np.testing.assert_allclose(rise, gradient @ step, rtol=1e-7)


def test_what_is_no_square_of_a_norm_keeps_its_kink() -> None:
    for code in (
        lambda x: (2 * np.abs(x)) ** 3,
        lambda x: (lambda r: r * r + r)(2 * np.abs(x)),
        lambda x: (1 / np.abs(x)) * (2 * np.abs(x)) ** 2,
    ):
        function = dl.trace(code, 1.0)
        for x in (0.5, -0.5):
            wanted = (code(x + 1e-5) - code(x - 1e-5)) / 2e-5
            assert float(dl.gradient(function)(x)[0]) == pytest.approx(wanted, rel=1e-8)
        assert float(function(-0.5)) == code(-0.5)


@for_each(
    ("text", "fourth"),
    [
        ("norm([x, x])^4", 96.0),
        ("norm([x, x^2])^4", 24.0),
        ("hypot(x, 2*x)^4", 600.0),
        ("sqrt(x^2 + x^4)^4", 24.0),
        ("abs(x)^4", 24.0),
    ],
)
def test_fourth_powers_of_norms_have_fourth_derivatives_at_0(text: str, fourth: float) -> None:
    found = dl.parse(text)
    for _ in range(4):
        found = dl.partial(found, "x")
    assert float(np.ravel(found(0.0))[0]) == pytest.approx(fourth, rel=1e-15)


@for_each(
    ("text", "order", "expected"),
    [
        ("hypot(x, 2*x)^6", 6, 125 * 720.0),
        ("norm([x, x])^6", 6, 8 * 720.0),
        ("sqrt(x^2 + x^4)^6", 6, 720.0),
        ("hypot(x, x)^6 + 3*x", 6, 8 * 720.0),
        ("hypot(x, x)^8", 8, 16 * 40320.0),
        ("abs(x)^6", 6, 720.0),
    ],
)
def test_higher_even_powers_of_norms_are_smooth_at_0(
    text: str, order: int, expected: float
) -> None:
    found = dl.parse(text)
    for k in range(1, order + 1):
        found = dl.partial(found, "x")
        value = float(np.ravel(found(0.0))[0])
        assert value == pytest.approx(expected if k == order else 3.0 * (k == 1 and "3*x" in text))


@pytest.mark.parametrize("text", ["hypot(x, y)^6", "norm([x, y])^10", "sqrt(x^2 + y^2)^6"])
@pytest.mark.parametrize("modes", ["ff", "rr", "fr"])
def test_higher_even_powers_have_their_values_elsewhere(text: str, modes: str) -> None:
    """The Hessian of (x² + y²)^n at (3, 4) is 2n·25ⁿ⁻¹·I + 4n(n − 1)·25ⁿ⁻²·v vᵀ."""
    n = int(text.rpartition("^")[2]) // 2
    hessian = derivatives_of(text, modes)[-1]
    v = np.array([3.0, 4.0])
    wanted = 2 * n * 25.0 ** (n - 1) * np.eye(2) + 4 * n * (n - 1) * 25.0 ** (n - 2) * np.outer(
        v, v
    )
    np.testing.assert_allclose(np.reshape(hessian(*v), (2, 2)), wanted, rtol=1e-14)
    assert np.ravel(hessian(0.0, 0.0)).tolist() == [0.0] * 4


def test_an_exponent_that_something_else_uses_keeps_its_value() -> None:
    both = dl.gradient(dl.parse("hypot(x, y)^6 + x^6 + 6*y"))
    assert both(3.0, 4.0) == pytest.approx([6 * 625 * 3.0 + 6 * 243, 6 * 625 * 4.0 + 6])


def test_a_norm_that_is_a_result_beside_its_square_stays_a_norm() -> None:
    both = dl.jacobian(dl.parse("x: [2]; r = norm(x); [r^2, r]"))
    assert np.asarray(both(np.array([3.0, 4.0]))).tolist() == [[6.0, 8.0], [0.6, 0.8]]


def test_powers_with_an_exponent_that_is_an_input_have_derivatives_above_it() -> None:
    found = dl.parse("x^n")
    for order in range(1, 6):
        found = dl.partial(found, "x")
        for n in (1, 2, 3, 4):
            value = float(np.ravel(found(x=0.0, n=float(n)))[0])
            assert value == (np.prod(np.arange(1, n + 1)) if order == n else 0.0), (order, n)
