"""A comparison over a domain as Markdown."""

from __future__ import annotations

from difflab.lab.domain.record import DomainComparison
from difflab.report.domain.view import view
from difflab.report.markdown import block, labelled, literal, table

__all__ = ["markdown"]


def markdown(result: DomainComparison) -> str:
    """Return a comparison over a domain as Markdown, with the user's text escaped."""
    shown = view(result)
    lines = ["### Over a domain", "", block(shown.expression), ""]
    lines += [*labelled(shown.facts), "", table(shown.table)]
    if shown.notes:
        lines.append("")
        lines += [f"- {literal(name)}: {literal(message)}" for name, message in shown.notes]
    if shown.sentence:
        lines += ["", f"**{literal(shown.sentence)}**"]
    return "\n".join(lines) + "\n"
