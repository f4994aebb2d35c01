"""Syntax errors of the language: one function per error.

Every error marks its span and, where possible, suggests a correction. Quoted user text is
truncated, so that ten megabytes of noise still get a short message.
"""

from __future__ import annotations

import re
import unicodedata

from difflab.core.wording import did_you_mean
from difflab.errors import ParseError
from difflab.language.calls import CALLS
from difflab.primitives import by_spelling

TextSpan = tuple[int, int]
"""Start and end of a piece of the text, as indices of characters."""

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
    ".": "names contain letters, digits and _; a decimal point needs a digit beside it",
    "%": "write mod(a, b)",
    "!": "write not a, or a != b; for n! write gamma(n + 1)",
    "&": "write a and b",
    "|": "write abs(x), or a or b",
    "~": "write not a",
    "{": "write parentheses ( )",
    "}": "write parentheses ( )",
    "'": "text in quotes is not part of the language",
    '"': "text in quotes is not part of the language",
    "′": "derivatives are computed by difflab's commands, not written in the formula",
    "\\": "write the formula as plain text, not as LaTeX",
}
_REWRITES = {
    "pow": "write a^b",
    "power": "write a^b",
    "if": "write where(condition, a, b)",
    "integral": "difflab differentiates; it has no integrals",
    "integrate": "difflab differentiates; it has no integrals",
    "diff": "derivatives are computed by difflab's commands, not written in the formula",
    "derivative": "derivatives are computed by difflab's commands, not written in the formula",
}
_DEFINITION = re.compile(r"\s*\(([^()=]*)\)\s*=(?!=)")


def shown(text: str) -> str:
    """Return a piece of the user's text, truncated to the length that a message allows.

    Examples
    --------
    >>> shown("a" * 50)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'
    """
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def stray(text: str, start: int) -> ParseError:
    """Return the error for a character that begins no token."""
    character = text[start]
    code = ord(character)
    category = unicodedata.category(character)
    if category[0] == "C":
        label = _CONTROLS.get(code) or unicodedata.name(character, "").lower()
        message = f"control character U+{code:04X}" + (f" ({label})" if label else "")
        return ParseError(message, text=text, span=(start, start + 1), hint="remove it")
    name = "" if code < 128 else f" ({unicodedata.name(character, 'unnamed').lower()})"
    quoted = f'"{character}"' if character == "'" else f"'{character}'"
    message = f"{quoted}{name} is not part of the language"
    hint = _INSTEAD.get(character)
    return ParseError(message, text=text, span=(start, start + 1), hint=hint)


def unknown_function(text: str, span: TextSpan) -> ParseError:
    """Return the error for a call of an unknown function, with the nearest known name."""
    name = text[slice(*span)]
    message = f"unknown function '{shown(name)}'"
    # Long names are not searched for.
    meant = did_you_mean(name.lower(), (*by_spelling, *CALLS)) if len(name) <= _SHOWN else ""
    hint: str | None
    if _DEFINITION.match(text, span[1]):
        hint = f"write the formula alone, or {shown(name)} = …, without the arguments"
    elif name in _REWRITES:
        hint = _REWRITES[name]
    elif meant:
        hint = meant
    else:
        hint = None if name.startswith("_") else f"to multiply, write {shown(name)}*(…)"
    return ParseError(message, text=text, span=span, hint=hint)


def adjacent(text: str, left: TextSpan, right: TextSpan) -> ParseError:
    """Return the error for two adjacent values, as in ``2x``, ``2(x)`` and ``(a)(b)``."""
    tail = re.search(r"[\w.]+$|.$", text[max(left[0], left[1] - _SHOWN) : left[1]], re.DOTALL)
    last = tail[0] if tail else ""
    marked = (left[1] - len(last), right[1])
    before = "(…)" if last == ")" else "x[…]" if last == "]" else last
    token = text[slice(*right)]
    after = "(…)" if token == "(" else shown(token)
    message = f"an operator is missing between '{last}' and '{shown(token)}'"
    hint = f"to multiply, write {before}*{after}"
    if token in ("if", "else"):
        hint = "for a if condition else b write where(condition, a, b)"
    return ParseError(message, text=text, span=marked, hint=hint)


def expected_expression(text: str, span: TextSpan, opener: int | None) -> ParseError:
    """Return the error for a token where an expression is expected."""
    token = text[slice(*span)]
    if token == ")" and opener is None:
        return ParseError("unmatched ')'", text=text, span=span)
    if token == ")" and text[opener : span[0]].strip() == "(":
        message = "empty parentheses"
    elif token == "]" and opener is not None and text[opener : span[0]].strip() == "[":
        message = "empty brackets"
    elif token == "=":
        message = "'=' has no name to its left"
        hint = "write name = expression"
        return ParseError(message, text=text, span=span, hint=hint)
    elif not token.strip():
        message = "the text ends where an expression is expected"
    else:
        message = f"expected an expression before '{shown(token)}'"
    return ParseError(message, text=text, span=span)


