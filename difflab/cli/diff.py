"""``difflab diff``: what became wrong, less accurate or slower between two sets of records."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from difflab.cli.options import OutputOption
from difflab.cli.output import deliver, formatted, report_format

__all__ = ["EXAMPLES", "diff"]

EXAMPLES = """\b
difflab diff main.db branch.db
difflab diff study.db:0.1 study.db:this --format md
difflab diff saved.json now.json
"""


class DiffFormat(StrEnum):
    """The output format of a difference."""

    TABLE = "table"
    JSON = "json"
    MD = "md"
    HTML = "html"


_RECORDS = "the store of a study, or STORE:VERSION; a comparison as JSON; a folder of those."


def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help=f"The earlier records: {_RECORDS}")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The later records, likewise.")],
    form: Annotated[
        DiffFormat | None,
        typer.Option("--format", help="By default the ending of -o's name, else a table."),
    ] = None,
    destination: OutputOption = None,
) -> int:
    """Report what became wrong, less accurate or slower; exit with 1 if anything did."""
    chosen = report_format(form, destination, DiffFormat)
    from difflab.lab.diff.difference import difference
    from difflab.lab.diff.sides import load
    from difflab.report import differences

    found = difference(load(old), load(new))
    deliver(formatted(found, chosen, differences, to_file=destination is not None), destination)
    return 1 if found.worse else 0
