"""The text of a program, from an argument, a file or standard input, or in LaTeX."""

from __future__ import annotations

import sys
from typing import Annotated, BinaryIO

import typer

from difflab.core.system import open_regular, reason
from difflab.core.wording import bytes_text
from difflab.errors import InputError

_START = 200  # characters of a long formula in the rows of a bench
_LONGEST_KEY = 2000  # characters of a formula written out in them; a longer one is hashed
_LONGEST_TEXT = 1 << 28  # bytes of a program


def read_expression(argument: str) -> str:
    """Return the program text: `argument`, standard input for ``-``, a file for ``@file``.

    Raises
    ------
    InputError
        The file cannot be read, or is not text.
    """
    if argument == "-":
        return _decoded(_standard_input(), "standard input")
    if argument.startswith("@"):
        name = argument[1:]
        return _decoded(_read_bytes(name), repr(name))
    return argument


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise InputError("standard input is closed", hint="write the formula as an argument")
    try:
        return _read_text(sys.stdin.buffer, "standard input")
    except OSError as error:
        raise InputError(f"cannot read standard input: {reason(error)}") from error


def _read_bytes(name: str) -> bytes:
    try:
        with open_regular(name) as stream:
            return _read_text(stream, repr(name))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read {name!r}: {why.lower()}") from error


def _read_text(stream: BinaryIO, source: str) -> bytes:
    """Return all bytes of a program; raise if they exceed a limit, as an endless source does."""
    content = bytearray()
    while piece := stream.read(1 << 20):
        content += piece
        if len(content) > _LONGEST_TEXT:
            limit = bytes_text(_LONGEST_TEXT)
            raise InputError(f"{source} is longer than the limit of {limit}")
    return bytes(content)


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{source} is not UTF-8 text: byte {error.start} is 0x{content[error.start]:02x}",
            hint="save the expression as UTF-8 text",
        ) from error


def expression_key(text: str) -> str:
    """Return the text that identifies a formula: itself, or its beginning and a hash."""
    if len(text) <= _LONGEST_KEY:
        return text
    from hashlib import sha256

    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[:_START]}… {len(text):,} characters, SHA-256 {digest}…"


LatexOption = Annotated[
    bool, typer.Option("--latex", help="EXPR is a formula in LaTeX, such as '\\frac{x}{y}'.")
]


def formula(argument: str, *, latex: bool) -> str:
    r"""Return the argument EXPR in difflab's language.

    Raises
    ------
    InputError
        It is LaTeX that difflab does not read; the error has the location in it.

    Examples
    --------
    >>> formula(r"\frac{x}{y}", latex=True), formula("x/y", latex=False)
    ('(x/y)', 'x/y')
    """
    if not latex:
        return argument
    from difflab.interop.formats.latex import program_of_latex

    return program_of_latex(read_expression(argument))
