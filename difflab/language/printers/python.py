"""Graph to Python over `math`."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Sequence

from difflab.core.primitive import Primitive
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.language.printers.statements import TapeVariables
from difflab.language.printers.straight import StraightLinePrinter
from difflab.primitives import TABLE, helpers

__all__ = ["python"]

_MATH = frozenset(name for name in dir(math) if not name.startswith("_"))
_WORD = re.compile(r"[A-Za-z]\w*")
_USED = frozenset(word for row in TABLE.values() for word in _WORD.findall(row.python))
_RESERVED = frozenset({*keyword.kwlist, *_USED, "i", "range", "reversed", "pi", "e", "inf", "nan"})


def python(function: Function, name: str = "f") -> str:
    """Return the source of a Python function over `math` that evaluates `function` at one point.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        What the Python function is called.

    Returns
    -------
    str
        The source, preceded by definitions of functions that `math` lacks. The arguments are the
        inputs in order; arrays are passed and returned as flat sequences in row-major order.
        Several outputs are returned as a tuple. Loops and branches are statements. The function
        raises ArithmeticError or ValueError where `math` does: if an operation is undefined or
        overflows.

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
    return _Python(function, name).source()


class _Python(StraightLinePrinter):
    language = "Python's math"
    reserved = _RESERVED

    otherwise = "else:"

    def __init__(self, function: Function, name: str, outer: _Python | None = None) -> None:
        super().__init__(function, name, outer)
        self.imports: set[str] = set() if outer is None else outer.imports
        if outer is None:
            for node, name in zip(
                self.view.function.input_nodes, self.view.function.inputs, strict=True
            ):
                self.names[node] = self.fresh.fresh(name)

    def source(self) -> str:
        """Return the source of the function."""
        parameters = ", ".join(self.names[node] for node in self.view.function.input_nodes)
        self.compute()
        results = [self._result(node) for node in self.view.outputs]
        spellings = [row.python for row in self.forms]
        defined = helpers.used(spellings, helpers.PYTHON)
        texts = [*spellings, *defined.values()]
        imports = {word for text in texts for word in _WORD.findall(text)} & _MATH | self.imports
        head = []
        if imports:
            head = [f"from math import {', '.join(sorted(imports))}", "", ""]
        head += [line for text in defined.values() for line in (text, "", "")]
        body = [*self.lines, f"{self.indent}return {', '.join(results)}"]
        return "\n".join([*head, f"def {self.name}({parameters}):", *body])

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

    def definition(self, *, truth: bool) -> str:
        return "%s = %s"

    def array(self, name: str, size: int, *, truths: bool = False) -> str:
        return f"{name} = [0.0] * {size}"

    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        return f"{name} = [{values}]"

    def loop(self, counter: str, size: int) -> str:
        return f"for {counter} in range({size}):"

    def assignment(self, target: str, sign: str, value: str) -> str:
        return f"{target} {sign} {value}"

    def carry(self, name: str, value: str, size: int | None) -> None:
        self.add(f"{name} = {value}")

    def ignore(self, name: str) -> None:
        """Python does not warn."""

    def collected(self, elements: Sequence[str]) -> str:
        return f"[{', '.join(elements)}]"

    def advance(self, changes: Sequence[tuple[str, str, int | None]]) -> None:
        if changes:  # lists are replaced, never changed
            names, values, _ = zip(*changes, strict=True)
            self.add(f"{', '.join(names)} = {', '.join(values)}")
        elif not self.lines:
            self.add("pass")

    def zeros(self, shape: Shape) -> str:
        return f"[0.0] * {math.prod(shape)}" if shape else "0.0"

    def tape(self, shapes: Sequence[Shape]) -> TapeVariables:
        name = self.fresh.numbered("t")
        self.add(f"{name} = []")
        return TapeVariables(name, "", "", shapes)

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        self.add(f"{tape.values}.append(({', '.join(names)},))")

    def unwind(self, tape: TapeVariables) -> tuple[str, list[str]]:
        names = [self.fresh.numbered("t") for _ in tape.shapes]
        each = f"({', '.join(names)},)" if len(names) == 1 else ", ".join(names)
        return f"for {each} in reversed({tape.values}):", names

    def part(self, name: str, array: str, counter: str, size: int) -> str:
        return f"{name} = {array}[{size}*{counter}:{size}*{counter} + {size}]"

    def counting(self, counter: str, steps: int, reverse: bool) -> str:
        return f"for {counter} in {f'reversed(range({steps}))' if reverse else f'range({steps})'}:"

    def going(self, condition: str) -> str:
        return f"while {condition}:"

    def leave(self, condition: str) -> str:
        return f"if not ({condition}): break"

    def when(self, condition: str) -> str:
        return f"if {condition}:"

    def close(self, *, branch: bool = False) -> None:
        """Indentation ends a block."""
