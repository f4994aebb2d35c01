"""A saved comparison read back: the schema ``difflab.comparison/1`` to its record.

May import `difflab.lab.record`, `difflab.methods` (for its types) and `difflab.errors`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import InputError
from difflab.lab.record import (
    SCHEMA,
    TIMING,
    Comparison,
    Expression,
    MethodRow,
    ReferenceRow,
    Status,
    Variable,
    long_integers,
    read_samples,
)
from difflab.methods.protocol import Family, Size

__all__ = ["from_dict", "from_json"]

_NUMBERS = (
    "max_abs_error",
    "max_rel_error",
    "max_ulp_error",
    "error_estimate",
    "prepare_seconds",
    "call_seconds",
)
_AS_THEY_ARE = ("message", "verdict", "operations", "function_evaluations", "peak_bytes")


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
        The dictionary does not follow the schema.
    """
    if not isinstance(record, Mapping) or record.get("schema") != SCHEMA:
        raise InputError(f"its schema is not {SCHEMA!r}")
    try:
        samples = read_samples(record["environment"])
        return Comparison(
            expression=_expression(record["expression"]),
            point={str(name): _array(value) for name, value in record["point"].items()},
            order=int(record["order"]),
            value=_array(record["value"]),
            reference=_reference(record["reference"]),
            methods=tuple(
                replace(row, **samples.get(row.name, {})) for row in map(_method, record["methods"])
            ),
            environment={k: v for k, v in record["environment"].items() if k not in TIMING},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"it does not follow the schema {SCHEMA!r}: {reason}") from error


def _expression(record: Mapping[str, Any]) -> Expression:
    inputs, outputs = (_variables(record[part]) for part in ("inputs", "outputs"))
    return Expression(str(record["text"]), inputs, outputs)


def _variables(records: Sequence[Mapping[str, Any]]) -> tuple[Variable, ...]:
    return tuple(
        Variable(str(record["name"]), tuple(int(size) for size in record["shape"]))
        for record in records
    )


def _reference(record: Mapping[str, Any]) -> ReferenceRow:
    return ReferenceRow(
        jacobian=_matrix(record["jacobian"]),
        digits=int(record["digits"]),
        error_bound=_number(record["error_bound"]),
        status=str(record["status"]),
    )


def _method(record: Mapping[str, Any]) -> MethodRow:
    size = record.get("size") or {}
    rest: dict[str, Any] = {name: _number(record[name]) for name in _NUMBERS}
    rest |= {name: record[name] for name in _AS_THEY_ARE}
    return MethodRow(
        name=str(record["name"]),
        family=Family(record["family"]),
        status=Status(record["status"]),
        jacobian=_matrix(record["jacobian"]),
        size=Size(**size) if any(value is not None for value in size.values()) else None,
        **rest,
    )


def _number(value: Any) -> float | None:
    """Return a number of the schema, in which nan and infinities are strings."""
    return None if value is None else float(value)


def _matrix(value: Any) -> NDArray[float64] | None:
    if value is None:
        return None
    matrix = _array(value)
    if matrix.ndim != 2:
        raise ValueError(f"a derivative of {matrix.ndim} dimensions")
    return matrix


def _array(value: Any) -> NDArray[float64]:
    return np.array(value, dtype=float64)
