"""The referee in several processes, one for each processor."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.worker import Handlers, ReportProgress, Worker
from difflab.errors import DifflabError
from difflab.graph.function import Function
from difflab.lab.domain.answers import Answers
from difflab.lab.domain.judging import JudgedPoints, Values, judged, truths
from difflab.lab.environment import environment
from difflab.methods.protocol import Problem

FEW = 300
"""Points up to which starting processes takes longer than the work."""
_UNLIMITED = 1e8  # seconds: the referee limits its own time, point by point


class Referees:
    """Processes that judge blocks of points at the same time; this process for few points.

    Parameters
    ----------
    problem : Problem
        The function, the order, and the referee's time limit at a point. A function that cannot be
        sent to a process is judged in this one, and so is code that has no graph: block after
        block, since threads would share FLINT's working precision.
    points : int
        How many points there are.
    """

    def __init__(self, problem: Problem, points: int) -> None:
        self._here = RefereeSession()
        function = problem.function
        begun = (function, problem.order, problem.timeout, problem.shape)
        self._here.begin(*begun, values=problem.values if function is None else None)
        many = points > FEW and function is not None and _can_be_sent(function)
        count = int(environment()["threads"] or 1) if many else 0
        self._workers = [Worker("difflab.lab.domain.referees") for _ in range(count)]
        self._free: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)
        self._begun: set[Worker] = set()
        self._problem = begun
        self._threads = ThreadPoolExecutor(max(count, 1))

    def __enter__(self) -> Referees:
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes, whatever they are doing."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.stop()

    @property
    def processes(self) -> int:
        """How many blocks are judged at the same time."""
        return max(len(self._workers), 1)

    def judge(self, points: NDArray[float64], methods: Sequence[Answers]) -> Future[JudgedPoints]:
        """Begin to judge the methods' derivatives at points."""
        return self._begin(self._here.judge, "judge", points, list(methods))

    def truths(self, points: NDArray[float64]) -> NDArray[float64]:
        """Return derivatives to rank errors by, `difflab.lab.domain.judging.truths`."""
        if len(points) <= FEW:
            return self._here.truths(points)
        parts = np.array_split(points, self.processes)
        jobs = [self._begin(self._here.truths, "truths", part) for part in parts]
        return np.concatenate([part.result() for part in jobs])

    def _begin(self, here: Callable[..., Any], request: str, *arguments: Any) -> Future[Any]:
        if not self._workers:
            done: Future[Any] = Future()
            done.set_result(here(*arguments))
            return done
        return self._threads.submit(self._request, request, arguments)

    def _request(self, request: str, arguments: Any) -> Any:
        worker = self._free.get()
        try:
            if worker not in self._begun:
                worker.request("begin", *self._problem, timeout=_UNLIMITED)
                self._begun.add(worker)
            return worker.request(request, *arguments, timeout=_UNLIMITED)
        finally:
            self._free.put(worker)


def _can_be_sent(function: Function) -> bool:
    """Whether a function can be pickled; one with a user's own operation cannot."""
    try:
        pickle.dumps(function)
    except (DifflabError, pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


def handlers(report: ReportProgress) -> Handlers:
    """Return the handlers of this process."""
    session = RefereeSession()
    return {"begin": session.begin, "judge": session.judge, "truths": session.truths}


class RefereeSession:
    """The function that this process judges."""

    def begin(
        self,
        function: Function | None,
        order: int,
        timeout: float,
        shape: tuple[int, int],
        values: Values | None = None,
    ) -> None:
        """Set the function, the order, the time limit at a point, and the derivative's shape."""
        self._function, self._order, self._timeout = function, order, timeout
        self._shape, self._values = shape, values

    def judge(self, points: NDArray[float64], methods: Sequence[Answers]) -> JudgedPoints:
        """Return `judged` at points."""
        with np.errstate(all="ignore"):
            return judged(self._function, points, methods, self._order, self._timeout, self._values)

    def truths(self, points: NDArray[float64]) -> NDArray[float64]:
        """Return `truths` at points."""
        return truths(self._function, points, self._order, self._shape)