def unclosed(text: str, opener: int) -> ParseError:
    """Return the error for a parenthesis or bracket that is never closed."""
    message = f"this '{text[opener]}' is never closed"
    return ParseError(message, text=text, span=(opener, opener + 1))


def function_without_call(text: str, span: TextSpan, token: str) -> ParseError:
    """Return the error for the name of a function that is not called."""
    name = text[slice(*span)]
    message = f"'{name}' is a function and needs an argument"
    if re.fullmatch(r"[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", token):
        hint = f"write {name}(x){shown(token)}"
    elif re.fullmatch(r"[\w.]+", token):
        hint = f"write {name}({shown(token)})"
    else:
        hint = f"write {name}(x); a variable needs another name, or a declaration: {name}: []"
    return ParseError(message, text=text, span=span, hint=hint)


def wrong_count(text: str, span: TextSpan, takes: str, count: int) -> ParseError:
    """Return the error for a call with too few or too many arguments."""
    name = text[span[0] :].split("(", 1)[0].strip()
    return ParseError(f"{shown(name)} takes {takes}, not {count}", text=text, span=span)


def missing_list(text: str, span: TextSpan, lists: str) -> ParseError:
    """Return the error for missing brackets in a call."""
    name = shown(text[span[0] :].split("(", 1)[0].strip())
    hint = f"write {name}(x, [2, 3])"
    return ParseError(f"{name} needs {lists} in brackets", text=text, span=span, hint=hint)


def chained(text: str, span: TextSpan) -> ParseError:
    """Return the error for ``a < b < c``."""
    message = "comparisons cannot be chained"
    return ParseError(message, text=text, span=span, hint="write a < b and b < c")


def reserved(text: str, span: TextSpan, name: str, what: str) -> ParseError:
    """Return the error for an assignment to a name that the language reserves."""
    message = f"'{name}' is {what} and cannot be assigned a value"
    return ParseError(message, text=text, span=span, hint="choose another name")


def unraised(text: str, span: TextSpan) -> ParseError:
    """Return the error for a superscript that names a function."""
    message = "a function used as an exponent needs an argument"
    return ParseError(message, text=text, span=span, hint="write x^(…)")


def comma(text: str, span: TextSpan) -> ParseError:
    """Return the error for a comma that separates nothing."""
    message = "a comma separates the arguments of a function or the outputs in [a, b]"
    around = text[span[0] - 1 : span[0]] + text[span[1] : span[1] + 1]
    decimal = len(around) == 2 and around.isdigit()
    hint = f"write {around[0]}.{around[1]}" if decimal else "for several outputs write [a, b]"
    return ParseError(message, text=text, span=span, hint=hint)


def unopened(text: str, span: TextSpan, opener: int | None) -> ParseError:
    """Return the error for a closing parenthesis or bracket that matches no opening one."""
    token = text[slice(*span)]
    if opener is None:
        message = f"unmatched '{token}'"
    else:
        message = f"'{token}' does not match the '{text[opener]}' at character {opener + 1}"
    return ParseError(message, text=text, span=span)


def after_list(text: str, span: TextSpan) -> ParseError:
    """Return the error for an argument after the list in a call."""
    message = "a list of integers must be the last argument of a call"
    return ParseError(message, text=text, span=span, hint="close the parenthesis after it: )")


def empty(text: str) -> ParseError:
    """Return the error for a program without an expression."""
    problem = "there is no expression to compute" if text.strip() else "the text is empty"
    hint = "write an expression, such as ln(x1) + x1*x2 - sin(x2)"
    return ParseError(problem, text=text, span=(len(text), len(text)), hint=hint)


def assignment(text: str, span: TextSpan) -> ParseError:
    """Return the error for ``=`` or ``:`` elsewhere than after a statement's first name."""
    if text[slice(*span)] == ":":
        message = "a ':' declares an input or forms a slice, and is not allowed here"
        hint = "declare an input on a line of its own: x: [100]"
    else:
        message = "only a name at the start of a line can be assigned a value"
        hint = "to compare, write =="
    return ParseError(message, text=text, span=span, hint=hint)


def after_statement(text: str, span: TextSpan) -> ParseError:
    """Return the error for a token after a complete statement."""
    message = f"unexpected '{shown(text[slice(*span)])}' after a complete line"
    return ParseError(message, text=text, span=span, hint="begin a new line, or write ;")


def too_deep(text: str, start: int, limit: int) -> ParseError:
    """Return the error for too many open parentheses."""
    message = f"more than {limit:,} parentheses are open at once"
    return ParseError(message, text=text, span=(start, start + 1))
