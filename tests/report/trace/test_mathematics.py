"""The formulas of a trace as mathematics, in LaTeX and on paper; matplotlib reads them."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.primitives import by_spelling
from difflab.report.trace.mathematics import _Sheet, formula
from difflab.report.trace.text import latex, pdf
from tests.support.rows import for_each

PARSER = MathTextParser("path")


@for_each(
    ("text", "written"),
    [
        ("v₁ = v₋₁ × v₀", r"v_{1} = v_{-1} \times v_{0}"),
        ("v̇₂ = v̇₁ × cos v₁", r"\dot{v}_{2} = \dot{v}_{1} \times \cos v_{1}"),
        ("v̄₋₁ = v̄₃ ∂v₃/∂v₋₁", r"\bar{v}_{-1} = \bar{v}_{3} \, \partial v_{3}/\partial v_{-1}"),
        ("√(v₁ + v₂²) / √v₃", r"\sqrt{v_{1} + v_{2}^{2}} / \sqrt{v_{3}}"),
        ("v₁^(v₀ − 1)", "v_{1}^{v_{0} - 1}"),
        (
            "v₁ if v₂ > 0 else −2e−07",
            r"v_{1} \ \mathrm{if}\ v_{2} > 0 \ \mathrm{else}\ -2 \cdot 10^{-7}",
        ),
        ("x1 = 2, theta = 1", r"x_{1} = 2, \theta = 1"),
        ("gate_2(v₁)", r"\mathrm{gate\_2}(v_{1})"),
        ("{50 %} #1 $", r"\{50 \%\} \#1 \$"),
    ],
)
def test_notation_is_mathematics(text: str, written: str) -> None:
    assert formula(text).split() == written.split()


FUNCTIONS = sorted(name for name, row in by_spelling.items() if row.shape is None)


@for_each("spelling", FUNCTIONS)
def test_every_function_of_the_table_is_read(spelling: str) -> None:
    row = by_spelling[spelling]
    arguments = ["x", "y", "z", "w"][: row.arity]
    point = {
        name: np.mean(row.samples[k]) if k < len(row.samples) else 0.5
        for k, name in enumerate(arguments)
    }
    try:
        steps = dl.parse(f"{spelling}({', '.join(arguments)})").trace(point)
    except UnsupportedError:  # it has no derivative by some of its arguments
        return
    for mathematics in re.findall(r"\$(.*?)\$", latex(steps)):
        if r"\bmod" not in mathematics:  # LaTeX's own, and not matplotlib's
            PARSER.parse(f"${mathematics}$")


def drawn(monkeypatch: pytest.MonkeyPatch, steps: Any) -> list[Any]:
    """Return the texts of all pages."""
    figures = []
    finish = _Sheet.finish

    def watched(sheet: Any) -> None:
        figures.append(sheet.figure)
        finish(sheet)

    monkeypatch.setattr(_Sheet, "finish", watched)
    assert pdf(steps).startswith(b"%PDF")
    return [text for figure in figures for text in figure.texts]


def test_a_pdf_has_mathematics_that_stays_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    f = dl.parse("x*sin(x*y)/sqrt(x^2 + exp(-y))*max(x, y)^0.3")
    texts = drawn(monkeypatch, f.trace({"x": 2, "y": 1}))
    shown = [text.get_text() for text in texts]
    assert r"$\dot{v}_{1} = \dot{v}_{-1} \times v_{0} + \dot{v}_{0} \times v_{-1}$" in shown
    assert not any("*" in text for text in shown if text.startswith("$"))
    for text in texts:
        box = text.get_window_extent()
        page = text.get_figure().bbox
        assert page.x0 <= box.x0 <= box.x1 <= page.x1
        assert page.y0 <= box.y0 <= box.y1 <= page.y1


def test_columns_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long formulas make the letters of a table smaller."""
    wide = dl.parse("where(x*y > 1, atan2(x, y)*hypot(x, y)^0.3, lgamma(x*y))*x^y")
    rows: dict[tuple[int, float], list[Any]] = {}
    for text in drawn(monkeypatch, wide.trace({"x": 2, "y": 1})):
        rows.setdefault((id(text.get_figure()), text.get_position()[1]), []).append(text)
    for row in rows.values():
        boxes = sorted((text.get_window_extent() for text in row), key=lambda box: box.x0)
        for left, right in pairwise(boxes):
            assert left.x1 <= right.x0 + 1


def test_text_of_users_is_no_mathematics(monkeypatch: pytest.MonkeyPatch) -> None:
    f = dl.parse("x # $\\frac{1}{2}$")
    shown = [text for text in drawn(monkeypatch, f.trace({"x": 2})) if "#" in text.get_text()]
    assert not any(text.get_parse_math() for text in shown)
    many = dl.parse("\n".join(["y0 = x", *(f"y{k} = sin(y{k - 1})" for k in range(1, 80)), "y79"]))
    assert any("more steps" in text.get_text() for text in drawn(monkeypatch, many.trace({"x": 2})))
