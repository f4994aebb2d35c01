r"""kmeans: a Newton step of k-means clustering.

.. math:: f(c) = \sum_i \min_j \lVert p_i - c_j \rVert^2

The Hessian of f is diagonal, so its product with the vector of ones, by forward mode over reverse
mode, is its diagonal. The step is the gradient divided by it.

The derivative of a minimum by its operands is 1 for the smallest and 0 for the others, and stays so
around the point. So the step differentiates the distances of points from the centroids that this
matrix M of zeros and ones selects, :math:`\sum_i \lVert p_i - (M c)_i \rVert^2`, which has the
derivatives of f and takes matrix products where the distances of all pairs need a mask each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import difflab as dl
from benchmarks.gradbench.tool.repeats import FunctionsByName, Prepared, compiled

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
    return np.sum(np.min(_distances(centroids, points), axis=1))


def _distances(centroids: Any, points: Any) -> Any:
    """Return the squared distances of all points from all centroids, (n, k)."""
    pairs = zip(points[:, :, None], centroids[:, None, :], strict=True)
    return sum((p - c) ** 2 for p, c in pairs)


def _total(centroids: Any, blocks: Any) -> Any:
    """Return the cost of all blocks of points."""

    def add(total: Any, points: Any) -> tuple[Any, None]:
        return total + cost(centroids, points), None

    return dl.scan(add, 0.0, blocks)[0]


def step(centroids: Any, blocks: Any) -> Any:
    """Return the gradient of the total cost divided by the diagonal of its Hessian."""
    ones, zeros = np.ones(centroids.shape), np.zeros(centroids.shape)

    def add(totals: Any, points: Any) -> tuple[Any, None]:
        closest = dl.grad(lambda all_: np.sum(np.min(all_, axis=1)))
        selected = dl.stop_gradient(closest(_distances(centroids, points)))

        def near(centroids: Any) -> Any:
            return np.sum((points - centroids @ selected.T) ** 2)

        found = dl.jvp(dl.grad(near), (centroids,), (ones,))
        return tuple(total + part for total, part in zip(totals, found, strict=True)), None

    (gradient, diagonal), _ = dl.scan(add, (zeros, zeros), blocks)
    return gradient / diagonal


def _arguments(question: Any) -> tuple[Any, Any]:
    centroids, points = np.array(question["centroids"]).T, np.array(question["points"])
    (d, k), n = centroids.shape, len(points)
    most = max(NEAR // (4 * k), 1)  # of each pair some four numbers
    size = max(size for size in range(1, min(most, n) + 1) if n % size == 0)
    blocks = points.reshape(-1, size, d).transpose(0, 2, 1)
    return np.ascontiguousarray(centroids), np.ascontiguousarray(blocks)


def _cost(question: Any) -> Prepared:
    return compiled(_total, *_arguments(question), output=float)


def _dir(question: Any) -> Prepared:
    return compiled(step, *_arguments(question), output=lambda found: found.T.tolist())


FUNCTIONS: FunctionsByName = {"cost": _cost, "dir": _dir}
