"""Functions of matrices, functions with kinks, ill-conditioned functions and noisy ones.

The tables map a random generator and a size to a `Model`. Those of `DIFFICULT` have right
gradients that a checker may take for wrong: at a kink any value between the one-sided derivatives
is right, a cancelling polynomial has few correct digits, and rounded values have none below
their last one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.graders.model import Array, Model, constant
from benchmarks.graders.smooth import SMOOTH

__all__ = ["DIFFICULT", "ILL_CONDITIONED", "KINKED", "MATRICES"]

Table = Mapping[str, Callable[[Generator, int], Model]]


def _side(n: int) -> int:
    return max(2, math.isqrt(n))


def _trace_of_cube(rng: Generator, n: int) -> Model:
    k = _side(n)

    def value(xp: Any, x: Any) -> Any:
        return xp.sum((x @ x) * x.T) / 3

    def gradient(xp: Any, x: Any) -> Any:
        return (x @ x).T

    def transposed(xp: Any, x: Any) -> Any:
        return x @ x

    x = rng.normal(0.0, 1.0, (k, k))
    return Model(x, value, (gradient,), transposed=transposed)


def _log_determinant(rng: Generator, n: int) -> Model:
    k = _side(n)

    def value(xp: Any, x: Any) -> Any:
        return xp.linalg.slogdet(x)[1]

    def gradient(xp: Any, x: Any) -> Any:
        return xp.linalg.inv(x).T

    def transposed(xp: Any, x: Any) -> Any:
        return xp.linalg.inv(x)

    x = 2 * np.eye(k) + rng.normal(0.0, 0.6 / math.sqrt(k), (k, k))
    return Model(x, value, (gradient,), transposed=transposed)


def _layer(rng: Generator, n: int) -> Model:
    k = _side(n)
    u, v = rng.normal(0.0, 1.0, (k, 1)), rng.normal(0.0, 1.0, (k, 1))

    def active(xp: Any, x: Any) -> Any:
        return xp.tanh(x @ constant(xp, v, x))

    def value(xp: Any, x: Any) -> Any:
        return xp.sum(constant(xp, u, x) * active(xp, x)) + 0.05 * xp.sum(x**2)

    def back(xp: Any, x: Any) -> Any:
        return constant(xp, u, x) * (1 - active(xp, x) ** 2)

    parts = (
        lambda xp, x: back(xp, x) @ constant(xp, v.T, x),
        lambda xp, x: 0.1 * x,
    )

    def inner(xp: Any, x: Any) -> Any:
        return constant(xp, u, x) @ constant(xp, v.T, x) + 0.1 * x

    def transposed(xp: Any, x: Any) -> Any:
        return constant(xp, v, x) @ back(xp, x).T + 0.1 * x

    x = rng.normal(0.0, 1.0 / math.sqrt(k), (k, k))
    return Model(x, value, parts, inner, transposed=transposed)


def _factorization(rng: Generator, n: int) -> Model:
    k = _side(n)
    target = rng.normal(0.0, 1.0, (k, k))

    def residual(xp: Any, x: Any) -> Any:
        return x @ x.T - constant(xp, target, x)

    def value(xp: Any, x: Any) -> Any:
        return 0.5 * xp.sum(residual(xp, x) ** 2)

    parts = (
        lambda xp, x: residual(xp, x) @ x,
        lambda xp, x: residual(xp, x).T @ x,
    )

    def transposed(xp: Any, x: Any) -> Any:
        return 2 * residual(xp, x) @ x

    x = rng.normal(0.0, 1.0 / math.sqrt(k), (k, k))
    return Model(x, value, parts, detached=1, transposed=transposed)


MATRICES: Table = {
    "trace-of-cube": _trace_of_cube,
    "log-determinant": _log_determinant,
    "layer": _layer,
    "factorization": _factorization,
}


def _kinked(
    rng: Generator,
    n: int,
    value: Callable[[Any, Any], Any],
    slope: Callable[[Any, Any], Any],
    other: Callable[[Any, Any], Any],
    at: Array | None,
) -> Model:
    """Return a sum of kinked terms plus a quadratic.

    Parameters
    ----------
    value, slope : callable
        ``(xp, r)``, elementwise: the term and its derivative, with its kink at ``r == 0``.
    other : callable
        The derivative from the other side of the kink.
    at : ndarray (n,), optional
        The point, relative to the kinks; random by default.
    """
    kinks = rng.normal(0.0, 1.0, n).astype(np.float16).astype(float)  # exact in every precision
    wrong = np.arange(n) == rng.integers(n)

    def total(xp: Any, x: Any) -> Any:
        return xp.sum(value(xp, x - constant(xp, kinks, x))) + 0.25 * xp.sum(x**2)

    def slopes(xp: Any, x: Any) -> Any:
        return slope(xp, x - constant(xp, kinks, x))

    def branch(xp: Any, x: Any) -> Any:
        r, chosen = x - constant(xp, kinks, x), constant(xp, wrong, x)
        return slope(xp, r) * (1 - chosen) + other(xp, r) * chosen + 0.5 * x

    parts = (slopes, lambda xp, x: 0.5 * x)
    at = _near(rng, n) if at is None else at
    return Model(kinks + at, total, parts, branch=branch, detached=1, kind="kink")


def _near(rng: Generator, n: int) -> Array:
    """Return distances of both signs from a kink, of which the smallest is 1e-3."""
    return np.asarray(rng.choice((-1.0, 1.0), n) * 10.0 ** rng.uniform(-3.0, 0.0, n))


def _lasso(rng: Generator, n: int, at: Array | None = None) -> Model:
    def value(xp: Any, r: Any) -> Any:
        return xp.abs(r)

    def slope(xp: Any, r: Any) -> Any:
        return xp.sign(r)

    return _kinked(rng, n, value, slope, lambda xp, r: -xp.sign(r), at)


def _relu(rng: Generator, n: int, at: Array | None = None) -> Model:
    def value(xp: Any, r: Any) -> Any:
        return xp.where(r > 0, r, 0 * r)

    def slope(xp: Any, r: Any) -> Any:
        return xp.where(r > 0, 1 + 0 * r, 0 * r)

    return _kinked(rng, n, value, slope, lambda xp, r: 1 - slope(xp, r), at)


def _pinball(rng: Generator, n: int, at: Array | None = None) -> Model:
    def value(xp: Any, r: Any) -> Any:
        return xp.where(r > 0, 0.75 * r, -0.25 * r)

    def slope(xp: Any, r: Any) -> Any:
        return xp.where(r > 0, 0.75 + 0 * r, -0.25 + 0 * r)

    return _kinked(rng, n, value, slope, lambda xp, r: 0.5 - slope(xp, r), at)


def _exponential_kink(rng: Generator, n: int, at: Array | None = None) -> Model:
    def value(xp: Any, r: Any) -> Any:
        return xp.where(r > 0, xp.exp(r), 1 + 0.125 * r)

    def slope(xp: Any, r: Any) -> Any:
        return xp.where(r > 0, xp.exp(r), 0.125 + 0 * r)

    def other(xp: Any, r: Any) -> Any:
        return xp.where(r > 0, 0.125 + 0 * r, xp.exp(r))

    return _kinked(rng, n, value, slope, other, at)


KINKED: Mapping[str, Callable[..., Model]] = {
    "lasso": _lasso,
    "relu": _relu,
    "pinball": _pinball,
    "exponential-kink": _exponential_kink,
}


def _scales(rng: Generator, n: int) -> Model:
    weights = 10.0 ** rng.uniform(-3.0, 3.0, n)

    def value(xp: Any, x: Any) -> Any:
        return xp.sum(constant(xp, weights, x) * xp.sin(x) ** 2)

    def gradient(xp: Any, x: Any) -> Any:
        return 2 * constant(xp, weights, x) * xp.sin(x) * xp.cos(x)

    def inner(xp: Any, x: Any) -> Any:
        return 2 * constant(xp, weights, x) * xp.sin(x)

    x = rng.uniform(0.3, 1.3, n)
    return Model(x, value, (gradient,), inner, kind="ill-conditioned")


def _hilbert(rng: Generator, n: int) -> Model:
    row = np.arange(1.0, n + 1)
    h = 1 / (row[:, None] + row - 1)

    def value(xp: Any, x: Any) -> Any:
        return 0.5 * (x @ (constant(xp, h, x) @ x))

    def gradient(xp: Any, x: Any) -> Any:
        return constant(xp, h, x) @ x

    return Model(rng.normal(0.0, 1.0, n), value, (gradient,), kind="ill-conditioned")


ILL_CONDITIONED: Table = {"scales": _scales, "hilbert": _hilbert}


def _expanded(rng: Generator, n: int) -> Model:
    """Return the sum of (x - 1)^7, written out: every digit cancels near 1."""
    powers = (-1, 7, -21, 35, -35, 21, -7, 1)

    def value(xp: Any, x: Any) -> Any:
        total = 0 * x
        for power in reversed(powers):
            total = total * x + power
        return xp.sum(total)

    def gradient(xp: Any, x: Any) -> Any:
        return 7 * (x - 1) ** 6

    x = 1 + rng.choice((-1.0, 1.0), n) * rng.uniform(0.02, 0.3, n)
    return Model(x, value, (gradient,), kind="ill-conditioned")


def _rounded(name: str) -> Callable[[Generator, int], Model]:
    """Return a builder of a model whose values are rounded to about ten digits."""

    def build(rng: Generator, n: int) -> Model:
        model = SMOOTH[name](rng, n)
        unit = 10.0 ** (math.floor(math.log10(abs(float(model.value(np, model.x))))) - 9)

        def value(xp: Any, x: Any) -> Any:
            return xp.round(model.value(xp, x) / unit) * unit

        return replace(model, value=value, kind="noisy")

    return build


def _at_kinks(name: str) -> Callable[[Generator, int], Model]:
    """Return a builder of a kinked model at a point where some terms are at their kinks."""

    def build(rng: Generator, n: int) -> Model:
        chosen = rng.random(n) < 0.3
        chosen[rng.integers(n)] = True
        model = KINKED[name](rng, n, np.where(chosen, 0.0, _near(rng, n)))
        return replace(model, kind="at a kink")

    return build


DIFFICULT: Table = {
    "expanded": _expanded,
    "rounded-rosenbrock": _rounded("rosenbrock"),
    "rounded-logistic-regression": _rounded("logistic-regression"),
    "rounded-gaussian": _rounded("gaussian"),
    "lasso-at-kinks": _at_kinks("lasso"),
    "relu-at-kinks": _at_kinks("relu"),
    "exponential-at-kinks": _at_kinks("exponential-kink"),
}
