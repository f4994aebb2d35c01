"""Graph to Stan: a function of its functions block."""

from __future__ import annotations

from collections.abc import Sequence

from difflab.graph.function import Function
from difflab.language.printers.expressions import Notation
from difflab.language.printers.packed import TranslatedPrinter

_KEYWORDS = (
    "for in while if else break continue return functions data parameters model generated "
    "quantities transformed void int real complex vector row_vector matrix array lower upper "
    "offset multiplier true false target i tuple print reject fatal_error profile "
    "auto case char class const default delete do double enum extern float goto inline long new "
    "private protected public register short signed sizeof static struct switch template this "
    "throw try typedef typename union unsigned using virtual volatile x y lgamma gamma e pi beta "
    "digamma logit"
)
_SAME = (
    "acos asin asinh atan cbrt ceil cos cosh erf erfc exp exp2 expm1 floor lgamma log log10 log2 "
    "sin sinh sqrt tan tanh"
)
_OUTSIDE = {"acosh": "x < 1", "atanh": "abs(x) > 1", "log1p": "x < -1"}
"""Functions that reject, and where."""
_GAMMA = """\
real gamma_or_nan(real x) {
    if (x == 0) {
        return 1 / x;
    }
    return x < 0 && x == floor(x) ? not_a_number() : tgamma(x);
}"""
_ROUND = """\
real round_half_to_even(real x) {
    real rounded = round(x);
    if (abs(x - trunc(x)) == 0.5) {
        return 2 * round(x / 2);
    }
    return rounded;
}"""


def _guarded(name: str, outside: str) -> str:
    return "\n".join(
        [
            f"real {name}_or_nan(real x) {{",
            f"    return {outside} ? not_a_number() : {name}(x);",
            "}",
        ]
    )


_NOTATION = Notation(
    functions={
        **{name: f"{name}({{0}})" for name in _SAME.split()},
        **{name: f"{name}_or_nan({{0}})" for name in _OUTSIDE},
        "atan2": "atan2({0}, {1})",
        "fabs": "abs({0})",
        "fmod": "fmod({0}, {1})",
        "hypot": "hypot({0}, {1})",
        "pow": "pow({0}, {1})",
        "rint": "round_half_to_even({0})",
        "tgamma": "gamma_or_nan({0})",
    },
    definitions={
        **{f"{name}_or_nan": _guarded(name, where) for name, where in _OUTSIDE.items()},
        "gamma_or_nan": _GAMMA,
        "round_half_to_even": _ROUND,
    },
    constants={"NAN": "not_a_number()", "INFINITY": "positive_infinity()"},
)


def stan(function: Function, name: str = "f") -> str:
    """Return a Stan function ``vector f(vector x)`` in a functions block.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        The name of the Stan function.

    Returns
    -------
    str
        The source. `x` holds the inputs one after the other, in the order of ``function.inputs``,
        and the result the outputs; arrays are flat and row-major. Where Stan's functions reject
        their argument, the value is nan.

    Raises
    ------
    UnsupportedError
        There is no function for an operation, such as ``exp_remainder`` of a variable order; or
        there is no array that grows, which the derivative of a `while_loop` needs.

    Examples
    --------
    >>> import difflab as dl
    >>> print(stan(dl.parse("exp(x1) + x1*x2 - tanh(x2)")))
    functions {
        // x: x1, x2; y: y
        vector f(vector x) {
            vector[1] y = rep_vector(0, 1);
            real x1 = x[1];
            real x2 = x[2];
            y[1] = exp(x1) + x1 * x2 - tanh(x2);
            return y;
        }
    }
    """
    return _Stan(function, name).source()


class _Stan(TranslatedPrinter):
    language = "Stan"
    notation = _NOTATION
    reserved = _NOTATION.words | frozenset(_KEYWORDS.split())
    suffix = "_v"  # names that end in two underscores are Stan's own
    base = 1
    end = ";"
    for_loop = "for ({0} in {1}:{2}) {{"
    while_loop = "while ({0}) {{"
    leaving = "if (!({0})) {{ break; }}"
    branch = "if ({0}) {{"
    otherwise = "} else {"
    end_loop = "}"
    end_branch = "}"

    def defined(self, name: str, parameters: Sequence[str], value: str) -> str:
        head = f"real {name}({', '.join(f'real {each}' for each in parameters)}) {{"
        return "\n".join([head, *self.lines, f"{self.indent}return {value};", "}"])

    def module(self) -> list[str]:
        m = self.view.function.m
        inner = [
            *"\n".join(self.definitions().values()).splitlines(),
            f"// {self.contents()}",
            f"vector {self.name}(vector {self.point}) {{",
            f"    vector[{m}] {self.result} = rep_vector(0, {m});",
            *"\n".join(self.lines).splitlines(),
            f"    return {self.result};",
            "}",
        ]
        return ["functions {", *[self.indent + line for line in inner], "}"]

    def spelled(self, name: str) -> str:
        """Return a name that begins with a letter and does not end in two underscores."""
        return "v" * name.startswith("_") + super().spelled(name).rstrip("_")

    def counting(self, counter: str, steps: int, reverse: bool) -> str:
        if not reverse:
            return super().counting(counter, steps, reverse)
        up = self.fresh.numbered("k")
        head = super().loop(up, steps)
        return f"{head}\n{self.indent * 2}int {counter} = {steps + 1} - {up};"

    def unpacked(self, name: str, array: str, start: int, size: int | None) -> str:
        if size is None:
            return f"real {name} = {array}[{start + 1}];"
        return f"vector[{size}] {name} = {array}[{start + 1}:{start + size}];"

    def definition(self, *, truth: bool) -> str:
        return f"{'int' if truth else 'real'} %s = %s;"

    def array(self, name: str, size: int, *, truths: bool = False) -> str:
        if truths:
            return f"array[{size}] int {name} = rep_array(0, {size});"
        return f"vector[{size}] {name} = rep_vector(0, {size});"

    def copied(self, name: str, value: str, size: int, *, changes: bool = True) -> str:
        return f"vector[{size}] {name} = {value};"

    def collected(self, elements: Sequence[str]) -> str:
        return f"{super().collected(elements)}'"

    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        if places:
            return f"array[{size}] int {name} = {{{values}}};"
        return f"vector[{size}] {name} = [{values}]';"

    def part(self, name: str, array: str, counter: str, size: int) -> str:
        first = f"{size}*{counter} - {size - 1}"
        return f"vector[{size}] {name} = {array}[{first}:{size}*{counter}];"
