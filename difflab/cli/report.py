"""``difflab report``: one page about many saved comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from difflab.cli.output import check_destination, say, write_files
from difflab.core.files import open_regular
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.lab.record import Comparison

__all__ = ["report"]


def report(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="The folder of files from `compare -o NAME.json`.")
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="By default DIR/index.html."),
    ] = None,
) -> int:
    """Write one HTML page about the comparisons saved as JSON in DIR."""
    folder = Path(directory)
    try:
        files = sorted(folder.glob("*.json")) if folder.is_dir() else None
    except (OSError, ValueError):
        files = None
    if files is None:
        raise InputError(f"{directory!r} is not a directory")
    if not files:
        raise InputError(
            f"there is no comparison in {directory!r}",
            hint=f'difflab compare "sin(x)" -o {directory}/sin.json',
        )
    destination = check_destination(output or str(folder / "index.html"))
    from difflab.report.comparison.html import index

    saved: list[tuple[str, Comparison]] = []
    faults: dict[str, str] = {}
    for path in files:
        try:
            saved.append((path.name, _load(path)))
        except InputError as error:
            faults[path.name] = error.message
            say(f"skipped {path}: {error.message}")
    write_files({destination: index(saved, faults).encode("utf-8")})
    say(f"wrote {destination}: {len(saved)} comparisons")
    return 0


def _load(path: Path) -> Comparison:
    from difflab.lab.saved import from_json

    try:
        with open_regular(path) as file:
            return from_json(file.read().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"it cannot be read: {error}") from error
