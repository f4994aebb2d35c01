"""Memory against recomputation: the gradient of a chain with fewer and fewer states kept.

The chain is differentiated without checkpoints, with √n segments, and by revolve with several
numbers of snapshots. Steps are counted as they run, the bytes are the peak that `tracemalloc`
reports, and a measurement counts only if its gradient equals the one without checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from difflab.bench.shared import BLUE, GREEN, PURPLE, RED, layout, picture
from difflab.core.wording import bytes_text
from difflab.eager import checkpoint_chain, tensor
from difflab.errors import DifflabError
from difflab.lab import provenance
from difflab.lab.sweep import Cell, SweepRow, Task
from difflab.methods.timer import peak_of
from difflab.report.canvas import (
    FAINT,
    INK,
    Axes,
    Figure,
    Label,
    beside,
    label_ends,
    marker,
    ticks,
    titled_figure,
)

LAYOUT = layout(
    "steps numbers strategy snapshots evaluations recomputed peak_bytes peak_states",
    key="steps numbers strategy snapshots",
)

LENGTHS = (64, 256, 1024)
STATE_SIZE = 8192
"""Elements of a state: 64 KiB, large compared with the tape's own objects."""
SNAPSHOTS = (3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def tasks(
    lengths: Sequence[int] | None = None, size: int = STATE_SIZE, *, quick: bool = False
) -> Iterator[Task]:
    """Yield a task for every length and checkpointing strategy, with states of `size` elements.

    The lengths are by default `LENGTHS`, of which `quick` keeps the first two.
    """
    if lengths is None:
        lengths = LENGTHS[:2] if quick else LENGTHS
    source = provenance.source()
    for steps in lengths:
        strategies: list[tuple[str, int | None]] = [("plain", None), ("sqrt", None)]
        strategies += [("revolve", count) for count in SNAPSHOTS if count < steps]
        for strategy, snapshots in strategies:
            key: dict[str, Cell] = {"steps": steps, "numbers": size}
            key |= {"strategy": strategy, "snapshots": snapshots}
            yield Task(key, partial(_measured, steps, size, strategy, snapshots), source)


def _measured(steps: int, size: int, strategy: str, snapshots: int | None) -> dict[str, Cell]:
    """Measure one strategy; its gradient must equal the one without checkpoints."""
    expected, _, _ = _gradient(steps, size, _looped)
    run = _looped
    if strategy != "plain":
        run = partial(checkpoint_chain, snapshots="sqrt" if snapshots is None else snapshots)
    _gradient(2, size, run)  # fills the caches, which are not the chain's memory
    gradient, evaluations, peak = _gradient(steps, size, run)
    if gradient.tobytes() != expected.tobytes():
        raise DifflabError(f"{strategy} gives another gradient of {steps} steps than the loop")
    return {
        "evaluations": evaluations,
        "recomputed": evaluations - steps,
        "peak_bytes": peak,
        "peak_states": peak / (8 * size),
        "repetitions": 1,
    }


def _looped(step: Callable[[int, Any], Any], state: Any, steps: int) -> Any:
    for k in range(steps):
        state = step(k, state)
    return state


def _gradient(steps: int, size: int, run: Callable[..., Any]) -> tuple[Any, int, int]:
    """Return the gradient by the first state, the number of steps run, and the peak of bytes."""
    evaluations = 0

    def step(k: int, state: Any) -> Any:
        nonlocal evaluations
        evaluations += 1
        return state + 0.1 * np.sin(state)

    first = tensor(np.linspace(0.1, 1.0, size), requires_grad=True)
    peak = peak_of(lambda: np.sum(run(step, first, steps)).backward())
    assert first.grad is not None
    return first.grad.numpy(), evaluations, peak


# --- the picture -----------------------------------------------------------------------------

_COLOURS = (GREEN, BLUE, RED, PURPLE)
"""Of the chains, from the shortest to the longest."""
_LABELLED = (3, 4, 8, 16, 32, 64)
"""Numbers of snapshots labelled at the margin; their memory hardly depends on the length."""


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the peak of memory against the number of steps run, a line for each length of chain."""
    lengths = sorted({int(row["steps"] or 0) for row in rows})
    size = 8 * int(rows[0]["numbers"] or 0)
    canvas = titled_figure(
        6.2,
        "memory against recomputation: the gradient of a chain",
        f"peak of forward and backward · a state is {bytes_text(size)} ·"
        " every gradient equals the plain one, bit for bit",
        right=0.7,
        top=0.2,
    )
    axes = canvas.subplots()
    _frame(axes, rows)
    for steps, colour in zip(lengths, _COLOURS, strict=False):
        _chain(axes, [row for row in rows if row["steps"] == steps], colour)
    _legend(axes)
    label_ends(axes, _snapshots(axes, rows), gap=6)
    return canvas


def _frame(axes: Axes, rows: Sequence[SweepRow]) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    most, bytes_ = max(map(_relative_steps, rows)), [float(row["peak_bytes"] or 0) for row in rows]
    axes.set(xscale="log", yscale="log", xlim=(0.9, 1.12 * most))
    axes.set_ylim(0.75 * min(bytes_), 1.6 * max(bytes_))
    axes.set(xlabel="steps run, per step of the chain", ylabel="peak of memory")
    ticks(axes.xaxis, {n: f"{n:g}" for n in (1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24)})
    axes.yaxis.set_major_locator(LogLocator(base=4, numticks=12))
    axes.yaxis.set_major_formatter(lambda value, _: bytes_text(value))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.grid(visible=True)


def _chain(axes: Axes, rows: Sequence[SweepRow], colour: str) -> None:
    """Draw one chain's strategies; its length labels the one without checkpoints."""
    revolved = sorted((row for row in rows if row["strategy"] == "revolve"), key=_relative_steps)
    axes.plot(*_coordinates(revolved), "o-", color=colour, lw=1.6, ms=4.5)
    for strategy, mark in (("plain", "s"), ("sqrt", "D")):
        (row,) = (row for row in rows if row["strategy"] == strategy)
        axes.plot(*_coordinates([row]), mark, color=colour, ms=8, mec=INK, mew=0.8)
        if strategy == "plain":
            point = (_relative_steps(row), float(row["peak_bytes"] or 0))
            name = f"{row['steps']} steps"
            beside(axes, name, point, (10, 0), color=colour, fontsize=9.5, fontweight="bold")


def _coordinates(rows: Sequence[SweepRow]) -> tuple[list[float], list[float]]:
    return [_relative_steps(row) for row in rows], [float(row["peak_bytes"] or 0) for row in rows]


def _snapshots(axes: Axes, rows: Sequence[SweepRow]) -> list[Label]:
    """Draw a line from the last mark of each labelled number of snapshots to the margin."""
    labels = []
    edge = axes.get_xlim()[1]
    for number in _LABELLED:
        chosen = [row for row in rows if row["snapshots"] == number]
        if chosen:
            last = max(chosen, key=_relative_steps)
            height = float(last["peak_bytes"] or 0)
            axes.plot(
                [_relative_steps(last), edge], [height, height], ":", color=FAINT, lw=0.9, zorder=1
            )
            labels.append(Label(f"s = {number}", edge, height, INK))
    return labels


def _legend(axes: Axes) -> None:
    """Explain the marks."""
    handles = [
        marker("plain: every state is kept", "s", FAINT, INK, ms=7),
        marker("√n segments", "D", FAINT, INK, ms=7),
        marker("revolve, s snapshots", "o", FAINT, FAINT, ms=7),
    ]
    axes.legend(handles=handles, loc="upper right", frameon=False, fontsize=9)


def _relative_steps(row: SweepRow) -> float:
    """Return the number of steps run over the length of the chain."""
    return float(row["evaluations"] or 0) / float(row["steps"] or 1)
