"""Every method on problems of the library, each at its start: verdict, error and cost.

A problem is compared once, and every method of it is a row, so that the calls of all methods are
timed in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

from difflab.bench.problems.drawing import draw, page, text
from difflab.errors import DifflabError
from difflab.lab import provenance
from difflab.lab.compare import compare
from difflab.lab.outcomes import attempted
from difflab.lab.problems.file import Problem
from difflab.lab.problems.library import problems
from difflab.lab.record import STORED, MethodRow, cell_types
from difflab.lab.sweep import Cell, Task
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
    names = [method.name for method in select(methods)]
    sources = {
        method.name: provenance.source(
            method, uses=("mpmath", "python-flint"), target="auto", timeout=timeout
        )
        for method in select(methods)
    }
    for one in listed[:: QUICK if quick else 1]:
        # The comparison of a problem is kept until the next problem is compared.
        compared = cache(partial(_compared, one, names, timeout))
        for name in names:
            key: dict[str, Cell] = {"problem": one.name, "method": name}
            yield Task(key, partial(_row, one, compared, name), sources[name])


def _compared(one: Problem, names: Sequence[str], timeout: float) -> dict[str, MethodRow]:
    result = compare(one.text, one.start, methods=names, timeout=timeout)
    return {row.name: row for row in result.methods}


def _row(one: Problem, compared: Callable[[], dict[str, MethodRow]], name: str) -> dict[str, Cell]:
    about: dict[str, Cell] = {"kind": one.kind, "inputs": one.n, "outputs": one.m}
    return about | attempted(partial(_measured, compared, name), {}, name, "")


def _measured(compared: Callable[[], dict[str, MethodRow]], name: str) -> dict[str, Cell]:
    found = compared().get(name)
    if found is None:
        raise DifflabError("the comparison has no row of this method")
    result = {_TITLES.get(name, name): value for name, value in found.stored().items()}
    return {"family": found.family, **result, "repetitions": len(found.samples)}
