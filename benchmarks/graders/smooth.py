"""Smooth functions of the optimisation literature and of statistics.

The test functions are those of Moré, Garbow and Hillstrom (1981), of Jamil and Yang (2013), and
of Griewank and Walther (2008). Each entry of `SMOOTH` maps a random generator and a size to a
`Model`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.graders.model import Model, constant, padded

__all__ = ["SMOOTH"]


def _rosenbrock(rng: Generator, n: int) -> Model:
    def rest(x: Any) -> Any:
        return x[1:] - x[:-1] ** 2

    def value(xp: Any, x: Any) -> Any:
        return xp.sum(100 * rest(x) ** 2 + (1 - x[:-1]) ** 2)

    parts = (
        lambda xp, x: padded(xp, -400 * x[:-1] * rest(x), 0, 1),
        lambda xp, x: padded(xp, 200 * rest(x), 1, 0),
        lambda xp, x: padded(xp, -2 * (1 - x[:-1]), 0, 1),
    )

    def inner(xp: Any, x: Any) -> Any:
        return padded(xp, -200 * rest(x) - 2 * (1 - x[:-1]), 0, 1) + parts[1](xp, x)

    return Model(rng.uniform(-1.5, 1.5, n), value, parts, inner, detached=0)


def _broyden_tridiagonal(rng: Generator, n: int) -> Model:
    def residual(xp: Any, x: Any) -> Any:
        left, right = padded(xp, x[:-1], 1, 0), padded(xp, x[1:], 0, 1)
        return (3 - 2 * x) * x - left - 2 * right + 1

    parts = (
        lambda xp, x: 2 * residual(xp, x) * (3 - 4 * x),
        lambda xp, x: padded(xp, -2 * residual(xp, x)[1:], 0, 1),
        lambda xp, x: padded(xp, -4 * residual(xp, x)[:-1], 1, 0),
    )

    def inner(xp: Any, x: Any) -> Any:
        return 2 * residual(xp, x) + parts[1](xp, x) + parts[2](xp, x)

    def value(xp: Any, x: Any) -> Any:
        return xp.sum(residual(xp, x) ** 2)

    return Model(rng.uniform(-1.5, 1.5, n), value, parts, inner, detached=2)


def _penalty(rng: Generator, n: int) -> Model:
    def value(xp: Any, x: Any) -> Any:
        return 0.1 * xp.sum((x - 1) ** 2) + (xp.sum(x**2) / n - 0.25) ** 2

    parts = (
        lambda xp, x: 0.2 * (x - 1),
        lambda xp, x: 4 * (xp.sum(x**2) / n - 0.25) * x / n,
    )

    def inner(xp: Any, x: Any) -> Any:
        return parts[0](xp, x) + 2 * (xp.sum(x**2) / n - 0.25) + 0 * x

    return Model(rng.uniform(0.5, 2.0, n), value, parts, inner, detached=1)


def _ackley(rng: Generator, n: int) -> Model:
    def root(xp: Any, x: Any) -> Any:
        return xp.sqrt(xp.sum(x**2) / n)

    def waves(xp: Any, x: Any) -> Any:
        return xp.exp(xp.sum(xp.cos(2 * math.pi * x)) / n)

    def value(xp: Any, x: Any) -> Any:
        return 20 - 20 * xp.exp(-0.2 * root(xp, x)) - waves(xp, x) + math.e

    parts = (
        lambda xp, x: 4 * xp.exp(-0.2 * root(xp, x)) * x / (n * root(xp, x)),
        lambda xp, x: waves(xp, x) * xp.sin(2 * math.pi * x) * (2 * math.pi / n),
    )

    def inner(xp: Any, x: Any) -> Any:
        return parts[0](xp, x) + waves(xp, x) * xp.sin(2 * math.pi * x) / n

    return Model(rng.uniform(-2.0, 2.0, n), value, parts, inner, detached=1)


def _rastrigin(rng: Generator, n: int) -> Model:
    def value(xp: Any, x: Any) -> Any:
        return 10 * n + xp.sum(x**2 - 10 * xp.cos(2 * math.pi * x))

    parts = (
        lambda xp, x: 2 * x,
        lambda xp, x: 20 * math.pi * xp.sin(2 * math.pi * x),
    )

    def inner(xp: Any, x: Any) -> Any:
        return 2 * x + 10 * xp.sin(2 * math.pi * x)

    return Model(rng.uniform(-2.0, 2.0, n), value, parts, inner)


def _griewank(rng: Generator, n: int) -> Model:
    roots = np.sqrt(np.arange(1.0, n + 1))

    def product(xp: Any, x: Any) -> Any:
        return xp.prod(xp.cos(x / constant(xp, roots, x)))

    def value(xp: Any, x: Any) -> Any:
        return 1 + xp.sum(x**2) / 4000 - product(xp, x)

    def slopes(xp: Any, x: Any) -> Any:
        angle = x / constant(xp, roots, x)
        return product(xp, x) * xp.sin(angle) / xp.cos(angle)

    parts = (
        lambda xp, x: x / 2000,
        lambda xp, x: slopes(xp, x) / constant(xp, roots, x),
    )

    def inner(xp: Any, x: Any) -> Any:
        return x / 2000 + slopes(xp, x)

    return Model(rng.uniform(-1.2, 1.2, n), value, parts, inner, detached=1)


def _styblinski_tang(rng: Generator, n: int) -> Model:
    def value(xp: Any, x: Any) -> Any:
        return 0.5 * xp.sum(x**4 - 16 * x**2 + 5 * x)

    parts = (
        lambda xp, x: 2 * x**3,
        lambda xp, x: -16 * x,
        lambda xp, x: 2.5 + 0 * x,
    )
    return Model(rng.uniform(-2.5, 2.5, n), value, parts)


def _dixon_price(rng: Generator, n: int) -> Model:
    weights = np.arange(2.0, n + 1) / n

    def rest(x: Any) -> Any:
        return 2 * x[1:] ** 2 - x[:-1]

    def value(xp: Any, x: Any) -> Any:
        return (x[0] - 1) ** 2 + xp.sum(constant(xp, weights, x) * rest(x) ** 2)

    def weighted(xp: Any, x: Any) -> Any:
        return constant(xp, weights, x) * rest(x)

    parts = (
        lambda xp, x: 2 * (x - 1) * constant(xp, np.arange(n) == 0, x),
        lambda xp, x: padded(xp, 8 * weighted(xp, x) * x[1:], 1, 0),
        lambda xp, x: padded(xp, -2 * weighted(xp, x), 0, 1),
    )

    def inner(xp: Any, x: Any) -> Any:
        return parts[0](xp, x) + padded(xp, 2 * weighted(xp, x), 1, 0) + parts[2](xp, x)

    return Model(rng.uniform(-1.5, 1.5, n), value, parts, inner, detached=1)


def _zakharov(rng: Generator, n: int) -> Model:
    weights = 0.5 * np.arange(1.0, n + 1) / n

    def line(xp: Any, x: Any) -> Any:
        return xp.sum(constant(xp, weights, x) * x)

    def value(xp: Any, x: Any) -> Any:
        return xp.sum(x**2) + line(xp, x) ** 2 + line(xp, x) ** 4

    parts = (
        lambda xp, x: 2 * x,
        lambda xp, x: 2 * line(xp, x) * constant(xp, weights, x),
        lambda xp, x: 4 * line(xp, x) ** 3 * constant(xp, weights, x),
    )

    def inner(xp: Any, x: Any) -> Any:
        return 2 * x + 2 * line(xp, x) + 4 * line(xp, x) ** 3

    return Model(rng.uniform(-1.5, 2.5, n), value, parts, inner, detached=1)


def _levy(rng: Generator, n: int) -> Model:
    def value(xp: Any, x: Any) -> Any:
        w = 1 + (x - 1) / 4
        return xp.sum((w - 1) ** 2 * (1 + 10 * xp.sin(math.pi * w + 1) ** 2))

    def bowl(xp: Any, x: Any) -> Any:
        w = 1 + (x - 1) / 4
        return 0.5 * (w - 1) * (1 + 10 * xp.sin(math.pi * w + 1) ** 2)

    def waves(xp: Any, x: Any) -> Any:
        w = 1 + (x - 1) / 4
        angle = math.pi * w + 1
        return 5 * math.pi * (w - 1) ** 2 * xp.sin(angle) * xp.cos(angle)

    def inner(xp: Any, x: Any) -> Any:
        return bowl(xp, x) + waves(xp, x) / math.pi

    return Model(rng.uniform(-4.0, 4.0, n), value, (bowl, waves), inner, detached=1)


def _speelpenning(rng: Generator, n: int) -> Model:
    def value(xp: Any, x: Any) -> Any:
        return xp.prod(x)

    signs = rng.choice((-1.0, 1.0), n)
    x = signs * np.exp(rng.normal(0.0, 1.5 / math.sqrt(n), n))
    return Model(x, value, (lambda xp, x: xp.prod(x) / x,), lambda xp, x: xp.prod(x) + 0 * x)


def _helmholtz(rng: Generator, n: int) -> Model:
    b, a = rng.uniform(0.1, 0.5, n), rng.uniform(0.5, 2.0, (n, n))
    a, root = (a + a.T) / 2, math.sqrt(2.0)

    def rest(xp: Any, x: Any) -> Any:
        return 1 - xp.sum(constant(xp, b, x) * x)

    def logarithm(xp: Any, x: Any) -> Any:
        s = 1 - rest(xp, x)
        return xp.log((1 + (1 + root) * s) / (1 + (1 - root) * s)) / (2 * root * s)

    def value(xp: Any, x: Any) -> Any:
        mixing = xp.sum(x * xp.log(x / rest(xp, x)))
        return mixing - x @ (constant(xp, a, x) @ x) * logarithm(xp, x)

    def through(xp: Any, x: Any) -> Any:
        s = 1 - rest(xp, x)
        slope = (1 + root) / (1 + (1 + root) * s) - (1 - root) / (1 + (1 - root) * s)
        slope = slope / (2 * root * s) - logarithm(xp, x) / s
        return -(x @ (constant(xp, a, x) @ x)) * slope * constant(xp, b, x)

    parts = (
        lambda xp, x: xp.log(x / rest(xp, x)) + 1,
        lambda xp, x: xp.sum(x) / rest(xp, x) * constant(xp, b, x),
        lambda xp, x: -2 * (constant(xp, a, x) @ x) * logarithm(xp, x),
        through,
    )

    def inner(xp: Any, x: Any) -> Any:
        return parts[0](xp, x) + xp.sum(x) / rest(xp, x) + parts[2](xp, x) + through(xp, x)

    return Model(rng.uniform(0.3, 1.0, n) / n, value, parts, inner, detached=3)


def _log_sum_exp(rng: Generator, n: int) -> Model:
    scale = rng.uniform(0.5, 2.0, n)

    def value(xp: Any, x: Any) -> Any:
        return xp.log(xp.sum(xp.exp(constant(xp, scale, x) * x)))

    def softmax(xp: Any, x: Any) -> Any:
        powers = xp.exp(constant(xp, scale, x) * x)
        return powers / xp.sum(powers)

    def gradient(xp: Any, x: Any) -> Any:
        return softmax(xp, x) * constant(xp, scale, x)

    return Model(rng.normal(0.0, 1.5, n), value, (gradient,), softmax)


def _logistic_regression(rng: Generator, n: int) -> Model:
    rows = rng.normal(0.0, 1.0, (n + 3, n)) * rng.choice((-1.0, 1.0), (n + 3, 1))

    def value(xp: Any, x: Any) -> Any:
        losses = xp.log(1 + xp.exp(-(constant(xp, rows, x) @ x)))
        return xp.sum(losses) + 0.5 * xp.sum(x**2)

    def slopes(xp: Any, x: Any) -> Any:
        return -1 / (1 + xp.exp(constant(xp, rows, x) @ x))

    parts = (
        lambda xp, x: constant(xp, rows.T, x) @ slopes(xp, x),
        lambda xp, x: x,
    )

    def inner(xp: Any, x: Any) -> Any:
        return constant(xp, rows.T, x) @ (slopes(xp, x) + 1) + x

    return Model(rng.normal(0.0, 1.0 / math.sqrt(n), n), value, parts, inner)


def _least_squares(rng: Generator, n: int) -> Model:
    a, b = rng.normal(0.0, 1.0 / math.sqrt(n), (n, n)), rng.normal(0.0, 1.0, n)

    def residual(xp: Any, x: Any) -> Any:
        return constant(xp, a, x) @ x - constant(xp, b, x)

    def value(xp: Any, x: Any) -> Any:
        return 0.5 * xp.sum(residual(xp, x) ** 2)

    def gradient(xp: Any, x: Any) -> Any:
        return constant(xp, a.T, x) @ residual(xp, x)

    def transposed(xp: Any, x: Any) -> Any:
        return constant(xp, a, x) @ residual(xp, x)

    x = rng.normal(0.0, 1.0, n)
    return Model(x, value, (gradient,), residual, transposed=transposed)


def _quadratic_form(rng: Generator, n: int) -> Model:
    a = rng.normal(0.0, 1.0, (n, n))

    def value(xp: Any, x: Any) -> Any:
        return x @ (constant(xp, a, x) @ x)

    parts = (
        lambda xp, x: constant(xp, a, x) @ x,
        lambda xp, x: constant(xp, a.T, x) @ x,
    )

    def transposed(xp: Any, x: Any) -> Any:
        return 2 * (constant(xp, a, x) @ x)

    return Model(rng.normal(0.0, 1.0, n), value, parts, detached=1, transposed=transposed)


def _gaussian(rng: Generator, n: int) -> Model:
    def value(xp: Any, x: Any) -> Any:
        return xp.exp(-xp.sum(x**2) / n)

    def gradient(xp: Any, x: Any) -> Any:
        return -2 * x / n * value(xp, x)

    def inner(xp: Any, x: Any) -> Any:
        return -value(xp, x) / n + 0 * x

    return Model(rng.normal(0.0, 1.0, n), value, (gradient,), inner)


def _rayleigh(rng: Generator, n: int) -> Model:
    a = rng.normal(0.0, 1.0, (n, n))
    a = a + a.T + n**0.5 * np.eye(n)

    def value(xp: Any, x: Any) -> Any:
        return x @ (constant(xp, a, x) @ x) / xp.sum(x**2)

    parts = (
        lambda xp, x: 2 * (constant(xp, a, x) @ x) / xp.sum(x**2),
        lambda xp, x: -2 * value(xp, x) * x / xp.sum(x**2),
    )
    return Model(rng.normal(0.0, 1.0, n), value, parts, detached=1)


SMOOTH: Mapping[str, Callable[[Generator, int], Model]] = {
    "rosenbrock": _rosenbrock,
    "broyden-tridiagonal": _broyden_tridiagonal,
    "penalty": _penalty,
    "ackley": _ackley,
    "rastrigin": _rastrigin,
    "griewank": _griewank,
    "styblinski-tang": _styblinski_tang,
    "dixon-price": _dixon_price,
    "zakharov": _zakharov,
    "levy": _levy,
    "speelpenning": _speelpenning,
    "helmholtz": _helmholtz,
    "log-sum-exp": _log_sum_exp,
    "logistic-regression": _logistic_regression,
    "least-squares": _least_squares,
    "quadratic-form": _quadratic_form,
    "gaussian": _gaussian,
    "rayleigh": _rayleigh,
}
