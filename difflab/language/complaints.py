"""What the language says about text that is not a program: one function per complaint.

Every complaint names its place and, where there is one, what to write instead. Shown pieces of
the user's text are cut, so that ten megabytes of noise still get a short message.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable

from difflab.errors import ParseError
from difflab.language.calls import CALLS
from difflab.primitives import by_spelling

__all__ = [
    "adjacent",
    "assignment",
    "behind",
    "behind_list",
    "chained",
    "comma",
    "empty",
    "expected_expression",
    "function_without_call",
    "reserved",
    "shown",
    "stray",
    "stray_list",
    "too_deep",
    "unclosed",
    "unknown_function",
    "unopened",
    "unraised",
    "wrong_count",
    "wrong_list",
]

Span = tuple[int, int]

_SHOWN = 40
_CONTROLS = {
    0: "null",
    7: "bell",
    8: "backspace",
    11: "vertical tab",
    12: "form feed",
    27: "escape",
}
_INSTEAD = {
    ".": "names hold letters, digits and _; a decimal point needs a digit beside it",
    "%": "write mod(a, b)",
    "!": "write not a, or a != b; for n! write gamma(n + 1)",
    "&": "write a and b",
    "|": "write abs(x), or a or b",
    "~": "write not a",
    "{": "write parentheses ( )",
    "}": "write parentheses ( )",
    "'": "text in quotes is not part of the language",
    '"': "text in quotes is not part of the language",
    "′": "a derivative is asked for by difflab's commands, not written in the formula",
    "\\": "write the formula as plain text, not as LaTeX",
}
_REWRITES = {
    "pow": "write a^b",
    "cot": "write 1/tan(x)",
    "sec": "write 1/cos(x)",
    "csc": "write 1/sin(x)",
    "if": "write where(condition, a, b)",
}


def shown(text: str) -> str:
    """Return a piece of the user's text, cut to what a message can hold.

    Examples
    --------
    >>> shown("a" * 50)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'
    """
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def stray(text: str, start: int) -> ParseError:
    """Complain about a character that begins no token."""
    character = text[start]
    code = ord(character)
    category = unicodedata.category(character)
    if category[0] == "C":
        known = _CONTROLS.get(code) or unicodedata.name(character, "").lower()
        message = f"control character U+{code:04X}" + (f" ({known})" if known else "")
        return ParseError(message, text=text, span=(start, start + 1), hint="remove it")
    name = "" if code < 128 else f" ({unicodedata.name(character, 'unnamed').lower()})"
    quoted = f'"{character}"' if character == "'" else f"'{character}'"
    message = f"{quoted}{name} is not part of the language"
    hint = _INSTEAD.get(character)
    return ParseError(message, text=text, span=(start, start + 1), hint=hint)


def unknown_function(text: str, span: Span) -> ParseError:
    """Complain about a call of something that is no function, naming the nearest one."""
    name = text[slice(*span)]
    message = f"unknown function '{shown(name)}'"
    nearest = _nearest(name, (*by_spelling, *CALLS))
    hint: str | None
    if name in _REWRITES:
        hint = _REWRITES[name]
    elif nearest:
        hint = f"did you mean '{nearest}'?"
    else:
        hint = None if name.startswith("_") else f"to multiply, write {shown(name)}*(…)"
    return ParseError(message, text=text, span=span, hint=hint)


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to `name`; long names are not worth the search."""
    if len(name) > _SHOWN:
        return None
    return next(iter(difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)), None)


def adjacent(text: str, left: Span, right: Span) -> ParseError:
    """Complain about two values side by side, as in ``2x``, ``2(x)`` and ``(a)(b)``."""
    tail = re.search(r"[\w.]+$|.$", text[max(left[0], left[1] - _SHOWN) : left[1]], re.DOTALL)
    last = tail[0] if tail else ""
    place = (left[1] - len(last), right[1])
    before = "(…)" if last == ")" else "x[…]" if last == "]" else last
    token = text[slice(*right)]
    after = "(…)" if token == "(" else shown(token)
    message = f"an operator is missing between '{last}' and '{shown(token)}'"
    hint = f"to multiply, write {before}*{after}"
    return ParseError(message, text=text, span=place, hint=hint)


def expected_expression(text: str, span: Span, opener: int | None) -> ParseError:
    """Complain that a value should stand here."""
    token = text[slice(*span)]
    if token == ")" and opener is None:
        return ParseError("')' closes nothing", text=text, span=span)
    if token == ")" and text[opener : span[0]].strip() == "(":
        message = "nothing between the parentheses"
    elif token == "]" and opener is not None and text[opener : span[0]].strip() == "[":
        message = "nothing between the brackets"
    elif token == "=":
        message = "'=' has no name to its left"
        hint = "write name = expression"
        return ParseError(message, text=text, span=span, hint=hint)
    elif not token.strip():
        message = "the text ends where an expression should follow"
    else:
        message = f"an expression should stand before '{shown(token)}'"
    return ParseError(message, text=text, span=span)


