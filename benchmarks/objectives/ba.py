"""BA: the reprojection errors of bundle adjustment."""

from __future__ import annotations

from typing import Any

from benchmarks.objectives.maths import Maths

__all__ = ["reprojection_error", "weight_error"]


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
    """Rotate by Rodrigues' formula: about an axis vector, by its length.

    Near zero it adds the cross product, which is right to first order.
    """
    xp = maths.xp
    a, b, c = (camera[..., i] for i in range(3))
    x, y, z = point
    squared = a * a + b * b + c * c
    turned = squared > 0.0
    angle = xp.sqrt(xp.where(turned, squared, 1.0))
    cosine, sine = xp.cos(angle), xp.sin(angle) / angle
    cross = b * z - c * y, c * x - a * z, a * y - b * x
    a, b, c = a / angle, b / angle, c / angle
    along = (a * x + b * y + c * z) * (1.0 - cosine)
    return (
        xp.where(turned, x * cosine + cross[0] * sine + a * along, x + cross[0]),
        xp.where(turned, y * cosine + cross[1] * sine + b * along, y + cross[1]),
        xp.where(turned, z * cosine + cross[2] * sine + c * along, z + cross[2]),
    )
