"""The pictures of a study: verdicts by method, errors by method, times against sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10

from difflab.core.wording import seconds
from difflab.report.terminal import shorten

_COLOURS = {
    "agree": "#009E73",
    "convention": "#56B4E9",
    "declared": "#0072B2",
    "inconclusive": "#E69F00",
    "unsupported": "#BBBBBB",
    "timeout": "#F0E442",
    "failed": "#882255",
    "disagree": "#D55E00",
}
_LINES = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "currentColor",
    "#882255",
)
_WIDTH, _BAR, _LEFT = 720, 22, 150


def verdicts(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return a bar for each method: its outcomes, the best first, as shares of its records.

    Parameters
    ----------
    counts : mapping
        For each method the number of records of each outcome.
    """
    used = [name for name in _COLOURS if any(name in outcomes for outcomes in counts.values())]
    legend, tall = _legend([(name, _COLOURS[name]) for name in used], (_BAR + 6) * len(counts) + 18)
    parts = [_begin(tall, "shares of the verdicts of each method")]
    for index, (method, outcomes) in enumerate(counts.items()):
        y, x = index * (_BAR + 6), float(_LEFT)
        parts.append(_label(_LEFT - 8, y + 16, shorten(method, 20), "end"))
        total = sum(outcomes.values())
        for outcome in (name for name in _COLOURS if outcomes.get(name)):
            width = (_WIDTH - _LEFT) * outcomes[outcome] / total
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" '
                f'fill="{_COLOURS[outcome]}"><title>{escape(method)}: {outcomes[outcome]} of '
                f"{total} {outcome}</title></rect>"
            )
            x += width
    return "".join([*parts, *legend, "</svg></div>"])


def times(series: Mapping[str, Sequence[tuple[float, float]]], title: str) -> str:
    """Return the seconds of a call against the size, a line for each method, on log axes.

    Parameters
    ----------
    series : mapping
        For each method its sizes and seconds, by size.
    title : str
        The family.
    """
    points = [point for line in series.values() for point in line]
    sizes = sorted({size for size, _ in points})
    low, high = min(s for _, s in points), max(s for _, s in points)
    first, last = floor(log10(low)), max(ceil(log10(high)), floor(log10(low)) + 1)
    top, bottom = 34, 270
    colours = [_LINES[k % len(_LINES)] for k in range(len(series))]
    legend, tall = _legend(list(zip(series, colours, strict=True)), bottom + 58)

    def position(size: float, value: float) -> tuple[float, float]:
        span = log10(sizes[-1] / sizes[0]) or 1.0
        x = _LEFT / 2 + (_WIDTH - _LEFT) * (
            log10(size / sizes[0]) / span if len(sizes) > 1 else 0.5
        )
        return x, bottom - (bottom - top) * (log10(value) - first) / (last - first)

    parts = [_begin(tall, f"seconds of a call against the size of {title}")]
    parts.append(_label(0, 16, f"{shorten(title, 80)}: time of a call against the size"))
    for power in range(first, last + 1):
        _, y = position(sizes[0], 10.0**power)
        parts.append(_label(_LEFT / 2 - 10, y + 4, seconds(10.0**power), "end"))
        parts.append(
            f'<line x1="{_LEFT / 2}" x2="{_WIDTH - _LEFT / 2}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="currentColor" stroke-opacity=".15"/>'
        )
    parts += [_label(position(n, low)[0], bottom + 18, f"{n:g}", "middle") for n in sizes]
    for colour, (method, line) in zip(colours, series.items(), strict=True):
        parts += _line(method, [(*position(*point), *point) for point in line], colour)
    return "".join([*parts, *legend, "</svg></div>"])


def _line(
    method: str, points: Sequence[tuple[float, float, float, float]], colour: str
) -> Iterator[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y, size, value in points:
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{escape(method)}, '
            f"{size:g}: {seconds(value)}</title></circle>"
        )


def _begin(height: float, name: str) -> str:
    return (
        f'<div class="picture"><svg viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(name)}" '
        'xmlns="http://www.w3.org/2000/svg" font-size="13" fill="currentColor">'
    )


def _label(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _legend(names: Sequence[tuple[str, str]], y: float) -> tuple[list[str], float]:
    """Return the legend in lines from y on, and the height of the picture that ends with it."""
    parts, x = [], 0.0
    for name, colour in names:
        width = 34 + 7.2 * min(len(name), 20)
        if x and x + width > _WIDTH:
            x, y = 0.0, y + _BAR
        parts.append(f'<rect x="{x:.0f}" y="{y - 10:.0f}" width="11" height="11" fill="{colour}"/>')
        parts.append(_label(x + 16, y, shorten(name, 20)))
        x += width
    return parts, y + 12
