"""A comparison over a domain as typed, immutable rows, and its schema ``difflab.domain/2``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.strict_json import dumps, strict
from difflab.lab.domain.box import Box
from difflab.lab.domain.judging import MethodJudged, Referred
from difflab.lab.record import Expression, Status
from difflab.methods.protocol import Family

__all__ = [
    "LEVELS",
    "READ",
    "SCHEMA",
    "UNANSWERED",
    "DomainComparison",
    "DomainRow",
    "LosingNode",
    "Silence",
    "WorstPoint",
    "quantiles",
]

SCHEMA = "difflab.domain/2"
READ = ("difflab.domain/1", SCHEMA)
"""The schemas that can be read; the second has another verdict."""
LEVELS = (50, 99, 100)
"""The percentages of points of which the errors are stated."""
UNANSWERED = "unanswered"
"""The share of points at which a method gives no answer."""


@dataclass(frozen=True)
class LosingNode:
    """The operation at which a method parts from the exact derivative.

    Attributes
    ----------
    call : str
        The operation with its operands at the point.
    span : (int, int) or None
        Its place in the text of the formula.
    text : str
        What differs there, in words.
    """

    call: str
    span: tuple[int, int] | None
    text: str


@dataclass(frozen=True)
class WorstPoint:
    """The point with the most severe verdict, and with the largest error among these.

    Attributes
    ----------
    point : mapping of str to float or nested list
        The inputs.
    verdict, message : str
        The verdict there, and its reason.
    max_abs_error, max_rel_error, max_ulp_error : float or None
        The largest error of an element.
    found : str
        ``"sample"`` or ``"search"``.
    node : LosingNode or None
        Where the digits are lost.
    """

    point: Mapping[str, Any]
    verdict: str
    message: str
    max_abs_error: float | None
    max_rel_error: float | None
    max_ulp_error: float | None
    found: str
    node: LosingNode | None = None


@dataclass(frozen=True)
class Silence:
    """Points at which a method gives no answer for one reason.

    Attributes
    ----------
    status, reason : str
        ``unsupported``, ``timeout`` or ``failed``, and why.
    count : int
        How many points of the sample.
    low, high : mapping of str to float or nested list
        The corners of the smallest box that contains them.
    """

    status: str
    reason: str
    count: int
    low: Mapping[str, Any]
    high: Mapping[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class DomainRow:
    """One method over the domain.

    Attributes
    ----------
    name, family : str, Family
        The method.
    status, message : Status, str
        Whether it could be prepared, and why not.
    shares : mapping of str to float
        The share of the sample's points with each verdict, and `UNANSWERED`.
    ulps : mapping of int to float, or None
        The error in ULP that this percentage of points does not exceed, over the points where
        one exists; infinite where the method returned nan. None without such a point.
    worst : WorstPoint or None
        The worst point that the sample and the search found.
    silences : sequence of Silence
        Where the method gives no answer, and why.
    prepare_seconds, batch_seconds : float or None
        Seconds to prepare, and for all points of the sample.
    evaluations : int
        How many points the function was evaluated at, for the sample.
    """

    name: str
    family: Family
    status: Status
    message: str = ""
    shares: Mapping[str, float] = field(default_factory=dict)
    ulps: Mapping[int, float] | None = None
    worst: WorstPoint | None = None
    silences: Sequence[Silence] = ()
    prepare_seconds: float | None = None
    batch_seconds: float | None = None
    evaluations: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the row as it is in the schema."""
        names = [name for name in self.__dataclass_fields__ if name != "ulps"]
        found = {name: strict(getattr(self, name)) for name in names}
        ulps = self.ulps
        found["ulps"] = ulps and {str(level): strict(size) for level, size in ulps.items()}
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class DomainComparison:
    """Every method at many points of a domain.

    Attributes
    ----------
    expression : Expression
        The function.
    box : Box
        The domain.
    order : int
        1 for the Jacobian, 2 for the Hessian.
    points : ndarray (N, n)
        The sample; not part of the JSON form, as the next two.
    referred : Referred
        What the referee found at each of them.
    judged : sequence of MethodJudged
        The verdicts on each method at each of them.
    regularity : mapping of str to float
        The share of points at which the function is smooth, has a kink, is undefined, …
    proved : float
        The share of points at which ball arithmetic encloses every element of the derivative.
    searched : int
        The points at which the search evaluated the methods.
    methods : tuple of DomainRow
        One row per method.
    environment : mapping
        The environment of the measurement.
    """

    expression: Expression
    box: Box
    order: int
    points: NDArray[float64]
    referred: Referred
    judged: Sequence[MethodJudged]
    regularity: Mapping[str, float]
    proved: float
    searched: int
    contradiction: str
    methods: tuple[DomainRow, ...]
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def agreed(self) -> bool:
        """Whether no method is wrong at any point, and the referee's two witnesses agree."""
        wrong = any(
            row.shares.get("disagree", 0.0) > 0
            or (row.worst is not None and row.worst.verdict == "disagree")
            for row in self.methods
        )
        return not (wrong or self.contradiction)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison in the schema ``difflab.domain/2``, strict JSON."""
        return {
            "schema": SCHEMA,
            "expression": strict(self.expression),
            "domain": {
                "ranges": strict(self.box.ranges),
                "fixed": strict(self.box.fixed),
                "points": len(self.points),
                "searched": self.searched,
            },
            "order": self.order,
            "reference": {
                "regularity": strict(self.regularity),
                "proved": self.proved,
                "contradiction": self.contradiction,
            },
            "methods": [row.to_dict() for row in self.methods],
            "environment": dict(self.environment),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return `to_dict` as strict JSON text."""
        return dumps(self.to_dict(), indent)


def quantiles(ulps: NDArray[float64]) -> dict[int, float] | None:
    """Return the errors that 50, 99 and 100 % of the points do not exceed; None without errors.

    Examples
    --------
    >>> quantiles(np.array([0.5, 0.25, float("-inf"), float("nan"), 2.0]))
    {50: 0.5, 99: inf, 100: inf}
    """
    known = np.sort(np.where(np.isnan(ulps), np.inf, ulps)[~np.isneginf(ulps)])
    if not known.size:
        return None
    ranks = [max(int(np.ceil(level / 100 * known.size)), 1) for level in LEVELS]
    return {level: float(known[rank - 1]) for level, rank in zip(LEVELS, ranks, strict=True)}
