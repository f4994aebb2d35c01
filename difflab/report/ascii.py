"""Replacement of the non-ASCII characters of reports and formulas by ASCII."""

from __future__ import annotations

import re
import unicodedata

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
