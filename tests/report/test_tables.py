"""One table in every format: the same cells, aligned, escaped, and fitted to the terminal."""

import pytest

from difflab.core.table import Cell, Column, Table, csv_text, facts, guarded
from difflab.core.wording import count, seconds
from difflab.report import html, markdown
from difflab.report.terminal import draw

COLUMNS = (
    Column("method", wrap=True, widest=12),
    Column("verdict"),
    Column("operations", right=True, format=count),
    Column("call", right=True, format=seconds),
)
ROWS = [
    (Cell("reverse", "automatic"), Cell("agree", "agree"), 4, 2.5e-6),
    (Cell("a|<b>", "numeric"), Cell("disagree", "disagree"), None, None),
]
TABLE = Table(COLUMNS, ROWS)


def test_every_format_shows_the_same_cells() -> None:
    lines = [[cell.text for cell in line] for line in TABLE.lines()]
    assert lines[0] == ["reverse", "agree", "4", "2.50 µs"]
    plain = [line.split() for line in TABLE.text().splitlines()]
    terminal = [line.split() for line in draw([TABLE]).splitlines()]
    assert plain[0] == terminal[0] == TABLE.headings
    assert plain[1:] == terminal[2:] == [" ".join(line).split() for line in lines]
    assert [markdown.literal(text) for text in lines[1]] == [
        text.strip() for text in markdown.table(TABLE).splitlines()[3].strip("| ").split(" | ")
    ]


def test_figures_are_aligned_on_the_right() -> None:
    assert markdown.table(TABLE).splitlines()[1] == "|---|---|---:|---:|"
    ends = {line.index(text) + len(text) for line, text in zip(
        draw([TABLE]).splitlines()[2:], ("4", "–"), strict=True
    )}  # fmt: skip
    assert len(ends) == 1
    assert '<td class="figure">2.50 µs</td>' in html.table(TABLE)


def test_the_kind_of_a_cell_is_its_class_and_its_colour() -> None:
    page = html.table(TABLE)
    assert '<td class="automatic">reverse</td><td class="agree">agree</td>' in page
    assert '<td class="numeric">a|&lt;b&gt;</td>' in page
    assert "\x1b[32magree" in draw([TABLE], colour=True)
    assert "\x1b[" not in draw([TABLE])


@pytest.mark.parametrize("width", [12, 20, 36, 60])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    found = draw([TABLE, facts([("at", "x = " + "1" * 90)]), "word " * 30], width=width)
    assert max(map(len, found.splitlines())) <= width
    assert found.replace("\n", "").replace(" ", "").count("1" * 90) == 1


def test_a_table_that_is_too_wide_loses_its_gaps_and_then_becomes_a_list() -> None:
    table = Table(COLUMNS, ROWS, gap=2)
    narrowest = min(w for w in range(10, 80) if draw([table], width=w).startswith("method"))
    assert draw([table], width=narrowest - 1).startswith("reverse\n  verdict")
    assert max(map(len, draw([table], width=narrowest).splitlines())) <= narrowest


def test_ascii_terminals_get_ascii() -> None:
    assert draw([TABLE, "v̄₁ ≤ ½"], plain=True).replace("─", "").isascii()


def test_a_cell_of_a_spreadsheet_is_no_formula_and_is_guarded_once() -> None:
    for text in ("=1+1", "+1", "-1", "@A1", "|cmd", " =1", "＝1"):
        assert guarded(text) == guarded(guarded(text)) == f"'{text}"
    assert csv_text([[guarded("-x"), None, 0.5]]) == "'-x,,0.5\n"
