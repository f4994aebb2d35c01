"""``difflab bench gpu``: value and gradient on a GPU against a copy of the same bytes."""

from __future__ import annotations

from typing import Annotated

import typer

from difflab.cli.output import emit, screen

__all__ = ["gpu"]

ENOUGH = 0.8
"""The share of the copy's bandwidth that fused kernels should reach."""


def gpu(
    points: Annotated[
        int, typer.Option(min=1000, help="The number of points of a call.")
    ] = 100_000_000,
) -> int:
    """Value and gradient on a GPU, against a copy of the same bytes; needs CuPy."""
    from rich.table import Table
    from rich.text import Text

    from difflab.bench.gpu import EXPRESSION, measure
    from difflab.report.terminal import draw

    speed = measure(points)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("")
    for heading in ("milliseconds", "GB/s", "share of copy"):
        table.add_column(heading, justify="right")
    for name, seconds, share in (
        ("copy on the device", min(speed.copies), 1.0),
        ("value and gradient", min(speed.calls), speed.ratio),
    ):
        rate = speed.bytes / seconds / 1e9
        table.add_row(name, f"{1e3 * seconds:.3f}", f"{rate:,.0f}", f"{share:.0%}")
    title = Text(f"{EXPRESSION}, {points:,} points on {speed.device}")
    verdict = "reached" if speed.ratio >= ENOUGH else "not reached"
    moved = f"{speed.bytes / 1e9:.2f} GB moved, best of {len(speed.calls)} rounds"
    note = Text(f"{moved}; {ENOUGH:.0%} of the copy's bandwidth is {verdict}")
    emit(draw([title, table, note], **screen()))
    return 0
