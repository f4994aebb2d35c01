"""The instances of ADBench: an objective, its parameters, and data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.adbench import files, hand
from benchmarks.objectives import ba, gmm, lstm
from benchmarks.objectives.maths import Maths
from difflab.errors import InputError

__all__ = ["PROBLEMS", "AdbenchProblem", "JacobianKind", "instances", "load"]

Array = NDArray[np.float64]
POINTS = 10_000
"""Most points of a mixture that are differentiated at once."""


class JacobianKind(StrEnum):
    """The structure of a Jacobian."""

    GRADIENT = "gradient"
    """The gradient of a scalar."""
    COLUMNS = "columns"
    """A dense Jacobian of many outputs by few inputs."""
    BLOCKS = "blocks"
    """Blocks, one per observation, by the parameters of that observation."""


@dataclass(frozen=True)
class AdbenchProblem:
    """An instance of the suite.

    Attributes
    ----------
    name, instance : str
        The problem, and the file under the data's folder.
    kind : JacobianKind
        The structure of its Jacobian.
    objective : callable
        ``objective(maths, *parameters, *data)``; for blocks of one observation or a batch.
    parameters : tuple of array
        The parameters of differentiation.
    parts : sequence of tuples of array
        Data. The objective is the sum over the parts.
    each : callable or None
        ``each(maths, parameter)``: for blocks, a second error of the last parameter only.
    """

    name: str
    instance: str
    kind: JacobianKind
    objective: Callable[..., Any]
    parameters: tuple[Array, ...]
    parts: Sequence[tuple[Array, ...]] = field(default=((),))
    each: Callable[..., Any] | None = None


PROBLEMS: Mapping[str, tuple[str, ...]] = {
    "gmm": ("gmm/test.txt", "gmm_1k/*.txt", "gmm_2.5M_replicated/*.txt"),
    "ba": ("ba/*.txt",),
    "lstm": ("lstm/*.txt",),
    "hand": ("hand/*.txt", "hand_simple_small/*.txt", "hand_complicated_small/*.txt"),
}
"""The file patterns of each problem's instances under the data folder."""


def instances(data: Path, problem: str) -> list[str]:
    """Return the available instances of a problem, by their files under `data`.

    Raises
    ------
    InputError
        There is no such problem.
    """
    if problem not in PROBLEMS:
        raise InputError(
            f"ADBench has no problem '{problem}'", hint=f"one of {', '.join(PROBLEMS)}"
        )
    found = [path for pattern in PROBLEMS[problem] for path in sorted(data.glob(pattern))]
    return [path.relative_to(data).as_posix() for path in found]


def load(data: Path, instance: str) -> AdbenchProblem:
    """Read an instance.

    Parameters
    ----------
    data : pathlib.Path
        The folder.
    instance : str
        The file under it, from `instances`.

    Raises
    ------
    InputError
        A file is missing or invalid; the message names the line.
    """
    name = instance.split("/", 1)[0].split("_", 1)[0]
    return _LOADERS[name](data, instance)


def _gmm(data: Path, instance: str) -> AdbenchProblem:
    content = files.read_gmm(data / instance)
    sizes = [min(POINTS, content.n - start) for start in range(0, content.n, POINTS)]
    if len(content.x) == content.n:
        blocks: Iterator[Array] = iter(np.split(content.x, np.cumsum(sizes)[:-1]))
    else:
        same = {size: np.repeat(content.x, size, axis=0) for size in set(sizes)}
        blocks = (same[size] for size in sizes)
    # The suite's code subtracts the logarithm of the prior.
    parts = [(block, np.array(-len(block) / content.n)) for block in blocks]
    objective = partial(_gmm_objective, (content.gamma, content.m))
    parameters = (content.alphas, content.means, content.icf)
    return AdbenchProblem("gmm", instance, JacobianKind.GRADIENT, objective, parameters, parts)


def _gmm_objective(
    prior: tuple[float, int], maths: Maths, alphas: Any, means: Any, icf: Any, x: Any, share: Any
) -> Any:
    d = means.shape[1]
    return gmm.log_posterior(maths, prior, alphas, means, icf[:, :d], icf[:, d:], x, share)


def _ba(data: Path, instance: str) -> AdbenchProblem:
    content = files.read_ba(data / instance)
    # The suite repeats one camera, one point and one observation as often as the file says.
    cameras = np.tile(content.camera, (content.cameras, 1))
    points = np.tile(content.point, (content.points, 1))
    seen = np.arange(content.observations)
    parameters = (
        np.asfortranarray(cameras[seen % content.cameras]),
        np.asfortranarray(points[seen % content.points]),
        np.full(content.observations, content.weight),
    )
    features = np.asfortranarray(np.tile(content.feature, (content.observations, 1)))
    return AdbenchProblem(
        "ba",
        instance,
        JacobianKind.BLOCKS,
        ba.reprojection_error,
        parameters,
        [(features,)],
        ba.weight_error,
    )


def _lstm(data: Path, instance: str) -> AdbenchProblem:
    content = files.read_lstm(data / instance)
    parameters, rest = (content.gates, content.ends), (content.state, content.sequence)
    return AdbenchProblem("lstm", instance, JacobianKind.GRADIENT, lstm.loss, parameters, [rest])


def _hand(data: Path, instance: str) -> AdbenchProblem:
    complicated = "complicated" in instance
    model = _model(data / "hand" / "model")
    content = files.read_hand(data / instance, model, complicated=complicated)
    skeleton = hand.Hand(model)
    if content.inside is None:
        objective = partial(_hand_objective, hand.simple, skeleton)
        rest: tuple[Array, ...] = (skeleton.weighted(content.matches), content.points)
        return AdbenchProblem(
            "hand", instance, JacobianKind.COLUMNS, objective, (content.theta,), [rest]
        )
    corners = model.triangles[content.matches].T.ravel()
    objective = partial(_hand_objective, hand.complicated, skeleton)
    rest = (skeleton.weighted(corners), content.points, content.inside)
    pose = np.concatenate([np.zeros(2), content.theta])
    return AdbenchProblem("hand", instance, JacobianKind.COLUMNS, objective, (pose,), [rest])


def _hand_objective(text: Callable[..., Any], skeleton: Any, maths: Maths, *values: Any) -> Any:
    return text(maths, skeleton, *values)


@cache
def _model(folder: Path) -> files.HandModel:
    return files.read_hand_model(folder)


_LOADERS = {"gmm": _gmm, "ba": _ba, "lstm": _lstm, "hand": _hand}
