"""ht: the distance of the surface of a posed hand from points, and its Jacobian.

The Jacobian is dense in the 26 parameters of the pose. Every point has a place of its own in its
triangle, on which only its own three residuals depend: by coloring, the same two directions serve
all places, so 28 forward sweeps give all derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import difflab as dl
from benchmarks.gradbench.tool.repeats import FunctionsByName, Prepared, compiled

__all__ = ["FUNCTIONS", "Hand"]

SMALL_ANGLE = 1e-4
"""Length of the global rotation's vector below which it is no rotation."""
FINGERS = 5


class Hand:
    """A hand model, and the points to compare it with.

    Parameters
    ----------
    data : mapping
        The field ``data`` of the eval's input.
    places : array (c, 2) or (0,)
        The place of each point in its triangle; empty where it is compared with a vertex.
    """

    def __init__(self, data: Any, places: NDArray[np.float64]) -> None:
        model = data["model"]
        self.parents: list[int] = model["parents"]
        self.relatives = np.array(model["base_relatives"])
        self.points = np.array(data["points"])
        vertices = np.array(data["correspondences"])
        if places.size:
            vertices = np.array(model["triangles"])[vertices]
        # Only vertices of a point are posed, each once.
        used, found = np.unique(vertices.T, return_inverse=True)
        self.corners: NDArray[np.intp] = found.reshape(vertices.T.shape)
        # A vertex in the frame of each bone, times its weight: one product poses all vertices.
        positions = np.array(model["base_positions"])[used]
        framed = np.array(model["inverse_base_absolutes"]) @ positions.T
        weighted = framed * np.array(model["weights"])[used].T[:, None, :]
        self.mirror = np.array([[-1.0 if model["is_mirrored"] else 1.0], [1.0], [1.0]])
        self.weighted = weighted.reshape(-1, len(used))

    def residuals(self, theta: Any, shift: Any, places: Any) -> Any:
        """Return the differences of the points from the surface, ``(3, c)``.

        Parameters
        ----------
        theta : array (26,)
            Global rotation (3) and position (3), then two bends of the first joint of each
            finger and one of its other two.
        shift : array (2,)
            What is added to all places.
        places : array (c, 2)
            The places in the triangles, unless the hand is compared at vertices.
        """
        positions = self._posed(theta)
        if self.corners.ndim == 1:
            return self.points.T - np.take(positions, self.corners, axis=1)
        u, v = places[:, 0] + shift[0], places[:, 1] + shift[1]
        first, second, third = (np.take(positions, corner, axis=1) for corner in self.corners)
        return self.points.T - (u * first + v * second + (1.0 - u - v) * third)

    def _posed(self, theta: Any) -> Any:
        """Return the positions of the vertices, ``(3, v)``."""
        bends = _joint_rotations(theta)
        absolutes: list[Any] = []
        for bone, parent in enumerate(self.parents):
            own = self.relatives[bone]
            if bone in bends:
                own = own @ bends[bone]
            absolutes.append(own if parent < 0 else absolutes[parent] @ own)
        frames = np.concatenate([frame[:3] for frame in absolutes], axis=1)
        posed = self.mirror * (frames @ self.weighted)
        return _rotation(theta[:3]) @ posed + np.reshape(theta[3:6], (3, 1))


def _joint_rotations(theta: Any) -> dict[int, Any]:
    """Return the rotation of each bone that bends: about x, then sideways about z."""
    found: dict[int, Any] = {}
    zero, one = np.zeros(()), np.ones(())
    for finger in range(FINGERS):
        bone, first = 2 + 4 * finger, 6 + 4 * finger
        for joint in range(3):
            bend = theta[first + joint + (joint > 0)]
            c, s = np.cos(bend), np.sin(bend)
            rows = [one, zero, zero, zero, zero, c, -s, zero, zero, s, c, zero]
            if joint == 0:
                a, b = np.cos(theta[first + 1]), np.sin(theta[first + 1])
                rows = [a, -b * c, b * s, zero, b, a * c, -a * s, zero, zero, s, c, zero]
            rows += [zero, zero, zero, one]
            found[bone + joint] = np.reshape(np.stack(rows), (4, 4))
    return found


def _rotation(vector: Any) -> Any:
    """Return the rotation about a vector by its length, ``(3, 3)``; none if it is short."""
    squared = np.sum(vector**2)
    turned = squared >= SMALL_ANGLE**2
    angle = np.sqrt(np.where(turned, squared, 1.0))
    x, y, z = (vector[i] / angle for i in range(3))
    s, c = np.sin(angle), np.cos(angle)
    rows = [
        *(x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s),
        *(x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s),
        *(x * z * (1 - c) - y * s, z * y * (1 - c) + x * s, z * z + (1 - z * z) * c),
    ]
    return np.where(turned, np.reshape(np.stack(rows), (3, 3)), np.eye(3))


def _arguments(question: Any) -> tuple[Hand, tuple[Any, Any, Any]]:
    places = np.array(question["us"], dtype=float)
    theta = np.array(question["theta"])
    return Hand(question["data"], places), (theta, np.zeros(2), places)


def _objective(question: Any) -> Prepared:
    hand, arguments = _arguments(question)

    def output(found: Any) -> Any:
        return found.T.ravel().tolist()

    return compiled(hand.residuals, *arguments, output=output)


def _jacobian(question: Any) -> Prepared:
    hand, (theta, shift, places) = _arguments(question)
    free = (1, 0) if places.size else (0,)

    def derivatives(theta: Any, shift: Any, places: Any) -> Any:
        parts = dl.jacfwd(hand.residuals, free)(theta, shift, places)
        return np.concatenate([np.moveaxis(part, 2, 0) for part in parts])

    def output(found: Any) -> Any:
        return found.T.reshape(-1, len(found)).tolist()

    return compiled(derivatives, theta, shift, places, output=output)


FUNCTIONS: FunctionsByName = {"objective": _objective, "jacobian": _jacobian}
