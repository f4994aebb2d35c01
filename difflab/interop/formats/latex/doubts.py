"""Ambiguous notation, which is refused because another reading is as likely."""

from __future__ import annotations

import re
from functools import cache

from difflab.interop.formats.latex.lexer import OPERATORS, Token, commands, functions
from difflab.interop.formats.latex.stack import Frame, FrameStack, Operand

CONDITIONALS = {"if", "for", "when", "where", "otherwise", "else", "elsewhere", ""}
_CONNECTIVES = {"and", "or"}
_SCIENTIFIC = re.compile(r"[eE][-+]?\d")
_LETTERS = re.compile(r"[A-Za-z]+")
_DIFFERENTIALS = {"d", "delta", "Delta"}
_UPRIGHT = {
    "d": "an upright d is a differential, and difflab computes derivatives of what is read",
    "i": "an upright i is the imaginary unit, and difflab computes with real numbers",
}
_TRANSPOSED = {"T", "H", "t", "top", "dagger"}


@cache
def _words() -> re.Pattern[str]:
    """Return a pattern of the names of functions that three letters or more spell."""
    names = {*commands(), *functions()}
    words = sorted((w for w in names if w.isalpha() and len(w) > 2), key=len, reverse=True)
    return re.compile("|".join([*words, "^ln$"]))


def check_letters(stack: FrameStack, token: Token, *, in_table: bool) -> None:
    """Raise if letters without blanks, each of them a name, spell a function or a condition."""
    text, start = stack.text, token.start
    if start and text[start - 1].isalpha():
        return  # the letters were checked where they begin
    letters = _LETTERS.match(text, start)
    run = letters[0] if letters else ""
    match = _words().search(run)
    word = match[0] if match else ""
    if in_table and run in CONDITIONALS | _CONNECTIVES:
        word = run
    if word:
        first = start + run.index(word)
        stack.fail(
            f"is '{word}' a word or a product of {len(word)} variables?",
            Token("letter", word, first, first + len(word)),
            f"write \\operatorname{{{word}}} for a function, \\text{{{word}}} for a condition, "
            f"{' '.join(word)} for a product",
        )


def check_number(stack: FrameStack, token: Token) -> None:
    """Raise if a number is followed by an exponent as programs write it."""
    if match := _SCIENTIFIC.match(stack.text, token.end):
        whole = Token("number", "", token.start, match.end())
        spelling = stack.text[token.start : match.end()]
        stack.fail(
            f"is '{spelling}' one number, or has it the factor e?",
            whole,
            f"write {token.text} \\times 10^{{{match[0][1:]}}} for a number, "
            f"{token.text} e with a blank behind it for a product",
        )


def check_word(stack: FrameStack, raw: Token, word: str) -> None:
    """Raise if an upright word is no name, or may be a function that has no brackets."""
    if word in stack.given:
        return
    if word in _UPRIGHT:
        hint = f'variables=["{word}"] makes it a variable'
        stack.fail(_UPRIGHT[word], raw, hint)
    if word in functions():
        hint = f'put its argument in brackets, or say variables=["{word}"]'
        stack.fail(f"is '{word}' a function or a variable?", raw, hint)
    opener = stack.top.opener
    raised = "^" in (opener.text, stack.text[opener.start - 1 : opener.start])
    if raised and word in _TRANSPOSED:
        hint = r"write \operatorname{transpose}(A) for that"
        stack.fail(f"an upright exponent {word} is a transposition, not a power", raw, hint)
    if not word.isidentifier() or word in CONDITIONALS:
        stack.fail(f"the text '{raw.text}' is no name", raw)


def check_fraction(stack: FrameStack, token: Token, above: Frame, below: Frame) -> None:
    """Raise if a fraction may be a derivative, or the end of a mixed number."""
    first = _differential(stack, above)
    if first and first == _differential(stack, below) and len(below.items) > 1:
        shown = first if first == "d" else f"\\{first}"
        stack.fail(
            "is the fraction a derivative or a quotient of products?",
            token,
            f"difflab computes derivatives of the function that is read; {shown} \\cdot … is a "
            f'product, and variables=["{first}"] makes {shown} a variable',
        )
    before = stack.top.last
    parts = (before, above.only, below.only)
    if all(part is not None and part.literal for part in parts):
        hint = "write 2 + \\frac{1}{3}, or 2 \\cdot \\frac{1}{3}"
        stack.fail("a number and a fraction are a mixed number or a product", token, hint)


def _differential(stack: FrameStack, frame: Frame) -> str:
    """Return the letter d with which a frame begins; empty if a sign of a product follows it."""
    first = frame.items[0] if frame.items else None
    if not isinstance(first, Operand) or first.symbol not in _DIFFERENTIALS - stack.given:
        return ""
    following = frame.items[1] if len(frame.items) > 1 else ("*", 0, 0)
    assert isinstance(following, tuple), "operands are joined by operators"
    sign, start, end = following
    implied = sign == "*" and stack.text[start:end] not in OPERATORS
    return first.symbol if implied else ""


def check_exponent(stack: FrameStack, token: Token, base: Operand, exponent: Frame) -> None:
    """Raise if an exponent may be the order of a derivative: a number in brackets."""
    only = exponent.only
    if base.symbol and only is not None and only.numbered:
        hint = f"write {base.symbol}^{{2}} for a power"
        stack.fail(
            "is a number in brackets an exponent, or the order of a derivative?", token, hint
        )
