"""Shared parts of the benchmarks' subcommands: options, and running a sweep with progress."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from difflab.bench.registry import BenchmarkModule
from difflab.cli.output import CommandProgressLine, deliver, report_format, say, screen
from difflab.core.system import check_destination
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.lab.sweep import SweepRow, Task


BenchFormat = Literal["table", "csv", "json", "html", "svg", "png", "pdf"]
"""The format of a benchmark's result: its table, its rows, its page or its picture."""


_PICTURES = ("svg", "png", "pdf")
_OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to FILE: its ending gives the format."
    ),
]
_ReportsOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write the picture and the rows, which resume, to DIR."),
]
_FormatOption = Annotated[
    BenchFormat | None,
    typer.Option("--format", help="By default the ending of -o's name; with --reports svg."),
]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="Fewer sizes: seconds instead of minutes.")
]
MethodsOption = Annotated[
    str | None,
    typer.Option(
        "--methods", metavar="a,b", help="Only these; by default all, and installed peers."
    ),
]
RowTimeoutOption = Annotated[
    float, typer.Option(min=0.01, metavar="SECONDS", help="The time limit of one row.")
]
_Text = Callable[[Sequence["SweepRow"]], str]


@dataclass(frozen=True)
class Destination:
    """Where the result of a benchmark goes: to standard output, a file, or a folder of reports."""

    output: str | None = None
    reports: Path | None = None
    form: BenchFormat | None = None

    def chosen(self, pages: Iterable[str]) -> tuple[BenchFormat, Path | None]:
        """Return the format and the file, before anything is measured.

        Raises
        ------
        InputError
            The options contradict each other, or the file cannot be written.
        """
        if self.reports is not None:
            form = self.form or "svg"
            if self.output is not None:
                raise InputError("a file and a folder are both given", hint="-o or --reports")
            if form not in _PICTURES:
                raise InputError(f"--reports writes a picture, not {form}", hint="--format svg")
            return form, None
        if self.output is not None and (Path(self.output).is_dir() or self.output.endswith("/")):
            raise InputError(
                f"cannot write {self.output!r}: it is a directory",
                hint=f"-o {Path(self.output) / 'NAME.svg'}, or --reports {self.output}",
            )
        path = None if self.output is None else check_destination(self.output)
        form = report_format(self.form, path, BenchFormat)
        if path is None and form in ("png", "pdf"):
            raise InputError(f"a picture is written to a file, not {form}", hint=f"-o NAME.{form}")
        if form == "html" and ".html" not in pages:
            raise InputError("this benchmark has no page", hint="--format svg, csv, json or table")
        return form, path


def writes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of its parameter `to`, a `Destination`."""
    own = {"output": _OutputOption, "reports": _ReportsOption, "form": _FormatOption}
    signature = inspect.signature(command, eval_str=True)
    kept = [each for each in signature.parameters.values() if each.name != "to"]
    new = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in own.items()
    ]

    @wraps(command)
    def with_options(*arguments: Any, **values: Any) -> Any:
        to = Destination(**{name: values.pop(name) for name in own})
        return command(*arguments, **values, to=to)

    changed = signature.replace(parameters=[*kept, *new])
    with_options.__signature__ = changed  # type: ignore[attr-defined]
    return with_options


def run(
    name: str,
    module: BenchmarkModule,
    tasks: Iterable[Task],
    to: Destination,
    show: _Text | None = None,
    pages: Mapping[str, _Text] = MappingProxyType({}),
) -> list[SweepRow]:
    """Measure the rows of a benchmark; print their table, or write the requested formats.

    After Ctrl-C it says which file has the rows so far, and how to resume.

    Parameters
    ----------
    name : str
        The stem of the files in a folder of reports.
    module : BenchmarkModule
        The benchmark.
    tasks : iterable of Task
        What is measured.
    to : Destination
        Where the result goes.
    show : callable, optional
        Returns the rows as a table; by default their own columns.
    pages : mapping
        Further forms of the result: by ending a callable that returns their text.
    """
    from difflab.lab import sweep
    from difflab.lab.store import partial_of

    form, path = to.chosen(pages)
    partial_file, stem = partial_of(path), None if to.reports is None else to.reports / name
    table = None if stem is None else stem.with_suffix(".csv")
    if form == "csv" and partial_file is not None:
        table = path
    kept = table or partial_file
    stopped = f"the rows so far are kept in {kept}; run the same command again to resume"
    if kept is None:
        stopped = "with -o FILE the rows so far would be kept"
    with CommandProgressLine(stopped=f"stopped; {stopped}") as progress:
        rows = sweep.run(table, module.LAYOUT, tasks, progress, say, resume=partial_file)
    made = partial(_made, name, module, rows, show, pages)
    if stem is not None:
        files = {stem.with_suffix(end): made(end[1:]) for end in (f".{form}", *pages)}
        deliver(made("table"), None, files)
    elif path is not None and form in _PICTURES:
        deliver(made("table"), None, {path: made(form)})
    elif table is None:
        deliver(made(form), path)
    if table is not None:
        say(f"wrote {table}")
    return rows


def _made(
    name: str,
    module: BenchmarkModule,
    rows: Sequence[SweepRow],
    show: _Text | None,
    pages: Mapping[str, _Text],
    form: str,
) -> Any:
    """Return the result in a format: bytes if it is PNG or PDF, else text."""
    from difflab.bench.shared import table
    from difflab.core.strict_json import dumps, strict
    from difflab.lab.sweep import to_csv

    if f".{form}" in pages:
        return pages[f".{form}"](rows)
    if form in _PICTURES:
        drawn = module.draw(rows, form)
        return drawn.decode() if form == "svg" else drawn
    if form == "csv":
        return to_csv(rows, module.LAYOUT).decode()
    if form == "json":
        return dumps({"benchmark": name, "rows": strict(list(rows))}) + "\n"
    return (show or wide(partial(table, module.LAYOUT)))(rows)


def wide(text: Callable[..., str]) -> _Text:
    """Return `text` for the terminal; its tables are wide, so that a pipe gets more than 80."""
    return lambda rows: text(rows, **screen(usual=110)).rstrip("\n") + "\n"
