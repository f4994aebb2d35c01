"""``--latex``: the formula of a command in LaTeX."""

from __future__ import annotations

from typing import Annotated

import typer

from difflab.cli.program_text import read_expression

__all__ = ["LatexOption", "formula"]

LatexOption = Annotated[
    bool, typer.Option("--latex", help="EXPR is a formula in LaTeX, such as '\\frac{x}{y}'.")
]


def formula(argument: str, *, latex: bool) -> str:
    r"""Return the argument EXPR in difflab's language.

    Raises
    ------
    InputError
        It is LaTeX that difflab does not read; the error has the place in it.

    Examples
    --------
    >>> formula(r"\frac{x}{y}", latex=True), formula("x/y", latex=False)
    ('(x/y)', 'x/y')
    """
    if not latex:
        return argument
    from difflab.interop.formats.latex import program_of_latex

    return program_of_latex(read_expression(argument))
