r"""Parts of LaTeX documents, with the text escaped.

The notation of traces and headings is Unicode (v̄₋₁, ∂y/∂x, µs); it becomes mathematics that
every LaTeX engine reads without a further package.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from difflab.core.table import Table

_ESCAPED = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "-": "{-}",  # two of them are not a dash
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    '"': r"\textquotedbl{}",
    "–": r"\textendash{}",
    "…": r"\dots{}",
}
SIGNS = {
    "−": "-",
    "×": r"\times",
    "·": r"\cdot",
    "∂": r"\partial",
    "√": r"\surd",
    "∞": r"\infty",
    "≤": r"\leq",
    "≥": r"\geq",
    "≠": r"\neq",
    "→": r"\to",
    "Σ": r"\Sigma",
    "∏": r"\prod",
    "∑": r"\sum",
    "π": r"\pi",
    "σ": r"\sigma",
    "µ": r"\mu",
    "μ": r"\mu",
    "°": r"^{\circ}",
}
ACCENTS = {"\u0304": "bar", "\u0305": "bar", "\u0307": "dot"}
SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉₋₊"
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ᵀ"
_ACCENT = f"[{''.join(ACCENTS)}]"
_SCRIPT = f"[{SUBSCRIPTS}]+|[{SUPERSCRIPTS}]+"
_ACCENTED = re.compile(rf"([^\W_])({_ACCENT})({_SCRIPT})?")
_SCRIPTED = re.compile(rf"([^\W_)]?)({_SCRIPT})")
_PART = re.compile(rf"{_ACCENTED.pattern}|{_SCRIPTED.pattern}|(.|\n)")


def literal(text: str) -> str:
    r"""Return text escaped for LaTeX.

    Examples
    --------
    >>> print(literal("v̄₋₁ = v̄₂ × x_1"))
    $\bar{v}_{-1}$ = $\bar{v}_{2}$ $\times$ x\_1
    """
    parts = map(_sign, _PART.finditer(unicodedata.normalize("NFD", text)))
    return unicodedata.normalize("NFC", "".join(parts))


def _sign(part: re.Match[str]) -> str:
    letter, accent, below, base, script, other = part.groups()
    if other is not None:
        return f"${SIGNS[other]}$" if other in SIGNS else _ESCAPED.get(other, other)
    if accent:
        return rf"$\{ACCENTS[accent]}{{{letter}}}{_raised(below or '')}$"
    return f"${base}{_raised(script)}$"


def _raised(script: str) -> str:
    """Return a subscript or a superscript in the notation of LaTeX."""
    if not script:
        return ""
    plain = unicodedata.normalize("NFKD", script).replace("−", "-")
    return f"{'^' if script[0] in SUPERSCRIPTS else '_'}{{{plain}}}"


def labelled(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return labelled texts as lines of a tabular of two columns."""
    rows = [rf"  {literal(label)} & {literal(text)} \\" for label, text in pairs]
    return [r"\begin{tabular}{ll}", *rows, r"\end{tabular}"]


def table(content: Table) -> str:
    """Return a table as a tabular, whose headings a line separates from the rows."""
    columns = "".join("r" if column.right else "l" for column in content.columns)
    lines = [content.headings, *([cell.text for cell in line] for line in content.lines())]
    head, *rows = (rf"  {' & '.join(map(literal, texts))} \\" for texts in lines)
    return "\n".join(
        [rf"\begin{{tabular}}{{{columns}}}", head, r"  \hline", *rows, r"\end{tabular}"]
    )
