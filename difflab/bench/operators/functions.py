"""The functions of the bench, written for any array library, and their exact Laplacians."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

WIDTH = 64
"""Elements of a hidden layer of the network."""
DIGITS = 40

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BenchFunction:
    """A function of n coordinates.

    Attributes
    ----------
    summary : str
        What it is, for the picture.
    of : callable
        ``of(xp, x, weights)`` computes it with the array library `xp`.
    weights : callable
        Returns its arrays, given n.
    laplacian : callable
        Returns the closed form of the Laplacian, of arrays of mpmath's numbers.
    """

    summary: str
    of: Callable[[Any, Any, Any], Any]
    weights: Callable[[int], tuple[Array, ...]]
    laplacian: Callable[[Any, Any], Any]

    def exact(self, x: Array, weights: tuple[Array, ...]) -> float:
        """Return the Laplacian at one point, from the closed form at 40 digits."""
        with mpmath.workdps(DIGITS):
            number = np.vectorize(mpmath.mpf, otypes=[object])
            return float(self.laplacian(number(x), [number(w) for w in weights]))


def points_of(n: int, count: int) -> Array:
    """Return random points, the same in each run."""
    return np.random.default_rng(n).uniform(-1.0, 1.0, (count, n))


def _network(xp: Any, x: Any, w: Any) -> Any:
    return xp.tanh(xp.tanh(x @ w[0] + w[1]) @ w[2] + w[3]) @ w[4]


def _network_weights(n: int) -> tuple[Array, ...]:
    rng = np.random.default_rng(1)
    sizes = (n, WIDTH), (WIDTH,), (WIDTH, WIDTH), (WIDTH,), (WIDTH,)
    return tuple(rng.normal(size=size) / np.sqrt(size[0]) for size in sizes)


def _network_laplacian(x: Any, w: Any) -> Any:
    tanh = np.vectorize(mpmath.tanh, otypes=[object])
    y = tanh(x @ w[0] + w[1])
    slope = 1 - y * y
    z = tanh(y @ w[2] + w[3])
    outer = 1 - z * z
    first = (w[0] * slope) @ w[2]
    second = (-2 * y * slope * (w[0] ** 2).sum(0)) @ w[2]
    return ((outer * second) - 2 * z * outer * (first**2).sum(0)) @ w[4]


def _pairs(xp: Any, x: Any, w: Any) -> Any:
    apart = x[:, None] - x[None, :]
    return 0.5 * xp.sum(1 / xp.sqrt(1 + apart * apart))


def _pairs_laplacian(x: Any, w: Any) -> Any:
    terms = [
        (2 * (a - b) ** 2 - 1) / mpmath.sqrt(1 + (a - b) ** 2) ** 5
        for i, a in enumerate(x)
        for j, b in enumerate(x)
        if i != j
    ]
    return sum(terms)


def _separable(xp: Any, x: Any, w: Any) -> Any:
    return xp.sum(xp.sin(x) * x * x)


def _separable_laplacian(x: Any, w: Any) -> Any:
    return sum((2 - t * t) * mpmath.sin(t) + 4 * t * mpmath.cos(t) for t in x)


FUNCTIONS: Mapping[str, BenchFunction] = {
    "network": BenchFunction(
        f"tanh network n–{WIDTH}–{WIDTH}–1", _network, _network_weights, _network_laplacian
    ),
    "pairs": BenchFunction(
        "potential of all pairs, Σ 1/√(1 + (xᵢ − xⱼ)²)", _pairs, lambda n: (), _pairs_laplacian
    ),
    "separable": BenchFunction(
        "sum of terms, Σ xᵢ² sin xᵢ", _separable, lambda n: (), _separable_laplacian
    ),
}
