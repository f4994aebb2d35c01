"""``python -m benchmarks gpu``: value and gradient on a GPU against a copy of the same bytes."""

from __future__ import annotations

from typing import Annotated

import typer

from difflab.cli.output import emit, screen

__all__ = ["gpu"]

ENOUGH = 0.8
"""The share of the copy's bandwidth that fused kernels should reach."""


def gpu(*, points: Annotated[int, typer.Option(min=1000)] = 100_000_000) -> int:
    """Value and gradient on a GPU, against a copy of the same bytes; needs CuPy.

    Parameters
    ----------
    points
        The number of points of a call.
    """
    from benchmarks.gpu import EXPRESSION, measure
    from difflab.core.table import Column, Table
    from difflab.core.wording import percent
    from difflab.report.terminal import draw

    speed = measure(points)
    headings = ("milliseconds", "GB/s", "share of copy")
    columns = (Column(), *(Column(heading, right=True) for heading in headings))
    times = (("copy on the device", min(speed.copies)), ("value and gradient", min(speed.calls)))
    rows = [
        (
            *(name, f"{1e3 * seconds:.3f}", f"{speed.bytes / seconds / 1e9:,.0f}"),
            percent(min(speed.copies) / seconds),
        )
        for name, seconds in times
    ]
    verdict = "reached" if speed.ratio >= ENOUGH else "not reached"
    moved = f"{speed.bytes / 1e9:.2f} GB moved, best of {len(speed.calls)} rounds"
    title = f"{EXPRESSION}, {points:,} points on {speed.device}"
    note = f"{moved}; {percent(ENOUGH)} of the copy's bandwidth is {verdict}"
    emit(draw([title, Table(columns, rows, gap=2, ruled=False), note], **screen()))
    return 0
