"""Graph to Python over `math`."""

from __future__ import annotations

import keyword
import math
import re

from difflab.core.primitive import Primitive
from difflab.graph.function import Function
from difflab.language.printers.straight import StraightLinePrinter
from difflab.primitives import TABLE, helpers

__all__ = ["python"]

_MATH = frozenset(name for name in dir(math) if not name.startswith("_"))
_WORD = re.compile(r"[A-Za-z]\w*")
_USED = frozenset(word for row in TABLE.values() for word in _WORD.findall(row.python))
_RESERVED = frozenset({*keyword.kwlist, *_USED, "f", "i", "range", "pi", "e", "inf", "nan"})


def python(function: Function) -> str:
    """Return the source of a Python function over `math` that evaluates `function` at one point.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.

    Returns
    -------
    str
        The source, preceded by definitions of functions that `math` lacks. The arguments are the
        inputs in order; arrays are passed and returned as flat sequences in row-major order.
        Several outputs are returned as a tuple. The function raises ArithmeticError or
        ValueError where `math` does: if an operation is undefined or overflows.

    Raises
    ------
    UnsupportedError
        Python's `math` lacks a function, such as ``digamma``.

    Examples
    --------
    >>> import difflab as dl
    >>> print(python(dl.gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)"))))
    from math import cos, nan
    <BLANKLINE>
    <BLANKLINE>
    def f(x1, x2):
        return [x2 + (1.0 / x1 if x1 >= 0.0 else nan), x1 - cos(x2)]
    """
    return _Python(function).source()


class _Python(StraightLinePrinter):
    language = "Python's math"

    def __init__(self, function: Function) -> None:
        super().__init__(function, _RESERVED)
        spellings = [row.python for row in self.forms]
        self.helpers = helpers.used(spellings, helpers.PYTHON)
        texts = [*spellings, *self.helpers.values()]
        self.imports = {word for text in texts for word in _WORD.findall(text)} & _MATH
        for node, name in zip(
            self.view.function.input_nodes, self.view.function.inputs, strict=True
        ):
            self.names[node] = self.fresh.fresh(name)

    def source(self) -> str:
        """Return the source of the function."""
        parameters = ", ".join(self.names[node] for node in self.view.function.input_nodes)
        self.compute()
        results = [self._result(node) for node in self.view.outputs]
        head = []
        if self.imports:
            head = [f"from math import {', '.join(sorted(self.imports))}", "", ""]
        head += [line for text in self.helpers.values() for line in (text, "", "")]
        body = [*self.lines, f"{self.indent}return {', '.join(results)}"]
        return "\n".join([*head, f"def f({parameters}):", *body])

    def _result(self, node: int) -> str:
        if not self.graph.shape(node):
            return self.expression(node)
        if node in self.listed:
            return f"[{', '.join(self.elements(node))}]"
        return f"list({self.names[node]})" if self.view.leaf(node) else self.names[node]

    def template(self, row: Primitive) -> str:
        return row.python

    def number(self, value: float, name: str | None) -> str:
        written = name or repr(float(value))
        word = written.removeprefix("-")
        if word in {"pi", "e", "inf", "nan"}:
            self.imports.add(word)
        return written

    def scalar(self, name: str, value: str, row: Primitive | None) -> str:
        return f"{name} = {value}"

    def array(self, name: str, size: int) -> str:
        return f"{name} = [0.0] * {size}"

    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        return f"{name} = [{values}]"

    def loop(self, counter: str, size: int) -> str:
        return f"for {counter} in range({size}):"

    def assignment(self, target: str, sign: str, value: str) -> str:
        return f"{target} {sign} {value}"
