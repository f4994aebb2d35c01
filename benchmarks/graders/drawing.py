"""The grades of the checkers as a table and a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from textwrap import fill
from typing import TYPE_CHECKING, NamedTuple, Unpack

from benchmarks.graders.corpus import DTYPES
from benchmarks.graders.faults import FAULTS
from difflab.bench.shared import picture
from difflab.core.table import Column, Table
from difflab.core.wording import count, percent, seconds
from difflab.lab.sweep import SweepRow
from difflab.report.canvas import INK, titled_figure
from difflab.report.terminal import Screen, clean, shorten
from difflab.report.terminal import draw as rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Share", "draw", "shares", "text"]


class Share(NamedTuple):
    """Of `cases` that a checker judged, those that it rejected."""

    rejected: int
    cases: int

    @property
    def value(self) -> float:
        """The share."""
        return self.rejected / self.cases

    def __str__(self) -> str:
        return percent(self.value) if self.cases else ""


def shares(rows: Iterable[SweepRow], *, fault: str | None, dtype: str | None) -> Share:
    """Return the share of rejected cases of a class and a precision.

    Parameters
    ----------
    rows : iterable of row
        Rows of one checker.
    fault : str or None
        A class of faults; empty for right gradients; None for all faults.
    dtype : str or None
        A precision; None for all.
    """
    chosen = [
        row
        for row in rows
        if (row["fault"] == fault if fault is not None else row["fault"])
        and dtype in (None, row["dtype"])
    ]
    rejected, accepted = (sum(_integer(row, name) for row in chosen) for name in _VERDICTS)
    return Share(rejected, rejected + accepted)


_VERDICTS = ("rejected", "accepted")


def _integer(row: SweepRow, name: str) -> int:
    return int(row[name] or 0)


def _by_grader(rows: Sequence[SweepRow]) -> dict[str, list[SweepRow]]:
    names = dict.fromkeys(str(row["grader"]) for row in rows)
    return {name: [row for row in rows if row["grader"] == name] for name in names}


def text(rows: Sequence[SweepRow], **screen: Unpack[Screen]) -> str:
    """Return a table with a row for every checker.

    Its columns are the faults found and the false alarms in every precision, the cases on which
    the checker failed, and the medians of evaluations of f and of time.

    Parameters
    ----------
    rows : sequence of row
        Rows of `benchmarks.graders.bench`.
    screen
        As for `difflab.report.terminal.draw`.
    """
    columns = (
        Column("checker"),
        *(Column(f"{what} {d[5:]}", right=True) for what in ("found", "alarms") for d in DTYPES),
        *(Column(name, right=True) for name in ("failed", "evaluations", "time")),
        Column(wrap=True),
    )
    lines = []
    for name, own in _by_grader(rows).items():
        lines.append(
            (
                clean(name),
                *(shares(own, fault=None, dtype=dtype) for dtype in DTYPES),
                *(shares(own, fault="", dtype=dtype) for dtype in DTYPES),
                sum(_integer(row, "failed") for row in own) or "",
                _middle(own, "evaluations", lambda value: count(round(value))),
                _middle(own, "seconds", seconds),
                clean(shorten(_reason(own), 90)),
            )
        )
    return rendered([Table(columns, lines, gap=2)], **screen)


def _middle(rows: Sequence[SweepRow], name: str, form: Callable[[float], str]) -> str:
    known = [float(row[name] or 0) for row in rows if row[name] is not None]
    return form(median(known)) if known else ""


def _reason(rows: Sequence[SweepRow]) -> str:
    """Return why a checker judged no case; empty if it judged any."""
    if any(row["status"] == "ok" for row in rows):
        return ""
    return next((str(row["message"]) for row in rows if row["message"]), "")


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the share of faults found, by class, and the share of false alarms, by precision."""
    graders = _by_grader(rows)
    canvas = titled_figure(
        6.5,
        "gradient checkers, each with its defaults",
        "share of planted faults that a checker finds, and of right gradients it rejects",
        left=1.9,
        bottom=0.2,
        top=0.65,
    )
    found: dict[str, tuple[str | None, str]] = {fault: (fault, "float64") for fault in FAULTS}
    found |= {f"all, {dtype}": (None, dtype) for dtype in DTYPES}
    alarms = {f"alarms, {dtype}": ("", dtype) for dtype in DTYPES}
    space = {"height_ratios": (len(found), len(alarms)), "hspace": 0.04}
    above, below = canvas.subplots(2, gridspec_kw=space)
    _panel(above, graders, found, "#009E73")
    _panel(below, graders, alarms, "#D55E00")
    names = [fill(clean(name), 12) for name in graders]
    above.set_xticks(range(len(names)), names)
    below.set_xticks([])
    return canvas


def _panel(
    axes: Axes,
    graders: Mapping[str, Sequence[SweepRow]],
    lines: Mapping[str, tuple[str | None, str]],
    colour: str,
) -> None:
    """Draw a table of shares, each the deeper in colour the larger it is.

    A column is a checker, a line the fault and the precision of its shares.
    """
    from matplotlib.patches import Rectangle

    for y, (fault, dtype) in enumerate(lines.values()):
        for x, own in enumerate(graders.values()):
            share = shares(own, fault=fault, dtype=dtype)
            depth = 0.75 * share.value if share.cases else 0.0
            corner = (x - 0.48, y - 0.46)
            axes.add_patch(Rectangle(corner, 0.96, 0.92, color=colour, alpha=depth, lw=0))
            shown = str(share) or "–"
            axes.text(x, y, shown, ha="center", va="center", fontsize=8.5, parse_math=False)
    axes.set(xlim=(-0.5, len(graders) - 0.5), ylim=(len(lines) - 0.5, -0.5))
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(lines)), list(lines))
    axes.tick_params(length=0, labelcolor=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.grid(visible=False)
