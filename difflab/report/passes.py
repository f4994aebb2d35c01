"""The passes of a graph as a table of sizes before and after, and the changes of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from difflab.core.wording import counted
from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.graph.passes.fusion import fusion_groups
from difflab.lab.pipeline import PassStep
from difflab.report.style import clean, count, shorten
from difflab.report.terminal import WIDTH, draw

if TYPE_CHECKING:
    from rich.console import RenderableType

    from difflab.execute.lower.plan import BufferPlan
    from difflab.stabilisation.proof import Stabilised

__all__ = ["passes_table", "rewrites_text"]

SHOWN_REWRITES = 20
SHOWN_TEXT = 240
READABLE = 400
"""Most nodes of a graph whose text is shown before and after a pass."""


def passes_table(
    steps: Sequence[PassStep],
    stabilised: Stabilised | None = None,
    *,
    colour: bool = False,
    width: int = WIDTH,
    plain: bool = False,
) -> str:
    """Return a table of the passes, and below it the changes of each.

    Parameters
    ----------
    steps : sequence of PassStep
        The result of `difflab.lab.pipeline.run`; at least one.
    stabilised : Stabilised, optional
        The rewrites of a stabilisation among the steps.
    colour : bool
        Whether to colour the text with terminal sequences.
    width : int
        Columns to fill at most.
    plain : bool
        Whether to use ASCII only.
    """
    parts: list[RenderableType] = [_table(steps), _plans(steps[-1].after)]
    changes = [_change(step) for step in steps if step.changed]
    parts += [change for change in changes if change is not None]
    if stabilised is not None:
        parts.append(_plain(rewrites_text(stabilised)))
    return draw(parts, colour=colour, width=width, plain=plain)


def _table(steps: Sequence[PassStep]) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    grid.add_column("pass", no_wrap=True)
    grid.add_column("what it does", overflow="fold")
    grid.add_column("nodes", justify="right", no_wrap=True)
    grid.add_column("operations", justify="right", no_wrap=True)
    for step in steps:
        before, after = step.sizes
        changed = step.changed
        name = step.done.name if step.done.exact else f"{step.done.name} *"
        grid.add_row(
            Text(name, style="bold" if changed else ""),
            Text(step.done.summary),
            _arrow(before.dag, after.dag) if changed else Text(count(after.dag), style="dim"),
            _arrow(before.operations, after.operations)
            if changed
            else Text(count(after.operations), style="dim"),
        )
    return grid


def _arrow(before: int, after: int) -> RenderableType:
    from rich.text import Text

    return Text(f"{count(before)} → {count(after)}", style="bold")


def _plans(function: Function) -> RenderableType:
    """Return the fusion groups of the result, and its buffers."""
    from rich.table import Table

    groups = fusion_groups(function)
    operations = sum(map(len, groups))
    longest = max(map(len, groups), default=0)
    plan = _planned(function)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    grid.add_row(
        "fusion groups",
        f"{counted(operations, 'elementwise operation')} in {counted(len(groups), 'loop')}"
        + (f", the longest of {longest}" if len(groups) > 1 else ""),
    )
    grid.add_row(
        "memory planning",
        f"{counted(len(plan.slots), 'value')} between inputs and results in "
        f"{counted(len(plan.buffers), 'buffer')}: at most {sum(plan.buffers):,} bytes "
        f"a point at once, {plan.apart:,} without reuse",
    )
    return grid


def _planned(function: Function) -> BufferPlan:
    """Return the plan of the target ``numpy``."""
    from difflab.execute.lower.plan import planned
    from difflab.execute.lower.schedule import ScalarProgram, Schedule

    schedule = Schedule.of(function)
    try:
        return planned(ScalarProgram.of(schedule))
    except UnsupportedError:
        return planned(schedule)


def _change(step: PassStep) -> RenderableType | None:
    """Return the program before and after a pass, or None if it is too long."""
    if max(len(step.before.graph), len(step.after.graph)) > READABLE:
        return None
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from difflab.language.printers import text

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for sign, function in (("-", step.before), ("+", step.after)):
        grid.add_row(f"  {sign}", Text(shorten(clean(text(function)), SHOWN_TEXT)))
    return Group(Text(step.done.name, style="bold"), grid)


def rewrites_text(stabilised: Stabilised) -> str:
    """Return a list of the rewrites, each with its position, its reason and its proof."""
    lines = ["* changes how values are rounded, not the function of real numbers:"]
    for item in stabilised.first(SHOWN_REWRITES):
        position = f"{item.place}: " if item.place else ""
        lines.append(f"  {position}{clean(item.before)} → {clean(item.after)}")
        lines += [f"    {item.why}", f"    {item.proof}"]
    if len(stabilised) > SHOWN_REWRITES:
        lines.append(f"  … and {len(stabilised) - SHOWN_REWRITES:,} more")
    if not len(stabilised):
        lines = ["nothing to stabilise"]
    lines += [f"  not applied, values differ: {rule}" for rule in stabilised.refused]
    return "\n".join(lines)


def _plain(text: str) -> RenderableType:
    from rich.text import Text

    return Text(text, overflow="fold")
