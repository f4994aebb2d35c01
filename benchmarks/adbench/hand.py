"""HAND: the distance of the surface of a posed hand from points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.adbench.files import HandModel
from benchmarks.objectives.maths import Maths
from difflab.errors import InputError

__all__ = ["Hand", "complicated", "simple"]

Array = NDArray[np.float64]
BoneIndices = NDArray[np.int64]
FINGERS, JOINTS = 5, 3  # joints that bend; a finger's first bone does not


_FIRST = 6 + 4 * np.arange(FINGERS)  # the first parameter of each finger
_BENDS = (_FIRST[:, None] + np.array([0, 2, 3])).ravel()
_ASIDE = _FIRST + 1


class SkeletonLevel(NamedTuple):
    """The bones at one distance from the wrist; `parents` and `joints` may be None.

    Attributes
    ----------
    bones : array of int
        The indices of the bones.
    parents : array of int or None
        The positions of their parents in the previous level.
    joints : array of int or None
        The joints that bend them.
    """

    bones: BoneIndices
    parents: BoneIndices | None
    joints: BoneIndices | None


class Hand:
    """The bones of a hand by level, such that each level is one batched matrix product.

    Parameters
    ----------
    model : HandModel
        The hand.
    """

    def __init__(self, model: HandModel) -> None:
        self.model = model
        self.levels: list[SkeletonLevel] = []
        joints = {2 + 4 * f + j: JOINTS * f + j for f in range(FINGERS) for j in range(JOINTS)}
        wanted, before = [-1], list[int]()
        while bones := [bone for bone, parent in enumerate(model.parents) if parent in wanted]:
            bending = [joints[bone] for bone in bones if bone in joints]
            if bending and len(bending) < len(bones):
                raise InputError(
                    "bones that bend and bones that do not are on the same level of the hand"
                )
            parents = [before.index(model.parents[bone]) for bone in bones] if before else None
            self.levels.append(
                SkeletonLevel(
                    np.array(bones),
                    None if parents is None else np.array(parents),
                    np.array(bending) if bending else None,
                )
            )
            wanted, before = bones, bones

    def weighted(self, vertices: BoneIndices) -> Array:
        """Return the vertices in the frame of every bone, times their weights.

        The result is ``(4·bones, v)``, in homogeneous coordinates with the bones in the order of
        `levels`, so that one matrix product poses all vertices.
        """
        model, order = self.model, np.concatenate([level.bones for level in self.levels])
        ones = np.ones((len(vertices), 1))
        positions = np.concatenate([model.positions[vertices], ones], axis=1).T
        framed = model.inverse_absolutes @ positions * model.weights[vertices].T[:, None, :]
        flat: Array = framed[order].reshape(-1, len(vertices))
        return flat


def simple(maths: Maths, hand: Hand, theta: Any, weighted: Any, points: Any) -> Any:
    """Return the vector from each point's vertex to the point, ``(3N,)``.

    Parameters
    ----------
    maths : Maths
        The array module.
    hand : Hand
        The skeleton.
    theta : array (26,)
        Rotation (3) and position (3) of the hand, then for every finger a bend and a sideways
        turn, and two bends.
    weighted : array (4·bones, N)
        The vertices.
    points : array (N, 3)
        Where they should be.
    """
    return maths.xp.reshape(points - _posed(maths, hand, theta, weighted).T, (-1,))


def complicated(
    maths: Maths, hand: Hand, pose: Any, weighted: Any, points: Any, inside: Any
) -> Any:
    """Return the vector from a position in each point's triangle to the point, ``(3N,)``.

    Parameters
    ----------
    maths : Maths
        The array module.
    hand : Hand
        The skeleton.
    pose : array (28,)
        What is added to all places in triangles (2), which gives the derivatives of each point
        by its own place in one column, and theta (26).
    weighted : array (4·bones, 3N)
        The first, second and third vertices of the triangles.
    points : array (N, 3)
        Where they should be.
    inside : array (N, 2)
        Barycentric coordinates.
    """
    xp = maths.xp
    corners = xp.reshape(_posed(maths, hand, pose[2:], weighted), (3, 3, len(points)))
    u, v = inside[:, 0] + pose[0], inside[:, 1] + pose[1]
    surface = u * corners[:, 0] + v * corners[:, 1] + (1.0 - u - v) * corners[:, 2]
    return xp.reshape(points - surface.T, (-1,))


def _posed(maths: Maths, hand: Hand, theta: Any, weighted: Any) -> Any:
    """Return the vertices of the posed hand, ``(3, v)``."""
    xp = maths.xp
    turns = _turns(maths, theta)
    placed: list[Any] = []
    for level in hand.levels:
        own = maths.array(hand.model.relatives[level.bones])
        if level.joints is not None:
            own = own @ turns[level.joints]
        placed.append(own if level.parents is None else placed[-1][level.parents] @ own)
    frames = xp.swapaxes(xp.concatenate(placed)[:, :3], 0, 1)
    flat = xp.reshape(frames, (3, -1))
    posed = flat @ weighted
    return _rotation(maths, theta[:3]) @ posed + xp.reshape(theta[3:6], (3, 1))


def _turns(maths: Maths, theta: Any) -> Any:
    """Return the rotations of the bending joints, ``(15, 4, 4)``: about x, then about z."""
    xp = maths.xp
    bends = theta[_BENDS]
    aside = xp.reshape(theta[_ASIDE], (FINGERS, 1)) * maths.array(np.eye(1, JOINTS))
    aside = xp.reshape(aside, (-1,))
    cx, sx, cz, sz = xp.cos(bends), xp.sin(bends), xp.cos(aside), xp.sin(aside)
    zero, one = 0.0 * bends, 0.0 * bends + 1.0
    rows = [cz, -sz * cx, sz * sx, zero, sz, cz * cx, -cz * sx, zero]
    rows += [zero, sx, cx, zero, zero, zero, zero, one]
    return xp.reshape(xp.stack(rows, axis=-1), (-1, 4, 4))


def _rotation(maths: Maths, vector: Any) -> Any:
    """Return the rotation about a nonzero vector, by its length, ``(3, 3)``."""
    xp = maths.xp
    angle = xp.sqrt(xp.sum(vector * vector))
    a, b, c = (vector[i] / angle for i in range(3))
    sine, cosine = xp.sin(angle), xp.cos(angle)
    rest = 1.0 - cosine
    rows = [
        *(a * a * rest + cosine, a * b * rest - c * sine, a * c * rest + b * sine),
        *(b * a * rest + c * sine, b * b * rest + cosine, b * c * rest - a * sine),
        *(c * a * rest - b * sine, c * b * rest + a * sine, c * c * rest + cosine),
    ]
    return xp.reshape(xp.stack(rows, axis=0), (3, 3))
