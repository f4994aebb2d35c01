"""Random programs: drawn by Hypothesis, checked against another implementation, and shrunk.

A family is one generator of programs and one check. The tests run a share of every family with a
fixed seed and a smaller one with a seed that differs from change to change, the quick tier a tenth
of either; ``python -m tests.differential`` runs them for as long as it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from tests.support.hypothesis_draws import forget_local_constants

__all__ = ["CHUNK", "FAMILIES", "Family", "drawn", "family", "search", "share"]

FAMILIES = {
    "scalar": 3,
    "printed": 2,
    "languages": 1,
    "texts": 1,
    "arrays": 2,
    "eager": 3,
    "numpy_calls": 2,
    "transforms": 1,
    "series": 1,
    "array_operators": 1,
    "operators": 1,
    "sparsity": 1,
    "constants": 1,
    "loops": 2,
    "long_steps": 1,
    "numeric": 1,
    "jit": 1,
    "dtypes": 1,
    "jax_reader": 1,
    "wrapped": 1,
    "elements": 1,
    "devices": 1,
    "libraries": 1,
    "onnx_models": 1,
    "in_place": 1,
    "repeated": 1,
    "policies": 1,
    "budgets": 1,
    "odes": 1,
    "solvers": 1,
}
"""The modules of this folder that define a `FAMILY`, and into how many tests, each under a seed of
its own, its fixed share is divided: none takes longer than half a minute."""

CHUNK = 500
"""Programs drawn under one seed: Hypothesis remembers every program of a run."""

QUICK, LEAST = 10, 3
"""The quick tier checks one program in `QUICK` of a share, and at least `LEAST`."""

forget_local_constants()


@dataclass(frozen=True)
class Family:
    """One generator of programs and the check that each must pass.

    Attributes
    ----------
    name : str
        The module's name.
    programs : SearchStrategy
        Draws a program; its ``repr`` is what a person needs to repeat it.
    check : callable
        ``check(program)`` raises AssertionError where two implementations differ.
    fixed, fresh : int
        Programs in a full run of the tests, with a fixed seed and with that of the code.
    begin, finish : callable, optional
        Together the same as `check`, where programs are compiled: ``begin(program)`` checks what
        needs no compiler and returns the rest, and ``finish(rest)`` compiles that of many programs
        at once.
    """

    name: str
    programs: SearchStrategy[Any]
    check: Callable[[Any], None]
    fixed: int
    fresh: int
    begin: Callable[[Any], Sequence[Any]] | None = None
    finish: Callable[[Sequence[Any]], None] | None = None


def family(name: str) -> Family:
    """Return a family by the name of its module."""
    found: Family = import_module(f"tests.differential.{name}").FAMILY
    return found


def share(count: int, full: bool) -> int:
    """Return how many of `count` programs a tier checks: all of them in the full one."""
    return count if full else min(count, max(LEAST, count // QUICK))


def search(family: Family, count: int, start: int) -> int:
    """Check `count` programs, at most `CHUNK` under each seed from `start` on.

    Returns
    -------
    int
        How many programs were checked.

    Raises
    ------
    AssertionError
        Of the smallest program found that two implementations disagree on.
    """
    checked = 0
    phases = (Phase.generate, Phase.shrink)
    for number, first in enumerate(range(0, count, CHUNK)):
        checked += _searched(family, min(CHUNK, count - first), start + number, phases)
    return checked


def _searched(family: Family, count: int, first: int, phases: tuple[Phase, ...]) -> int:
    """Check the programs of one seed, and return how many."""
    checked, rest = 0, []

    def check(program: Any) -> None:
        nonlocal checked
        checked += 1
        if family.begin is None:
            family.check(program)
        else:
            rest.extend(family.begin(program))

    drawn(family.programs, check, count, first, phases)
    if family.finish is not None:
        try:
            family.finish(rest)
        except AssertionError:  # one by one, to find the program and to make it smaller
            drawn(family.programs, family.check, count, first, phases)
            raise
    return checked


def drawn(
    programs: SearchStrategy[Any],
    check: Callable[[Any], None],
    count: int,
    first: int,
    phases: tuple[Phase, ...] = (Phase.generate,),
) -> None:
    """Check `count` programs under one seed; by default without shrinking one that fails."""
    run = settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=False,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )(given(programs)(check))
    seed(first)(run)()
