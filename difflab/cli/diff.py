"""``difflab diff``: what became wrong, less accurate or slower between two sets of records."""

from __future__ import annotations

from typing import Literal

from difflab.cli.options import OutputOption
from difflab.cli.output import deliver, formatted, report_format

DiffFormat = Literal["table", "json", "md", "html"]
"""The output format of a difference."""


def diff(
    old: str, new: str, /, form: DiffFormat | None = None, destination: OutputOption = None
) -> int:
    """Report what became wrong, less accurate or slower; exit with 1 if anything did.

    Parameters
    ----------
    old : OLD
        The earlier records: the store of a study, or STORE:VERSION; a comparison as JSON; a
        folder of those.
    new : NEW
        The later records, likewise.
    form
        By default the ending of -o's name, else a table.

    Examples
    --------
    difflab diff main.db branch.db
    difflab diff study.db:0.1 study.db:this --format md
    difflab diff saved.json now.json
    """
    chosen = report_format(form, destination, DiffFormat)
    from difflab.lab.diff.difference import difference
    from difflab.lab.diff.sides import load
    from difflab.report import differences

    found = difference(load(old), load(new))
    deliver(formatted(found, chosen, differences, to_file=destination is not None), destination)
    return 1 if found.worse else 0
