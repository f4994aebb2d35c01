"""A comparison as Markdown, for a pull request or a notebook."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from difflab.report.comparison.view import view

__all__ = ["block", "cells", "literal", "markdown"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$])")


def markdown(comparison: Any) -> str:
    """Return a comparison as Markdown, with the user's text escaped.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.
    """
    shown = view(comparison)
    lines = [f"### {shown.derivative_name.capitalize()} of", "", block(shown.expression), ""]
    lines += [f"- point: {literal(shown.point)}{' (chosen)' if shown.chosen else ''}"]
    lines += [f"- value: {literal(shown.value)}"]
    lines += [f"- {literal(entry)}" for entry in shown.entries]
    lines += [f"- referee: {literal(shown.referee)}", ""]
    lines += [cells(shown.headings), "|---|---|" + "---:|" * (len(shown.headings) - 2)]
    lines += [cells(row.cells) for row in shown.rows]
    if shown.notes:
        lines.append("")
        lines += [f"- {literal(name)}: {literal(message)}" for name, message in shown.notes]
    if shown.sentence:
        lines += ["", f"**{literal(shown.sentence)}**"]
    return "\n".join(lines) + "\n"


def literal(text: str) -> str:
    """Return text escaped for Markdown."""
    return _SPECIAL.sub(r"\\\1", escape(text, quote=False))


def cells(texts: Sequence[str]) -> str:
    """Return one row of a table."""
    return "| " + " | ".join(literal(text) for text in texts) + " |"


def block(text: str) -> str:
    """Return text as a code block, with a fence that the text does not contain."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
