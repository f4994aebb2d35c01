"""Samplers of problems: orders that numeric methods differentiate to, deadlines of their values."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE
from difflab.differences.sampling import Sampler
from difflab.errors import UnsupportedError
from difflab.methods.point_by_point import PointByPoint
from difflab.methods.protocol import Problem

_ROUNDINGS = 2.0  # of a value, which points inside one spacing of the format do not show


def require_order(name: str, problem: Problem) -> None:
    """Raise `UnsupportedError` unless a Jacobian, or the Hessian of one output, is requested."""
    if problem.order not in (1, 2):
        raise UnsupportedError(f"{name} gives derivatives of order 1 and 2 only")
    if problem.order == 2 and problem.m != 1:
        raise UnsupportedError(f"a Hessian needs one output; the function has {problem.m}")


def sampler_of(problem: Problem) -> Sampler:
    """Return the sampler of a problem, which raises an error once its deadline is over."""
    values, deadline = problem.values, problem.deadline

    def in_time(points: NDArray[Any]) -> NDArray[Any]:
        assert deadline is not None
        deadline.check()
        if isinstance(values, PointByPoint):  # one call may take long
            return values(points, deadline)
        return values(points)

    nodes = 0 if problem.function is None else len(problem.function.graph)
    timed = values if deadline is None else in_time
    found = Sampler(timed, problem.n, problem.m, problem.memory_bytes // 4, nodes)
    if problem.dtype is not DOUBLE:
        found.eps, found.rounded = _ROUNDINGS * problem.dtype.eps, problem.dtype.rounded
    return found
