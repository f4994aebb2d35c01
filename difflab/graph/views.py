"""Views of a function: its text, its graph, its evaluation, its passes.

Text, pictures and reports lie above the graph, and so do their functions, which are methods of a
`Function` too. They are found when they are first asked for, by the table of the public names, so
that a graph alone loads none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import MethodType
from typing import TYPE_CHECKING, Any

from difflab.errors import UnsupportedError

if TYPE_CHECKING:
    from difflab.explore import shown as page
    from difflab.interop import simplification
    from difflab.report import drawn, passes
    from difflab.report.trace import shown

__all__ = ["Views"]

_FORMULA = 200
"""Most nodes of a function that a notebook shows as mathematics."""
_PLAIN = 100
"""Most nodes of one that is shown as it is computed."""
_LINE = 3000
"""Most characters of its LaTeX."""
_REPR_FORMULA = 40
"""Most nodes of a function whose program is a part of its repr."""
_REPR_LINE = 72
"""Most characters of that program."""


class View:
    """A method of `Function` that is a function of a package above the graph.

    The public table of names says of which: the module is imported when the method is first used.
    """

    def __init__(self, name: str) -> None:
        self.name = f"Function.{name}"

    def __get__(self, function: Any, owner: type) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(import_module("difflab"), self.name)
        return method if function is None else MethodType(method, function)


def _is_short(function: Any, most: int) -> bool:
    """Return whether nodes, held functions' too, and constant elements are at most `most`.

    Notebooks and terminals print a function unasked, so that must take no time.
    """
    size, pending = 0, [function]
    while pending and size <= most:
        graph = pending.pop().graph
        size += len(graph)
        for params in graph.param_table:
            size += sum(len(value) // 8 for _, value in params if isinstance(value, bytes))
        for row in graph.primitives:
            pending += getattr(row.holds, "functions", ())
    return size <= most


class Views:
    """The methods of a `Function` that show it."""

    _text, _latex = View("text"), View("readable_latex")
    if TYPE_CHECKING:
        draw = drawn.draw
        explore = page.explore
        passes = passes.passes
        to_sympy = simplification.to_sympy
        trace = shown.trace
    else:
        draw, explore, passes = View("draw"), View("explore"), View("passes")
        to_sympy, trace = View("to_sympy"), View("trace")

    def __str__(self) -> str:
        """Return a program of the language that computes the function.

        ``dl.parse(str(f))`` is a function of the same values and shapes, also of arrays and with
        several outputs, which are in no structure. Its inputs are in natural order, and names that
        the language reserves get an underscore. The result of a call of a function or a layer in
        traced code has its own line, with a comment that names the call. The text is read back
        unless an array has no elements, or an operation consists of functions or Python code that
        cannot be written out (`while_loop`, a `scan` of many steps, a custom function that calls
        other libraries); a comment in the text names those.

        Examples
        --------
        >>> import numpy as np
        >>> import difflab as dl
        >>> print(dl.gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)")))
        gradient = [x2 + 1/x1, x1 - cos(x2)]
        >>> print(dl.trace(lambda x: (np.sum(x * x), x[1:] * 2), np.ones(3)))
        x: [3]
        [sum(x*x), x[1:]*2]
        """
        text: str = self._text(whole=True)
        return text

    def _line(self) -> str:
        """Return the program in one line for the repr; empty if it is too long for that."""
        if not _is_short(self, _REPR_FORMULA):
            return ""
        text = "; ".join(str(self).splitlines())
        return text if len(text) <= _REPR_LINE and "#" not in text else ""

    def _repr_latex_(self) -> str | None:
        r"""Return the mathematics that notebooks display; None if it is too long to be read.

        Examples
        --------
        >>> import difflab as dl
        >>> print(dl.parse("x1/x2")._repr_latex_())
        $$\frac{x_{1}}{x_{2}}$$
        """
        function: Any = self
        if not _is_short(function, _FORMULA):
            return None
        try:
            text: str = self._latex(plain=_is_short(function, _PLAIN))
        except UnsupportedError:  # a loop, code of other libraries, or too many lines
            return None
        return f"$${text}$$" if len(text) <= _LINE else None
