"""The commands that say what there is: ``methods``, ``doctor``, ``conventions``, ``problems``."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from difflab.cli.options import InputsOption, KindsOption, OutputOption, parse_names
from difflab.cli.output import (
    CommandProgressLine,
    deliver,
    emit,
    formatted,
    report_format,
    screen,
    write_files,
)
from difflab.core.system import reason
from difflab.core.wording import counted
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.core.table import Cell, Table
    from difflab.lab.problems.file import Problem


def methods() -> int:
    """List the methods, their orders, and why any is missing."""
    from difflab.core.table import Cell, Column, Table
    from difflab.core.wording import ABSENT
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
    with CommandProgressLine(patience=1.0) as progress:
        results = measure(parse_names(names), selected, progress)
    deliver(formatted(results, chosen, report, to_file=destination is not None), destination)


_OPTIONAL = {
    "flint": "proofs in comparisons; enclose; target exact",
    "llvmlite": "machine code for batches and for long formulas",
    "cupy": "one CUDA kernel per formula, on a GPU",
    "hypothesis": "testing.strategies",
    "pytest": "check_gradient in tests",
}
"""Modules without which difflab does its main job, and what they are used for."""


class _Dependency(NamedTuple):
    module: str
    distribution: str
    use: str
    install: str


def _packages() -> list[_Dependency]:
    """Return the optional packages; those of the peers as these declare them."""
    from difflab.core.optional import distribution, requirement
    from difflab.methods.peers.peer import Peer
    from difflab.methods.registry import peers

    packages = {
        module: _Dependency(module, distribution(module), use, f"pip install {requirement(module)}")
        for module, use in _OPTIONAL.items()
    }
    for peer in peers().values():
        if isinstance(peer, Peer) and peer.package not in packages:
            use, install = "a method of compare; bench peers", f"pip install {peer.requirement}"
            name = peer.packages[0]
            packages[peer.package] = _Dependency(peer.package, name, use, peer.too_old() or install)
    return list(packages.values())


def doctor() -> int:
    """Show versions, processor, threads, GPU and optional packages."""
    from importlib.metadata import packages_distributions

    from difflab.core.table import Column, Table, facts
    from difflab.execute.targets.llvm.engine import folder
    from difflab.lab.environment import environment
    from difflab.methods.process.loading import faults
    from difflab.report.terminal import draw

    entries = [(name, str(value or "none found")) for name, value in environment().items()]
    entries.append(("executable", sys.executable))
    entries.append(("compiled code", str(folder() or "not kept: DIFFLAB_CACHE is off")))
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
    emit(draw([facts(entries), Table(columns, rows, gap=2, ruled=False), *notes], **screen()))
    return 0


def _described(
    package: _Dependency, fault: str, distributions: Mapping[str, Sequence[str]]
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


_LEAST_NAME = 12  # characters of a name in a list, however narrow the terminal is
_HEADINGS = ("problem", "name", "kind", "inputs", "outputs", "formula", "source", "licence")


ProblemsFormat = Literal["table", "json", "csv"]
"""The output format of a list of problems."""


def problems(
    name: str | None = None,
    /,
    sets: str | None = None,
    kinds: KindsOption = None,
    inputs: InputsOption = None,
    form: ProblemsFormat | None = None,
    destination: OutputOption = None,
    export: Path | None = None,
) -> None:
    """List the library of problems, show one of them, or copy their files.

    Without a filter the table lists the sets. Commands that read a formula also read
    problem:SET/NAME.

    Parameters
    ----------
    name : NAME
        A problem to show.
    sets : a,b
        Only these sets; or all.
    form
        By default the ending of -o's name, else a table.
    export : DIR
        Copy the problems' files to this folder.

    Examples
    --------
    difflab problems
    difflab problems --set mgh,nist --inputs 2:4
    difflab problems mgh/powell-badly-scaled
    difflab problems --kind ode --export problems
    difflab compare problem:mgh/powell-badly-scaled
    """
    chosen = report_format(form, destination, ProblemsFormat)
    filtered = bool(sets or kinds or inputs)
    if name is not None and filtered:
        raise InputError(
            "a name and filters exclude each other", hint=f"write difflab problems {name}"
        )
    if name is None:
        selected = chosen_problems(sets, kinds, inputs)
    else:
        from difflab.lab.problems.library import problem

        selected = [problem(name)]
    if export is not None:
        _export(selected, export)
    elif name is not None:
        deliver(_shown(selected[0], chosen), destination)
    else:
        deliver(_listed(selected, chosen, filtered, to_file=destination is not None), destination)


def _shown(one: Problem, form: ProblemsFormat) -> str:
    """Return all that is known of a problem."""
    if form != "json":
        return one.content if form == "table" else _csv([one])
    from difflab.core import strict_json

    return strict_json.dumps(one.to_dict()) + "\n"


def _listed(
    selected: Sequence[Problem], form: ProblemsFormat, filtered: bool, *, to_file: bool
) -> str:
    """Return a list of problems, or without a filter the table of the sets."""
    if form == "csv":
        return _csv(selected)
    if form == "json":
        from difflab.core import strict_json

        return strict_json.dumps([_entry(one) for one in selected]) + "\n"
    if filtered:
        closing = f"{len(selected):,} problems; `difflab problems NAME` shows one"
        return f"{_table(selected, screen(to_file=to_file)['width'])}\n\n{closing}\n"
    from difflab.report.terminal import draw

    closing = (
        f"{len(selected):,} problems; `difflab problems --set NAME` lists a set, `--set all` all"
    )
    return draw([_sets(selected), closing], **screen(to_file=to_file))


def _csv(selected: Sequence[Problem]) -> str:
    from difflab.core.table import csv_text

    return csv_text([_HEADINGS, *(list(map(str, _entry(one).values())) for one in selected)])


def chosen_problems(sets: str | None, kinds: str | None, inputs: str | None) -> list[Problem]:
    """Return the problems that the options --set, --kind and --inputs name.

    Raises
    ------
    InputError
        An option is invalid, or no problem satisfies all of them.
    """
    from difflab.lab.problems import library

    names = parse_names(sets)
    selected = library.problems(
        None if names == ["all"] else names, kinds=parse_names(kinds), inputs=_range(inputs)
    )
    if not selected:
        raise InputError("no problem is of these sets, kinds and sizes")
    return selected


def _range(text: str | None) -> tuple[int, int] | None:
    """Return the bounds of ``2:10``, ``2:``, ``:10`` or ``5``."""
    if text is None:
        return None
    low, colon, high = text.partition(":")
    high = high if colon else low
    if not (low or high) or not all(part.isdecimal() for part in (low, high) if part):
        raise InputError(f"{text!r} is not a range of sizes", hint="write 2:10, 2:, :10 or 5")
    return int(low or 0), int(high or 10**9)


def _entry(one: Problem) -> dict[str, str | int]:
    values = (one.name, one.title, one.kind, one.n, one.m, one.formula)
    return dict(zip(_HEADINGS, (*values, one.header["source"], one.header["licence"]), strict=True))


def _table(selected: Sequence[Problem], width: int) -> str:
    """Return the table of problems; long names are cut, since wrapping 800 lines takes seconds."""
    from difflab.core.table import Column, Table
    from difflab.report.terminal import shorten

    right = partial(Column, right=True)
    columns = (Column("problem"), Column("kind"), right("inputs"), right("outputs"), Column("name"))
    cells = [(one.name, one.kind, one.n, one.m) for one in selected]
    used = len(Table(columns[:-1], cells).text().split("\n", 1)[0].rstrip()) + 2
    space = max(width - used, _LEAST_NAME)
    rows = [(*line, shorten(one.title, space)) for line, one in zip(cells, selected, strict=True)]
    return Table(columns, rows).text()


def _sets(selected: Sequence[Problem]) -> Table:
    from difflab.core.table import Column, Table
    from difflab.lab.problems.library import problem_sets

    counts = Counter(one.set for one in selected)
    formulas = Counter(formula.partition("/")[0] for formula in {one.formula for one in selected})
    columns = (
        *(Column("set"), Column("problems", right=True), Column("formulas", right=True)),
        *(Column("licence"), Column("title", wrap=True)),
    )
    rows = [
        (one.name, counts[one.name], formulas[one.name], one.licence, one.title)
        for one in problem_sets().values()
    ]
    return Table(columns, rows)


def _export(selected: Sequence[Problem], folder: Path) -> None:
    """Write the files of problems to ``folder/SET/NAME.txt``."""
    files = {folder / f"{one.name}.txt": one.content.encode() for one in selected}
    try:
        for path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {str(folder)!r}: {reason(error)}") from error
    write_files(files)
    deliver(f"wrote {counted(len(files), 'file')} to {folder}{os.sep}\n", None)
