"""Locations in a text are counted as editors count them: lines and columns from 1."""

from __future__ import annotations

import pytest

from difflab.core.place import SourceLocation


@pytest.mark.parametrize(
    ("text", "span", "shown"),
    [
        ("x+1", (0, 1), "column 1"),
        ("x+1", (2, 3), "column 3"),
        ("a = 1\nb+c", (6, 7), "line 2, column 1"),
        ("a = 1\nb+c", (8, 9), "line 2, column 3"),
        ("a = 1\n\nb", (4, 5), "line 1, column 5"),
    ],
)
def test_lines_and_columns(text, span, shown):
    assert str(SourceLocation(text, span)) == shown
