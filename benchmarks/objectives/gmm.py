r"""GMM: the log posterior of a mixture of k Gaussians with a Wishart prior.

.. math:: \sum_i \log \sum_k \exp\Bigl(\alpha_k + \sum_j q_{kj}
    - \tfrac12 \lVert Q_k (x_i - \mu_k) \rVert^2\Bigr)
    - n \log\sum_k e^{\alpha_k} + \log p_\text{Wishart} - \tfrac{nd}{2} \log 2\pi

Each Q is lower triangular: exp(q) is its diagonal, and l is what is below it, column by column.
All Q x are one matrix product, because Q (x - μ) = Q x - Q μ.
"""

from __future__ import annotations

from math import lgamma, log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.objectives.maths import Maths

__all__ = ["log_posterior"]


def log_posterior(
    maths: Maths,
    prior: tuple[float, int],
    alpha: Any,
    mu: Any,
    q: Any,
    below: Any,
    x: Any,
    share: Any = 1.0,
) -> Any:
    """Return the log posterior, or the contribution of some points to it.

    Parameters
    ----------
    maths : Maths
        The array module.
    prior : (float, int)
        The precision γ and the additional degrees of freedom m of the Wishart prior.
    alpha, mu, q, below : arrays (k,), (k, d), (k, d), (k, d(d-1)/2)
        Weights, means, and the factors of the inverse covariances.
    x : array (b, d)
        Points.
    share : number
        The factor of the logarithm of the prior: which part of all points they are.
    """
    xp, (gamma, m) = maths.xp, prior
    (k, d), points = mu.shape, len(x)
    diagonal = xp.exp(q)
    entries = xp.concatenate([diagonal.T, below.T, 0.0 * q[:, :1].T])
    factors = entries[_rows(d)]  # (d·d, k): Q_k[i, j] in row j·d + i
    projected = xp.reshape(x @ xp.reshape(factors, (d, d * k)), (points, d, k))
    centres = xp.sum(xp.reshape(factors, (d, d, k)) * xp.reshape(mu.T, (d, 1, k)), axis=0)
    squares = xp.sum((projected - centres) ** 2, axis=1)
    log_density = maths.logsumexp(alpha + xp.sum(q, axis=1) - 0.5 * squares, 1)
    rest = -0.5 * d * log(2 * pi) - maths.logsumexp(alpha, 0)
    log_prior = m * xp.sum(q) - 0.5 * gamma**2 * (xp.sum(diagonal**2) + xp.sum(below**2))
    log_prior = log_prior + k * _log_normalizer(d, d + m + 1, gamma)
    return xp.sum(log_density) + points * rest + share * log_prior


def _rows(d: int) -> NDArray[np.int64]:
    """Return which row of (diagonal, below it, 0) is Q[i, j], in row j·d + i."""
    rows = np.full((d, d), d + d * (d - 1) // 2)
    rows[np.diag_indices(d)] = np.arange(d)
    j, i = np.triu_indices(d, 1)
    rows[j, i] = d + np.arange(len(i))
    return rows.ravel()


def _log_normalizer(d: int, n: int, gamma: float) -> float:
    """Return the constant of the Wishart density of a factor, with n degrees of freedom."""
    log_gamma = 0.25 * d * (d - 1) * log(pi) + sum(lgamma(0.5 * (n - j)) for j in range(d))
    return n * d * (log(gamma) - 0.5 * log(2)) - log_gamma
