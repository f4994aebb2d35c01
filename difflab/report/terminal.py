"""Texts and tables that fit a terminal, the styles of cells, and the displays of results."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from io import StringIO
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypedDict

from difflab.core.table import Cell, Table
from difflab.core.wording import joined
from difflab.errors import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text


SHOWN_EXPRESSION = 280
"""The characters of a formula that a report shows."""


class FamilyStyle(NamedTuple):
    """The style of a family of methods: colour and marker in figures, colour in terminals."""

    colour: str
    marker: str
    terminal: str


# The palette of Okabe and Ito, distinct under the common forms of colour blindness. Every family
# also has its own marker, so that no information depends on colour alone.
FAMILIES = {
    "symbolic": FamilyStyle("#CC79A7", "D", "magenta"),
    "numeric": FamilyStyle("#D55E00", "^", "yellow"),
    "automatic": FamilyStyle("#0072B2", "o", "blue"),
}
PLAIN = FamilyStyle("#777777", "s", "")

STYLES: Mapping[str, str] = {
    **{name: family.terminal for name, family in FAMILIES.items()},
    "agree": "green",
    "disagree": "bold red",
    "convention": "cyan",
    "declared": "cyan",
    "inconclusive": "yellow",
    "unsupported": "dim",
    "timeout": "yellow",
    "failed": "red",
    "label": "bold",
    "note": "dim",
    "installed": "green",
    "missing": "dim",
    "broken": "red",
    "absent": "yellow",
}
"""The style of each kind of cell on the terminal."""


def clean(text: str) -> str:
    r"""Return `text` on one line, with control characters escaped.

    Examples
    --------
    >>> clean("a = 1\n a*x  # \x1b[2J")
    'a = 1; a*x  # \\x1b[2J'
    """
    return printable(joined(text))


def shorten(text: str, width: int) -> str:
    """Return `text` in at most `width` characters: whole, or its beginning and end.

    Examples
    --------
    >>> shorten("abcdefghijkl", 9)
    'abcd … kl'
    """
    if len(text) <= width:
        return text
    tail = max((width - 3) // 3, 0)
    return text[: width - 3 - tail] + " … " + text[len(text) - tail :]


# Signs of formulas become text with the same meaning in difflab's language.
_SIGNS = str.maketrans(
    {"–": "-", "—": "-", "−": "-", "─": "-", "━": "-", "…": "...", "·": "*", "×": "*", "÷": "/"}
    | {"√": "sqrt", "∛": "cbrt", "π": "pi", "∞": "inf", "∂": "d", "∇": "grad ", "µ": "u"}
    | {"≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "→": "->", "′": "'", "’": "'", "“": '"'}
    | {"”": '"', "∧": "and", "∨": "or", "¬": "not", "⌊": "floor(", "⌋": ")", "⌈": "ceil("}
    | {"⌉": ")", "ᵀ": "^T", "ʸ": "^y", "°": " degrees", "½": "1/2"}
)
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁽⁾ⁿ]+")
_BASELINE = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁽⁾ⁿ₀₁₂₃₄₅₆₇₈₉₋", "0123456789-()n0123456789-")
_ACCENTED = re.compile("(?P<letter>\\w)(?P<mark>[\u0304\u0307])(?P<rest>[\\w₋]*)")
_MARKS = {"\u0304": "_bar", "\u0307": "_dot"}


def ascii_text(text: str) -> str:
    r"""Return an ASCII approximation of `text`.

    Examples
    --------
    >>> ascii_text("v₋₁ = x², v̄₁ ≤ 1.5 µs")
    'v-1 = x^2, v1_bar <= 1.5 us'
    >>> ascii_text("ẋ1 · α"), ascii_text("naïve"), ascii_text("字")
    ('x1_dot * alpha', 'naive', '\\u5b57')
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFD", text)
    text = _ACCENTED.sub(lambda m: f"{m['letter']}{m['rest']}{_MARKS[m['mark']]}", text)
    text = _SUPERSCRIPTS.sub(lambda m: f"^{m[0].translate(_BASELINE)}", text).translate(_BASELINE)
    return "".join(c if c.isascii() else _spelled(c) for c in text.translate(_SIGNS))


def _spelled(character: str) -> str:
    """Return the name of a Greek letter, nothing for an accent, an escape for others."""
    if unicodedata.combining(character):
        return ""
    match unicodedata.name(character, "").split():
        case ["GREEK", "SMALL" | "CAPITAL" as size, "LETTER", name]:
            return name.lower() if size == "SMALL" else name.capitalize()
    return character.encode("ascii", "backslashreplace").decode("ascii")


Part = str | Cell | Table | Sequence["Part"]
"""A text, a table, or parts without an empty line between them."""

WIDTH = 80
"""The width of a terminal if unknown."""

_READABLE = 12
"""The least width of a column whose text is wrapped."""

_WORD = 16
"""The longest word that such a column keeps whole."""


class Screen(TypedDict, total=False):
    """The keyword arguments by which tables are fitted to a terminal."""

    colour: bool
    width: int
    plain: bool


