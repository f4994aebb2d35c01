"""The objective and the Jacobian of an instance as flat arrays in the suite's order, checked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.adbench.problems import AdbenchProblem, JacobianKind
from difflab.errors import InputError

__all__ = ["TOLERANCE", "AdbenchAnswer", "answered", "difference", "expected"]

Array = NDArray[np.float64]
TOLERANCE = 1e-8
"""The suite's bound on |x - y| / max(1, |x| + |y|)."""


class AdbenchAnswer(NamedTuple):
    """An objective and its Jacobian, each as a flat array."""

    objective: Array
    jacobian: Array


def difference(found: Array, wanted: Array) -> float:
    """Return the largest |x - y| / max(1, |x| + |y|), infinite for different shapes.

    Examples
    --------
    >>> difference(np.array([1.0, 200.0]), np.array([1.0, 202.0]))
    0.004975124378109453
    """
    if found.shape != wanted.shape:
        return float("inf")
    apart = np.abs(found - wanted) / np.maximum(1.0, np.abs(found) + np.abs(wanted))
    worst = float(np.max(apart, initial=0.0))
    return worst if worst == worst else float("inf")


def answered(problem: AdbenchProblem, objective: Any, jacobian: Any) -> AdbenchAnswer:
    """Return the result of a tool in the suite's order.

    Gradients and matrices are in row-major order. For observations all reprojection errors come
    before all weight errors, and the Jacobian consists of its nonzeros, row by row.
    """
    found = [np.asarray(part, dtype=np.float64) for part in _parts(jacobian)]
    if problem.kind is JacobianKind.BLOCKS:
        rows = np.concatenate([part.reshape(*part.shape[:2], -1) for part in found[:-1]], axis=2)
        found = [rows, found[-1]]
    values = [np.asarray(part, dtype=np.float64) for part in _parts(objective)]
    return AdbenchAnswer(
        *(np.concatenate([part.ravel() for part in side]) for side in (values, found))
    )


def _parts(result: Any) -> Sequence[Any]:
    return result if isinstance(result, tuple | list) else (result,)


def expected(data: Path, instance: str) -> AdbenchAnswer | None:
    """Return the published results of an instance, or None.

    Raises
    ------
    InputError
        The file of published results cannot be read.
    """
    name = _FILES.get(instance)
    if instance.startswith("gmm"):
        name = "gmm_computed.json"
    if name is None or not (data / "expected" / name).exists():
        return None
    path = data / "expected" / name
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if instance.startswith("gmm"):
            known = known["results"].get(instance)
            return known and _answer(known["objective"], known["gradient"])
        if instance.startswith("lstm"):
            return _answer(known["objective"], known["gradient"])
        if instance.startswith("ba"):
            errors = [*known["expected_reproj_err"], *known["expected_weight_err"]]
            return _answer(errors, known["J_values_csr_order"])
        position = int("complicated" in instance)
        names = ("expected_objective", "expected_jacobian")
        return _answer(*(known[key][position] for key in names))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path} does not contain the results of {instance}: {error}") from error


_FILES = {
    "ba/test.txt": "ba_test.json",
    "lstm/lstm_l2_c1024.txt": "lstm_l2_c1024_computed.json",
    "hand/test.txt": "hand_test.json",
    "hand/hand_complicated.txt": "hand_test.json",
}


def _answer(objective: Any, jacobian: Any) -> AdbenchAnswer:
    return AdbenchAnswer(
        *(np.array(part, dtype=np.float64).ravel() for part in (objective, jacobian))
    )
