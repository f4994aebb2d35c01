"""The texts of a comparison that all reports show: above, in and below the table.

They are read from the dictionary of the schema ``difflab.comparison/1``, so that comparisons
saved by earlier versions can be shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

from difflab.lab.recommend import recommend
from difflab.lab.record import SAMPLES
from difflab.report.style import ABSENT, clean, count, error, exact, pretty, seconds, shorten

__all__ = ["ComparisonView", "DisplayedRow", "number", "record_of", "view"]

SHOWN_ENTRIES = 6
SHOWN_EXPRESSION = 280


@dataclass(frozen=True)
class DisplayedRow:
    """The result of one method: raw values for plots, and `cells` of text for tables."""

    name: str
    family: str
    outcome: str
    message: str
    max_abs_error: float | None
    max_rel_error: float | None
    max_ulp_error: float | None
    size: Mapping[str, int | None]
    operations: int | None
    evaluations: int | None
    prepare: float | None
    call: float | None
    peak_bytes: int | None

    @property
    def computed(self) -> bool:
        """Whether the method returned a derivative."""
        return self.max_abs_error is not None

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of the table, one for every heading of `ComparisonView.headings`."""
        return (
            self.name,
            self.outcome,
            error(self.max_abs_error),
            error(self.max_ulp_error),
            self.sizes,
            count(self.operations),
            seconds(self.prepare),
            seconds(self.call),
        )

    @property
    def sizes(self) -> str:
        """Tree and DAG size of the derivative, ``tree/dag``."""
        tree, dag = self.size.get("tree"), self.size.get("dag")
        return ABSENT if tree is None and dag is None else f"{count(tree)}/{count(dag)}"


@dataclass(frozen=True)
class ComparisonView:
    """The content of the reports about one comparison, as text that is safe to print."""

    expression: str
    point: str
    chosen: bool
    order: int
    value: str
    derivative_name: str
    derivative: Sequence[tuple[str, str]]
    referee: str
    rows: Sequence[DisplayedRow]
    notes: Sequence[tuple[str, str]]
    sentence: str
    environment: Sequence[tuple[str, str]]

    headings = ("method", "verdict", "error", "ULP", "tree/DAG", "ops", "prepare", "call")

    @property
    def entries(self) -> list[str]:
        """The entries of the derivative, one line each."""
        return [text if label == "…" else f"{label} = {text}" for label, text in self.derivative]

    @property
    def agreed(self) -> bool:
        """Whether no method is wrong."""
        return all(row.outcome != "disagree" for row in self.rows)


def record_of(comparison: Any) -> Mapping[str, Any]:
    """Return the dictionary of a comparison, given either the record or the dictionary."""
    if isinstance(comparison, Mapping):
        return comparison
    record: Mapping[str, Any] = comparison.to_dict()
    return record


def number(value: Any) -> float | None:
    """Return a number of the schema, in which ``"nan"`` and ``"inf"`` are strings."""
    return None if value is None else float(value)


def view(comparison: Any) -> ComparisonView:
    """Return the view of `comparison`, a record or its dictionary."""
    record = record_of(comparison)
    rows = tuple(_row(method) for method in record["methods"])
    name, entries = _derivative(record)
    return ComparisonView(
        expression=shorten(clean(record["expression"]["text"]), SHOWN_EXPRESSION),
        point=_point(record["point"]),
        chosen=bool(getattr(comparison, "point_chosen", False)),
        order=int(record["order"]),
        value=_abbreviated([exact(float(value)) for value in record["value"]]),
        derivative_name=name,
        derivative=entries,
        referee=_referee(record["reference"]),
        rows=rows,
        notes=_notes(rows),
        sentence=clean(_recommendation(comparison)),
        environment=_environment(record["environment"]),
    )


def _notes(rows: Sequence[DisplayedRow]) -> list[tuple[str, str]]:
    """Return every message once, with the names of all its methods."""
    names: dict[str, list[str]] = {}
    for row in rows:
        if row.message:
            names.setdefault(row.message, []).append(row.name)
    return [(", ".join(group), message) for message, group in names.items()]


def _recommendation(comparison: Any) -> str:
    """Return which method to use and why, computed from the record."""
    if isinstance(comparison, Mapping):
        from difflab.lab.saved import from_dict

        comparison = from_dict(comparison)
    return recommend(comparison)


