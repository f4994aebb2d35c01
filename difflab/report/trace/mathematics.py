r"""The formulas of a trace as mathematics, in LaTeX and on the pages of a PDF.

Their notation, such as ``v̄₃ × cos v₀``, becomes ``\bar{v}_{3} \times \cos v_{0}``, which LaTeX
reads without a package, and matplotlib, which sets the pages, as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING

from difflab.core.table import Table
from difflab.errors import DifflabError
from difflab.language import parse
from difflab.language.printers.latex import latex, latex_name
from difflab.report import latex as tex
from difflab.report.canvas import FAINT, INK, style
from difflab.report.summary import Section, Summary

if TYPE_CHECKING:
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure


_TOKEN = re.compile(
    rf"(?P<name>[^\W\d][\w{''.join(tex.ACCENTS)}₋₊⁻⁺]*)|(?P<number>\d+(?:,\d{3})*(?:\.\d+)?(?:e[+−-]?\d+)?)"
    r"|(?P<space>\s+)|(?P<sign>.)"
)
_FUNCTIONS = {
    *("arccos", "arcsin", "arctan", "cos", "cosh", "cot", "coth", "csc", "exp", "ln", "log"),
    *("max", "min", "sec", "sin", "sinh", "tan", "tanh"),
}
_WORDS = {
    **{word: rf"\ \mathrm{{{word}}}\ " for word in ("and", "else", "if", "or")},
    **{word: rf"\mathrm{{{word}}}\ " for word in ("not", "of", "spread")},
}
_MATH = {
    **tex.SIGNS,
    **dict.fromkeys("#%&$_{}", ""),
    "\\": r"\backslash ",
    "~": r"\sim ",
    "…": r"\ldots ",
    "–": "-",
    '"': "''",
    "√": r"\surd ",
}
_NOTE = ("…", "use --format")


def formula(text: str) -> str:
    r"""Return a formula of a trace in LaTeX, for math mode.

    Examples
    --------
    >>> print(formula("v̄₋₁ = v̄₋₁ + v̄₂ ∂v₂/∂v₋₁"))
    \bar{v}_{-1} = \bar{v}_{-1} + \bar{v}_{2} \, \partial v_{2}/\partial v_{-1}
    >>> print(formula("v₃ = √(v₁ + 1) × sin v₂² × 1e-07"))
    v_{3} = \sqrt{v_{1} + 1} \times \sin v_{2}^{2} \times 10^{-7}
    """
    tokens = [_token(match) for match in _TOKEN.finditer(unicodedata.normalize("NFD", text))]
    joined = re.sub(" +", " ", "".join(_grouped(tokens))).strip()
    return joined.replace(r"} \partial", r"} \, \partial")


def _token(match: re.Match[str]) -> str:
    text = match[0]
    if match["name"]:
        called = len(text) > 1 and match.string[match.end() :].startswith("(")
        return _name(text, called=called)
    if match["number"]:
        mantissa, _, exponent = text.partition("e")
        if not exponent:
            return text.replace(",", "{,}")
        return (
            "" if mantissa == "1" else rf"{mantissa} \cdot "
        ) + f"10^{{{int(exponent.replace('−', '-'))}}}"
    if match["space"]:
        return r"\quad " if len(text) > 1 else " "
    if text in "#%&$_{}":
        return f"\\{text}"
    sign = _MATH.get(text, text)
    return f"{sign} " if sign.startswith("\\") and sign[-1].isalpha() else sign


def _name(run: str, *, called: bool) -> str:
    """Return a letter with its accent and scripts, a function, or a word."""
    accent = next((tex.ACCENTS[c] for c in run if c in tex.ACCENTS), "")
    below, above = (
        unicodedata.normalize("NFKD", "".join(c for c in run if c in scripts)).replace("−", "-")
        for scripts in (tex.SUBSCRIPTS, tex.SUPERSCRIPTS)
    )
    others = {*tex.ACCENTS, *tex.SUBSCRIPTS, *tex.SUPERSCRIPTS}
    base = unicodedata.normalize("NFC", "".join(c for c in run if c not in others))
    if base in _WORDS:
        return _WORDS[base]
    if base in _FUNCTIONS:
        shown = f"\\{base} "
    elif called:  # a 2 in the name of a function is no subscript
        shown = f"\\mathrm{{{base}}}".replace("_", r"\_")
    else:
        shown = latex_name(base) if base else ""
    if accent:
        shown = rf"\{accent}{{{shown}}}"
    scripts = "_" * bool(below) + f"{{{below}}}" * bool(below)
    scripts += f"^{{{above}}}" * bool(above)
    return shown + scripts + " " * (shown.startswith("\\") and shown[-1].isalpha() and not scripts)


def _grouped(tokens: list[str]) -> Iterator[str]:
    r"""Yield the tokens, with the operand of a root or the exponent of a power in braces."""
    position = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        if token not in (r"\surd ", "^") or position == len(tokens):
            yield token
            continue
        end = _end(tokens, position)
        inner = tokens[position:end]
        if inner[0] == "(" and inner[-1] == ")":
            inner = inner[1:-1]
        begin = r"\sqrt{" if token == r"\surd " else "^{"
        yield begin + "".join(_grouped(inner)).strip() + "}"
        position = end


def _end(tokens: list[str], position: int) -> int:
    """Return the end of the bracket, or of the token, at a position."""
    depth = 0
    for end in range(position, len(tokens)):
        depth += (tokens[end] == "(") - (tokens[end] == ")")
        if depth <= 0:
            return end + 1
    return len(tokens)


@dataclass(frozen=True)
class _Block:
    """A table with its title, or a title alone.

    Attributes
    ----------
    title : str
        Empty for none.
    rows : list of rows
        For each cell its text, and its mathematics in LaTeX; empty if it is text.
    rights : tuple of bool
        Whether each column is aligned on the right; the columns that it does not name are not.
    headed : bool
        Whether the first row has the headings.
    """

    title: str = ""
    rows: list[list[tuple[str, str]]] = field(default_factory=list)
    rights: tuple[bool, ...] = ()
    headed: bool = False


def _heading(text: str) -> str:
    """Return the mathematics of the traced function; empty if it is no short expression."""
    try:
        markup = latex(parse(text))
    except DifflabError:
        return ""
    # The others need a package of LaTeX.
    return "" if re.search(r"\\(begin|text|operatorname|ge|le)\b", markup) else markup


def _is_formula(heading: str, text: str) -> bool:
    return heading != "call" and bool(text) and not text.startswith(_NOTE)


def _cells(table: Table) -> Iterator[list[tuple[str, str]]]:
    """Yield the rows of a table, a text and its mathematics for each cell."""
    for line in table.lines():
        yield [
            (cell.text, formula(cell.text) if _is_formula(column.heading, cell.text) else "")
            for column, cell in zip(table.columns, line, strict=True)
        ]


def _facts(shown: Summary) -> Iterator[list[tuple[str, str]]]:
    yield [("f", "f"), (shown.expression, _heading(shown.expression))]
    for label, text in shown.facts:
        yield [(label, ""), (text, formula(text))]


def _results(section: Section) -> Iterator[list[tuple[str, str]]]:
    for label, text in section.results:
        yield [
            (label, formula(label) if label != "…" else ""),
            (text, formula(text) if label != "…" else ""),
        ]


def _blocks(shown: Summary) -> Iterator[_Block]:
    """Return the tables of a trace with their titles, formulas as mathematics, and the remarks."""
    yield _Block(rows=list(_facts(shown)))
    for section in shown.sections:
        table = section.table
        rights = tuple(column.right for column in table.columns)
        headings = [(heading, "") for heading in table.headings]
        yield _Block(section.title, [headings, *_cells(table)], rights, headed=True)
        if section.results:
            yield _Block(rows=list(_results(section)))
    yield from map(_Block, shown.remarks)


def as_latex(shown: Summary) -> str:
    """Return the content of a trace as LaTeX, a tabular for each of its tables."""
    return "\n\n".join(part for block in _blocks(shown) for part in _written(block)) + "\n"


def _written(block: _Block) -> Iterator[str]:
    """Return the title and the tabular of a block."""
    if block.title:
        yield _sentence(block.title)
    if block.rows:
        rows = [rf"  {' & '.join(_inline(*cell) for cell in row)} \\" for row in block.rows]
        rows[1:1] = [r"  \hline"] * block.headed
        columns = "".join("r" if right else "l" for right in block.rights or (False, False))
        yield "\n".join([rf"\begin{{tabular}}{{{columns}}}", *rows, r"\end{tabular}"])


def _inline(text: str, mathematics: str) -> str:
    return f"${mathematics}$" if mathematics else tex.literal(text)


def _sentence(text: str) -> str:
    """Return a title, in which the formulas are mathematics: ``tangents v̇ = ∂v/∂x, …``."""
    match = re.search(r"\S+ = \S+(?=,)", text)
    if match is None:
        return tex.literal(text)
    before, behind = text[: match.start()], text[match.end() :]
    return f"{tex.literal(before)}${formula(match[0])}${tex.literal(behind)}"


# --- on pages of a PDF ------------------------------------------------------------------------

A4 = (8.27, 11.69)
"""Width and height of a page in inches."""
_MARGIN = 0.65
_LINE = 0.21
_GAP = 0.22
_SIZE, _SMALLEST = 9.5, 5.5


def as_pdf(shown: Summary) -> bytes:
    """Return the content of a trace on pages of a PDF."""
    return _pages(f"{shown.heading} f", map(_without_figures, _blocks(shown)))


def _without_figures(block: _Block) -> _Block:
    """Return a block without mathematics in its figures, which takes matplotlib long."""
    if not block.rights:
        return block
    rows = [
        [
            (text, "" if right else shown)
            for (text, shown), right in zip(row, block.rights, strict=True)
        ]
        for row in block.rows
    ]
    return replace(block, rows=rows)


def _pages(title: str, blocks: Iterable[_Block]) -> bytes:
    """Return tables below each other on A4 pages of a PDF.

    A table that is too wide is set smaller.
    """
    from matplotlib.backends.backend_pdf import PdfPages

    buffer = BytesIO()
    with style(), PdfPages(buffer, metadata={"CreationDate": None}) as document:
        sheet = _Sheet(document)
        sheet.line(title, 13, bold=True)
        for block in blocks:
            sheet.block(block)
        sheet.finish()
    return buffer.getvalue()


class _Sheet:
    """The page that is written on, from the top."""

    def __init__(self, document: PdfPages) -> None:
        self.document = document
        self.figure = self._fresh()

    def _fresh(self) -> Figure:
        from matplotlib.figure import Figure

        self.below = _MARGIN  # inches from the top
        return Figure(figsize=A4)

    def finish(self) -> None:
        """Write the page out."""
        self.document.savefig(self.figure)  # type: ignore[no-untyped-call]

    def _space(self, height: float) -> None:
        """Begin another page unless so many inches are left."""
        if self.below + height > A4[1] - _MARGIN:
            self.finish()
            self.figure = self._fresh()

    def line(self, text: str, size: float = _SIZE, *, bold: bool = False) -> None:
        """Write a line of text, wrapped at the margin."""
        for part in wrap(text, int(0.9 * 950 / size)):
            self._space(_LINE)
            self._write(part, "", _MARGIN, size, bold=bold)
            self.below += _LINE * size / _SIZE

    def block(self, block: _Block) -> None:
        """Write a table, on as many pages as it needs."""
        self.below += _GAP
        if block.title:
            self._space(4 * _LINE)  # no title is left alone at the foot
            self.line(block.title, _SIZE + 1, bold=True)
        if not block.rows:
            return
        size, widths = self._fitted(block.rows)
        rights = (*block.rights, *(False,) * len(widths))
        for number, row in enumerate(block.rows):
            self._space(_LINE)
            left, heading = _MARGIN, block.headed and not number
            for (text, mathematics), width, right in zip(row, widths, rights, strict=False):
                at = left + width if right else left
                self._write(text, mathematics, at, size, right=right, faint=heading)
                left += width + _GAP
            self.below += _LINE

    def _fitted(self, rows: Sequence[Sequence[tuple[str, str]]]) -> tuple[float, list[float]]:
        """Return the size of the letters and the width of each column in inches."""
        columns = [max(_measured(*row[k])[2] for row in rows) for k in range(max(map(len, rows)))]
        space = A4[0] - 2 * _MARGIN - _GAP * (len(columns) - 1)
        size = max(_SIZE * min(1, space / max(sum(columns), 1e-9)), _SMALLEST)
        return size, [width * size / _SIZE for width in columns]

    def _write(
        self,
        text: str,
        mathematics: str,
        left: float,
        size: float,
        *,
        bold: bool = False,
        right: bool = False,
        faint: bool = False,
    ) -> None:
        shown, is_math, _ = _measured(text, mathematics)
        self.figure.text(
            left / A4[0],
            1 - self.below / A4[1],
            shown,
            va="baseline",
            ha="right" if right else "left",
            fontsize=size,
            fontweight="bold" if bold else "normal",
            color=FAINT if faint else INK,
            parse_math=is_math,
        )


@lru_cache(2048)
def _measured(text: str, mathematics: str) -> tuple[str, bool, float]:
    """Return a text for matplotlib, whether it is mathematics, and its width in inches.

    Mathematics that matplotlib cannot read is set as text.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=_SIZE)
    if mathematics:
        shown = f"${mathematics}$"
        try:
            width = text_to_path.mathtext_parser.parse(shown, 72, font).width
        except ValueError:
            pass
        else:
            return shown, True, float(width) / 72
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return text, False, float(width) / 72
