"""A comparison as LaTeX, for a paper."""

from __future__ import annotations

from typing import Any

from difflab.report.comparison.view import view
from difflab.report.latex import labelled, literal, table

__all__ = ["latex"]


def latex(comparison: Any) -> str:
    """Return a comparison as LaTeX: the facts, the table and the notes, with the text escaped.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.
    """
    shown = view(comparison)
    facts = [("f", shown.expression), *shown.facts]
    paragraphs = ["\n".join(labelled(facts)), table(shown.table)]
    paragraphs += [rf"{literal(name)}: {literal(message)}" for name, message in shown.notes]
    if shown.sentence:
        paragraphs.append(literal(shown.sentence))
    return "\n\n".join(paragraphs) + "\n"
