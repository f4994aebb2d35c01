"""Comparisons over a domain in other formats than float64, and several of them as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from difflab.core.dtypes import DOUBLE, FloatFormat
from difflab.diagnose.point_check import packed
from difflab.diagnose.ranges import derivative_faults
from difflab.errors import DifflabError
from difflab.graph.function import Function
from difflab.lab.domain.record import DomainComparison, DomainRow


def in_dtype(options: Mapping[str, Any], dtype: FloatFormat) -> Any:
    """Return the options of the comparison in one format; it resumes from a file of its own."""
    resume = options["resume"]
    if resume is not None:
        path = Path(resume)
        resume = path.with_name(f"{path.name}.{dtype}")
    return {**options, "dtype": [dtype.name], "resume": resume}


def joined(parts: Sequence[DomainComparison]) -> DomainComparison:
    """Return comparisons in several formats as one; regularity and points are of the first."""
    first = parts[0]
    dtypes = [part.environment.get("dtype", "float64").partition("; ") for part in parts]
    note = next(text for _, _, text in dtypes if text)
    names = ", ".join(name for name, _, _ in dtypes)
    return replace(
        first,
        judged=[each for part in parts for each in part.judged],
        methods=tuple(row for part in parts for row in part.methods),
        contradiction=next((p.contradiction for p in parts if p.contradiction), ""),
        environment={**first.environment, "dtype": f"{names}; {note}"},
    )


def in_range_over(
    row: DomainRow, function: Function | None, order: int, dtype: FloatFormat
) -> DomainRow:
    """Return a row with its format, and the range faults at the worst point."""
    if dtype is DOUBLE:
        return row
    row, worst = replace(row, dtype=dtype.name), row.worst
    if worst is None or function is None or worst.verdict == "agree":
        return row
    point = {name: np.asarray(value) for name, value in worst.point.items()}
    try:
        faults = derivative_faults(function, packed(function, point), dtype, order)
    except DifflabError:  # some functions have no derivative in a graph
        return row
    message = "; ".join(filter(None, (worst.message, *faults)))
    return replace(row, worst=replace(worst, message=message))
