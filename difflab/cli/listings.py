"""``difflab methods``, ``conventions`` and ``doctor``: what there is, and what it does."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from difflab.cli.options import OutputOption, parse_names
from difflab.cli.output import ProgressLine, deliver, emit, formatted, report_format, screen
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.core.table import Cell


def methods() -> int:
    """List the methods, their orders, and why any is missing."""
    from difflab.core.quantities import ABSENT
    from difflab.core.table import Cell, Column, Table
    from difflab.methods.registry import describe
    from difflab.report.terminal import clean, draw

    columns = (
        *(Column("method", wrap=True, widest=18), Column("family"), Column("orders")),
        Column("description, or why it is missing", wrap=True),
    )
    rows = [
        (
            Cell(clean(method.name), str(method.family)),
            str(method.family),
            ", ".join(map(str, method.orders)) or ABSENT,
            Cell(clean(method.missing or method.summary), "absent" * bool(method.missing)),
        )
        for method in describe()
    ]
    emit(draw([Table(columns, rows)], **screen()))
    return 0


ConventionsFormat = Literal["table", "json", "csv", "md"]
"""The output format of the conventions."""


def conventions(
    names: str | None = None,
    family: str | None = None,
    form: ConventionsFormat | None = None,
    destination: OutputOption = None,
) -> None:
    """Show what difflab and each peer compute at kinks, edges and special values.

    Each case runs in the peer's own function, with value, first and second derivative. A peer that
    is not installed is left out, with the command that installs it.

    Parameters
    ----------
    names : a,b
        Only these; by default all installed ones.
    family : a,b
        Only these kinds of cases, such as kinks or ties.
    form
        By default the ending of -o's name, else a table.

    Examples
    --------
    difflab conventions
    difflab conventions --peers jax,torch
    difflab conventions --family kinks,ties --format md
    """
    from difflab.lab.conventions.cases import FAMILIES, cases
    from difflab.lab.conventions.measure import measure
    from difflab.report import conventions as report

    chosen = report_format(form, destination, ConventionsFormat)
    families = parse_names(family) or list(FAMILIES)
    for name in families:
        if name not in FAMILIES:
            raise InputError(f"there is no family '{name}'", hint=f"one of: {', '.join(FAMILIES)}")
    selected = [case for case in cases() if case.family in families]
    with ProgressLine(patience=1.0) as progress:
        found = measure(parse_names(names), selected, progress)
    deliver(formatted(found, chosen, report, to_file=destination is not None), destination)


OPTIONAL = {
    "flint": "proofs in comparisons; enclose; target exact",
    "llvmlite": "machine code for batches and for long formulas",
    "cupy": "one CUDA kernel per formula, on a GPU",
    "hypothesis": "testing.strategies",
    "pytest": "check_gradient in tests",
}
"""Modules without which difflab does its main job, and what they are used for."""


class _Package(NamedTuple):
    module: str
    distribution: str
    use: str
    install: str


def _packages() -> list[_Package]:
    """Return the optional packages; those of the peers as these declare them."""
    from difflab.core.optional import distribution, requirement
    from difflab.methods.peers.peer import Peer
    from difflab.methods.registry import peers

    found = {
        module: _Package(module, distribution(module), use, f"pip install {requirement(module)}")
        for module, use in OPTIONAL.items()
    }
    for peer in peers().values():
        if isinstance(peer, Peer) and peer.package not in found:
            use, install = "a method of compare; bench peers", f"pip install {peer.requirement}"
            name = peer.packages[0]
            found[peer.package] = _Package(peer.package, name, use, peer.too_old() or install)
    return list(found.values())


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
    packages = _packages()
    wrong = faults(package.module for package in packages)
    distributions = packages_distributions()
    rows, notes = [], []
    for package in packages:
        row, note = _described(package, wrong.get(package.module, ""), distributions)
        rows.append(row)
        notes += [note] if note else []
    headings = ("optional", "version", "used for", "add it with")
    columns = [Column(heading, wrap=heading == "used for") for heading in headings]
    emit(draw([facts(found), Table(columns, rows, gap=2, ruled=False), *notes], **screen()))
    return 0


def _described(
    package: _Package, fault: str, distributions: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, Cell, str, str], str]:
    """Return the row of a package, and a note if something has to be repaired."""
    from difflab.core.optional import conflict
    from difflab.core.table import Cell

    name = package.distribution
    clash = conflict(name, unusable=bool(fault))
    install, note = "", clash
    if fault == "missing":
        state = Cell("missing", "missing")
        install = "" if clash else package.install
    elif fault or clash:
        state = Cell("broken", "broken")
        note = _broken(name, fault) if fault else clash
    else:
        state = Cell(_version(distributions, package.module), "installed")
    return (package.module, state, package.use, install), note


def _broken(package: str, why: str) -> str:
    """Return the fault of a package, and the command that repairs it."""
    from difflab.core.optional import repair
    from difflab.report.terminal import clean

    return f"{package} is {clean(why)}\n  {repair(package)}"


def _version(distributions: Mapping[str, Sequence[str]], module: str) -> str:
    """Return the version of a module's distribution: CuPy has one for each version of CUDA."""
    from importlib.metadata import version

    names = distributions.get(module)
    return version(names[0]) if names else "installed"
