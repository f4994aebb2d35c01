r"""kmeans: a Newton step of k-means clustering.

.. math:: f(c) = \sum_i \min_j \lVert p_i - c_j \rVert^2

The Hessian of f is diagonal, so its product with the vector of ones, by forward mode over reverse
mode, is its diagonal. The step is the gradient divided by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import difflab as dl
from difflab.gradbench.repeats import FunctionsByName, Prepared, compiled

__all__ = ["FUNCTIONS", "cost", "step"]

NEAR = 100000
"""Numbers of a block's intermediate values, which should stay in a processor's cache."""


def cost(centroids: Any, points: Any) -> Any:
    """Return the sum of the squared distances of points from their closest centroids.

    Parameters
    ----------
    centroids, points : array (d, k), array (d, n)
        One in each column: so a coordinate of all is contiguous.
    """
    pairs = zip(points[:, :, None], centroids[:, None, :], strict=True)
    distances = sum((p - c) ** 2 for p, c in pairs)
    return np.sum(np.min(distances, axis=1))


def _total(centroids: Any, blocks: Any) -> Any:
    """Return the cost of all blocks of points."""

    def add(total: Any, points: Any) -> tuple[Any, None]:
        return total + cost(centroids, points), None

    return dl.scan(add, 0.0, blocks)[0]


def step(centroids: Any, blocks: Any) -> Any:
    """Return the gradient of the total cost divided by the diagonal of its Hessian."""
    ones, zeros = np.ones(centroids.shape), np.zeros(centroids.shape)

    def add(totals: Any, points: Any) -> tuple[Any, None]:
        found = dl.jvp(lambda c: dl.grad(cost)(c, points), (centroids,), (ones,))
        return tuple(total + part for total, part in zip(totals, found, strict=True)), None

    (gradient, diagonal), _ = dl.scan(add, (zeros, zeros), blocks)
    return gradient / diagonal


def _arguments(question: Any) -> tuple[Any, Any]:
    centroids, points = np.array(question["centroids"]).T, np.array(question["points"])
    (d, k), n = centroids.shape, len(points)
    most = max(NEAR // (k * (d + 3)), 1)
    size = max(size for size in range(1, min(most, n) + 1) if n % size == 0)
    blocks = points.reshape(-1, size, d).transpose(0, 2, 1)
    return np.ascontiguousarray(centroids), np.ascontiguousarray(blocks)


def _cost(question: Any) -> Prepared:
    return compiled(_total, *_arguments(question), output=float)


def _dir(question: Any) -> Prepared:
    return compiled(step, *_arguments(question), output=lambda found: found.T.tolist())


FUNCTIONS: FunctionsByName = {"cost": _cost, "dir": _dir}
