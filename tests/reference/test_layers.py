"""Worked examples of layers and losses: the matrix calculus of textbooks, in both modes."""

from __future__ import annotations

import numpy as np
import pytest

import difflab as dl
from difflab import arrays

MODES = pytest.mark.parametrize("mode", ["forward", "reverse"])
RNG = np.random.default_rng(5)
W, X, B, T = RNG.normal(size=(4, 3)), RNG.normal(size=3), RNG.normal(size=4), RNG.normal(size=4)


def parts(function: dl.Function, mode: str, *values: np.ndarray) -> list[np.ndarray]:
    """Return the gradient with respect to each input, in its shape."""
    return [np.asarray(p) for p in function.split(dl.gradient(function, mode)(*values))]


@MODES
def test_squared_error_of_a_linear_layer(mode: str) -> None:
    """For r = Wx + b - t, L = |r|²/2: dL/dW = r xᵀ, dL/db = r, dL/dx = Wᵀr, dL/dt = -r."""
    function = dl.parse(
        "W: [4, 3]; x: [3]; b: [4]; t: [4]; r = W @ x + b - t; loss = dot(r, r)/2; loss"
    )
    r = W @ X + B - T
    assert function.inputs == ("W", "b", "t", "x")
    w_bar, b_bar, t_bar, x_bar = parts(function, mode, W, B, T, X)
    np.testing.assert_allclose(w_bar, np.outer(r, X), rtol=1e-14)
    np.testing.assert_allclose(b_bar, r, rtol=1e-14)
    np.testing.assert_allclose(t_bar, -r, rtol=1e-14)
    np.testing.assert_allclose(x_bar, W.T @ r, rtol=1e-13)


@MODES
def test_relu_layer(mode: str) -> None:
    """For y = relu(Wx + b), L = Σy, with m where Wx + b > 0: dL/dW = m xᵀ."""
    function = dl.parse("W: [4, 3]; x: [3]; b: [4]; sum(relu(W @ x + b))")
    m = (W @ X + B > 0).astype(float)
    assert 0 < m.sum() < 4
    w_bar, b_bar, x_bar = parts(function, mode, W, B, X)
    np.testing.assert_array_equal(w_bar, np.outer(m, X))
    np.testing.assert_array_equal(b_bar, m)
    np.testing.assert_allclose(x_bar, W.T @ m, rtol=1e-14)


@MODES
@pytest.mark.parametrize("k", [0, 1, 2])
def test_log_softmax_at_huge_logits(k: int, mode: str) -> None:
    """The gradient of -log softmax(s)ₖ is softmax(s) - onehot(k), finite where eˢ is not."""
    logits = np.array([1000.0, -1000.0, 999.0])
    shares = np.array([1.0, 0.0, np.exp(-1.0)]) / (1 + np.exp(-1.0))
    losses = 1000 - logits + np.log1p(np.exp(-1.0))
    for program in (f"s: [3]; -log_softmax(s)[{k}]", f"s: [3]; cross_entropy(s, [{k}])"):
        function = dl.parse(program)
        np.testing.assert_allclose(function(logits), losses[k], rtol=1e-15)
        found = dl.gradient(function, mode)(logits)
        np.testing.assert_allclose(found, shares - np.eye(3)[k], rtol=1e-15, atol=1e-16)


@MODES
def test_a_gradient_step_on_a_perceptron_of_two_layers(mode: str, rng: np.random.Generator) -> None:
    """Backpropagation by hand: δ₂ = p - onehot, δ₁ = (W₂ᵀδ₂) ⊙ (1 - h²)."""
    v, c = rng.normal(size=(2, 4)), rng.normal(size=2)

    def loss(W1, b1, W2, b2):  # type: ignore[no-untyped-def]  # traced
        return arrays.cross_entropy(W2 @ np.tanh(W1 @ X + b1) + b2, 1)

    function = dl.trace(loss, W, B, v, c)
    h = np.tanh(W @ X + B)
    scores = np.exp(v @ h + c)
    d2 = scores / scores.sum() - np.array([0.0, 1.0])
    d1 = (v.T @ d2) * (1 - h**2)
    expected = [np.outer(d1, X), d1, np.outer(d2, h), d2]
    for found, truth in zip(parts(function, mode, W, B, v, c), expected, strict=True):
        np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-15)


def test_reverse_mode_of_a_network_takes_few_operations_whatever_its_width() -> None:
    counts = []
    for width in (8, 64):
        program = f"W: [{width}, {width}]; x: [{width}]; sum(tanh(W @ tanh(W @ x)))"
        function = dl.parse(program)
        counts.append(dl.count(dl.gradient(function)).operations)
        assert counts[-1] <= 4 * dl.count(function).operations
    assert counts[0] == counts[1]


@MODES
def test_gaussian_log_likelihood(mode: str) -> None:
    """For L = log det A + xᵀA⁻¹x, A symmetric: dL/dA = A⁻¹ - A⁻¹x xᵀA⁻¹ (Giles, 2008)."""
    a = W.T @ W + np.eye(3)
    function = dl.parse("A: [3, 3]; x: [3]; logdet(A) + x @ solve(A, x)")
    inverse = np.linalg.inv(a)
    a_bar, x_bar = parts(function, mode, a, X)
    expected = inverse - np.outer(inverse @ X, inverse @ X)
    np.testing.assert_allclose(a_bar, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(x_bar, 2 * inverse @ X, rtol=1e-12)


def test_newton_step_of_softmax_regression_agrees_with_its_known_hessian() -> None:
    """The Hessian of logsumexp is diag(p) - p pᵀ."""
    p = np.exp(X) / np.exp(X).sum()
    found = dl.hessian(dl.parse("s: [3]; logsumexp(s)"))(X)
    np.testing.assert_allclose(found, np.diag(p) - np.outer(p, p), rtol=1e-14, atol=1e-16)
