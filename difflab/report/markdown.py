"""Parts of Markdown documents, with the text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from difflab.core.table import Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$])")


def literal(text: str) -> str:
    """Return text escaped for Markdown."""
    return _SPECIAL.sub(r"\\\1", escape(text, quote=False))


def labelled(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return labelled texts as items of a list."""
    return [f"- {literal(f'{label}: {text}' if label else text)}" for label, text in pairs]


def table(content: Table) -> str:
    """Return a table."""
    rules = "|".join("---:" if column.right else "---" for column in content.columns)
    lines = [content.headings, *([cell.text for cell in line] for line in content.lines())]
    head, *rows = (f"| {' | '.join(map(literal, texts))} |" for texts in lines)
    return "\n".join([head, f"|{rules}|", *rows])


def block(text: str) -> str:
    """Return text as a code block, with a fence that the text does not contain."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
