"""Graph to Python over `math`."""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence

from difflab.graph.function import Function
from difflab.language.printers.expressions import Notation
from difflab.language.printers.packed import ListPrinter
from difflab.language.printers.statements import Change, TapeVariables

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
        The name of the Python function.

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


class _Python(ListPrinter):
    language = "Python's math"
    notation = _NOTATION
    reserved = _RESERVED
    for_loop = "for {0} in range({3}):"
    backwards = "for {0} in reversed(range({3})):"
    while_loop = "while {0}:"
    leaving = "if not ({0}): break"
    branch = "if {0}:"
    otherwise = "else:"
    variable = "{0} = {1}"
    new_tape = "{0} = []"
    list_of_zeros = "[0.0] * {0}"
    copy_of = "list({0})"
    slice_of = "{0}[{1}:{2}]"

    def _begin(self) -> None:
        super()._begin()
        self.imports: set[str] = set() if self.outer is None else self.outer.imports

    def source(self) -> str:
        """Return the source of the function."""
        parameters = ", ".join(self.parameters())
        self.compute()
        results = self.results()
        defined = self.definitions().values()
        imports = self.words() & _MATH | self.imports
        head = []
        if imports:
            head = [f"from math import {', '.join(sorted(imports))}", "", ""]
        head += [line for text in defined for line in (text, "", "")]
        body = [*self.lines, f"{self.indent}return {', '.join(results)}"]
        return "\n".join([*head, f"def {self.name}({parameters}):", *body])

    def defined(self, name: str, parameters: Sequence[str], value: str) -> str:
        head = f"def {name}({', '.join(parameters)}):"
        return "\n".join([head, *self.lines, f"{self.indent}return {value}"])

    def number(self, value: float, name: str | None) -> str:
        text = name or repr(float(value))
        word = text.removeprefix("-")
        if word in {"pi", "e", "inf", "nan"}:
            self.imports.add(word)
        return text

    def assigned_later(self, name: str) -> None:
        """Python has no declarations."""

    def advance(self, changes: Sequence[Change]) -> None:
        if changes:
            names, values, _ = zip(*changes, strict=True)
            self.add(f"{', '.join(names)} = {', '.join(values)}")
        elif not self.lines:
            self.add("pass")

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        self.add(f"{tape.values}.append(({', '.join(names)},))")

    def unwind(self, tape: TapeVariables) -> tuple[str, list[str]]:
        names = [self.fresh.numbered("t") for _ in tape.shapes]
        each = f"({', '.join(names)},)" if len(names) == 1 else ", ".join(names)
        return f"for {each} in reversed({tape.values}):", names
