"""Printed code against the function: Python and JavaScript run, C compiled, text parsed back.

A program is a few formulas, whose C functions are compiled together. Values and derivatives are
held to the evaluator's within the bounds of `bounds.py`, at the extreme points too. Python may
raise instead, as `math` does, but only where something is infinite or undefined on the way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from difflab.core.optional import load
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.function import Function, evaluate_all
from difflab.graph.node import Node
from difflab.graph.passes.expansion import expanded
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import inlined, rewritten
from difflab.language import parse
from difflab.language.printers import python
from difflab.language.printers.view import PrintedGraph
from difflab.lower.recorded import recorded
from difflab.methods.peers.array_code import numpy_code, torch_code
from difflab.primitives import TABLE, remainders
from tests.differential.bounds import Bounded, bounded
from tests.differential.formulas import VARIABLES, Formula, formulas
from tests.differential.scalar import (
    DERIVED,
    Array,
    assert_near,
    computes_constants,
    flat,
    program_of,
)
from tests.differential.search import Family
from tests.support.languages import JAVASCRIPT, C, Language
from tests.support.special_rows import FARTHER

FORMULAS = 8
"""At most so many in one program."""
OF_BOXES = FARTHER - {
    *("besseli", "besselk", "gammainc", "gammaincc", "gammainc_derivative", "betainc_derivative"),
    *("erfcx_derivative", "log_ndtr_derivative", *remainders.__all__),
}
"""Functions whose Python code its own tests hold, in boxes: farther out it has fewer digits than
SciPy's, the evaluator's, or more (Bessel functions of arguments above 1e16)."""
DEEPEST = 3
"""Functions that code defines call one another to this depth."""
FUNCTIONS = 100
"""At most so many in one file of C or JavaScript, where many programs are checked."""
C_EVERY = 4
"""One program in so many is compiled, for gcc takes longer than everything else."""
TORCH_EVERY = 16
"""One program in so many is run in PyTorch, whose calls take microseconds each."""
JAVASCRIPT_EVERY = 16
"""One program in so many is run as JavaScript."""


@dataclass(frozen=True)
class Case:
    """A function to print, and the values that it must give."""

    function: Function
    points: Array
    expected: Array
    bound: Array
    frame: Bounded


Rest = tuple[Language, Case]


def check(program: Sequence[Formula]) -> None:
    """Raise AssertionError where what is printed computes something else."""
    finish(begin(program))


def begin(program: Sequence[Formula]) -> list[Rest]:
    """Check what runs in this process; return the functions left, and what is to run them."""
    cases = [case for formula in program if (case := case_of(formula)) is not None]
    for case in cases:
        check_python(case)
        check_arrays(case, numpy_code, np.float64)
        if program[0].choice % TORCH_EVERY == 2:
            check_torch(case)
        check_text(case)
    held = [case for case in cases if not has_defined(case)]
    rest = [(C, case) for case in held if program[0].choice % C_EVERY == 0]
    if program[0].choice % JAVASCRIPT_EVERY == 1:
        rest += [(JAVASCRIPT, case) for case in held]
    return rest


def finish(rest: Sequence[Rest]) -> None:
    """Run the functions in the languages, many in one file."""
    for language in (C, JAVASCRIPT):
        cases = [case for other, case in rest if other is language]
        for start in range(0, len(cases), FUNCTIONS):
            check_language(cases[start : start + FUNCTIONS], language)


def has_defined(case: Case) -> bool:
    """Whether code defines a special function, which its own tests hold, in boxes."""
    return any(row.name in FARTHER for row in case.function.graph.primitives)


def case_of(formula: Formula) -> Case | None:
    function = parse(formula.text)
    if not function.n:
        return None
    columns = [VARIABLES.index(name) for name in function.inputs]
    points = np.array(formula.points)[:, columns].T
    if formula.choice % 4:  # most values have no name and are parts of longer expressions
        function = replace(function, graph=replace(function.graph, labels={}))
    derived = DERIVED[formula.choice // 16 % 4](function)
    if computes_constants(derived):
        return None
    lowered = program_of(derived)
    frame = bounded(lowered, points, outside=False, other_library=True)
    return Case(derived, points, *frame.outputs(lowered), frame)


def check_python(case: Case) -> None:
    """Hold the printed Python to the function; where it raises, no number is finite throughout."""
    if any(row.name in OF_BOXES for row in case.function.graph.primitives):
        return
    try:
        source = python(case.function)
    except UnsupportedError:
        return
    names: dict[str, Any] = {}
    exec(compile(source, "<printed>", "exec"), names)
    on_the_way: list[Any] = []
    for place, point in enumerate(case.points.T.tolist()):
        one = [place]
        try:
            found = _numbers(names["f"](*point))
        except (ArithmeticError, ValueError) as error:
            on_the_way = on_the_way or _on_the_way(case)
            if all(np.all(np.isfinite(_at(value, place))) for value in on_the_way):
                raise AssertionError(f"{error} at {point} in\n{source}") from error
            continue
        what = f"printed Python\n{source}\n"
        expected, bound = case.expected[one], case.bound[one]
        inputs = case.function.inputs
        assert_near(what, found[None], expected, bound, case.points[:, one], inputs)


def _on_the_way(case: Case) -> list[Any]:
    """Return all values at all points; functions that code defines may overflow on the way."""
    written = PrintedGraph(case.function, companions=True, orders=True).function
    for _ in range(DEEPEST):
        written = rewritten(written, _written_out)
    return [*case.frame.values.values(), *evaluate_all(written, case.points)]


def _written_out(builder: Builder, node: int, row: Primitive, args: Args, _: Any) -> int | None:
    """Return what code that has no such function computes, where that is rows of the table."""
    defined = recorded(row)
    rows = () if defined is None else defined.graph.primitives
    if defined is None or any(TABLE.get(each.name) is not each for each in rows):
        return None
    (result,) = inlined(defined, [Node(builder, arg) for arg in args])
    return int(result.id)


def _at(value: Any, place: int) -> Any:
    return value[place] if np.ndim(value) else value


def _numbers(result: Any) -> Array:
    parts = result if isinstance(result, tuple) else (result,)
    arrays = [part.numpy() if hasattr(part, "numpy") else part for part in parts]  # PyTorch's
    return np.concatenate([np.ravel(np.array(part, dtype=float)) for part in arrays])


def check_arrays(case: Case, write: Callable[[Function], str], lift: Callable[..., Any]) -> None:
    """Hold the printed code over an array module to the function."""
    try:
        source = write(case.function)
    except UnsupportedError:
        return
    names: dict[str, Any] = {}
    exec(compile(source, "<printed>", "exec"), names)
    with np.errstate(all="ignore"):
        results = [_numbers(names["f"](*map(lift, point))) for point in case.points.T]
    what, inputs = f"printed code\n{source}\n", case.function.inputs
    assert_near(what, np.array(results), case.expected, case.bound, case.points, inputs)


def check_torch(case: Case) -> None:
    """Hold the printed code over PyTorch to the function."""
    torch = load("torch").module
    if torch is not None:
        check_arrays(case, torch_code, lambda x: torch.tensor(x, dtype=torch.float64))


def check_text(case: Case) -> None:
    """Hold the parsed text to the function in the plain operations that a text has."""
    spelled = expanded(case.function)
    text = str(spelled)
    again = parse(text)
    assert again.output_shapes == spelled.output_shapes
    order = [again.inputs.index(name) for name in spelled.inputs if name in again.inputs]
    assert len(order) == again.n == spelled.n, f"other inputs in {text}"
    count = case.points.shape[1]
    given = dict(zip(spelled.inputs, case.points, strict=True))
    found, expected = flat(again(**given), count), flat(spelled(**given), count)
    bound = np.zeros_like(expected)
    assert_near(f"parsed\n{text}\n", found, expected, bound, case.points, spelled.inputs)


def check_language(cases: Sequence[Case], language: Language) -> None:
    """Put all functions into one file, and hold each to its values."""
    if not there(language):
        return
    functions, points = [case.function for case in cases], [case.points.T for case in cases]
    for k, source, found in run_printed(language, functions, points):
        case, what = cases[k], f"printed {language.name}\n{source}\n"
        assert_near(what, found, case.expected, case.bound, case.points, case.function.inputs)


@cache
def there(language: Language) -> bool:
    """Whether what the language needs is installed."""
    return language.there


def run_printed(
    language: Language, functions: Sequence[Function], points: Sequence[Array]
) -> list[tuple[int, str, Array]]:
    """Run functions in one file; return number, source and values of those that are printed."""
    sources: dict[int, str] = {}
    for k, function in enumerate(functions):
        with suppress(UnsupportedError):
            sources[k] = language.printer(function, f"call{len(sources)}")
    if not sources:
        return []
    at = [np.atleast_2d(np.asarray(points[k], dtype=float)) for k in sources]
    with tempfile.TemporaryDirectory() as folder:
        found = language.run(
            list(sources.values()), [functions[k] for k in sources], at, Path(folder)
        )
    return list(zip(sources, sources.values(), found, strict=True))


PROGRAMS = st.lists(formulas(), min_size=1, max_size=FORMULAS)

FAMILY = Family("printed", PROGRAMS, check, fixed=400, fresh=100, begin=begin, finish=finish)
