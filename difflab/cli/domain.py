"""``difflab compare --over``: every method over a domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from difflab.cli.functions import Subject
from difflab.cli.options import parse_point
from difflab.cli.output import ProgressLine, deliver, formatted, report_format, say
from difflab.core.place import SourceLocation
from difflab.errors import InputError, PointError

if TYPE_CHECKING:
    from difflab.lab.domain.record import DomainComparison


DomainFormat = Literal["table", "json", "csv", "md", "html", "parquet"]
"""The output format of a comparison over a domain."""


@dataclass(frozen=True)
class DomainRequest:
    """The arguments of ``difflab compare`` that a comparison over a domain reads itself."""

    expression: str
    over: Sequence[str]
    at: Sequence[str]
    form: str | None
    destination: Path | None
    plot: Path | None


def compare_over(request: DomainRequest, options: dict[str, Any], unused: Sequence[str]) -> int:
    """Judge every method over a domain, and write the result.

    Finished blocks are kept beside the file of ``-o`` until that is written, so that the same
    command goes on after an interruption.
    """
    if not request.over:
        raise InputError("--points and --scale are for a domain", hint="--over x1=0.1:10")
    if unused:
        raise InputError(f"{unused[0]} is for one point, and --over gives a domain")
    destination, plot = request.destination, request.plot
    over = parse_ranges(request.over)
    from difflab.lab.domain.compare import middle_of

    subject = Subject.of(request.expression, request.at, runs=True, over=middle_of(over))
    chosen = report_format(request.form, destination, DomainFormat)
    if chosen not in get_args(DomainFormat):
        known = ", ".join(get_args(DomainFormat))
        raise InputError(f"a comparison over a domain has no format {chosen}", hint=known)
    if chosen == "parquet":
        from difflab.core.optional import require

        require("pyarrow", extra="parquet")
    if destination is not None:
        options["resume"] = destination.with_name(f"{destination.name}.partial")
    at = subject.point
    if subject.code is not None and at is not None:
        at = {name: value for name, value in at.items() if name not in over}
    result = _compared(subject, over, at, options)
    from difflab.report.domain import formats

    files: dict[Path, bytes] = {}
    if plot is not None:
        from difflab.report.domain.plots import picture

        files[plot] = picture(result, plot.suffix[1:].lower())
    report = formatted(result, chosen, formats, to_file=destination is not None)
    deliver(report, destination, files)
    return 0 if result.agreed else 1


def parse_ranges(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the intervals of the ``--over`` options, such as ``x1=0.1:10,x2=-pi:pi``.

    Raises
    ------
    PointError
        An option cannot be read, or gives a name twice; the error marks the text.

    Examples
    --------
    >>> parse_ranges(["x=0:1, y=-1e3:pi/2"])
    {'x': (0.0, 1.0), 'y': (-1000.0, 1.5707963267948966)}
    """
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        start = 0
        for item in text.split(","):
            name, _, value = item.partition("=")
            low, _, high = value.partition(":")
            name = name.strip()
            place = SourceLocation(text or None, (start, start + max(len(item), 1)))
            start += len(item) + 1
            if not (name and low.strip() and high.strip()):
                fault = "an interval is written as name=low:high"
                raise place.error(PointError, fault, "x1=0.1:10,x2=-5:5")
            if name in found:
                raise place.error(PointError, f"{name!r} is given twice")
            ends = [(parse_point([f"{name}={end.strip()}"]) or {})[name] for end in (low, high)]
            found[name] = (ends[0], ends[1])
    return found


def _compared(
    subject: Subject, over: dict[str, Any], at: dict[str, Any] | None, options: dict[str, Any]
) -> DomainComparison:
    from difflab.lab.domain.compare import compare_domain

    expression = subject.code or subject.text
    with ProgressLine(patience=1.0) as progress:
        return compare_domain(expression, over, at, progress=progress, notify=say, **options)
