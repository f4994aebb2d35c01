"""BA: the reprojection errors of bundle adjustment."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from difflab.bench.adbench.maths import Maths

__all__ = ["reprojection_error", "sparse_jacobian", "weight_error"]


def reprojection_error(maths: Maths, camera: Any, point: Any, weight: Any, feature: Any) -> Any:
    """Return the weighted error of a point's image, ``(2,)``; leading axes are a batch.

    Parameters
    ----------
    maths : Maths
        The array module.
    camera : array (..., 11)
        Rotation (3), centre (3), focal length, principal point (2), radial distortion (2).
    point : array (..., 3)
        The point.
    weight : array (...)
        The factor of the error.
    feature : array (..., 2)
        The observed image of the point.
    """
    x, y, z = _rotated(maths, camera, [point[..., i] - camera[..., 3 + i] for i in range(3)])
    u, v = x / z, y / z
    r = u * u + v * v
    scale = camera[..., 6] * (1.0 + camera[..., 9] * r + camera[..., 10] * r * r)
    across = u * scale + camera[..., 7] - feature[..., 0]
    down = v * scale + camera[..., 8] - feature[..., 1]
    return maths.xp.stack([weight * across, weight * down], axis=-1)


def weight_error(maths: Maths, weight: Any) -> Any:
    """Return 1 - w²."""
    return 1.0 - weight * weight


def _rotated(maths: Maths, camera: Any, point: list[Any]) -> tuple[Any, Any, Any]:
    """Rotate by Rodrigues' formula: about an axis vector, by its length."""
    xp = maths.xp
    a, b, c = (camera[..., i] for i in range(3))
    x, y, z = point
    squared = a * a + b * b + c * c
    turned = squared > 0.0
    angle = xp.sqrt(xp.where(turned, squared, 1.0))
    cosine, sine = xp.cos(angle), xp.sin(angle)
    a, b, c = a / angle, b / angle, c / angle
    along = (a * x + b * y + c * z) * (1.0 - cosine)
    return (
        xp.where(turned, x * cosine + (b * z - c * y) * sine + a * along, x),
        xp.where(turned, y * cosine + (c * x - a * z) * sine + b * along, y),
        xp.where(turned, z * cosine + (a * y - b * x) * sine + c * along, z),
    )


def sparse_jacobian(
    blocks: Any, slopes: Any, cameras: Any, points: Any, shape: tuple[int, int]
) -> csr_array:
    """Return the Jacobian of all errors: reprojections first, then weights.

    Parameters
    ----------
    blocks : array (p, 2, 15)
        The derivatives of each observation by its camera, point and weight.
    slopes : array (p,)
        The derivatives of the weights' errors.
    cameras, points : arrays of int (p,)
        The camera and the point of each observation.
    shape : (int, int)
        The numbers of cameras and points.

    Returns
    -------
    csr_array
        ``(3p, 11n + 3m + p)``, the entries of a row from left to right.
    """
    p, (n, m) = len(slopes), shape
    observed = 11 * n + 3 * m + np.arange(p)
    columns = np.concatenate(
        [
            11 * np.asarray(cameras)[:, None] + np.arange(11),
            11 * n + 3 * np.asarray(points)[:, None] + np.arange(3),
            observed[:, None],
        ],
        axis=1,
    )
    pattern = np.concatenate([np.repeat(columns, 2, axis=0).ravel(), observed])
    starts = np.concatenate([15 * np.arange(2 * p), 30 * p + np.arange(p + 1)])
    values = np.concatenate([np.ravel(blocks), slopes])
    return csr_array((values, pattern, starts), shape=(3 * p, 11 * n + 3 * m + p))
