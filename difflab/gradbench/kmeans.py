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


def cost(centroids: Any, points: Any) -> Any:
    """Return the sum of the squared distances of the points from their closest centroids."""
    pairs = zip(points.T[:, :, None], centroids.T[:, None, :], strict=True)
    distances = sum((p - c) ** 2 for p, c in pairs)
    return np.sum(np.min(distances, axis=1))


def step(centroids: Any, points: Any) -> Any:
    """Return the gradient of `cost` divided by the diagonal of its Hessian."""
    gradient, diagonal = dl.jvp(
        lambda centroids: dl.grad(cost)(centroids, points),
        (centroids,),
        (np.ones(centroids.shape),),
    )
    return gradient / diagonal


def _arguments(question: Any) -> tuple[Any, Any]:
    return np.array(question["centroids"]), np.array(question["points"])


def _cost(question: Any) -> Prepared:
    return compiled(cost, *_arguments(question), output=float)


def _dir(question: Any) -> Prepared:
    return compiled(step, *_arguments(question), output=np.ndarray.tolist)


FUNCTIONS: FunctionsByName = {"cost": _cost, "dir": _dir}
