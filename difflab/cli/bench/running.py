"""What the benchmarks' subcommands share: their options, and running a sweep with progress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from difflab.bench.registry import BenchmarkModule
from difflab.cli.output import ProgressLine, emit, say, write_files

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
    "drawn",
    "measured",
    "run",
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


def measured(path: Path, module: BenchmarkModule, tasks: Iterable[Task]) -> list[SweepRow]:
    """Run a sweep with progress; after Ctrl-C, report what is kept and how to resume."""
    from difflab.lab.sweep import run

    progress = ProgressLine()
    try:
        return run(path, module.LAYOUT, tasks, progress, say)
    except KeyboardInterrupt:
        progress.clear()
        say(f"stopped; what is measured is kept in {path}; run the same command again to resume")
        raise


def drawn(path: Path, module: BenchmarkModule, rows: Sequence[SweepRow]) -> None:
    """Write the picture; name it and its CSV file on standard output."""
    write_files({path: module.draw(rows, path.suffix[1:])})
    emit(f"{path}\n{path.with_suffix('.csv')}\n")


def run(name: str, module: BenchmarkModule, tasks: Iterable[Task], output: Path, form: str) -> None:
    """Measure the rows of a benchmark and write them and their picture."""
    drawn(output / f"{name}.{form}", module, measured(output / f"{name}.csv", module, tasks))
