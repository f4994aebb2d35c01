"""The texts of a comparison that all reports show: above, in and below the table.

Of the dictionary of a comparison, in any version of the schema, they are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite, prod
from sys import float_info
from typing import Any

import numpy as np

from difflab.core.table import Cell, Column, Table
from difflab.core.wording import error, exact
from difflab.lab.kinds import columns
from difflab.lab.recommend import recommend
from difflab.lab.record import SAMPLES, Comparison, MethodRow, ReferenceRow, Variable
from difflab.report.summary import Section, Summary, method_column, point_text
from difflab.report.terminal import SHOWN_EXPRESSION, clean, shorten

SHOWN_ENTRIES = 6


_SHOWN = [column for column in columns(MethodRow) if column.heading]
_COLUMNS = (Column("verdict"), *(column.shown for column in _SHOWN))


@dataclass(frozen=True, kw_only=True)
class ComparisonView(Summary):
    """The content of the reports about one comparison.

    Attributes
    ----------
    point, value : str
        The point and the value there.
    derivative_name : str
        ``"gradient"``, ``"Jacobian"`` or ``"Hessian"``.
    referee : str
        The status and the accuracy of the reference.
    rows : sequence of MethodRow
        The methods.
    """

    point: str
    value: str
    derivative_name: str
    referee: str
    rows: Sequence[MethodRow]


def view(comparison: Comparison | Mapping[str, Any]) -> ComparisonView:
    """Return the view of `comparison`, a record or its dictionary."""
    if isinstance(comparison, Mapping):
        from difflab.lab.record import from_dict

        comparison = from_dict(comparison)
    rows = tuple(
        replace(row, name=clean(row.label), message=clean(row.message))
        for row in comparison.methods
    )
    lines = [
        (
            *(Cell(row.name, row.family), Cell(row.outcome, row.outcome)),
            *(getattr(row, column.name) for column in _SHOWN),
        )
        for row in rows
    ]
    name, entries = _derivative(comparison)
    point = point_text(comparison.point)
    values = [exact(value) for value in comparison.value]
    if len(values) > SHOWN_ENTRIES:
        rest = f"…, {values[-1]}  ({len(values)} in all)"
        values = [*values[: SHOWN_ENTRIES - 2], rest]
    value = ", ".join(values)
    referee = _referee(comparison.reference)
    facts = [("at", point)]
    if comparison.point_chosen:
        facts.append(("", "a point chosen inside the domain; --at sets another"))
    facts += [("value", value), *zip([name, *[""] * len(entries)], entries, strict=False)]
    facts.append(("referee", referee))
    if "dtype" in comparison.environment:
        facts.append(("dtype", clean(str(comparison.environment["dtype"]))))
    expression = shorten(clean(comparison.expression.text), SHOWN_EXPRESSION)
    return ComparisonView(
        heading=f"{name.capitalize()} of",
        expression=expression,
        facts=facts,
        sections=[Section(Table((method_column(rows), *_COLUMNS), lines))],
        notes=_notes(rows),
        sentence=clean(recommend(comparison)),
        environment=_environment(comparison.environment),
        agreed=all(row.outcome != "disagree" for row in rows),
        title=f"{name} of {expression}",
        point=point,
        value=value,
        derivative_name=name,
        referee=referee,
        rows=rows,
    )


def _notes(rows: Sequence[MethodRow]) -> list[tuple[str, str]]:
    """Return every message once, with the names of all its methods."""
    names: dict[str, list[str]] = {}
    for row in rows:
        if row.message:
            names.setdefault(row.message, []).append(row.name)
    return [(", ".join(group), message) for message, group in names.items()]


def _component(variables: Sequence[Variable], index: int) -> str:
    """Return the name of one flattened component, such as ``x1`` or ``W[1,2]``."""
    for variable in variables:
        name, size = clean(variable.name), prod(variable.shape)
        if index < size:
            position = np.unravel_index(index, variable.shape)
            return f"{name}[{','.join(map(str, position))}]" if position else name
        index -= size
    return f"[{index}]"


def _derivative(comparison: Comparison) -> tuple[str, list[str]]:
    """Return the name of the reference derivative, and its first and last entries."""
    reference, hessian = comparison.reference, comparison.order == 2
    rows = np.zeros((0, 0)) if reference.jacobian is None else reference.jacobian
    inputs, outputs = comparison.expression.inputs, comparison.expression.outputs
    name = "Hessian" if hessian else "gradient" if len(rows) <= 1 else "Jacobian"
    if not rows.size:
        return name, []

    unresolved = reference.status == "unresolved"
    if unresolved and np.isnan(rows).all():
        return name, ["unknown: the referee did not converge"]
    absent = "unknown" if unresolved else "undefined"

    def entry(i: int, j: int) -> str:
        x = _component(inputs, j)
        if hessian:
            label = f"∂²/∂{x}²" if i == j else f"∂²/∂{_component(inputs, i)}∂{x}"
        else:
            label = f"∂{_component(outputs, i)}/∂{x}" if len(rows) > 1 else f"∂/∂{x}"
        return f"{label} = {absent if np.isnan(rows[i, j]) else exact(rows[i, j])}"

    width = len(rows[0])
    total = width * (width + 1) // 2 if hessian else len(rows) * width
    indices = ((i, j) for i in range(len(rows)) for j in range(i if hessian else 0, width))
    if total <= SHOWN_ENTRIES:
        return name, [entry(i, j) for i, j in indices]
    texts = [entry(i, j) for i, j in islice(indices, SHOWN_ENTRIES - 2)]
    rest = f"… {total} entries, all of them in --format json"
    return name, [*texts, rest, entry(len(rows) - 1, width - 1)]


def _referee(reference: ReferenceRow) -> str:
    """Return the status and the accuracy of the reference."""
    parts, bound = [clean(reference.status)], reference.error_bound
    if reference.contradiction:
        parts.insert(0, f"CONTRADICTION: {clean(reference.contradiction)}")
    if reference.digits:
        parts.append(f"{'proved to ' if reference.proved else ''}{reference.digits} digits")
    if bound and isfinite(bound) and bound > float_info.min:
        parts.append(f"error below {error(bound)}")
    return ", ".join(parts)


def _environment(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (clean(str(name)), clean(str(value)))
        for name, value in environment.items()
        if value not in (None, "", [], {}) and name != SAMPLES
    ]
