"""Functions in MathML, for web pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from html.entities import html5
from typing import Any

import numpy as np

from difflab.graph.function import Function
from difflab.graph.interpreters import SympyInterpreter
from difflab.interop.formats.forms import outputs_of
from difflab.interop.formats.sympy_text import added_first
from difflab.interop.formats.tidy import tidied

_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)(\w+;)")


def mathml(function: Function, *, tidy: bool = True) -> str:
    """Return `function` in presentation MathML, as SymPy writes it.

    SymPy orders sums and products, and cancels common factors.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    tidy : bool
        Whether in the form in which a paper prints it.

    Returns
    -------
    str
        One ``<math>`` element; with several outputs, a row for each.

    Raises
    ------
    UnsupportedError
        SymPy has no form of an operation, or an array is too large for it; or
        `difflab.interop.formats.tidy.tidied` refuses the function.

    Examples
    --------
    >>> import difflab as dl
    >>> text = mathml(dl.parse("x1/2"))
    >>> text[text.index("<mfrac>") : -len("</math>")]
    '<mfrac><msub><mi>x</mi><mi>1</mi></msub><mn>2</mn></mfrac></mrow>'
    """
    import sympy

    if tidy:
        formula = tidied(function)
        named = {symbol: sympy.Symbol(name) for symbol, name in formula.names.items()}
        parts = [_presented(output, named) for output in formula.outputs]
    else:
        parts = [_presented(output, {}) for output in _computed(sympy, function)]
    if len(parts) > 1:
        names = (_presented(sympy.Symbol(name), {}) for name in function.output_names)
        cells = (
            f"<mtr><mtd>{name}</mtd><mtd><mo>=</mo></mtd><mtd>{part}</mtd></mtr>"
            for name, part in zip(names, parts, strict=True)
        )
        parts = [f"<mtable>{''.join(cells)}</mtable>"]
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">{parts[0]}</math>'


def _computed(sympy: Any, function: Function) -> list[Any]:
    """Return the outputs as SymPy's expressions of the elements of the inputs."""
    inputs = zip(function.inputs, function.input_shapes, strict=True)
    symbols = [_symbols(sympy, name, shape) for name, shape in inputs]
    return outputs_of(function, symbols, SympyInterpreter())


def _symbols(sympy: Any, name: str, shape: tuple[int, ...]) -> Any:
    """Return the symbol of an input, or an array of the symbols of its elements."""
    if shape == ():
        return sympy.Symbol(name)
    symbols = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        symbols[index] = sympy.Symbol(f"{name}_{','.join(map(str, index))}")
    return symbols


def _presented(value: Any, names: Mapping[Any, Any]) -> str:
    """Return an expression, or an array as a matrix of its rows, with these names of symbols."""
    import sympy

    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    if isinstance(value, np.ndarray):
        rows = value.reshape((value.shape[0] if value.ndim else 1, -1))
        value = sympy.Matrix(rows.tolist())
    text: str = _printer(names).doprint(value)
    # SymPy writes signs as entities that only HTML knows, and < as it is.
    text = text.replace("<mo><</mo>", "<mo>&lt;</mo>")
    return _ENTITY.sub(lambda match: html5.get(match[1], match[0]), text)


@cache
def _kind() -> Any:
    """Return SymPy's printer, with cases as a brace and their rows."""
    from sympy import true
    from sympy.printing.mathml import MathMLPresentationPrinter

    class Printer(MathMLPresentationPrinter):  # type: ignore[misc]
        def doprint(self, expression: Any) -> str:
            text: str = self._print(expression).toxml()
            return text

        def _print_Symbol(self, symbol: Any, style: str = "plain") -> Any:
            return super()._print_Symbol(self.names.get(symbol, symbol), style)

        def _as_ordered_terms(self, expression: Any, order: Any = None) -> list[Any]:
            return added_first(super()._as_ordered_terms(expression, order=order))

        def _print_Piecewise(self, expression: Any) -> Any:
            table = self.dom.createElement("mtable")
            for value, condition in expression.args:
                row = self.dom.createElement("mtr")
                always = self.dom.createElement("mtext")
                always.appendChild(self.dom.createTextNode("otherwise"))
                shown = always if condition is true else self._print(condition)
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

    return Printer


def _printer(names: Mapping[Any, Any]) -> Any:
    printer = _kind()()
    printer.names = names
    return printer
