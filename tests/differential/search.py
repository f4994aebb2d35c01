"""Random programs: drawn by Hypothesis, checked against another implementation, and shrunk.

A family is one generator of programs and one check. The tests run a share of every family with a
fixed seed and a smaller one with a fresh seed; ``python -m tests.differential`` runs them for as
long as it is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

__all__ = ["CHUNK", "FAMILIES", "Family", "drawn", "family", "search"]

FAMILIES = (
    "scalar",
    "printed",
    "languages",
    "texts",
    "arrays",
    "eager",
    "numpy_calls",
    "transforms",
    "series",
    "sparsity",
    "loops",
    "numeric",
    "jit",
    "dtypes",
    "jax_reader",
    "wrapped",
    "elements",
    "devices",
    "libraries",
    "onnx_models",
    "in_place",
)
"""The modules of this folder that define a `FAMILY`."""

CHUNK = 500
"""Programs drawn under one seed: Hypothesis remembers every program of a run."""


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
        Programs in every run of the tests, with a fixed seed and with a fresh one.
    """

    name: str
    programs: SearchStrategy[Any]
    check: Callable[[Any], None]
    fixed: int
    fresh: int


def family(name: str) -> Family:
    """Return a family by the name of its module."""
    found: Family = import_module(f"tests.differential.{name}").FAMILY
    return found


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

    def check(program: Any) -> None:
        nonlocal checked
        checked += 1
        family.check(program)

    phases = (Phase.generate, Phase.shrink)
    for number, first in enumerate(range(0, count, CHUNK)):
        drawn(family.programs, check, min(CHUNK, count - first), start + number, phases)
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
