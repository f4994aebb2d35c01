"""A comparison as typed rows, and its JSON schema ``difflab.comparison/5``, written and read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import FORMATS
from difflab.core.strict_json import dumps, long_integers, strict
from difflab.errors import DifflabError, InputError, MethodTimeout, UnsupportedError, described
from difflab.lab import kinds
from difflab.lab.kinds import FaultError, RecordPart, read
from difflab.methods.protocol import Family, Size

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


class Outcome(NamedTuple):
    """The status of a row without a result, and why it has none."""

    status: Status
    message: str


def outcome(error: BaseException) -> Outcome:
    """Return the status and the message of a row whose measurement raised `error`.

    Examples
    --------
    >>> outcome(MethodTimeout("stopped after 5 s"))
    Outcome(status=<Status.TIMEOUT: 'timeout'>, message='stopped after 5 s')
    >>> outcome(ZeroDivisionError("division by zero")).message
    'ZeroDivisionError: division by zero'
    """
    status = Status.FAILED
    if isinstance(error, MethodTimeout):
        status = Status.TIMEOUT
    elif isinstance(error, UnsupportedError):
        status = Status.UNSUPPORTED
    if isinstance(error, DifflabError):
        return Outcome(status, str(error))
    return Outcome(status, described(error))


VERDICTS = ("agree", "disagree", "convention", "declared", "inconclusive")
"""The names of `difflab.referee.verdict.Verdict`."""


SHAPE = kinds.RecordColumn(RecordPart.shape)
FLAG = kinds.RecordColumn(RecordPart.flag)


@dataclass(frozen=True)
class Variable:
    """An input or an output: its name and shape."""

    name: Annotated[str, kinds.TEXT("its name")]
    shape: Annotated[tuple[int, ...], SHAPE("its extents")] = ()


@dataclass(frozen=True)
class Expression:
    """The function that was differentiated."""

    text: Annotated[str, kinds.TEXT("its text")]
    inputs: Annotated[tuple[Variable, ...], kinds.many(Variable)("its inputs")]
    outputs: Annotated[tuple[Variable, ...], kinds.many(Variable)("its outputs")]


@dataclass(frozen=True, eq=False)
class ReferenceRow:
    """The referee's result."""

    jacobian: Annotated[Matrix | None, kinds.MATRIX("in float64; null if the referee failed")]
    digits: Annotated[int, kinds.COUNT("significant decimal digits of the worst element")]
    error_bound: Annotated[float | None, kinds.ESTIMATE("the referee's bound on its error")]
    status: Annotated[str, kinds.TEXT("worst regularity of an element, or why the referee failed")]
    proved: Annotated[bool, FLAG("whether ball arithmetic encloses all of it", since=2)] = False
    contradiction: Annotated[str, kinds.TEXT("where enclosure and values differ", since=2)] = ""


def labelled(name: str, dtype: str) -> str:
    """Return a method as reports name it: with its dtype, unless that is float64."""
    return name if dtype == "float64" else f"{name} {dtype}"


@dataclass(frozen=True, eq=False, kw_only=True)
class MethodRow:
    """Result and cost of one method; None for a field without a value.

    A field that is declared as a column is in every form of a comparison: JSON, CSV, dataframes,
    the stores of studies, the tables of reports and sites, and the documentation of the schema.

    Attributes
    ----------
    samples, prepare_samples : tuple of float
        The raw samples behind `call_seconds` and `prepare_seconds`; the JSON form has them in
        its environment.
    """

    name: Annotated[str, kinds.TEXT("the method", title="method")]
    family: Annotated[Family, kinds.choice(*Family)("the family of the method")]
    status: Annotated[Status, kinds.choice(*Status)("whether there is a derivative")]
    message: Annotated[str, kinds.REMARK("why not, or the reason of the verdict")] = ""
    jacobian: Annotated[Matrix | None, kinds.MATRIX("the derivative", title="derivative")] = None
    max_abs_error: Annotated[float | None, kinds.ERROR("largest absolute error", "error")] = None
    max_rel_error: Annotated[float | None, kinds.ERROR("largest relative error")] = None
    max_ulp_error: Annotated[float | None, kinds.ERROR("largest in ULP", "ULP", brief=True)] = None
    error_estimate: Annotated[float | None, kinds.ESTIMATE("largest of its own estimates")] = None
    verdict: Annotated[str | None, kinds.choice(*VERDICTS)("the referee's verdict")] = None
    size: Annotated[Size | None, kinds.SIZES("the derivative as an expression", "tree/DAG")] = None
    operations: Annotated[int | None, kinds.COUNT("arithmetic operations of a call", "ops")] = None
    function_evaluations: Annotated[int | None, kinds.COUNT("evaluations of a call")] = None
    prepare_seconds: Annotated[float | None, kinds.SECONDS("of preparing once", "prepare")] = None
    call_seconds: Annotated[float | None, kinds.SECONDS("of the fastest call", "call")] = None
    call_form: Annotated[str, kinds.TEXT("the call that was timed, if not the usual", since=4)] = ""
    peak_bytes: Annotated[int | None, kinds.BYTES("peak memory of a call")] = None
    dtype: Annotated[str, kinds.choice(*FORMATS)("in which it computes", since=5)] = "float64"
    samples: tuple[float, ...] = ()
    prepare_samples: tuple[float, ...] = ()

    @property
    def label(self) -> str:
        """The method, and its dtype unless that is float64."""
        return labelled(self.name, self.dtype)

    @property
    def outcome(self) -> str:
        """The verdict of a method that returned a derivative, else its status."""
        return self.verdict or "" if self.status is Status.OK else str(self.status)

    @property
    def ulps(self) -> float | None:
        """The error in ULP; infinite if the method returned nan, None if no element has one."""
        error = self.max_ulp_error
        return math.inf if error is not None and math.isnan(error) else error

    def stored(self) -> dict[str, Any]:
        """Return the columns `STORED`, by their names."""
        return {column.name: getattr(self, column.name) for column in STORED}

    def to_dict(self) -> dict[str, Any]:
        """Return the part of the schema that describes a method's result."""
        return kinds.written(self, size=strict(self.size or Size()))


