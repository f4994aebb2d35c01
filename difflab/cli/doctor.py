"""``difflab doctor``: what is installed, missing or broken, and how to repair it."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from difflab.cli.output import emit, screen

__all__ = ["doctor"]


class OptionalPackage(NamedTuple):
    """An optional dependency."""

    module: str
    extra: str
    use: str


OPTIONAL = (
    OptionalPackage("llvmlite", "native", "machine code for batches and for long formulas"),
    OptionalPackage("cupy", "gpu", "one CUDA kernel per formula, on a GPU"),
    OptionalPackage("jax", "peers", "a method of compare; bench peers"),
    OptionalPackage("torch", "peers", "a method of compare; bench peers"),
    OptionalPackage("autograd", "peers", "a method of compare; bench peers"),
    OptionalPackage("casadi", "peers", "a method of compare; bench peers"),
    OptionalPackage("symengine", "peers", "a method of compare; bench peers"),
    OptionalPackage("numdifftools", "peers", "a method of compare; bench peers"),
    OptionalPackage("hypothesis", "test", "testing.strategies"),
    OptionalPackage("pytest", "test", "check_gradient in tests"),
)


def doctor() -> int:
    """Show versions, processor, threads, GPU and optional packages."""
    from rich.table import Table
    from rich.text import Text

    from difflab.execute.targets.llvm.store import folder
    from difflab.lab.environment import environment
    from difflab.methods.process.loading import faults
    from difflab.report.terminal import draw

    setup = Table.grid(padding=(0, 2, 0, 0))
    setup.add_column(no_wrap=True, style="bold")
    setup.add_column(overflow="fold")
    for name, value in environment().items():
        setup.add_row(name, Text(str(value if value is not None else "none found")))
    setup.add_row("executable", Text(sys.executable))
    setup.add_row("compiled code", Text(str(folder() or "not kept: DIFFLAB_CACHE is off")))
    extras = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("optional", "version", "used for", "add it with"):
        extras.add_column(heading, no_wrap=heading != "used for")
    wrong = faults(package.module for package in OPTIONAL)
    for package in OPTIONAL:
        module, fault = package.module, wrong.get(package.module, "")
        broken = fault.startswith("broken")
        state = "broken" if broken else fault or _version(module)
        extras.add_row(
            module,
            Text(state, style="red" if broken else "dim" if fault else "green"),
            package.use,
            f"pip install 'difflab[{package.extra}]'" if fault == "missing" else "",
        )
    notes = [Text(_broken(module, why)) for module, why in wrong.items() if why != "missing"]
    emit(draw([setup, extras, *notes], **screen()))
    return 0


def _broken(module: str, why: str) -> str:
    """Return what is wrong with a package, and the command that repairs it."""
    from difflab.report.style import clean

    return f"{module} is {clean(why)}\n  repair it with: pip install --force-reinstall {module}"


def _version(module: str) -> str:
    """Return the version of an installed module."""
    try:
        return version(module)
    except PackageNotFoundError:
        return "installed"
