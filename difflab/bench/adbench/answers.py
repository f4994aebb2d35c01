"""What an instance's answers are, as numbers in the suite's order, and whether they are right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.bench.adbench.problems import AdbenchProblem, JacobianKind
from difflab.errors import InputError

__all__ = ["TOLERANCE", "AdbenchAnswer", "answered", "difference", "expected"]

Array = NDArray[np.float64]
TOLERANCE = 1e-8
"""The suite's own, for |x - y| / max(1, |x| + |y|)."""


class AdbenchAnswer(NamedTuple):
    """An objective and its Jacobian, each as a row of numbers."""

    objective: Array
    jacobian: Array


def difference(found: Array, wanted: Array) -> float:
    """Return the largest |x - y| / max(1, |x| + |y|), infinite for another number of numbers.

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
    """Return what a tool computed as an answer in the suite's order.

    Gradients and matrices go row by row; of observations all reprojections come before all
    weights, and of their Jacobian what is not zero, row by row.
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
    """Return the answers that are known of an instance, None where none are.

    Raises
    ------
    InputError
        A file of known answers is there and cannot be read.
    """
    place = _PLACES.get(instance)
    if instance.startswith("gmm"):
        place = "gmm_computed.json"
    if place is None or not (data / "expected" / place).exists():
        return None
    path = data / "expected" / place
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
        place_in_file = int("complicated" in instance)
        names = ("expected_objective", "expected_jacobian")
        return _answer(*(known[name][place_in_file] for name in names))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path} does not hold the answers of {instance}: {error}") from error


_PLACES = {
    "ba/test.txt": "ba_test.json",
    "lstm/lstm_l2_c1024.txt": "lstm_l2_c1024_computed.json",
    "hand/test.txt": "hand_test.json",
    "hand/hand_complicated.txt": "hand_test.json",
}


def _answer(objective: Any, jacobian: Any) -> AdbenchAnswer:
    return AdbenchAnswer(
        *(np.array(part, dtype=np.float64).ravel() for part in (objective, jacobian))
    )
