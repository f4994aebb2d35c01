"""The true derivative of a program: the referee's to order 2, high-precision differences above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import DifflabError
from difflab.graph.function import Function
from difflab.lab.judge import Judge
from difflab.methods.protocol import Family
from difflab.referee.values import ExactValues, own_context
from difflab.referee.verdict import Verdict

_JUDGED = ("smooth", "kink")
_DIGITS = 200
_STEP = -30  # decimal exponent
_SETTLED = 1e-15
_CLOSE, _WRONG = {"float64": 1e-6, "float32": 1e-4}, {"float64": 1e-3, "float32": 1e-2}
"""Errors, relative to the largest element, below which a result agrees and above which not."""


@dataclass(frozen=True)
class Truth:
    """A derivative at a point, and how results are judged by it.

    Attributes
    ----------
    order : int
        1 for the gradient, 2 for the Hessian, 3 for the third derivative along a direction.
    expected : ndarray
        The derivative, flattened; one number for order 3.
    """

    function: Function
    order: int
    expected: NDArray[float64]
    judge: Judge

    @classmethod
    def of(cls, function: Function, x: Sequence[float], order: int, timeout: float) -> Truth | None:
        """Return the truth; None where there is none to judge by."""
        judge = Judge(function, np.array(x), min(order, 2), timeout)
        if judge.reference is None or judge.status not in _JUDGED:
            return None
        expected = judge.reference.jacobian.reshape(-1)
        if order > 2:
            third = _third(function, x) if judge.status == "smooth" else None
            if third is None:
                return None
            expected = np.array([third])
        return cls(function, order, expected, judge)

    def verdict(self, found: Sequence[float], dtype: str) -> tuple[str, str]:
        """Return the verdict on a derivative, and its reason."""
        result = np.array(found, dtype=float64)
        n = self.function.n
        if result.size != n**self.order:
            return str(Verdict.DISAGREE), f"{result.size} numbers instead of {n**self.order}"
        if self.order < 3 and dtype == "float64":
            judgement = self.judge.verdict(result, Family.AUTOMATIC)
            return str(judgement.verdict), judgement.reason
        if self.judge.status != "smooth":
            return str(Verdict.INCONCLUSIVE), "no derivative at this point"
        return self._by_size(result, dtype)

    def _by_size(self, result: NDArray[float64], dtype: str) -> tuple[str, str]:
        """Judge by the error relative to the largest element."""
        scale = float(np.max(np.abs(self.expected)))
        if self.order > 2:
            direction = _direction(self.function.n)
            terms = result.reshape((self.function.n,) * 3) * np.einsum(
                "i,j,k->ijk", direction, direction, direction
            )
            result = np.array([terms.sum()])
            scale = max(scale, float(np.abs(terms).sum())) if np.isfinite(result).all() else scale
        limit = float(np.finfo(dtype).max)
        if not 1 / limit < scale < limit:
            return str(Verdict.INCONCLUSIVE), "beyond the range of the numbers"
        error = float(np.max(np.abs(result - self.expected))) / scale
        if error <= _CLOSE[dtype]:
            return str(Verdict.AGREE), ""
        if error <= _WRONG[dtype]:
            return str(Verdict.INCONCLUSIVE), f"an error of {error:.1e}"
        return (
            str(Verdict.DISAGREE),
            f"{result.tolist()} where the derivative is {self.expected.tolist()}",
        )


def _direction(n: int) -> NDArray[float64]:
    return np.array([0.5**k for k in range(n)])


def _third(function: Function, x: Sequence[float]) -> float | None:
    """Return the third derivative along a direction by differences of values of 200 digits."""
    values = ExactValues(function, context=own_context())
    mp = values.mp
    v = [mp.mpf(float(step)) for step in _direction(function.n)]

    def difference(h: Any) -> Any:
        def at(k: int) -> Any:
            return values([mp.mpf(a) + k * h * b for a, b in zip(x, v, strict=True)])[0]

        return (at(2) - 2 * at(1) + 2 * at(-1) - at(-2)) / (2 * h**3)

    try:
        with mp.workdps(_DIGITS):
            one, two = (difference(mp.mpf(10) ** _STEP / k) for k in (1, 2))
            if not (mp.isfinite(one) and mp.isfinite(two)):
                return None
            if abs(one - two) > _SETTLED * max(abs(two), mp.mpf(10) ** _STEP):
                return None
            found = float(two)
    except (DifflabError, ArithmeticError, ValueError):
        return None
    return found if np.isfinite(found) else None
