"""ba: the reprojection errors of bundle adjustment, and their sparse Jacobian.

The errors of all observations are one function of all cameras and points, whose machine code
gathers the parameters of an observation where it computes its errors. For the Jacobian, one
observation has 15 parameters (a camera's 11, a point's 3 and a weight) and 2 errors: its dense
Jacobian is compiled once and evaluated on all observations as a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import difflab as dl
from benchmarks.gradbench.tool.repeats import FASTEST, FunctionsByName, Prepared, compiled
from benchmarks.objectives.ba import reprojection_error, weight_error
from benchmarks.objectives.maths import difflab_maths

__all__ = ["FUNCTIONS"]

MATHS = difflab_maths()
BLOCK = 2 * 15
"""Derivatives of an observation's reprojection error."""
PART = 32_776
"""Observations of a batch: arrays a power of two apart would share a few sets of the cache."""


def _errors(camera: Any, point: Any, weight: Any, feature: Any) -> tuple[Any, Any]:
    """Return the reprojection error of an observation, and the error of its weight, or of many."""
    return reprojection_error(MATHS, camera, point, weight, feature), weight_error(MATHS, weight)


class _Scene(NamedTuple):
    """Cameras (11, n), points (3, m), weights and features (2, p), and who observes what."""

    cameras: Any
    points: Any
    weights: Any
    features: Any
    camera: NDArray[np.intp]
    point: NDArray[np.intp]

    def observations(self, part: slice) -> tuple[Any, ...]:
        """Return the parameters of some observations, contiguous over observations."""
        cameras = np.take(self.cameras, self.camera[part], axis=1)
        points = np.take(self.points, self.point[part], axis=1)
        return cameras.T, points.T, self.weights[part], self.features[:, part].T

    def parts(self) -> list[slice]:
        """Return the observations in parts, whose memory is used again."""
        return [slice(start, start + PART) for start in range(0, len(self.weights), PART)]


def _scene(question: Any) -> _Scene:
    n, m, p = (question[name] for name in "nmp")

    def copies(name: str, count: int) -> Any:
        return np.repeat(np.reshape(question[name], (-1, 1)), count, axis=1)

    observations = np.arange(p)
    return _Scene(
        copies("cam", n),
        copies("x", m),
        copies("w", p)[0],
        copies("feat", p),
        observations % n,
        observations % m,
    )


@dataclass(frozen=True)
class _Seen:
    """The parameters of the cameras or points that are seen, one for each observation.

    A parameter is gathered when it is read: no array holds those of all observations.
    """

    parameters: Any
    seen: NDArray[np.intp]

    def __getitem__(self, key: Any) -> Any:
        return self.parameters[key[-1]][self.seen]


def _objective(question: Any) -> Prepared:
    scene = _scene(question)
    p = len(scene.weights)

    def errors(cameras: Any, points: Any, weights: Any, features: Any) -> tuple[Any, Any]:
        camera, point = _Seen(cameras, scene.camera), _Seen(points, scene.point)
        return _errors(camera, point, weights, features.T)

    def output(found: Any) -> Any:
        reprojection, weight = found
        return {
            "reproj_error": {"elements": reprojection[0].tolist(), "repeated": p},
            "w_err": {"element": float(weight[0]), "repeated": p},
        }

    parameters = scene.cameras, scene.points, scene.weights, scene.features
    return compiled(errors, *parameters, output=output)


def _derivatives(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
    """Return the 30 derivatives of an observation's reprojection error, and its weight's."""
    (camera_, point_, weight_), (_, _, weight_error_) = dl.jacrev(_errors, (0, 1, 2))(
        camera, point, weight, feature
    )
    return np.concatenate([camera_, point_, np.reshape(weight_, (2, 1))], axis=1), weight_error_


def _jacobian(question: Any) -> Prepared:
    scene = _scene(question)
    observation = np.ones(11), np.ones(3), 1.0, np.ones(2)
    fast = dl.compile(dl.trace(_derivatives, *observation), FASTEST, threads=1)
    rows, columns = _pattern(scene, question["n"], question["m"])
    values = np.empty(columns.shape)
    blocks, slopes = np.split(values, [-len(scene.weights)])
    blocks = blocks.reshape(-1, 2, 15)

    def evaluate() -> tuple[Any, Any, Any]:
        for part in scene.parts():
            blocks[part], slopes[part] = fast(*scene.observations(part))
        return rows, columns, values

    def output(found: Any) -> Any:
        names = ("rows", "cols", "vals")
        return {
            name: [*part[:BLOCK].tolist(), part[-1].item()]
            for name, part in zip(names, found, strict=True)
        }

    return Prepared(evaluate, output)


def _pattern(scene: _Scene, n: int, m: int) -> tuple[Any, Any]:
    """Return the starts of the compressed rows and the columns: all reprojections, then weights."""
    p = len(scene.weights)
    weights = np.arange(p)[:, None] + (11 * n + 3 * m)
    cameras = 11 * scene.camera[:, None] + np.arange(11)
    points = 11 * n + 3 * scene.point[:, None] + np.arange(3)
    columns = np.concatenate([cameras, points, weights], axis=1)
    rows = np.concatenate([15 * np.arange(2 * p), BLOCK * p + np.arange(p + 1)])
    return rows, np.concatenate([np.repeat(columns, 2, axis=0).ravel(), weights.ravel()])


FUNCTIONS: FunctionsByName = {"objective": _objective, "jacobian": _jacobian}
