"""Functions that other libraries differentiate by difflab's products, and by their own rules.

A Function that is called on arrays of JAX or PyTorch is computed, and differentiated, by these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import difflab as dl
from difflab.graph.function import Function

__all__ = ["FUNCTIONS", "example"]


def _mixture(params: Any, x: Any) -> Any:
    """Return a log-likelihood and its terms, of a tree of parameters."""
    terms = params["weight"] - 0.5 * (x[:, None] - params["mean"]) ** 2
    each = dl.arrays.logsumexp(terms, axis=1)
    return {"total": np.sum(each), "each": each}


MIXTURE = dl.trace(_mixture, {"weight": np.ones(3), "mean": np.ones(3)}, np.ones(4))
FUNCTIONS: dict[str, Function] = {
    "scalars": dl.parse("ln(x1)*x2 - sin(x2)^3 + exp(-x1*x2)"),
    "vectors": dl.parse("W: [3, 2]; x: [2]; tanh(W @ x + b)"),
    "sum": dl.parse("x: [4]; sum(x^3*y) + prod(x)"),
    "several": dl.parse("[x*y, where(x > 0.5, x^2*y, y), sqrt(x + y)]"),
    "unused": dl.parse("x: [2]; y: [2]; [x[0]^2, 3, x[1]*x[0]]"),
    "loop": dl.trace(lambda x, y: dl.fori_loop(0, 4, lambda k, c: np.sin(c) * y, x), 1.0, 1.0),
    "tree": MIXTURE,
}


def example(f: Function) -> list[np.ndarray]:
    """Return a value for each input, between 0.2 and 0.9."""
    rng = np.random.default_rng(5)
    return [np.asarray(rng.uniform(0.2, 0.9, shape)) for shape in f.input_shapes]
