"""Printed code in every language against the function, many functions to a source file.

A program is a batch of formulas and of steps on arrays, and a language. The functions and their
derivatives are printed into one file, which is compiled once and called at every point, those of
extreme magnitudes too. What a language refuses is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from difflab.graph.function import Function
from difflab.primitives import TABLE
from tests.differential.arrays import Program, listed, programs
from tests.differential.formulas import Formula, formulas
from tests.differential.judging import FORMULAS, agree, noise
from tests.differential.printed import case_of, run_printed, there
from tests.differential.scalar import Array, assert_near
from tests.differential.search import Family
from tests.support.languages import JAVASCRIPT, LANGUAGES, LIBRARIES, C
from tests.support.special_rows import FARTHER

MOST = 30
"""Programs in one file; Hypothesis draws no more choices than these take."""
POINTS = 3
"""Points of a program on arrays."""
EVERY = {language.name: language for language in (C, JAVASCRIPT, *LANGUAGES, *LIBRARIES)}
WEIGHTED = [*3 * ["C"], *EVERY]
"""C is asked for most often: the printers of compiled languages are derived from its own."""

OWN_FORMULAS = {"JAX"}
"""Languages whose functions lose digits at extreme points, and which have no subnormal numbers."""
TINY = np.finfo(float).tiny
DEFINED = frozenset(TABLE[name] for name in FARTHER)
INACCURATE = {language.name: DEFINED for language in (C, JAVASCRIPT, *LANGUAGES)}
INACCURATE["PyTorch"] = frozenset((TABLE["ndtr"],))
"""Rows whose function has fewer digits somewhere: special functions that printed code defines are
held in the boxes of their own tests; PyTorch's `ndtr` has 14 digits in its lower tail."""

Judge = Callable[[str, Array], None]


@dataclass(frozen=True)
class Batch:
    """Programs whose functions are printed into one file of a language."""

    language: str
    programs: tuple[Formula | Program | None, ...]


@dataclass(frozen=True)
class Case:
    """A function, the points (N, n) at which it is called, and what judges its values (N, m)."""

    function: Function
    points: Array
    judge: Judge


def check(batch: Batch) -> None:
    """Raise AssertionError where the code of a language computes something else."""
    language = EVERY[batch.language]
    if not there(language):
        return
    cases = [case for each in batch.programs if (case := _case(each, language.name))]
    functions, points = [case.function for case in cases], [case.points for case in cases]
    for k, source, values in run_printed(language, functions, points):
        cases[k].judge(f"printed {language.name}\n{source}\n", values)


def _case(program: Formula | Program | None, language: str) -> Case | None:
    if isinstance(program, Formula):
        case = None if language in OWN_FORMULAS else _of_formula(program)
        rows = INACCURATE.get(language, frozenset())
        return case if case is None or rows.isdisjoint(case.function.graph.primitives) else None
    return None if program is None else _of_arrays(program, language)


def _of_formula(formula: Formula) -> Case | None:
    case = case_of(formula)
    if case is None:
        return None

    def judge(what: str, found: Array) -> None:
        inputs = case.function.inputs
        assert_near(what, found, case.expected, case.bound, case.points, inputs)

    return Case(case.function, case.points.T, judge)


def _of_arrays(program: Program, language: str) -> Case | None:
    function = program.asked
    points = [program.point(number) for number in range(POINTS)]
    if language in OWN_FORMULAS:
        points = [[np.where(np.abs(x) < TINY, 0.0, x) for x in point] for point in points]

    def judge(what: str, found: Array) -> None:
        for point, values in zip(points, found, strict=True):
            wanted = listed(function(*point))
            moves = lambda n: noise(function, point, wanted, n)  # noqa: B023, E731
            others = FORMULAS if language in OWN_FORMULAS else 0.0
            agree(_shaped(values, function), wanted, moves, what, others)

    packed = np.array([np.concatenate([np.ravel(part) for part in point]) for point in points])
    return Case(function, packed, judge) if function.m else None


def _shaped(values: Array, function: Function) -> list[Any]:
    """Return the outputs of a function in their shapes, from all numbers one after the other."""
    found, start = [], 0
    for shape in function.output_shapes:
        size = int(np.prod(shape))
        found.append(values[start : start + size].reshape(shape))
        start += size
    return found


_PLACES = st.one_of(st.none(), formulas(), formulas(), programs())
PROGRAMS = st.tuples(*MOST * [_PLACES])

FAMILY = Family(
    "languages", st.builds(Batch, st.sampled_from(WEIGHTED), PROGRAMS), check, fixed=16, fresh=6
)
