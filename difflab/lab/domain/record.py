"""A comparison over a domain as typed, immutable rows, and its schema ``difflab.domain/3``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import FORMATS
from difflab.core.strict_json import dumps, strict
from difflab.lab import kinds
from difflab.lab.domain.box import Box
from difflab.lab.domain.judging import MethodJudged, Referred
from difflab.lab.kinds import RecordPart
from difflab.lab.record import POINT, VERDICTS, Expression, Status, labelled
from difflab.methods.protocol import Family

LEVELS = (50, 99, 100)
"""The percentages of points of which the errors are stated."""
UNANSWERED = "unanswered"
"""The share of points at which a method gives no answer."""


SPAN = kinds.RecordColumn(lambda part: tuple(each.integer() for each in part.each()))
SHARES = kinds.RecordColumn(lambda part: {name: each.number() for name, each in part.items()})
ULPS = kinds.RecordColumn(lambda part: {level: part[str(level)].magnitude() for level in LEVELS})


@dataclass(frozen=True)
class LosingNode:
    """The operation at which a method parts from the exact derivative."""

    call: Annotated[str, kinds.TEXT("the operation with its operands at the point")]
    span: Annotated[tuple[int, int] | None, SPAN("its place in the text of the formula")]
    text: Annotated[str, kinds.TEXT("what differs there")]


@dataclass(frozen=True)
class WorstPoint:
    """The point with the most severe verdict, and with the largest error among these."""

    point: Annotated[Mapping[str, Any], POINT("the inputs")]
    verdict: Annotated[str, kinds.choice(*VERDICTS)("the verdict there")]
    message: Annotated[str, kinds.TEXT("its reason")]
    max_abs_error: Annotated[float | None, kinds.ERROR("largest absolute error")]
    max_rel_error: Annotated[float | None, kinds.ERROR("largest relative error")]
    max_ulp_error: Annotated[float | None, kinds.ERROR("largest error in ULP")]
    found: Annotated[str, kinds.choice("sample", "search")("how it was found")]
    node: Annotated[LosingNode | None, kinds.nested(LosingNode)("where the digits are lost")] = None


@dataclass(frozen=True)
class Silence:
    """Points at which a method gives no answer for one reason."""

    status: Annotated[str, kinds.choice(*map(str, Status))("why there is no answer")]
    reason: Annotated[str, kinds.TEXT("the same in words")]
    count: Annotated[int, kinds.COUNT("how many points of the sample")]
    low: Annotated[Mapping[str, Any], POINT("the corner of the smallest box of these points")]
    high: Annotated[Mapping[str, Any], POINT("the opposite corner")]


@dataclass(frozen=True, eq=False, kw_only=True)
class DomainRow:
    """One method over the domain.

    The errors `ulps` are those that a percentage of points does not exceed, over the points where
    one exists: infinite where the method returned nan, None without such a point.
    """

    name: Annotated[str, kinds.TEXT("the method")]
    family: Annotated[Family, kinds.choice(*Family)("the family of the method")]
    status: Annotated[Status, kinds.choice(*Status)("whether it could be prepared")]
    message: Annotated[str, kinds.TEXT("why not")] = ""
    shares: Annotated[Mapping[str, float], SHARES("of points with each verdict, and none")] = field(
        default_factory=dict
    )
    worst: Annotated[WorstPoint | None, kinds.nested(WorstPoint)("of the sample and search")] = None
    silences: Annotated[Sequence[Silence], kinds.many(Silence)("where it gives no answer")] = ()
    prepare_seconds: Annotated[float | None, kinds.SECONDS("to prepare")] = None
    batch_seconds: Annotated[float | None, kinds.SECONDS("for all points of the sample")] = None
    evaluations: Annotated[int, kinds.COUNT("of the function, for the sample")] = 0
    ulps: Annotated[Mapping[int, float] | None, ULPS("errors by percentage of points")] = None
    dtype: Annotated[str, kinds.choice(*FORMATS)("in which it computes", since=3)] = "float64"

    @property
    def label(self) -> str:
        """The method, and its dtype unless that is float64."""
        return labelled(self.name, self.dtype)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as it is in the schema."""
        return kinds.written(self)


READ = tuple(f"difflab.domain/{version}" for version in range(1, kinds.latest(DomainRow) + 1))
"""The schemas that can be read; the second has another verdict."""
SCHEMA = READ[-1]


def read_rows(document: Mapping[str, Any]) -> list[DomainRow]:
    """Return the rows of a comparison in one of the schemas `READ`.

    Raises
    ------
    InputError
        They do not follow the schema; the message names the invalid part.
    """
    rows = RecordPart(document, "", READ.index(document["schema"]) + 1)["methods"]
    return [kinds.read(DomainRow, row) for row in rows.each()]


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
        The result of the referee at each of them.
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
        """Return the comparison in the schema ``difflab.domain/3``, strict JSON."""
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
    sorted_ulps = np.sort(np.where(np.isnan(ulps), np.inf, ulps)[~np.isneginf(ulps)])
    if not sorted_ulps.size:
        return None
    ranks = [max(int(np.ceil(level / 100 * sorted_ulps.size)), 1) for level in LEVELS]
    return {level: float(sorted_ulps[rank - 1]) for level, rank in zip(LEVELS, ranks, strict=True)}
