"""Graph to Python over `math`."""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence

from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.language.printers.helpers import Helpers
from difflab.language.printers.notation import Notation
from difflab.language.printers.statements import TapeVariables
from difflab.language.printers.straight import StraightLinePrinter

__all__ = ["python"]

_SAME = (
    "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 fabs lgamma log log10 "
    "log1p log2 sin sinh sqrt tan tanh"
)
_FLOAT32 = """\
def float32(x):
    if not abs(x) < 2.0**128:
        return x if x != x else copysign(inf, x)
    exponent = max(frexp(x)[1], -125) - 24
    y = copysign(ldexp(round(ldexp(x, -exponent)), exponent), x)
    return y if abs(y) < 2.0**128 else copysign(inf, x)"""
_ROUNDED = {"ceil": "ceil", "floor": "floor", "rint": "round"}
_NOTATION = Notation(
    functions={
        **{name: f"{name}({{0}})" for name in _SAME.split()},
        **{name: f"{name}({{0}}, {{1}})" for name in ("atan2", "hypot", "pow")},
        **{c: f"copysign(float({name}({{0}})), {{0}})" for c, name in _ROUNDED.items()},
        "float32": "float32({0})",
        "mod": "{0} % {1}",
        "tgamma": "gamma({0})",
    },
    definitions={"float32": _FLOAT32},
    constants={"NAN": "nan", "INFINITY": "inf"},
    choice="({1} if {0} else {2})",
    conjunction="and",
    disjunction="or",
    negation="not ",
)
_MATH = frozenset(name for name in dir(math) if not name.startswith("_"))
_RESERVED = _NOTATION.words | {*keyword.kwlist, "i", "range", "reversed", "pi", "e", "inf", "nan"}


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
        There is no function for an operation, such as ``exp_remainder`` of a variable order.

    Examples
    --------
    >>> import difflab as dl
    >>> print(python(dl.gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)"))))
    from math import cos, nan
    <BLANKLINE>
    <BLANKLINE>
    def f(x1, x2):
        return [x2 + (nan if x1 < 0.0 else 1.0 / x1), x1 - cos(x2)]
    """
    return _Python(function, name).source()


class _Python(StraightLinePrinter):
    language = "Python's math"
    notation = _NOTATION
    reserved = _RESERVED

    otherwise = "else:"

    def __init__(
        self,
        function: Function,
        name: str,
        outer: _Python | None = None,
        helpers: Helpers | None = None,
    ) -> None:
        super().__init__(function, name, outer, helpers)
        self.imports: set[str] = set() if outer is None else outer.imports
        if outer is None and helpers is None:
            for node, name in zip(
                self.view.function.input_nodes, self.view.function.inputs, strict=True
            ):
                self.names[node] = self.fresh.fresh(name)

    def source(self) -> str:
        """Return the source of the function."""
        parameters = ", ".join(self.names[node] for node in self.view.function.input_nodes)
        self.compute()
        results = [self._result(node) for node in self.view.outputs]
        defined = self.definitions().values()
        imports = self.words() & _MATH | self.imports
        head = []
        if imports:
            head = [f"from math import {', '.join(sorted(imports))}", "", ""]
        head += [line for text in defined for line in (text, "", "")]
        body = [*self.lines, f"{self.indent}return {', '.join(results)}"]
        return "\n".join([*head, f"def {self.name}({parameters}):", *body])

    def _result(self, node: int) -> str:
        if not self.graph.shape(node):
            return self.expression(node)
        if node in self.listed:
            return f"[{', '.join(self.elements(node))}]"
        return f"list({self.names[node]})" if self.view.leaf(node) else self.names[node]

    def defined(self, name: str, parameters: Sequence[str], value: str) -> str:
        head = f"def {name}({', '.join(parameters)}):"
        return "\n".join([head, *self.lines, f"{self.indent}return {value}"])

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

    def assigned_later(self, name: str) -> None:
        """Python has no declarations."""

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
