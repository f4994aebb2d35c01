"""A comparison as Markdown, for a pull request or a notebook."""

from __future__ import annotations

from typing import Any

from difflab.report.comparison.view import view
from difflab.report.markdown import block, labelled, literal, table

__all__ = ["markdown"]


def markdown(comparison: Any) -> str:
    """Return a comparison as Markdown, with the user's text escaped.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.
    """
    shown = view(comparison)
    lines = [f"### {shown.derivative_name.capitalize()} of", "", block(shown.expression), ""]
    lines += [*labelled(shown.facts), "", table(shown.table)]
    if shown.notes:
        lines.append("")
        lines += [f"- {literal(name)}: {literal(message)}" for name, message in shown.notes]
    if shown.sentence:
        lines += ["", f"**{literal(shown.sentence)}**"]
    return "\n".join(lines) + "\n"
