"""The functions of the bench with their exact Laplacians, and the ways of computing them.

The functions are written for any array library; the ways are difflab's, JAX's and PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

import difflab
from difflab.autodiff.functions.operators import LAPLACIAN
from difflab.core.optional import require
from difflab.methods.timer import peak_of

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
        The description, for the picture.
    of : callable
        ``of(xp, x, weights)`` computes it with the array library `xp`.
    weights : callable
        Returns its arrays, given n.
    laplacian : callable
        Returns the closed form of the Laplacian, of arrays of mpmath values.
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


@dataclass(frozen=True)
class PreparedWay:
    """A Laplacian at a batch of points, compiled.

    Attributes
    ----------
    call : callable
        Returns the Laplacians.
    operations : int, optional
        Scalar operations at one point.
    peak : callable
        Returns the bytes that a call takes beside its arguments; None where that is unknown.
    """

    call: Callable[[], Any]
    operations: int | None
    peak: Callable[[], int | None]


Weights = tuple[Array, ...]
Preparation = Callable[[BenchFunction, Array, Weights], PreparedWay]
SAMPLES = 16
"""Directions of Hutchinson's estimate."""


def _own(method: str) -> Preparation:
    """Return a way of difflab's."""

    def prepare(function: BenchFunction, points: Array, weights: Weights) -> PreparedWay:
        def one(x: Any) -> Any:
            return function.of(np, x, weights)

        options: dict[str, Any] = {}
        if method == "hutchinson":
            options = {"key": difflab.random.key(0), "samples": SAMPLES}
        laplacian: Any = difflab.laplacian(one, method=method, **options)
        operations = None
        if not options:
            operations = laplacian.explain(points[0]).operations[method]
        mapped = difflab.vmap(laplacian)

        def call() -> Any:
            results = mapped(points)
            return results[0] if options else results

        return PreparedWay(call, operations, lambda: peak_of(call))

    return prepare


def _jax(laplacian: Callable[[Any, Callable[[Any], Any], Any], Any]) -> Preparation:
    """Return a way of JAX's: ``laplacian(jax, f, x)`` at one point."""

    def prepare(function: BenchFunction, points: Array, weights: Weights) -> PreparedWay:
        jax = require("jax", "peers")
        jax.config.update("jax_enable_x64", True)

        def one(x: Any, w: Any) -> Any:
            return laplacian(jax, lambda x: function.of(jax.numpy, x, w), x)

        arrays = [jax.numpy.asarray(w) for w in weights]
        x = jax.numpy.asarray(points)
        compiled = jax.jit(jax.vmap(one, in_axes=(0, None))).lower(x, arrays).compile()

        def peak() -> int | None:
            memory = compiled.memory_analysis()
            return None if memory is None else int(memory.temp_size_in_bytes)

        return PreparedWay(lambda: np.asarray(compiled(x, arrays)), None, peak)

    return prepare


def _jax_nested(jax: Any, f: Any, x: Any) -> Any:
    def along(v: Any) -> Any:
        return jax.grad(lambda x: jax.numpy.vdot(jax.grad(f)(x), v))(x)

    return _diagonal(jax, along, x)


def _jax_forward_reverse(jax: Any, f: Any, x: Any) -> Any:
    return _diagonal(jax, lambda v: jax.jvp(jax.grad(f), (x,), (v,))[1], x)


def _diagonal(jax: Any, along: Any, x: Any) -> Any:
    unit = jax.numpy.eye(len(x))
    return jax.numpy.sum(jax.vmap(lambda v: jax.numpy.vdot(v, along(v)))(unit))


def _jax_loop(jax: Any, f: Any, x: Any) -> Any:
    _, push = jax.linearize(jax.grad(f), x)
    unit = jax.numpy.eye(len(x))
    return jax.lax.fori_loop(0, len(x), lambda i, total: total + push(unit[i])[i], 0.0)


def _jax_jet(jax: Any, f: Any, x: Any) -> Any:
    from jax.experimental import jet

    def second(v: Any) -> Any:
        _, (_, term) = jet.jet(f, (x,), ((v, jax.numpy.zeros_like(v)),))
        return term

    return jax.numpy.sum(jax.vmap(second)(jax.numpy.eye(len(x))))


def _folx(jax: Any, f: Any, x: Any) -> Any:
    folx = require("folx", "peers")
    return folx.forward_laplacian(f, sparsity_threshold=6)(x).laplacian


def _torch(forward: bool) -> Preparation:
    """Return a way of PyTorch's."""

    def prepare(function: BenchFunction, points: Array, weights: Weights) -> PreparedWay:
        torch = require("torch", "peers")
        from torch import func

        w, x = [torch.as_tensor(array) for array in weights], torch.as_tensor(points)

        def one(x: Any) -> Any:
            return function.of(torch, x, w)

        outer = func.jacfwd if forward else func.jacrev
        laplacian = func.vmap(lambda x: torch.trace(outer(func.grad(one))(x)))
        return PreparedWay(lambda: laplacian(x).numpy(), None, lambda: None)

    return prepare


OWN = (*LAPLACIAN, "symbolic", "hutchinson")
WAYS: Mapping[str, Preparation] = {
    **{name: _own(name) for name in OWN},
    "jax reverse": _jax(_jax_nested),
    "jax forward-reverse": _jax(_jax_forward_reverse),
    "jax linearize": _jax(_jax_loop),
    "jax jet": _jax(_jax_jet),
    "folx": _jax(_folx),
    "torch reverse": _torch(forward=False),
    "torch forward-reverse": _torch(forward=True),
}
