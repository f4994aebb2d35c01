r"""gmm: the log posterior of a mixture of k Gaussians with a Wishart prior.

.. math:: \sum_i \log \sum_k \exp\Bigl(\alpha_k + \sum_j q_{kj}
    - \tfrac12 \lVert Q_k (x_i - \mu_k) \rVert^2\Bigr)
    - n \log\sum_k e^{\alpha_k} + \log p_\text{Wishart} - \tfrac{nd}{2} \log 2\pi

Each Q is lower triangular: exp(q) is its diagonal, and l is what is below it, column by column.
All Q x are one matrix product, because Q (x - μ) = Q x - Q μ.
"""

from __future__ import annotations

from functools import partial
from math import lgamma, log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

import difflab as dl
from difflab.gradbench.repeats import FunctionsByName, Prepared, compiled

__all__ = ["FUNCTIONS", "log_posterior"]

PARAMETERS = ("alpha", "mu", "q", "l")


def log_posterior(alpha: Any, mu: Any, q: Any, below: Any, x: Any, *, gamma: float, m: int) -> Any:
    """Return the log posterior.

    Parameters
    ----------
    alpha, mu, q, below : arrays (k,), (k, d), (k, d), (k, d(d-1)/2)
        Weights, means, and the factors of the inverse covariances.
    x : array (n, d)
        The observations.
    gamma, m : float, int
        The precision and the additional degrees of freedom of the Wishart prior.
    """
    (k, d), n = mu.shape, len(x)
    diagonal = np.exp(q)
    entries = np.concatenate([diagonal.T, below.T, np.zeros((1, k))])
    factors = entries[_places(d)]  # (d, d, k): the element [i, j] of the transpose of each Q
    projected = np.reshape(x @ np.reshape(factors, (d, d * k)), (n, d, k))
    centres = np.sum(factors * np.reshape(mu.T, (d, 1, k)), axis=0)
    squares = np.sum((projected - centres) ** 2, axis=1)
    log_density = dl.arrays.logsumexp(alpha + np.sum(q, axis=1) - 0.5 * squares, 1)
    prior = 0.5 * gamma**2 * (np.sum(diagonal**2) + np.sum(below**2)) - m * np.sum(q)
    constant = k * _log_normalizer(d, d + m + 1, gamma) - 0.5 * n * d * log(2 * pi)
    return np.sum(log_density) - n * dl.arrays.logsumexp(alpha) - prior + constant


def _places(d: int) -> NDArray[np.int64]:
    """Return the row of (diagonal, below it, 0) that is the element [j, i] of Q, at [i, j]."""
    places = np.full((d, d), d + d * (d - 1) // 2)
    places[np.diag_indices(d)] = np.arange(d)
    columns, rows = np.triu_indices(d, 1)
    places[columns, rows] = d + np.arange(len(rows))
    return places


def _log_normalizer(d: int, n: int, gamma: float) -> float:
    """Return the constant of the Wishart density of a factor, with n degrees of freedom."""
    log_gamma = 0.25 * d * (d - 1) * log(pi) + sum(lgamma(0.5 * (n - j)) for j in range(d))
    return n * d * (log(gamma) - 0.5 * log(2.0)) - log_gamma


def _prepared(transform: Any, question: Any, output: Any) -> Prepared:
    k, d = question["k"], question["d"]
    shapes = {"alpha": (k,), "mu": (k, d), "q": (k, d), "l": (k, d * (d - 1) // 2)}
    parameters = [np.reshape(question[name], shape) for name, shape in shapes.items()]
    f = partial(log_posterior, gamma=question["gamma"], m=question["m"])
    return compiled(transform(f), *parameters, np.array(question["x"]), output=output)


def _objective(question: Any) -> Prepared:
    return _prepared(lambda f: f, question, float)


def _jacobian(question: Any) -> Prepared:
    def named(gradient: Any) -> dict[str, Any]:
        return {name: part.tolist() for name, part in zip(PARAMETERS, gradient, strict=True)}

    return _prepared(lambda f: dl.grad(f, (0, 1, 2, 3)), question, named)


FUNCTIONS: FunctionsByName = {"objective": _objective, "jacobian": _jacobian}
