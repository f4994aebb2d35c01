"""``difflab report``: one page over many saved comparisons.

May import `difflab.cli` siblings; `report` is imported when the command runs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from difflab.cli.output import check_destination, say, write_files
from difflab.errors import InputError

__all__ = ["report"]

SCHEMA = "difflab.comparison/1"


def report(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="Where the files of `compare -o NAME.json` are.")
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="By default DIR/index.html."),
    ] = None,
) -> int:
    """Write one HTML page over the comparisons saved as JSON in DIR."""
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
    from difflab.report.html import index

    saved: list[tuple[str, Any]] = []
    faults: dict[str, str] = {}
    for path in files:
        try:
            saved.append((path.name, _load(path)))
        except InputError as error:
            faults[path.name] = error.message
            say(f"left out {path}: {error.message}")
    write_files({destination: index(saved, faults).encode("utf-8")})
    say(f"wrote {destination}: {len(saved)} comparisons")
    return 0


def _load(path: Path) -> Any:
    """Return the comparison in a file, checked as far as the page relies on it."""
    from difflab.report.view import view

    # A tree's size is exact however many digits it has; Python stops at 4300 unless told.
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"not a JSON file: {error}") from error
    finally:
        sys.set_int_max_str_digits(limit)
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise InputError(f"its schema is not {SCHEMA!r}")
    try:
        view(record)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(f"it does not follow its schema: {error!r}") from error
    return record
