"""Graph to JavaScript."""

from __future__ import annotations

import re
from collections.abc import Sequence

from difflab.graph.function import Function
from difflab.language.printers.expressions import Notation
from difflab.language.printers.packed import ListPrinter
from difflab.language.printers.statements import Change, TapeVariables

_KEYWORDS = (
    "arguments await break case catch class const continue debugger default delete do else enum "
    "eval export extends false finally for function if implements import in instanceof interface "
    "let new null package private protected public return static super switch this throw true try "
    "typeof var void while with yield undefined Array Infinity Math NaN i"
)
_MEMBERS = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh exp expm1 floor log log10 log1p log2 sin "
    "sinh sqrt tan tanh"
)
_POWER = """\
function pow(x, p) {
    return x == 1.0 || (x == -1.0 && p * p == Infinity) ? 1.0 : x ** p;
}"""
_ROUND = """\
function rint(x) {
    const near = round(x);
    return near - x == 0.5 && near % 2.0 != 0.0 ? near - 1.0 : near;
}"""
_WORD = re.compile(r"[A-Za-z]\w*")
_NOTATION = Notation(
    functions={
        **{name: f"{name}({{0}})" for name in _MEMBERS.split()},
        "atan2": "atan2({0}, {1})",
        "exp2": "2.0 ** {0}",
        "fabs": "abs({0})",
        "float32": "fround({0})",
        "fmod": "{0} % {1}",
        "hypot": "hypot({0}, {1})",
        "pow": "pow({0}, {1})",
        "rint": "rint({0})",
    },
    definitions={"pow": _POWER, "rint": _ROUND},
    constants={"NAN": "NaN", "INFINITY": "Infinity"},
)
_MATH = frozenset({*_MEMBERS.split(), "abs", "atan2", "fround", "hypot", "round"})
_RESERVED = frozenset({*_KEYWORDS.split(), *_MATH, *_NOTATION.words})


def javascript(function: Function, name: str = "f") -> str:
    """Return the source of a JavaScript function that evaluates `function` at one point.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        The name of the JavaScript function.

    Returns
    -------
    str
        The source, preceded by definitions of functions that `Math` lacks. The arguments are the
        inputs in order; arrays are passed and returned flat, in row-major order. Several outputs
        are returned as an array of them. Loops and branches are statements.

    Raises
    ------
    UnsupportedError
        There is no function for an operation, such as ``exp_remainder`` of a variable order.

    Examples
    --------
    >>> import difflab as dl
    >>> print(javascript(dl.gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)"))))
    const { cos } = Math;
    <BLANKLINE>
    function f(x1, x2) {
        return [x2 + (x1 < 0.0 ? NaN : 1.0 / x1), x1 - cos(x2)];
    }
    """
    written = JavaScriptCode(_JavaScript(function, name))
    head = [f"const {{ {', '.join(sorted(written.members))} }} = Math;", ""]
    definitions = [line for text in written.definitions.values() for line in (text, "")]
    result = written.results[0] if len(written.results) == 1 else f"[{', '.join(written.results)}]"
    return "\n".join(
        [
            *(head if written.members else []),
            *definitions,
            f"function {name}({', '.join(written.parameters)}) {{",
            *written.lines,
            f"    return {result};",
            "}",
        ]
    )


class JavaScriptCode:
    """A function in parts.

    Attributes
    ----------
    members : set of str
        The members of `Math` that are named.
    definitions : dict of str to str
        The functions that are called and that `Math` lacks.
    parameters : list of str
        The names of the inputs.
    lines : list of str
        The statements before the result.
    results : list of str
        The expressions of the outputs.
    """

    def __init__(self, printer: _JavaScript) -> None:
        self.parameters = printer.parameters()
        printer.compute()
        self.lines = printer.lines
        self.results = printer.results()
        self.definitions = printer.definitions()
        self.members = printer.words() & _MATH


def code(function: Function) -> JavaScriptCode:
    """Return the JavaScript of a function in parts.

    Examples
    --------
    >>> import difflab as dl
    >>> code(dl.parse("x^2 + 1")).results
    ['pow(x, 2.0) + 1.0']
    """
    return JavaScriptCode(_JavaScript(function, "f"))


class _JavaScript(ListPrinter):
    language = "JavaScript"
    notation = _NOTATION
    reserved = _RESERVED
    end = ";"
    for_loop = "for (let {0} = {1}; {0} < {3}; {0}++)"
    backwards = "for (let {0} = {3}; {0}-- > 0;)"
    while_loop = "while ({0})"
    leaving = "if (!({0})) break;"
    branch = "if ({0})"
    otherwise = "} else {"
    opening = " {"
    end_loop = end_branch = "}"
    variable = "let {0} = {1};"
    new_tape = "const {0} = [];"
    list_of_zeros = "Array({0}).fill(0.0)"
    copy_of = "{0}.slice()"
    slice_of = "{0}.slice({1}, {2})"

    def defined(self, name: str, parameters: Sequence[str], value: str) -> str:
        head = f"function {name}({', '.join(parameters)}) {{"
        return "\n".join([head, *self.lines, f"{self.indent}return {value};", "}"])

    def definition(self, *, truth: bool) -> str:
        return "const %s = %s;"

    def assigned_later(self, name: str) -> None:
        self.add(f"let {name};")

    def advance(self, changes: Sequence[Change]) -> None:
        if len(changes) == 1:
            self.add(f"{changes[0][0]} = {changes[0][1]};")
        elif changes:
            names, values, _ = zip(*changes, strict=True)
            self.add(f"[{', '.join(names)}] = [{', '.join(values)}];")

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        self.add(f"{tape.values}.push([{', '.join(names)}]);")

    def unwind(self, tape: TapeVariables) -> tuple[str, list[str]]:
        names = [self.fresh.numbered("t") for _ in tape.shapes]
        return f"for (const [{', '.join(names)}] of {tape.values}.reverse()) {{", names
