"""Comparisons in other formats than float64: rounded points and range faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import FloatFormat
from difflab.diagnose.ranges import derivative_faults, range_faults
from difflab.errors import DifflabError, PointError
from difflab.lab.record import MethodRow
from difflab.methods.protocol import Family

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.lab.judge import Judge


ROUNDED = "the point is rounded to each, the truth is that of the rounded point, in its ULP"


def rounded_point(dtype: FloatFormat, x: NDArray[float64]) -> NDArray[float64]:
    """Return a point rounded to a format.

    Raises
    ------
    PointError
        An element is beyond its largest number.
    """
    found = dtype.rounded(x)
    if not np.isfinite(found).all():
        beyond = x[~np.isfinite(found)][0]
        raise PointError(f"the point has {beyond:g}, and {dtype} ends at {dtype.largest:.6g}")
    return found


class _Faults:
    """The operations of a function and of its derivative that leave the range of a format."""

    def __init__(self, function: Function, judge: Judge) -> None:
        self._function, self._judge = function, judge

    @cached_property
    def values(self) -> list[str]:
        """Those of the function."""
        return range_faults(self._function, self._judge.x, self._judge.dtype)

    @cached_property
    def derivative(self) -> list[str]:
        """Those of its derivative in reverse mode."""
        judge = self._judge
        try:
            return derivative_faults(self._function, judge.x, judge.dtype, judge.order)
        except DifflabError:  # some functions have no derivative in a graph
            return self.values


def in_range(
    rows: Sequence[MethodRow],
    function: Function | None,
    judge: Judge,
    reported: Callable[[MethodRow], None] | None = None,
) -> list[MethodRow]:
    """Return the rows of methods in a format, with its name and range faults.

    Operations are named where a derivative has nan, an infinity, or zero where the true one is
    not, and where it is wrong.
    """
    faults = None if function is None else _Faults(function, judge)
    found = []
    for row in rows:
        text = ""
        if faults is not None and _left(row, judge):
            known = faults.values if row.family is Family.NUMERIC else faults.derivative
            text = "; ".join(known)
        message = "; ".join(filter(None, (row.message, text)))
        found.append(replace(row, dtype=judge.dtype.name, message=message))
        if reported is not None:
            reported(found[-1])
    return found


def _left(row: MethodRow, judge: Judge) -> bool:
    """Whether a derivative may have left the range."""
    if row.jacobian is None:
        return False
    truth = None if judge.reference is None else judge.reference.jacobian
    lost = ~np.isfinite(row.jacobian) | ((row.jacobian == 0) & (truth is None or truth != 0))
    return bool(lost.any()) or row.verdict == "disagree"
