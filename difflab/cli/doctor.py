"""``difflab doctor``: what is installed, missing or broken, and how to repair it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from difflab.cli.output import emit, screen

if TYPE_CHECKING:
    from difflab.core.table import Cell

__all__ = ["doctor"]


OPTIONAL = {
    "flint": "proofs in comparisons; enclose; target exact",
    "llvmlite": "machine code for batches and for long formulas",
    "cupy": "one CUDA kernel per formula, on a GPU",
    **dict.fromkeys(
        (
            "jax",
            "torch",
            "autograd",
            "casadi",
            "symengine",
            "numdifftools",
            "jacobi",
            "tinygrad",
            "pytensor",
            "tensorflow",
            "symforce",
            "enzyme_ad",
        ),
        "a method of compare; bench peers",
    ),
    "hypothesis": "testing.strategies",
    "pytest": "check_gradient in tests",
}
"""Modules without which difflab does its main job, and what they are used for."""


def doctor() -> int:
    """Show versions, processor, threads, GPU and optional packages."""
    from importlib.metadata import packages_distributions

    from difflab.core.table import Column, Table, facts
    from difflab.execute.targets.llvm.store import folder
    from difflab.lab.environment import environment
    from difflab.methods.process.loading import faults
    from difflab.report.terminal import draw

    found = [(name, str(value or "none found")) for name, value in environment().items()]
    found.append(("executable", sys.executable))
    found.append(("compiled code", str(folder() or "not kept: DIFFLAB_CACHE is off")))
    wrong = faults(OPTIONAL)
    distributions = packages_distributions()
    rows, notes = [], []
    for package in OPTIONAL:
        row, note = _described(package, wrong.get(package, ""), distributions)
        rows.append(row)
        notes += [note] if note else []
    headings = ("optional", "version", "used for", "add it with")
    columns = [Column(heading, wrap=heading == "used for") for heading in headings]
    emit(draw([facts(found), Table(columns, rows, gap=2, ruled=False), *notes], **screen()))
    return 0


def _described(
    package: str, fault: str, distributions: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, Cell, str, str], str]:
    """Return the row of a package, and a note if something has to be repaired."""
    from difflab.core.optional import conflict, distribution, requirement
    from difflab.core.table import Cell

    name = distribution(package)
    clash = conflict(name, unusable=bool(fault))
    install, note = "", clash
    if fault == "missing":
        state = Cell("missing", "missing")
        install = "" if clash else f"pip install {requirement(package)}"
    elif fault or clash:
        state = Cell("broken", "broken")
        note = _broken(name, fault) if fault else clash
    else:
        state = Cell(_version(distributions, package), "installed")
    return (package, state, OPTIONAL[package], install), note


def _broken(package: str, why: str) -> str:
    """Return what is wrong with a package, and the command that repairs it."""
    from difflab.core.optional import repair
    from difflab.report.style import clean

    return f"{package} is {clean(why)}\n  {repair(package)}"


def _version(distributions: Mapping[str, Sequence[str]], module: str) -> str:
    """Return the version of a module's distribution: CuPy has one for each version of CUDA."""
    from importlib.metadata import version

    names = distributions.get(module)
    return version(names[0]) if names else "installed"