def _row(method: Mapping[str, Any]) -> DisplayedRow:
    status = method["status"]
    return DisplayedRow(
        name=clean(method["name"]),
        family=clean(method["family"]),
        outcome=clean(method["verdict"] if status == "ok" else status),
        message=clean(method.get("message") or ""),
        max_abs_error=number(method.get("max_abs_error")),
        max_rel_error=number(method.get("max_rel_error")),
        max_ulp_error=number(method.get("max_ulp_error")),
        size=method.get("size") or {},
        operations=method.get("operations"),
        evaluations=method.get("function_evaluations"),
        prepare=number(method.get("prepare_seconds")),
        call=number(method.get("call_seconds")),
        peak_bytes=method.get("peak_bytes"),
    )


def _abbreviated(texts: Sequence[str]) -> str:
    if len(texts) <= SHOWN_ENTRIES:
        return ", ".join(texts)
    shown = ", ".join(texts[: SHOWN_ENTRIES - 2])
    return f"{shown}, …, {texts[-1]}  ({len(texts)} in all)"


def _point(point: Mapping[str, Any]) -> str:
    names = list(point)
    texts = [f"{clean(name)} = {_values(point[name])}" for name in names[:SHOWN_ENTRIES]]
    if len(names) > SHOWN_ENTRIES:
        last = names[-1]
        texts[-1] = f"…, {clean(last)} = {_values(point[last])}  ({len(names)} inputs)"
    return ", ".join(texts)


def _values(value: Any) -> str:
    """Return a scalar in full, an array as its first entries and its shape."""
    if not isinstance(value, list):
        return exact(float(value))
    shape = []
    flat: Any = value
    while isinstance(flat, list):
        shape.append(len(flat))
        flat = flat[0] if flat else None
    first: Any = value
    while first and isinstance(first[0], list):
        first = first[0]
    if len(shape) == 1 and shape[0] <= SHOWN_ENTRIES:
        return "[" + ", ".join(exact(float(entry)) for entry in first) + "]"
    shown = ", ".join(pretty(float(entry)) for entry in first[:3])
    return f"{'[' * len(shape)}{shown}, … shape {'×'.join(map(str, shape))}]"


def _component(variables: Sequence[Mapping[str, Any]], index: int) -> str:
    """Return the name of one flattened component, such as ``x1`` or ``W[1,2]``."""
    for variable in variables:
        shape = tuple(variable["shape"])
        size = prod(shape)
        if index < size:
            if not shape:
                return clean(variable["name"])
            indices = []
            for extent in reversed(shape):
                index, position = divmod(index, extent)
                indices.append(str(position))
            return f"{clean(variable['name'])}[{','.join(reversed(indices))}]"
        index -= size
    return f"[{index}]"


def _derivative(record: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """Return the name of the reference derivative, and its first and last entries."""
    rows = record["reference"]["jacobian"] or []
    inputs, outputs = record["expression"]["inputs"], record["expression"]["outputs"]
    hessian = record["order"] == 2
    name = "Hessian" if hessian else "gradient" if len(rows) <= 1 else "Jacobian"
    if not rows or not rows[0]:
        return name, []

    unsettled = record["reference"]["status"] == "unsettled"
    if unsettled and not any(float(value) == float(value) for row in rows for value in row):
        return name, [("…", "unknown: the referee did not converge")]
    absent = "unknown" if unsettled else "undefined"

    def entry(i: int, j: int) -> tuple[str, str]:
        x = _component(inputs, j)
        if hessian:
            label = f"∂²/∂{x}²" if i == j else f"∂²/∂{_component(inputs, i)}∂{x}"
        else:
            label = f"∂{_component(outputs, i)}/∂{x}" if len(rows) > 1 else f"∂/∂{x}"
        value = float(rows[i][j])
        return label, exact(value) if value == value else absent

    width = len(rows[0])
    total = width * (width + 1) // 2 if hessian else len(rows) * width
    indices = ((i, j) for i in range(len(rows)) for j in range(i if hessian else 0, width))
    if total <= SHOWN_ENTRIES:
        return name, [entry(i, j) for i, j in indices]
    texts = [entry(i, j) for i, j in islice(indices, SHOWN_ENTRIES - 2)]
    rest = ("…", f"… {total} entries, all of them in --format json")
    return name, [*texts, rest, entry(len(rows) - 1, width - 1)]


def _referee(reference: Mapping[str, Any]) -> str:
    """Return the status and the accuracy of the reference."""
    parts = [clean(str(reference["status"]))]
    if reference.get("digits"):
        parts.append(f"{reference['digits']} digits")
    bound = number(reference.get("error_bound"))
    if bound and math.isfinite(bound):
        parts.append(f"error below {error(bound)}")
    return ", ".join(parts)


def _environment(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (clean(str(name)), clean(str(value)))
        for name, value in environment.items()
        if value not in (None, "", [], {}) and name != SAMPLES
    ]
