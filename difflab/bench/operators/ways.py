"""The ways of computing a Laplacian at a batch of points: difflab's, JAX's and PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import difflab
from difflab.autodiff.functions.operators import LAPLACIAN
from difflab.bench.operators.functions import BenchFunction
from difflab.core.optional import require
from difflab.methods.timer import peak_of

Array = NDArray[np.float64]


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
        one = lambda x: function.of(np, x, weights)  # noqa: E731
        options: dict[str, Any] = {}
        if method == "hutchinson":
            options = {"key": difflab.random.key(0), "samples": SAMPLES}
        laplacian: Any = difflab.laplacian(one, method=method, **options)
        operations = None
        if not options:
            operations = laplacian.explain(points[0]).operations[method]
        mapped = difflab.vmap(laplacian)

        def call() -> Any:
            found = mapped(points)
            return found[0] if options else found

        return PreparedWay(call, operations, lambda: peak_of(call))

    return prepare


def _jax(laplacian: Callable[[Any, Callable[[Any], Any], Any], Any]) -> Preparation:
    """Return a way of JAX's: ``laplacian(jax, f, x)`` at one point."""

    def prepare(function: BenchFunction, points: Array, weights: Weights) -> PreparedWay:
        jax = require("jax", "peers")
        jax.config.update("jax_enable_x64", True)
        one = lambda x, w: laplacian(jax, lambda x: function.of(jax.numpy, x, w), x)  # noqa: E731
        arrays = [jax.numpy.asarray(w) for w in weights]
        x = jax.numpy.asarray(points)
        compiled = jax.jit(jax.vmap(one, in_axes=(0, None))).lower(x, arrays).compile()

        def peak() -> int | None:
            found = compiled.memory_analysis()
            return None if found is None else int(found.temp_size_in_bytes)

        return PreparedWay(lambda: np.asarray(compiled(x, arrays)), None, peak)

    return prepare


def _jax_nested(jax: Any, f: Any, x: Any) -> Any:
    along = lambda v: jax.grad(lambda x: jax.numpy.vdot(jax.grad(f)(x), v))(x)  # noqa: E731
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
        one = lambda x: function.of(torch, x, w)  # noqa: E731
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