def draw(
    parts: Sequence[Part], *, colour: bool = False, width: int = WIDTH, plain: bool = False
) -> str:
    """Return parts as text, separated by empty lines.

    No line is wider than `width`: a wider table becomes a list of its rows.

    Parameters
    ----------
    parts : sequence of Part
        The texts and tables.
    colour : bool
        Whether to colour the text with terminal sequences.
    width : int
        Columns to fill at most.
    plain : bool
        Whether to use ASCII only.
    """
    buffer = StringIO()
    console = _console(buffer, colour, width)
    for index, part in enumerate(parts):
        if index:
            console.print()
        for item in _rendered(part, width, plain):
            console.print(item)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _console(buffer: StringIO, colour: bool, width: int) -> Console:
    from rich.console import Console

    # The caller has determined the terminal's properties. Rich must not detect them again: in a
    # notebook it would display the text in addition to writing it.
    return Console(
        file=buffer,
        width=width,
        force_terminal=colour,
        force_jupyter=False,
        force_interactive=False,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )


def _rendered(part: Part, width: int, plain: bool) -> list[RenderableType]:
    """Return the renderable of rich for a part."""
    if isinstance(part, str):
        part = Cell(part)
    if isinstance(part, Cell):
        return [_text(_ascii(part) if plain else part)]
    if not isinstance(part, Table):
        return [item for inner in part for item in _rendered(inner, width, plain)]
    if plain:
        columns = [replace(each, heading=ascii_text(each.heading)) for each in part.columns]
        part = replace(part, columns=columns, rows=[[*map(_ascii, line)] for line in part.lines()])
    gap = part.gap
    while gap and not _fits(part, gap, width):
        gap -= 1
    return [_grid(part, gap)] if _fits(part, gap, width) else _listed(part, width)


def _ascii(cell: Cell) -> Cell:
    return Cell(ascii_text(cell.text), cell.kind)


def _text(cell: Cell) -> Text:
    from rich.text import Text

    return Text(cell.text, style=STYLES.get(cell.kind, ""), overflow="fold")


def _fits(table: Table, gap: int, width: int) -> bool:
    """Whether unwrapped columns fit whole and wrapped ones get a readable width."""
    from rich.cells import cell_len

    needed = 0
    texts = [table.headings, *([cell.text for cell in line] for line in table.lines())]
    for column, cells in zip(table.columns, zip(*texts, strict=True), strict=True):
        widest = max(cell_len(line) for text in cells for line in text.split("\n"))
        if column.widest is not None:
            widest = min(widest, column.widest)
        words = max((len(word) for text in cells for word in text.split()), default=0)
        needed += min(widest, max(_READABLE, min(words, _WORD))) if column.wrap else widest
    ruled = table.headed and table.ruled
    return needed + (gap + ruled) * (len(table.columns) - 1) <= width


def _grid(table: Table, gap: int) -> RenderableType:
    from rich import box
    from rich.table import Table as Grid

    grid = Grid(
        box=box.SIMPLE_HEAD if table.headed and table.ruled else None,
        padding=(0, gap, 0, 0),
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
        show_header=table.headed,
    )
    for column in table.columns:
        # Only texts are wrapped: a truncated number would be another number.
        grid.add_column(
            column.heading,
            justify="right" if column.right else "left",
            no_wrap=not column.wrap,
            overflow="fold",
            max_width=column.widest,
        )
    for line in table.lines():
        grid.add_row(*map(_text, line))
    return grid


def _listed(table: Table, width: int) -> list[RenderableType]:
    """Return the rows as a list: the first cell, then a line for each other cell."""
    from rich.table import Table as Grid

    parts: list[RenderableType] = []
    for first, *others in table.lines():
        if parts and table.headed:
            parts.append("")
        parts.append(_text(Cell(first.text, first.kind or "label")))
        grid = Grid.grid(padding=(0, 1, 0, 0))
        grid.add_column(overflow="fold", max_width=width // 2)
        grid.add_column(overflow="fold")
        for heading, cell in zip(table.headings[1:], others, strict=True):
            if cell.text:
                grid.add_row(_text(Cell(f"  {heading}", "note")), _text(cell))
        parts.append(grid)
    return parts


_WRITERS = {"md": "markdown", "html": "page"}
"""The reports that have another name than their format."""


def report_of(result: Any, form: str, reports: Any, **screen: Any) -> Any:
    """Return a report by a function of a module of reports, else by its `view` of the result."""
    name = _WRITERS.get(form, form)
    own = getattr(reports, name, None)
    return getattr(reports.view(result), name)(**screen) if own is None else own(result, **screen)


class Displayed:
    """A dataclass whose `repr` is its table, shown as HTML as the result of a notebook's cell."""

    _reports: ClassVar[Any]
    """The module of its reports."""

    @classmethod
    def of(cls, record: Any) -> Self:
        """Return a record of the lab with a display."""
        return cls(**{item.name: getattr(record, item.name) for item in fields(record)})

    def table(self, *, width: int = WIDTH) -> str:
        """Return the table that ``difflab compare`` prints."""
        return str(report_of(self, "table", self._reports, width=width))

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks display."""
        return str(report_of(self, "fragment", self._reports))
