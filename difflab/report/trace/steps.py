"""The rows of an evaluation trace, and its record.

Large traces keep their first and last rows; dropped rows are never formatted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from difflab.core.strict_json import strict

__all__ = ["Adjoint", "Collector", "EvaluationTrace", "TraceRows", "TraceStep", "plain"]

TraceRow = TypeVar("TraceRow")
NamedValue = tuple[str, Any]


@dataclass(frozen=True)
class TraceStep:
    """A line of a primal or tangent trace: ``v₁ = ln v₋₁ = ln 2 = 0.693147``.

    Attributes
    ----------
    name, shown : str
        ``v1``, printed v₁; its tangent is ``v1_dot``.
    formula, numbers : str
        The formula with names, and with values inserted.
    value : number or array
    call : str
        The function or layer in whose call it is computed; empty outside of calls.
    """

    name: str
    shown: str
    formula: str
    numbers: str
    value: Any
    call: str = ""


@dataclass(frozen=True)
class Adjoint:
    """A line of a reverse trace: one contribution to one adjoint.

    Attributes
    ----------
    name, shown : str
        The adjoint that is updated: ``v0_bar``, printed v̄₀.
    partial : str
        The contribution as a product: ``v̄₃ ∂v₃/∂v₀``.
    formula, numbers : str
        The formula with names, and with values inserted.
    contribution, value : number or array
        The value of the contribution, and the adjoint after adding it.
    accumulates : bool
        Whether the adjoint had an earlier contribution.
    mask : truth value or array, or None
        The elements whose branch was selected; None outside branches.
    call : str
        The function or layer whose operation contributes; empty outside of calls.
    """

    name: str
    shown: str
    partial: str
    formula: str
    numbers: str
    contribution: Any
    value: Any
    accumulates: bool = False
    mask: Any = None
    call: str = ""


@dataclass(frozen=True)
class TraceRows(Generic[TraceRow]):
    """The first and the last rows, and the number of omitted rows between them."""

    head: tuple[TraceRow, ...]
    tail: tuple[TraceRow, ...] = ()
    skipped: int = 0

    def __iter__(self) -> Iterator[TraceRow]:
        return iter(self.head + self.tail)

    def __len__(self) -> int:
        return len(self.head) + len(self.tail)


class Collector(Generic[TraceRow]):
    """Collects functions that make rows, and calls those of the rows that are kept."""

    def __init__(self, limit: int | None) -> None:
        self.first = math.inf if limit is None else limit - limit // 3
        self.head: list[Callable[[], TraceRow]] = []
        self.tail: deque[Callable[[], TraceRow]] = deque(maxlen=0 if limit is None else limit // 3)
        self.count = 0

    def add(self, row: Callable[[], TraceRow]) -> None:
        """Add a row."""
        self.count += 1
        (self.head if len(self.head) < self.first else self.tail).append(row)

    def rows(self) -> TraceRows[TraceRow]:
        """Make the rows that are kept."""
        head, tail = tuple(row() for row in self.head), tuple(row() for row in self.tail)
        return TraceRows(head, tail, self.count - len(head) - len(tail))


@dataclass(frozen=True)
class EvaluationTrace:
    """The evaluation trace of a function at a point.

    Attributes
    ----------
    expression : str
        The text of the function.
    point, outputs : tuple of (str, value)
        The inputs and the outputs.
    primal : TraceRows of TraceStep
        v₁, v₂, … in the order of evaluation.
    seed, tangents, directional
        The input of differentiation, the tangents, and ẏ of every output; None, None and ()
        without forward mode.
    output, adjoints, gradient
        The output of differentiation, the contributions to the adjoints, and its derivative by
        every input; None, None and () without reverse mode.
    notes : tuple of str
        Which inputs of a small function have a derivative that is exactly 0, and why.
    """

    expression: str
    point: tuple[NamedValue, ...]
    outputs: tuple[NamedValue, ...]
    primal: TraceRows[TraceStep]
    seed: str | None = None
    tangents: TraceRows[TraceStep] | None = None
    directional: tuple[NamedValue, ...] = ()
    output: str | None = None
    adjoints: TraceRows[Adjoint] | None = None
    gradient: tuple[NamedValue, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dictionary for strict JSON, schema ``difflab.trace/1``."""
        record: dict[str, Any] = {
            "schema": "difflab.trace/1",
            "expression": self.expression,
            "point": _mapping(self.point),
            "outputs": _mapping(self.outputs),
            "primal": _steps(self.primal),
        }
        if self.tangents is not None:
            record["forward"] = {
                "seed": self.seed,
                "tangents": _steps(self.tangents),
                "derivative": _mapping(self.directional),
            }
        if self.adjoints is not None:
            record["reverse"] = {
                "output": self.output,
                "adjoints": _adjoints(self.adjoints),
                "gradient": _mapping(self.gradient),
            }
        if self.notes:
            record["notes"] = list(self.notes)
        return record


def plain(value: Any) -> Any:
    """Return a Python scalar for a zero-dimensional array, else the array."""
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array


def _mapping(pairs: tuple[NamedValue, ...]) -> dict[str, Any]:
    return {name: strict(value) for name, value in pairs}


def _steps(rows: TraceRows[TraceStep]) -> list[dict[str, Any]]:
    return [
        {
            **{name: getattr(row, name) for name in ("name", "formula", "numbers")},
            "value": strict(row.value),
            **_called(row),
        }
        for row in rows
    ]


def _adjoints(rows: TraceRows[Adjoint]) -> list[dict[str, Any]]:
    names = ("name", "accumulates", "partial", "formula", "numbers")
    return [
        {
            **{name: getattr(row, name) for name in names},
            **{name: strict(getattr(row, name)) for name in ("contribution", "value", "mask")},
            **_called(row),
        }
        for row in rows
    ]


def _called(row: TraceStep | Adjoint) -> dict[str, str]:
    """Return the call of a row, if there is one."""
    return {"call": row.call} if row.call else {}
