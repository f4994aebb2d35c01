"""A process of the referee: it judges blocks of points for another process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.graph.function import Function
from difflab.lab.domain.answers import Answers
from difflab.lab.domain.judging import Judged, judged, truths
from difflab.methods.process.worker import Handlers, ReportProgress

__all__ = ["RefereeSession", "handlers"]


def handlers(report: ReportProgress) -> Handlers:
    """Return the handlers of this process."""
    session = RefereeSession()
    return {"begin": session.begin, "judge": session.judge, "truths": session.truths}


class RefereeSession:
    """The function that this process judges."""

    def begin(self, function: Function, order: int, timeout: float) -> None:
        """Set the function, the order and the referee's time limit at a point."""
        self._function, self._order, self._timeout = function, order, timeout

    def judge(self, points: NDArray[float64], methods: Sequence[Answers]) -> Judged:
        """Return `judged` at points."""
        with np.errstate(all="ignore"):
            return judged(self._function, points, methods, self._order, self._timeout)

    def truths(self, points: NDArray[float64]) -> NDArray[float64]:
        """Return `truths` at points."""
        return truths(self._function, points, self._order)
