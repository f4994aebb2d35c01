"""``difflab conventions``: values and derivatives at kinks and special points, in every package."""

from __future__ import annotations

from typing import Literal

from difflab.cli.options import OutputOption, parse_names
from difflab.cli.output import ProgressLine, deliver, formatted, report_format
from difflab.errors import InputError

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
