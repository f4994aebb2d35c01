"""Markdown: user text neither formats, nor breaks the table, nor runs."""

import re

from difflab.report.comparison.formats import view


def test_the_table_has_a_row_per_method(seed):
    lines = view(seed).markdown().splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 7
    assert len({line.count("|") for line in table}) == 1
    assert "| symbolic | agree | 0 | 0 | 8/8 | 4 | 51.2 ms | 2.31 µs |" in table


def test_hostile_text_stays_text(hostile):
    text = view(hostile).markdown()
    outside = re.sub(r"```.*?```", "", text, flags=re.S)
    assert "<script" not in outside
    assert "<img" not in outside
    assert "\\*bold\\*" in outside
    assert "\x1b" not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1


def test_the_fence_cannot_be_closed_from_inside(seed):
    seed["expression"]["text"] = "x # ```` <script>"
    assert "`````\nx # ```` <script>\n`````" in view(seed).markdown()
