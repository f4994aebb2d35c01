"""Functions in MathML, for web pages."""

from __future__ import annotations

import re
from functools import cache
from html.entities import html5
from typing import Any

import numpy as np

from difflab.graph.evaluate import fold
from difflab.graph.function import Function
from difflab.graph.interpreters import SympyInterpreter

__all__ = ["mathml"]

_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)(\w+;)")


def mathml(function: Function) -> str:
    """Return `function` in presentation MathML, as SymPy writes it.

    SymPy orders sums and products, and cancels common factors.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.

    Returns
    -------
    str
        One ``<math>`` element; with several outputs, a row for each.

    Raises
    ------
    UnsupportedError
        SymPy has no form of an operation, or an array is too large for it.

    Examples
    --------
    >>> import difflab as dl
    >>> text = mathml(dl.parse("x1/2"))
    >>> text[text.index("<mfrac>") : -len("</math>")]
    '<mfrac><msub><mi>x</mi><mi>1</mi></msub><mn>2</mn></mfrac></mrow>'
    """
    import sympy

    interpreter = SympyInterpreter()
    environment = {
        node: _symbols(sympy, name, shape)
        for node, name, shape in zip(
            function.input_nodes, function.inputs, function.input_shapes, strict=True
        )
    }
    values = fold(function.graph, environment, function.outputs, interpreter)
    parts = [_presented(sympy, value) for value in values]
    if len(parts) > 1:
        names = (_presented(sympy, sympy.Symbol(name)) for name in function.output_names)
        cells = (
            f"<mtr><mtd>{name}</mtd><mtd><mo>=</mo></mtd><mtd>{part}</mtd></mtr>"
            for name, part in zip(names, parts, strict=True)
        )
        parts = [f"<mtable>{''.join(cells)}</mtable>"]
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">{parts[0]}</math>'


def _symbols(sympy: Any, name: str, shape: tuple[int, ...]) -> Any:
    """Return the symbol of an input, or an array of the symbols of its elements."""
    if shape == ():
        return sympy.Symbol(name)
    found = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        found[place] = sympy.Symbol(f"{name}_{','.join(map(str, place))}")
    return found


def _presented(sympy: Any, value: Any) -> str:
    """Return an expression, or an array as a matrix of its rows."""
    if isinstance(value, np.ndarray):
        rows = value.reshape((value.shape[0] if value.ndim else 1, -1))
        value = sympy.Matrix(rows.tolist())
    text: str = _printer().doprint(value)
    # SymPy writes signs as entities that only HTML knows, and < as it is.
    text = text.replace("<mo><</mo>", "<mo>&lt;</mo>")
    return _ENTITY.sub(lambda match: html5.get(match[1], match[0]), text)


@cache
def _printer() -> Any:
    """Return SymPy's printer, with cases as a brace and their rows."""
    from sympy.printing.mathml import MathMLPresentationPrinter

    class Printer(MathMLPresentationPrinter):  # type: ignore[misc]
        def doprint(self, expression: Any) -> str:
            text: str = self._print(expression).toxml()
            return text

        def _print_Piecewise(self, expression: Any) -> Any:
            table = self.dom.createElement("mtable")
            for value, condition in expression.args:
                row = self.dom.createElement("mtr")
                always = self.dom.createElement("mtext")
                always.appendChild(self.dom.createTextNode("otherwise"))
                shown = always if condition == True else self._print(condition)  # noqa: E712
                for part in (self._print(value), shown):
                    cell = self.dom.createElement("mtd")
                    cell.appendChild(part)
                    row.appendChild(cell)
                table.appendChild(row)
            brace = self.dom.createElement("mo")
            brace.appendChild(self.dom.createTextNode("{"))
            whole = self.dom.createElement("mrow")
            whole.appendChild(brace)
            whole.appendChild(table)
            return whole

    return Printer()