STORED = tuple(
    each for each in kinds.columns(MethodRow) if each.stored and each.name not in ("name", "family")
)
"""The columns of a method's result of one cell each."""


def cell_types(*titles: str) -> dict[str, Any]:
    """Return the types of columns of a method's result in flat tables, by their titles.

    Examples
    --------
    >>> cell_types("method", "operations", "call_seconds")
    {'method': <class 'str'>, 'operations': <class 'int'>, 'call_seconds': <class 'float'>}
    """
    types = {column.title: column.stored for column in kinds.columns(MethodRow)}
    return {title: types[title] for title in titles}


ERRORS = tuple(column.name for column in STORED if column.judged)
"""The names of the errors against the referee."""


def _environment(part: RecordPart) -> dict[str, str | int | None]:
    return {
        name: each.text() if isinstance(each.value, str) else each.maybe(RecordPart.integer)
        for name, each in part.items()
        if name not in TIMING
    }


POINT = kinds.RecordColumn(lambda part: {name: each.array() for name, each in part.items()})
ORDER = kinds.RecordColumn(lambda part: part.integer(1, 2))
VALUES = kinds.RecordColumn(lambda part: part.array(rank=1))
ENVIRONMENT = kinds.RecordColumn(_environment)


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """Every method's derivative of one function at one point, judged and measured.

    Attributes
    ----------
    point_chosen : bool
        Whether difflab chose the point; not part of the JSON form.
    """

    expression: Annotated[Expression, kinds.nested(Expression)("the function")]
    point: Annotated[Mapping[str, Any], POINT("the value of every input")]
    order: Annotated[int, ORDER("1 for the Jacobian `(m, n)`, 2 for the Hessian `(n, n)`")]
    value: Annotated[Matrix, VALUES("the function's `m` values")]
    reference: Annotated[ReferenceRow, kinds.nested(ReferenceRow)("the referee's result")]
    methods: Annotated[tuple[MethodRow, ...], kinds.many(MethodRow)("a row per method")]
    environment: Annotated[Mapping[str, Any], ENVIRONMENT("machine, versions and settings")] = (
        field(default_factory=dict)
    )
    point_chosen: bool = False

    @property
    def agreed(self) -> bool:
        """Whether no method has the verdict ``disagree``, and the referee's two witnesses agree."""
        opposed = self.reference.contradiction or any(
            row.verdict == "disagree" for row in self.methods
        )
        return not opposed

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison in the schema `SCHEMA`.

        The result is strict JSON: numbers that JSON cannot represent are the strings
        ``"nan"``, ``"inf"`` and ``"-inf"``; sizes are exact integers. For order 2 the values
        of ``jacobian`` are Hessians, the Jacobian of the gradient.
        """
        methods = [row.to_dict() for row in self.methods]
        environment = {**self.environment, **self._timing()}
        return {"schema": SCHEMA, **kinds.written(self, methods=methods, environment=environment)}

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


_VERSION = max(3, kinds.latest(Comparison))
"""The third has another verdict, and no column that is new."""
SCHEMAS = tuple(f"difflab.comparison/{version}" for version in range(1, _VERSION + 1))
"""The schemas that can be read."""
SCHEMA = SCHEMAS[-1]


def read_samples(environment: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the raw samples of every method that has some, from a record's environment."""
    return {
        str(name): {
            "samples": tuple(map(float, samples["call"])),
            "prepare_samples": tuple(map(float, samples["prepare"])),
        }
        for name, samples in json.loads(environment.get(SAMPLES, "{}")).items()
    }


def from_json(text: str) -> Comparison:
    """Return the comparison that `Comparison.to_json` wrote.

    Raises
    ------
    InputError
        The text is not JSON, or does not follow the schema.
    """
    try:
        with long_integers():
            record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a JSON file: {error}") from error
    return from_dict(record)


def from_dict(record: Any) -> Comparison:
    """Return the comparison that `Comparison.to_dict` described.

    Raises
    ------
    InputError
        The dictionary does not follow the schema; the message names the invalid part.
    """
    schema = record.get("schema") if isinstance(record, Mapping) else None
    if not isinstance(schema, str) or schema not in SCHEMAS:
        raise InputError(f"its schema is none of {', '.join(map(repr, SCHEMAS))}")
    part = RecordPart(record, "", SCHEMAS.index(schema) + 1)
    try:
        comparison: Comparison = read(Comparison, part)
        return replace(comparison, methods=tuple(_checked(comparison.methods, part)))
    except FaultError as error:
        raise InputError(f"it does not follow the schema {schema!r}: {error}") from error


def _checked(rows: tuple[MethodRow, ...], record: RecordPart) -> Iterator[MethodRow]:
    """Yield the rows with the raw samples, which the environment holds as JSON text."""
    environment = record["environment"]
    try:
        samples = read_samples(environment.value)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise environment[SAMPLES].fault("the JSON text of every method's samples") from None
    for row, part in zip(rows, record["methods"].each(), strict=True):
        if row.status is Status.OK and row.verdict is None:
            raise part["verdict"].fault(f"one of {', '.join(VERDICTS)}")
        yield replace(row, **samples.get(row.name, {}))