def unclosed(text: str, opener: int) -> ParseError:
    """Complain about a parenthesis or bracket that is never closed."""
    message = f"this '{text[opener]}' is never closed"
    return ParseError(message, text=text, span=(opener, opener + 1))


def function_without_call(text: str, span: Span, token: str) -> ParseError:
    """Complain about a function's name that stands without its parentheses."""
    name = text[slice(*span)]
    message = f"'{name}' is a function and stands here without an argument"
    if re.fullmatch(r"[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", token):
        hint = f"write {name}(x){shown(token)}"
    elif re.fullmatch(r"[\w.]+", token):
        hint = f"write {name}({shown(token)})"
    else:
        hint = f"write {name}(x); a variable needs another name"
    return ParseError(message, text=text, span=span, hint=hint)


def wrong_count(text: str, span: Span, takes: str, count: int) -> ParseError:
    """Complain about a call with too few or too many arguments."""
    name = text[span[0] :].split("(", 1)[0].strip()
    return ParseError(f"{shown(name)} takes {takes}, not {count}", text=text, span=span)


def wrong_list(text: str, span: Span, lists: str, missing: bool) -> ParseError:
    """Complain about brackets in a call, missing or too many."""
    name = shown(text[span[0] :].split("(", 1)[0].strip())
    if missing:
        hint = f"write {name}(x, [2, 3])"
        return ParseError(f"{name} needs {lists} in brackets", text=text, span=span, hint=hint)
    return ParseError(f"{name} takes no list", text=text, span=span)


def chained(text: str, span: Span) -> ParseError:
    """Complain about ``a < b < c``."""
    message = "comparisons cannot be chained"
    return ParseError(message, text=text, span=span, hint="write a < b and b < c")


def reserved(text: str, span: Span, name: str, what: str) -> ParseError:
    """Complain about giving a value to a name of the language."""
    message = f"'{name}' is {what} and cannot be given a value"
    return ParseError(message, text=text, span=span, hint="choose another name")


def unraised(text: str, span: Span) -> ParseError:
    """Complain about a raised name that is a function."""
    message = "a function cannot stand as an exponent without an argument"
    return ParseError(message, text=text, span=span, hint="write x^(…)")


def comma(text: str, span: Span) -> ParseError:
    """Complain about a comma that separates nothing."""
    message = "a comma separates the arguments of a function or the outputs in [a, b]"
    around = text[span[0] - 1 : span[0]] + text[span[1] : span[1] + 1]
    decimal = len(around) == 2 and around.isdigit()
    hint = f"write {around[0]}.{around[1]}" if decimal else "for several outputs write [a, b]"
    return ParseError(message, text=text, span=span, hint=hint)


def unopened(text: str, span: Span, opener: int | None) -> ParseError:
    """Complain about a closing parenthesis or bracket that fits no opening one."""
    token = text[slice(*span)]
    if opener is None:
        message = f"'{token}' closes nothing"
    else:
        message = f"'{token}' cannot close the '{text[opener]}' at character {opener + 1}"
    return ParseError(message, text=text, span=span)


def behind_list(text: str, span: Span) -> ParseError:
    """Complain about something behind the list in a call."""
    message = "a list of integers comes last in a call"
    return ParseError(message, text=text, span=span, hint="close the parenthesis behind it: )")


def stray_list(text: str, span: Span) -> ParseError:
    """Complain about a list where none can stand."""
    message = "a list can only be the last line, where it holds the outputs"
    hint = "an array input is declared by a line such as x: [3]"
    return ParseError(message, text=text, span=span, hint=hint)


def empty(text: str) -> ParseError:
    """Complain about a program without an expression."""
    problem = "there is no expression to compute" if text.strip() else "the text is empty"
    hint = "write an expression, such as ln(x1) + x1*x2 - sin(x2)"
    return ParseError(problem, text=text, span=(len(text), len(text)), hint=hint)


def assignment(text: str, span: Span) -> ParseError:
    """Complain about ``=`` and ``:`` elsewhere than behind a statement's first name."""
    if text[slice(*span)] == ":":
        message = "a ':' declares an input or cuts a slice, and cannot stand here"
        hint = "declare an input on a line of its own: x: [100]"
    else:
        message = "only a name at the start of a line can be given a value"
        hint = "to compare, write =="
    return ParseError(message, text=text, span=span, hint=hint)


def behind(text: str, span: Span) -> ParseError:
    """Complain about something behind a complete statement."""
    message = f"the line is complete before '{shown(text[slice(*span)])}'"
    return ParseError(message, text=text, span=span, hint="begin a new line, or write ;")


def too_deep(text: str, start: int, limit: int) -> ParseError:
    """Complain about parentheses without end."""
    message = f"more than {limit:,} parentheses are open here"
    return ParseError(message, text=text, span=(start, start + 1))
