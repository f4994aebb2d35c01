"""``difflab doctor``: what is installed here, what is missing, and the command that adds it.

May import `difflab.cli` siblings; `lab` and `execute` are imported when the command runs.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple

from difflab.cli.output import emit, screen

__all__ = ["doctor"]


class Optional(NamedTuple):
    """A package that difflab can use and does not need."""

    module: str
    extra: str
    use: str


OPTIONAL = (
    Optional("llvmlite", "native", "batches 10 × faster, long formulas at a point"),
    Optional("cupy", "gpu", "one CUDA kernel a formula, on a GPU"),
    Optional("jax", "peers", "a method of compare; bench peers"),
    Optional("torch", "peers", "a method of compare; bench peers"),
    Optional("autograd", "peers", "a method of compare; bench peers"),
    Optional("casadi", "peers", "a method of compare; bench peers"),
    Optional("symengine", "peers", "a method of compare; bench peers"),
    Optional("numdifftools", "peers", "a method of compare; bench peers"),
    Optional("hypothesis", "test", "testing.strategies"),
    Optional("pytest", "test", "check_gradient in tests"),
)


def doctor() -> int:
    """Show versions, processor, threads, GPU and optional packages."""
    from rich.table import Table
    from rich.text import Text

    from difflab.execute.native.store import folder
    from difflab.lab.environment import environment
    from difflab.report.table import draw

    here = Table.grid(padding=(0, 2, 0, 0))
    here.add_column(no_wrap=True, style="bold")
    here.add_column(overflow="fold")
    for name, value in environment().items():
        here.add_row(name, Text(str(value if value is not None else "none found")))
    here.add_row("executable", Text(sys.executable))
    here.add_row("compiled code", Text(str(folder() or "not kept: DIFFLAB_CACHE is off")))
    extras = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("optional", "version", "used for", "add it with"):
        extras.add_column(heading, no_wrap=heading != "used for")
    for package in OPTIONAL:
        found = _version(package.module)
        extras.add_row(
            package.module,
            Text(found or "missing", style="green" if found else "dim"),
            package.use,
            "" if found else f"pip install 'difflab[{package.extra}]'",
        )
    emit(draw([here, extras], **screen()))
    return 0


def _version(module: str) -> str | None:
    """Return the version of an installed module, without importing it."""
    if find_spec(module) is None:
        return None
    try:
        return version(module)
    except PackageNotFoundError:
        return "installed"
