"""A function as a heading: its text, unless it is long."""

from __future__ import annotations

from difflab.graph.function import Function

__all__ = ["READABLE", "heading"]

READABLE = 400
"""Most nodes of a graph whose text is shown."""


def heading(function: Function) -> str:
    """Return the program that was parsed, else the function as text, or its inputs and outputs.

    Examples
    --------
    >>> import difflab as dl
    >>> heading(dl.parse("x^2 # a square")), heading(dl.gradient(dl.parse("x^2")))
    ('x^2 # a square', 'gradient = [2*x]')
    """
    if function.text is not None:
        return function.text
    if len(function.graph) > READABLE:
        return repr(function)
    from difflab.language.printers import text

    return text(function, whole=True, calls=True)
