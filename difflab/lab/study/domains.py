"""Comparisons over a domain in a study: how one is made, repeated, and becomes records.

The record of a method has the verdict and the errors of its worst point; the whole row is in the
column `comparison`, as in the schema ``difflab.domain/3``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from difflab.core.progress import silent
from difflab.core.quantities import percent
from difflab.core.strict_json import long_integers
from difflab.errors import InputError
from difflab.lab.domain.compare import compare_domain
from difflab.lab.domain.record import READ, DomainRow, read_rows
from difflab.lab.options import DomainOptions, chosen
from difflab.lab.record import ERRORS, MethodRow, Status
from difflab.lab.study.cases import Case, Domain


def judged_over(case: Case, domain: Domain, names: Sequence[str]) -> dict[str, Any]:
    """Compare methods over the domain of a case; return the schema ``difflab.domain/3``."""
    over = {name: tuple(ends) for name, ends in domain.over.items()}
    stated = chosen(vars(case) | vars(domain), DomainOptions)
    options: Any = {**stated, "methods": names, "progress": silent}  # the study shows its own
    return compare_domain(case.text, over, case.point, **options).to_dict()


def read_over(text: str) -> Mapping[str, Any]:
    """Return the comparison that ``difflab compare --over --format json`` printed.

    Raises
    ------
    InputError
        The text is none.
    """
    try:
        with long_integers():
            found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("schema") not in READ:
        raise InputError("this is no comparison over a domain")
    return found


def options_over(domain: Domain) -> list[str]:
    """Return the options of ``difflab compare`` for a domain.

    Examples
    --------
    >>> options_over(Domain({"x": [0.1, 10]}, 500, {"x": "log"}))
    ['--over', 'x=0.1:10', '--points', '500', '--scale', 'x=log']
    """
    found = ["--over", domain.label, "--points", str(domain.points)]
    if domain.scale:
        found += ["--scale", ",".join(f"{name}={kind}" for name, kind in domain.scale.items())]
    return found + ["--seed", str(domain.seed)] * (domain.seed != 0)


def single_over(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a comparison with one of its methods only."""
    rows = [row for row in document["methods"] if row["name"] == name]
    return {**document, "methods": rows}


def rows_over(document: Mapping[str, Any]) -> dict[str, MethodRow]:
    """Return each method's worst point as a row, by the method's name."""
    return {row.name: _row(row) for row in read_rows(document)}


def _row(found: DomainRow) -> MethodRow:
    status, message, worst = found.status, found.message, found.worst
    if status is Status.OK and worst is None:  # no point has an answer
        status, message = Status(found.silences[0].status), found.silences[0].reason
    shares = {name: share for name, share in found.shares.items() if share}
    if worst is not None and (set(shares) != {"agree"} or worst.verdict != "agree"):
        message = ", ".join(f"{percent(share)} {name}" for name, share in shares.items())
        message += f"; worst in the {worst.found}: {worst.message or worst.verdict}"
    errors: dict[str, Any] = {name: getattr(worst, name, None) for name in ERRORS}
    return MethodRow(
        name=found.name,
        family=found.family,
        status=status,
        message=message,
        verdict=None if worst is None else worst.verdict,
        **errors,
        function_evaluations=found.evaluations,
        prepare_seconds=found.prepare_seconds,
    )
