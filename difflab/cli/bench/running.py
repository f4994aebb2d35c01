"""What the benchmarks' subcommands share: their options, and running a sweep with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from difflab.bench.registry import BenchmarkModule
from difflab.cli.output import ProgressLine, emit, say, screen, write_files

if TYPE_CHECKING:
    from difflab.lab.sweep import SweepRow, Task

__all__ = [
    "REPORTS",
    "FolderOption",
    "FormatOption",
    "MethodsOption",
    "PictureFormat",
    "QuickOption",
    "RowTimeoutOption",
    "run",
    "wide",
]


class PictureFormat(StrEnum):
    """The file format of a picture."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


FolderOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="DIR", help="The folder of the picture and the CSV."),
]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="Fewer sizes: seconds instead of minutes.")
]
FormatOption = Annotated[PictureFormat, typer.Option("--format", help="The picture's format.")]
MethodsOption = Annotated[
    str | None,
    typer.Option(
        "--methods", metavar="a,b", help="Only these; by default all, and installed peers."
    ),
]
RowTimeoutOption = Annotated[
    float, typer.Option(min=0.01, metavar="SECONDS", help="The time limit of one row.")
]
REPORTS = Path("reports")


def run(
    name: str,
    module: BenchmarkModule,
    tasks: Iterable[Task],
    output: Path,
    form: str,
    show: Callable[[Sequence[SweepRow]], str] | None = None,
    pages: Mapping[str, Callable[[Sequence[SweepRow]], str]] = MappingProxyType({}),
) -> list[SweepRow]:
    """Measure the rows of a benchmark; write them and their picture, and name the files.

    After Ctrl-C it says which file has the rows so far, and how to resume.

    Parameters
    ----------
    name : str
        The stem of the files.
    module : BenchmarkModule
        The benchmark.
    tasks : iterable of Task
        What is measured.
    output : Path
        The folder of the files.
    form : str
        The format of the picture.
    show : callable, optional
        Returns the rows as text for standard output.
    pages : mapping
        Further files: by ending a callable that returns their text.
    """
    from difflab.lab import sweep

    path, table = output / f"{name}.{form}", output / f"{name}.csv"
    stopped = f"stopped; the rows so far are kept in {table}; run the same command again to resume"
    with ProgressLine(stopped=stopped) as progress:
        rows = sweep.run(table, module.LAYOUT, tasks, progress, say)
    if show is not None:
        emit(show(rows))
    files = {path: module.draw(rows, form)}
    files |= {path.with_suffix(ending): page(rows).encode() for ending, page in pages.items()}
    write_files(files)
    emit("".join(f"{file}\n" for file in (*files, table)))
    return rows


def wide(text: Callable[..., str]) -> Callable[[Sequence[SweepRow]], str]:
    """Return `text` for the terminal; its tables are wide, so that a pipe gets more than 80."""
    return partial(text, **screen(usual=110))
