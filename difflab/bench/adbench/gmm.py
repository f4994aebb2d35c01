"""GMM: the logarithm of the posterior of a mixture of Gaussians."""

from __future__ import annotations

from math import lgamma, log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.bench.adbench.maths import Maths

__all__ = ["objective"]


def objective(
    maths: Maths, prior: tuple[float, int], alphas: Any, means: Any, icf: Any, x: Any, share: Any
) -> Any:
    r"""Return the contribution of some points to the logarithm of the posterior.

    .. math:: \sum_x \log \sum_k \exp\bigl(\alpha_k + \sum q_k
        - \tfrac12 \lVert Q_k (x - \mu_k) \rVert^2\bigr)
        + \text{share}\cdot\bigl(-\tfrac{nd}{2}\log 2\pi
        - n \log\sum_k e^{\alpha_k} + \log p_\text{Wishart}\bigr)

    Parameters
    ----------
    maths : Maths
        The array module.
    prior : (float, int)
        γ and m of the Wishart prior.
    alphas, means, icf : arrays (K,), (K, d), (K, d + d(d-1)/2)
        Weights, means, and inverse covariance factors: the logarithms of the diagonal of Q,
        then what is below it, column by column.
    x : array (b, d)
        Points.
    share : number
        Which part of all points they are, b/n; 1 where they are all.
    """
    xp = maths.xp
    k, d = means.shape
    diagonal = xp.exp(icf[:, :d])
    log_diagonal = xp.sum(icf[:, :d], axis=1)
    entries = xp.concatenate([diagonal.T, icf[:, d:].T, 0.0 * icf[:, :1].T])
    factors = entries[_packed_rows(d)]  # (d·d, K): Q_k[i, j] in row j·d + i
    projected = xp.reshape(x @ xp.reshape(factors, (d, d * k)), (len(x), d, k))
    centres = xp.sum(xp.reshape(factors, (d, d, k)) * xp.reshape(means.T, (d, 1, k)), axis=0)
    squares = xp.sum((projected - centres) ** 2, axis=1)
    inner = maths.logsumexp(alphas + log_diagonal - 0.5 * squares, 1)
    points = len(x)
    rest = -0.5 * d * log(2 * pi) - maths.logsumexp(alphas, 0)
    wishart = _log_wishart(maths, prior, diagonal, xp.sum(log_diagonal), icf)
    return xp.sum(inner) + points * rest + share * wishart


def _packed_rows(d: int) -> NDArray[np.int64]:
    """Return which row of (diagonal, below it, 0) is Q[i, j], in row j·d + i."""
    packed = np.full((d, d), d + d * (d - 1) // 2)
    packed[np.diag_indices(d)] = np.arange(d)
    columns, rows = np.triu_indices(d, 1)
    packed[columns, rows] = d + np.arange(len(rows))
    return packed.ravel()


def _log_wishart(
    maths: Maths, prior: tuple[float, int], diagonal: Any, log_diagonal: Any, icf: Any
) -> Any:
    """Return the logarithm of the Wishart density of all factors."""
    gamma, m = prior
    k, d = diagonal.shape
    n = d + m + 1
    squares = maths.xp.sum(diagonal**2) + maths.xp.sum(icf[:, d:] ** 2)
    terms = [lgamma(0.5 * n + 0.5 * (1 - j)) for j in range(1, d + 1)]
    log_gamma = 0.25 * d * (d - 1) * log(pi) + sum(terms)
    constant = n * d * (log(gamma) - 0.5 * log(2)) - log_gamma
    return 0.5 * gamma**2 * squares - m * log_diagonal - k * constant
