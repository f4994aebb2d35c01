"""LaTeX to a program of difflab's language, and to a function."""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from difflab.errors import InputError
from difflab.graph.function import Function
from difflab.interop.formats.latex.reader import LatexReader
from difflab.interop.formats.latex.stack import Translation, translation
from difflab.language import parse
from difflab.language.scope import RESERVED


def from_latex(text: str, variables: Collection[str] = ()) -> Function:
    r"""Return the function that a formula in LaTeX computes.

    The formula is translated to difflab's language, and never evaluated. What is ambiguous in
    print, such as ``1/2x`` and ``f(x)`` of an unknown ``f``, is an error.

    Parameters
    ----------
    text : str
        A formula, or lines ``name = formula`` of an ``align`` environment, the last of which is
        the output; ``$`` and ``\[`` around it are ignored. The subset is described in the how-to
        page about formats. A letter is a name, ``x_{1}`` is the name ``x1``, ``x_{\text{max}}``
        the name ``x_max``.
    variables : collection of str, optional
        Names that are variables although they are constants: ``e`` and ``pi``.

    Returns
    -------
    Function
        Its ``text`` is the program in difflab's language.

    Raises
    ------
    ParseError
        It is not in the subset; the error has the location in the LaTeX.
    InputError
        `text` is not a string.

    Examples
    --------
    >>> f = from_latex(r"\frac{e^{-x_1^2 / 2}}{\sqrt{2\pi}} \sin 2x_2")
    >>> f.inputs, f.text
    (('x1', 'x2'), '((exp(-x1^2/2))/(sqrt(2*pi)))*sin(2*x2)')
    """
    program, reserved = _translated(text, variables)
    try:
        return parse(program.text, reserved)
    except InputError as error:
        _at_source(error, text, program)


def program_of_latex(text: str, variables: Collection[str] = ()) -> str:
    r"""Return the program of difflab's language that a formula in LaTeX is.

    It declares the variables that have the name of a constant or a function.

    Examples
    --------
    >>> program_of_latex(r"\gamma \left(x + 1\right)")
    'gamma: []; gamma*(x + 1)'
    """
    program = from_latex(text, variables).text
    assert program is not None, "a parsed function has a text"
    return program


def _translated(text: str, variables: Collection[str]) -> tuple[Translation, list[str]]:
    """Return the translation, and the variables that the language has another meaning for."""
    if not isinstance(text, str):
        raise InputError(
            f"from_latex takes the text of a formula, not {type(text).__name__}",
            hint=r'write dl.from_latex(r"\frac{x}{y}"), with an r before the quotes',
        )
    reader = LatexReader(text, variables)
    reader.read()
    program = translation(reader.rope)
    shortened = program.text.removesuffix("; ")
    reserved = sorted((reader.names - reader.targets) & set(RESERVED))
    return Translation(shortened, program.offsets, program.spans), reserved


def _at_source(error: InputError, text: str, program: Translation) -> NoReturn:
    """Raise an error about the translation as one about the LaTeX."""
    span = error.span
    if span is not None and error.text is not None:
        # The text may have declarations before the program.
        shift = len(error.text) - len(program.text)
        span = program.source((max(span[0] - shift, 0), max(span[1] - shift, 1)))
    kind = type(error)
    raise kind(error.message, text=text, span=span, hint=error.hint) from None
