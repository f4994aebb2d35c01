"""Every method on problems of the library, each at its start: verdict, error and cost.

A problem is compared once, and every method of it is a row, so that the calls of all methods are
timed in turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from difflab.bench.problems.drawing import draw, page, text
from difflab.lab import provenance
from difflab.lab.compare import compare
from difflab.lab.problems.file import Problem
from difflab.lab.problems.library import problems
from difflab.lab.record import STORED, cell_types, outcome
from difflab.lab.sweep import Row, Task, together
from difflab.methods.registry import select

__all__ = ["LAYOUT", "QUICK", "draw", "page", "tasks", "text"]

_TITLES = {"max_ulp_error": "ulps", "max_rel_error": "relative_error"}
LAYOUT = provenance.layout(
    {
        "problem": str,
        "kind": str,
        "inputs": int,
        "outputs": int,
        **cell_types("method", "family"),
        **{_TITLES.get(each.name, each.name): each.stored or str for each in STORED},
    },
    key=("problem", "method"),
)

QUICK = 12
"""With ``quick`` one of so many problems is measured."""


def tasks(
    chosen: Sequence[Problem] | None = None,
    methods: Sequence[str] | None = None,
    *,
    quick: bool = False,
    timeout: float = 10.0,
) -> Iterator[Task]:
    """Yield one task for each problem and method.

    Parameters
    ----------
    chosen : sequence of Problem, optional
        By default the whole library.
    methods : sequence of str, optional
        As for `difflab.compare`.
    quick : bool
        Whether one problem of `QUICK` is enough.
    timeout : float
        Seconds for each method and for the referee.
    """
    listed = list(problems() if chosen is None else chosen)
    sources = {
        method.name: provenance.source(
            method, uses=("mpmath", "python-flint"), target="auto", timeout=timeout
        )
        for method in select(methods)
    }
    for one in listed[:: QUICK if quick else 1]:
        yield from together(
            {"problem": one.name}, sources, partial(_rows, one, [*sources], timeout)
        )


def _rows(one: Problem, names: Sequence[str], timeout: float) -> dict[str, Row]:
    """Return the row of every method on a problem."""
    about: Row = {"kind": one.kind, "inputs": one.n, "outputs": one.m}
    try:
        found = compare(one.text, one.start, methods=names, timeout=timeout).methods
    except (Exception, SystemExit) as error:  # a problem or another package may fail in any way
        return {name: about | outcome(error)._asdict() for name in names}
    return {
        row.name: {
            **about,
            "family": row.family,
            **{_TITLES.get(name, name): value for name, value in row.stored().items()},
            "repetitions": len(row.samples),
        }
        for row in found
    }
