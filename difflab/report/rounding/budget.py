"""The content of the reports about an error budget, its data as CSV, and its picture."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate

from difflab.core.dtypes import format_of
from difflab.core.table import Cell, Column, Table, csv_text, guarded
from difflab.core.wording import counted, percent, significant
from difflab.drawing import Drawing, diagram, svg
from difflab.drawing.model import Diagram
from difflab.report.summary import Section, Summary, heading, point_text
from difflab.report.terminal import SHOWN_EXPRESSION, clean, shorten
from difflab.rounding.budget import Budget, Contribution, ErrorBudget

SHOWN = 8
WRITTEN = 1000
"""Most contributions of each part in JSON and CSV."""
BAR = 12
"""Characters of the bar of a contribution that is all of a budget."""


def view(result: ErrorBudget) -> Summary:
    """Return the content of the reports."""
    expression = shorten(clean(heading(result.function)), SHOWN_EXPRESSION)
    return Summary(
        heading="Error budget",
        expression=expression,
        facts=_facts(result),
        sections=[*map(_section, result.parts), *_lines(result)],
        notes=[("", clean(line)) for line in (*result.advice, *result.stable)],
        sentence=_sentence(result),
        agreed=True,
        title=f"Error budget of {expression}",
        picture=partial(_inline, result),
        caption="contributions of the operations, on the graph",
    )


def _inline(result: ErrorBudget) -> str:
    return svg(_picture(result))


def _facts(result: ErrorBudget) -> list[tuple[str, str]]:
    facts = []
    if result.over:
        ends = (f"{clean(name)} = {a:g} … {b:g}" for name, (a, b) in result.over.items())
        facts.append(("over", f"{', '.join(ends)}: {counted(result.points, 'point')}"))
    facts.append(("worst at" if result.over else "at", point_text(result.point)))
    return [*facts, ("dtype", result.dtype)]


def _section(part: Budget) -> Section:
    columns = (
        Column("operation", wrap=True, widest=34),
        *(Column("where"), Column("ULP", right=True), Column("worst", right=True)),
        *(Column("share", right=True), Column()),
    )
    rows = [
        (
            shorten(clean(_operation(each)), 60),
            clean(str(each.site)),
            significant(each.ulps, 3),
            significant(each.worst, 3),
            _share(each.share),
            _bar(each.share),
        )
        for each in part.contributions[:SHOWN]
    ]
    left = len(part.contributions) - SHOWN
    if left > 0:
        rest = sum(each.share for each in part.contributions[SHOWN:])
        rows.append((f"{left:,} more", "", "", "", _share(rest), _bar(rest)))
    return Section(Table(columns, rows), part.kind, list(_results(part)))


def _operation(each: Contribution) -> str:
    """Return the operation in the source, after its name where that is another one."""
    is_named = each.operation in each.text or not each.operation.isidentifier()
    return each.text if is_named else f"{each.operation}: {each.text}"


def _share(share: float) -> str:
    return percent(share) if share >= 1e-4 else "< 0.01 %"


def _bar(share: float) -> str:
    return "█" * round(BAR * share)


def _results(part: Budget) -> Iterator[tuple[str, str]]:
    """Yield the budget of each of the worst outputs, and the proved bounds of its error."""
    for each in sorted(part.outputs, key=lambda each: -each.ulps)[:3]:
        bound = f"{significant(each.value)} ± {significant(each.bound, 3)}"
        actual = f", error {significant(each.error, 3)}" if math.isfinite(each.error) else ""
        yield clean(each.name), f"{bound} ({significant(each.ulps, 3)} ULP){actual}"
    if part.omitted:
        yield "left out", counted(part.omitted, "output")
    if part.proved:
        yield "proved", "the error lies in the budget and its terms of higher order"
    else:
        yield "not proved", clean(part.reason)


def _lines(result: ErrorBudget) -> Iterator[Section]:
    """Yield the table of the lines of code with the shares of their operations."""
    shares: dict[tuple[str, int], list[float]] = {}
    texts: dict[tuple[str, int], str] = {}
    lines = (result.function.graph.text or "").split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines[:-1])]
    for index, part in enumerate(result.parts):
        for each in part.contributions:
            site = each.site
            if site.where:
                file, _, line = site.where.rpartition(", line ")
                key = (file, int(line)) if line.isdigit() else (site.where, 0)
                texts[key] = (site.text or "").strip()
            elif site.span is not None and len(starts) > 1:
                key = ("line", bisect_right(starts, site.span[0]))
                texts[key] = lines[key[1] - 1].strip()
            else:
                continue
            shares.setdefault(key, [0.0] * len(result.parts))[index] += each.share
    if len(shares) < 2 and not any(key[0] != "line" for key in shares):
        return
    columns = (
        *(Column("line", right=True), Column("code", wrap=True, widest=40)),
        *(Column(part.kind, right=True) for part in result.parts),
        Column(),
    )
    rows = [
        (
            f"{clean(key[0])}:{key[1]}" if key[0] != "line" else str(key[1]),
            Cell(shorten(clean(texts[key]), 80)),
            *(_share(share) if share else "" for share in line_shares),
            _bar(max(line_shares)),
        )
        for key, line_shares in sorted(shares.items())
    ]
    yield Section(Table(columns, rows), "lines of code")


def _sentence(result: ErrorBudget) -> str:
    """Return how many digits each part loses, and whether that is proved."""
    digits = format_of(result.dtype).digits * math.log10(2)
    parts = []
    for part in result.parts:
        lost = min(math.log10(max(2 * part.ulps, 1.0)), digits)
        parts.append(f"the {part.kind} may lose {lost:.1f} of {digits:.1f} digits")
    proof = "proved" if result.proved else "not proved"
    text = " and ".join(parts)
    if result.points > 1:
        text = f"at the worst of {result.points:,} points {text}"
    return f"{text[0].upper()}{text[1:]} ({proof})."


def csv(result: ErrorBudget) -> str:
    """Return the largest contributions as CSV, a row for each operation."""
    heads = ["part", "node", "operation", "text", "where", "ulps", "worst", "share"]
    rows = [
        (
            *(part.kind, each.node, each.operation, guarded(clean(each.text))),
            *(guarded(clean(str(each.site))), each.ulps, each.worst, each.share),
        )
        for part in result.parts
        for each in part.contributions[:WRITTEN]
    ]
    return csv_text([heads, *rows])


def drawn(result: ErrorBudget) -> Drawing:
    """Return the graphs of value and gradient, every operation marked by its share."""
    return Drawing(_picture(result))


def _picture(result: ErrorBudget) -> Diagram:
    first, *others = (_marked(part, heading(result.function)) for part in result.parts)
    titles = (f"{part.kind}, in its own graph" for part in result.parts[1:])
    legend = "the redder an operation, the larger its part of the rounding error"
    return replace(first, legend=legend, parts=tuple(zip(titles, others, strict=True)))


def _marked(part: Budget, title: str) -> Diagram:
    plain = diagram(part.function, title=title if part.kind == "value" else "")
    shares = part.shares
    boxes = []
    for box in plain.boxes:
        share = sum(shares.get(node, 0.0) for node in box.nodes)
        caption = f"{box.caption}, {_share(share)}" if share >= 0.005 else box.caption
        boxes.append(replace(box, heat=math.sqrt(min(share, 1.0)), caption=caption))
    return replace(plain, boxes=tuple(boxes))
