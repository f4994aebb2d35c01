"""A comparison as typed, immutable rows, and its JSON schema ``difflab.comparison/3``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from numpy import float64
from numpy.typing import NDArray

from difflab.core.strict_json import dumps, strict
from difflab.methods.protocol import Family, Size

__all__ = [
    "SAMPLES",
    "SCHEMA",
    "TIMING",
    "Comparison",
    "Expression",
    "MethodRow",
    "ReferenceRow",
    "Status",
    "Variable",
    "read_samples",
]

SCHEMA = "difflab.comparison/3"
SAMPLES = "samples"
"""Key of a record's environment that holds the raw samples."""
TIMING = ("repetitions", "spread", SAMPLES)
"""Keys of a record's environment that are computed from the methods' samples."""

Matrix = NDArray[float64]


class Status(StrEnum):
    """Outcome of a method."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    TIMEOUT = "timeout"
    FAILED = "failed"


@dataclass(frozen=True)
class Variable:
    """An input or an output: its name and shape."""

    name: str
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Expression:
    """The function that was differentiated."""

    text: str
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]


@dataclass(frozen=True, eq=False)
class ReferenceRow:
    """The referee's result.

    Attributes
    ----------
    jacobian : ndarray or None
        The derivative rounded to float64: ``(m, n)``, the Hessian ``(n, n)`` for order 2. None
        if the referee failed.
    digits : int
        The number of significant decimal digits of the worst element.
    error_bound : float or None
        The referee's bound on its error.
    status : str
        The worst regularity of an element, or the reason of a failure.
    proved : bool
        Whether ball arithmetic encloses every element, so that `error_bound` is rigorous.
    contradiction : str
        Where the enclosures and the differences of values exclude each other; else empty.
    """

    jacobian: Matrix | None
    digits: int
    error_bound: float | None
    status: str
    proved: bool = False
    contradiction: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class MethodRow:
    """Result and cost of one method; None for a field without a value.

    Attributes
    ----------
    jacobian : ndarray or None
        ``(m, n)``; the Hessian ``(n, n)`` for order 2.
    max_abs_error, max_rel_error, max_ulp_error : float or None
        The largest error of an element against the referee.
    error_estimate : float or None
        The largest of the method's own error estimates.
    prepare_seconds, call_seconds : float or None
        Seconds to prepare, and of the fastest call.
    samples, prepare_samples : tuple of float
        The raw samples behind `call_seconds` and `prepare_seconds`; the JSON form has them in
        its environment.
    """

    name: str
    family: Family
    status: Status
    message: str = ""
    jacobian: Matrix | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    max_ulp_error: float | None = None
    error_estimate: float | None = None
    verdict: str | None = None
    size: Size | None = None
    operations: int | None = None
    function_evaluations: int | None = None
    prepare_seconds: float | None = None
    call_seconds: float | None = None
    peak_bytes: int | None = None
    samples: tuple[float, ...] = ()
    prepare_samples: tuple[float, ...] = ()

    @property
    def outcome(self) -> str:
        """The verdict of a method that returned a derivative, else its status."""
        return self.verdict or "" if self.status is Status.OK else str(self.status)

    def to_dict(self) -> dict[str, Any]:
        """Return the part of the schema that describes a method's result."""
        record: dict[str, Any] = strict(replace(self, size=self.size or Size()))
        del record["samples"], record["prepare_samples"]
        return record


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """Every method's derivative of one function at one point, judged and measured.

    Attributes
    ----------
    expression : Expression
        The function.
    point : mapping of str to float or ndarray
        The value of every input.
    point_chosen : bool
        Whether difflab chose the point; not part of the JSON form.
    order : int
        1 for the Jacobian, 2 for the Hessian.
    value : ndarray
        The function's ``m`` values at the point.
    reference : ReferenceRow
        The referee's result.
    methods : tuple of MethodRow
        One row per method, whatever its outcome.
    environment : mapping
        The environment of the measurement.
    """

    expression: Expression
    point: Mapping[str, Any]
    order: int
    value: Matrix
    reference: ReferenceRow
    methods: tuple[MethodRow, ...]
    environment: Mapping[str, Any] = field(default_factory=dict)
    point_chosen: bool = False

    @property
    def agreed(self) -> bool:
        """Whether no method has the verdict ``disagree``, and the referee's two witnesses agree."""
        opposed = self.reference.contradiction or any(
            row.verdict == "disagree" for row in self.methods
        )
        return not opposed

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison in the schema ``difflab.comparison/3``.

        The result is strict JSON: numbers that JSON cannot represent are the strings
        ``"nan"``, ``"inf"`` and ``"-inf"``; sizes are exact integers. For order 2 the values
        of ``jacobian`` are Hessians, the Jacobian of the gradient.
        """
        return {
            "schema": SCHEMA,
            "expression": strict(self.expression),
            "point": strict(self.point),
            "order": self.order,
            "value": strict(self.value),
            "reference": strict(self.reference),
            "methods": [row.to_dict() for row in self.methods],
            "environment": {**self.environment, **self._timing()},
        }

    def _timing(self) -> dict[str, str]:
        """Return the number of samples of every method's call, their spread, and all samples.

        The schema allows only texts in the environment, so the samples are JSON in one text.
        """
        from difflab.lab.sampling import spread

        rows = [row for row in self.methods if row.samples]
        if not rows:
            return {}
        samples = {row.name: {"call": row.samples, "prepare": row.prepare_samples} for row in rows}
        return {
            "repetitions": ", ".join(f"{row.name} {len(row.samples)}" for row in rows),
            "spread": ", ".join(f"{row.name} {spread(row.samples):.2g}" for row in rows),
            SAMPLES: json.dumps(samples, allow_nan=False),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return `to_dict` as strict JSON text, with integers of any length."""
        return dumps(self.to_dict(), indent)


def read_samples(environment: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the raw samples of every method that has some, from a record's environment."""
    return {
        str(name): {
            "samples": tuple(map(float, found["call"])),
            "prepare_samples": tuple(map(float, found["prepare"])),
        }
        for name, found in json.loads(environment.get(SAMPLES, "{}")).items()
    }
