"""The picture of a family: costs against n and m, and maps of the cheapest method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from difflab.bench.dimensions.fits import PowerLaw
from difflab.bench.dimensions.winners import Cost, costs, laws, size_of
from difflab.bench.pictures import picture, plot_curve, style_of
from difflab.core.quantities import bytes_text
from difflab.core.quantities import count as count_text
from difflab.lab.sweep import SweepRow
from difflab.report.canvas import FAINT, INK, seconds_tick, ticks, titled_figure
from difflab.report.terminal import clean, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


CALLS = (1, 1_000, 1_000_000)
"""The numbers of calls of the picture's maps."""

_FIGURES = {
    "operations": "operations of a Jacobian",
    "call_seconds": "time of a call",
    "peak_bytes": "memory of a call",
    "prepare_seconds": "time of preparing",
}
_LEFT, _RIGHT = 0.085, 0.75


def exponent_text(law: PowerLaw) -> str:
    """Return a power law's exponents with their intervals, a line for each.

    Examples
    --------
    >>> from difflab.bench.dimensions.fits import Exponent
    >>> exponent_text(PowerLaw(1.0, {"n": Exponent(2.0, 1.95, 2.05)}, 6))
    'n^2.00 [1.95, 2.05]'
    """
    return "\n".join(
        f"{size}^{found.value:z.2f} [{found.low:z.2f}, {found.high:z.2f}]"
        for size, found in law.exponents.items()
    )


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw a family's costs against each size that varies, and maps of the cheapest method."""
    varying = [size for size in ("n", "m") if len({row[size] for row in rows}) > 1] or ["n"]
    lines = len(varying)
    canvas = titled_figure(
        (9.6, 1.5 + 5.4 * lines + 3.2),
        "cost of a Jacobian against the sizes of the family",
        f"{shorten(clean(str(rows[0]['family'])), 45)} · dashed, hatched: extrapolated after "
        "a timeout · cheapest: with preparation",
    )
    inch = 1 / canvas.get_figheight()
    grid = canvas.add_gridspec(
        2 * lines, 2, left=_LEFT, right=_RIGHT, top=1 - 1.0 * inch, bottom=3.7 * inch,
        wspace=0.36, hspace=0.45,
    )  # fmt: skip
    for down, size in enumerate(varying):
        for across, column in enumerate(_FIGURES):
            cell = grid[2 * down + across // 2, across % 2]
            _panel(canvas.add_subplot(cell), rows, size, column)
    maps = canvas.add_gridspec(
        1, 3, left=_LEFT, right=_RIGHT, top=2.8 * inch, bottom=0.6 * inch, wspace=0.24
    )
    for across, calls in enumerate(CALLS):
        _map(canvas.add_subplot(maps[0, across]), costs(rows), calls)
    _legend(canvas, rows)
    return canvas


def _panel(axes: Axes, rows: Sequence[SweepRow], size: str, column: str) -> None:
    """Draw one figure of all methods against one size, at the median of the other."""
    other = "m" if size == "n" else "n"
    others = sorted({int(row[other] or 1) for row in rows})
    fixed = others[len(others) // 2]
    chosen = [row for row in rows if int(row[other] or 1) == fixed]
    fitted = laws(rows, column)
    axes.set(xscale="log", yscale="log")
    sizes = sorted({int(row[size] or 1) for row in rows})
    ticks(axes.xaxis, {k: str(k) for k in sizes[:: 1 + len(sizes) // 8]})
    axes.grid(visible=True)
    axes.set_xlabel(f"{size}   ({other} = {fixed})" if len(others) > 1 else size)
    axes.set_title(_FIGURES[column], loc="left", fontsize=9.5)
    for name in dict.fromkeys(str(row["method"]) for row in chosen):
        own = [row for row in chosen if row["method"] == name]
        _curve(axes, own, size, column, fitted.get(name))
    if column.endswith("seconds"):
        axes.yaxis.set_major_formatter(seconds_tick)
    elif column == "peak_bytes":
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda b, _: bytes_text(int(b)) if b >= 1 else "")
    else:
        axes.yaxis.set_major_formatter(lambda k, _: count_text(int(k)) if k >= 1 else "")


def _curve(
    axes: Axes, rows: Sequence[SweepRow], size: str, column: str, law: PowerLaw | None
) -> None:
    """Draw one method: the measurements, and dashed the fitted law beyond its timeouts."""
    look = style_of(str(rows[0]["method"]))
    measured = [
        (float(row[size] or 1), float(row[column] or 0))
        for row in rows
        if row["status"] == "ok" and row[column]
    ]
    if measured:
        x, y = zip(*measured, strict=True)
        plot_curve(axes, x, y, look)
    beyond = [
        (float(row[size] or 1), law.at(*size_of(row)))
        for row in rows
        if law is not None and row["status"] == "timeout"
    ]
    if beyond:
        x, y = zip(*measured[-1:], *beyond, strict=True)
        axes.plot(x, y, "--", color=look.colour, lw=1.0, marker=look.marker, mfc="none", ms=4)


def _map(axes: Axes, found: Mapping[tuple[int, int], Mapping[str, Cost]], calls: int) -> None:
    """Draw a cell for every size in the colour of the method that costs least."""
    from matplotlib.patches import Rectangle

    n_sizes, m_sizes = (sorted({size[axis] for size in found}) for axis in (0, 1))
    axes.set(xlim=(0, len(n_sizes)), ylim=(0, len(m_sizes)), xlabel="n", ylabel="m")
    ticks(axes.xaxis, {k + 0.5: str(n) for k, n in enumerate(n_sizes)})
    ticks(axes.yaxis, {k + 0.5: str(m) for k, m in enumerate(m_sizes)})
    axes.grid(visible=False)
    axes.tick_params(length=0)
    times = "1 call" if calls == 1 else f"{calls:,} calls"
    axes.set_title(f"cheapest, {times}", loc="left", fontsize=9)
    for (n, m), cell in found.items():
        corner = n_sizes.index(n), m_sizes.index(m)
        if not cell:
            axes.text(corner[0] + 0.5, corner[1] + 0.5, "–", ha="center", va="center", color=FAINT)
            continue
        name = min(cell, key=lambda name: cell[name].total(calls))
        axes.add_patch(
            Rectangle(
                corner, 1, 1, facecolor=style_of(name).colour, edgecolor="white", lw=1.2,
                hatch="///" if cell[name].extrapolated else None,
            )
        )  # fmt: skip
        if len(n_sizes) <= 6 and len(m_sizes) <= 3:  # else the colours alone name the methods
            place = corner[0] + 0.5, corner[1] + 0.5
            box = {"facecolor": style_of(name).colour, "edgecolor": "none", "pad": 0.5}
            axes.text(
                *place, shorten(clean(name), 14).replace("-", "-\n"), ha="center", va="center",
                fontsize=8, rotation=90 if len(n_sizes) > 2 else 0, color="white", bbox=box,
            )  # fmt: skip


def _legend(canvas: Figure, rows: Sequence[SweepRow]) -> None:
    """Write the methods beside the panels, with the exponents of their calls or why none ran."""
    fitted = laws(rows, "call_seconds")
    top = 1 - 1.0 / canvas.get_figheight()
    step = 0.56 / canvas.get_figheight()
    for k, name in enumerate(dict.fromkeys(str(row["method"]) for row in rows)):
        look = style_of(name)
        own = [row for row in rows if row["method"] == name]
        law = fitted.get(name)
        about = "" if law is None else f"call ~ {exponent_text(law)}".replace("\n", " ·\n")
        if not any(row["status"] == "ok" for row in own):
            about = fill(shorten(clean(f"{own[0]['status']}: {own[0]['message']}"), 56), 30)
        y = top - k * step
        canvas.text(_RIGHT + 0.012, y, "■", color=look.colour, fontsize=10, va="top")
        canvas.text(_RIGHT + 0.036, y, clean(name), color=INK, fontsize=9, va="top")
        canvas.text(
            _RIGHT + 0.036, y - 0.17 / canvas.get_figheight(), about,
            color=FAINT, fontsize=8.5, va="top", parse_math=False,
        )  # fmt: skip
