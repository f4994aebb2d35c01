"""The results at kinks, edges and special points, as tables of packages that agree.

One row is one set of value, first and second derivative, with all packages that give it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Unpack

from difflab.core.table import Cell, Column, Table, csv_text
from difflab.lab.conventions.cases import ConventionCase, ConventionFamily, families
from difflab.lab.conventions.measure import EXACT, ORDERS, CaseResult, Conventions, MeasuredPackage
from difflab.referee.ulp import ulp_distance
from difflab.report import markdown as md
from difflab.report.terminal import Part, Screen, draw

MARK = "*"
ABSENT = "-"
DIGITS = 6
NUMERIC_DIGITS = 4
"""Digits of numeric methods, whose further ones are noise."""
NOISE = (1e-30, 1e-14)
"""What lies between is what cancellation leaves of a 0."""
NUMERIC_NOISE = 1e-6
CLOSE = 8.0
"""ULP from the truth up to which no error is shown."""
HEADINGS = ("value", "first", "second", "packages")
Row = tuple[str, ...]


def table(conventions: Conventions, **screen: Unpack[Screen]) -> str:
    """Return the results as tables for a terminal, one for each case."""
    columns = [Column(heading, wrap=heading == "packages") for heading in HEADINGS]
    parts: list[Part] = [_versions(conventions)]
    for family, measured in _families(conventions):
        parts.append(Cell(family.title, "label"))
        for case, rows, notes in measured:
            parts.append([_at(case), Table(columns, rows, gap=2, ruled=False), *notes])
    parts += [_legend(), *_left_out(conventions)]
    return draw(parts, **screen)


def markdown(conventions: Conventions) -> str:
    """Return the results as tables of Markdown, one for each family."""
    columns = [Column("function"), *map(Column, HEADINGS)]
    parts = [md.literal(f"{_versions(conventions)}. {_legend()}")]
    for family, measured in _families(conventions):
        lines, composed = [], []
        for case, rows, notes in measured:
            heads = (_at(case), *[""] * (len(rows) - 1))
            lines += [(head, *row) for head, row in zip(heads, rows, strict=True)]
            composed += [f"- {md.literal(note)}" for note in notes]
        parts += [f"### {md.literal(family.title)}", md.table(Table(columns, lines))]
        parts += ["\n".join(dict.fromkeys(composed))] if composed else []
    parts += [f"- {md.literal(line)}" for line in _left_out(conventions)]
    return "\n\n".join(parts) + "\n"


def csv(conventions: Conventions) -> str:
    """Return a line of CSV per package and case."""
    headings = ("formula", "at", "package", "version", "own", "code", *ORDERS)
    versions = {package.name: package.version for package in conventions.packages}
    lines = []
    for result in conventions.results:
        version = versions.get(result.package, "")
        answers = [
            answer if isinstance(answer, str) else _spaced(answer) for answer in result.answers
        ]
        named = (result.formula, _spaced(result.at), result.package, version)
        lines.append((*named, result.own, result.code, *answers))
    return csv_text([headings, *lines])


def _spaced(values: Sequence[float]) -> str:
    return " ".join(map(repr, values))


def _at(case: ConventionCase) -> str:
    return f"{case.formula} at {case.point}"


def _versions(conventions: Conventions) -> str:
    return ", ".join(f"{each.title} {each.version}" for each in conventions.packages)


def _legend() -> str:
    return (
        "First and second derivatives are by (x, y), matrices are written by rows. "
        f"{MARK}: the package has no such function, and this is code of its other functions, which "
        f"is listed. {ABSENT}: it has no such function, no derivative of it, or fails; "
        "--format json says which."
    )


def _left_out(conventions: Conventions) -> list[str]:
    return [f"left out: {name}: {reason}" for name, reason in conventions.left_out.items()]


def _families(
    conventions: Conventions,
) -> Iterator[tuple[ConventionFamily, list[tuple[ConventionCase, list[Row], list[str]]]]]:
    """Yield each family with the rows of its cases, and notes on composed functions."""
    packages = {package.name: package for package in conventions.packages}
    for family in families():
        measured = [
            (case, list(_rows(results, packages)), list(_composed(results, packages)))
            for case in family.cases
            if (results := conventions.of(case.formula, case.at))
        ]
        if measured:
            yield family, measured


def _rows(results: Sequence[CaseResult], packages: Mapping[str, MeasuredPackage]) -> Iterator[Row]:
    """Yield a row for each set of answers, those without any last."""
    truth = next((each.answers for each in results if each.package == EXACT), None)
    groups: dict[Row, list[str]] = {}
    for result in results:
        package = packages.get(result.package)
        if package is not None:
            title = package.title + ("" if result.own else MARK)
            groups.setdefault(_cells(result, truth, package.numeric), []).append(title)
    for cells, titles in sorted(groups.items(), key=lambda group: set(group[0]) == {ABSENT}):
        yield (*cells, ", ".join(titles))


def _composed(
    results: Sequence[CaseResult], packages: Mapping[str, MeasuredPackage]
) -> Iterator[str]:
    for result in results:
        if not result.own and result.package in packages:
            title = packages[result.package].title
            yield f"{MARK} {result.formula} in {title}: {result.code}"


def _cells(
    result: CaseResult, truth: Sequence[tuple[float, ...] | str] | None, numeric: bool
) -> tuple[str, ...]:
    """Return value, gradient and Hessian as texts."""
    cells = []
    for order, answer in enumerate(result.answers):
        if isinstance(answer, str):
            cells.append(ABSENT)
            continue
        text = _shown(answer, order, len(result.at), NUMERIC_DIGITS if numeric else DIGITS)
        if truth is not None and not numeric:
            text += _error(answer, truth[order])
        cells.append(text)
    return tuple(cells)


def _shown(values: Sequence[float], order: int, n: int, digits: int) -> str:
    texts = [_number(value, digits) for value in values]
    if order < 2 or n == 1:
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
    if set(texts) in ({"0"}, {"nan"}):  # a matrix of nothing else
        return texts[0]
    rows = [", ".join(texts[k * n : (k + 1) * n]) for k in range(n)]
    return f"({'; '.join(rows)})"


def _number(value: float, digits: int) -> str:
    """Return a number in few digits; a residue of cancellation is 0, and so is -0."""
    low, high = (0.0, NUMERIC_NOISE) if digits == NUMERIC_DIGITS else NOISE
    return f"{0.0 if low < abs(value) < high else value + 0.0:.{digits}g}"


def _error(values: Sequence[float], truth: tuple[float, ...] | str) -> str:
    """Return the error beside the truth, if it is more than a few ULP."""
    if isinstance(truth, str) or not all(map(math.isfinite, values)):
        return ""
    ulps = max(ulp_distance(*pair) for pair in zip(values, truth, strict=True))
    return f" ({ulps:.0e} ULP)" if CLOSE < ulps < 1e15 else ""
