"""Graph to Julia."""

from __future__ import annotations

from collections.abc import Sequence

from difflab.graph.function import Function
from difflab.language.printers.expressions import Notation
from difflab.language.printers.packed import TranslatedPrinter
from difflab.language.printers.statements import TapeVariables

_KEYWORDS = (
    "baremodule begin break catch const continue do else elseif end export false finally for "
    "function global if import let local macro module quote return struct true try using while "
    "where in isa mutable abstract primitive type i pi zeros copy Float64 Vector NaN Inf im"
)
_SAME = "asinh atan cbrt ceil cosh exp exp2 expm1 floor sinh tanh"
_THROWING = {
    "acos": "abs(x) > 1",
    "acosh": "x < 1",
    "asin": "abs(x) > 1",
    "atanh": "abs(x) > 1",
    "cos": "isinf(x)",
    "log": "x < 0",
    "log10": "x < 0",
    "log1p": "x < -1",
    "log2": "x < 0",
    "sin": "isinf(x)",
    "sqrt": "x < 0",
    "tan": "isinf(x)",
}
"""Functions that raise a DomainError, and where."""
_C_FUNCTIONS = ("erf", "erfc", "lgamma", "tgamma")
"""Functions of the C library of mathematics that Julia comes with."""
_POWER = """\
function power_or_nan(a::Float64, b::Float64)
    a < 0 && isfinite(a) && isfinite(b) && !isinteger(b) ? NaN : ccall((:pow, Base.Math.libm),
        Float64, (Float64, Float64), a, b)
end"""


_NOTATION = Notation(
    functions={
        **{name: f"{name}({{0}})" for name in _SAME.split()},
        **{name: f"{name}_or_nan({{0}})" for name in _THROWING},
        **{name: f"{name}({{0}})" for name in _C_FUNCTIONS},
        "atan2": "atan({0}, {1})",
        "fabs": "abs({0})",
        "float32": "Float64(Float32({0}))",
        "fmod": "remainder_or_nan({0}, {1})",
        "hypot": "hypot({0}, {1})",
        "pow": "power_or_nan({0}, {1})",
        "rint": "round({0})",
    },
    definitions={
        **{
            f"{name}_or_nan": f"{name}_or_nan(x::Float64) = {where} ? NaN : {name}(x)"
            for name, where in _THROWING.items()
        },
        **{
            name: f"{name}(x::Float64) = ccall((:{name}, Base.Math.libm), Float64, (Float64,), x)"
            for name in _C_FUNCTIONS
        },
        "power_or_nan": _POWER,
        "remainder_or_nan": "remainder_or_nan(a::Float64, b::Float64) = "
        "isinf(a) || b == 0 ? NaN : rem(a, b)",
    },
    constants={"NAN": "NaN", "INFINITY": "Inf"},
)


def julia(function: Function, name: str = "f") -> str:
    """Return a Julia function ``f(x)``, which returns a vector.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        The name of the Julia function.

    Returns
    -------
    str
        The source. `x` holds the inputs one after the other, in the order of ``function.inputs``,
        and the result the outputs; arrays are flat and row-major. Where Julia's functions raise a
        DomainError, the value is NaN.

    Raises
    ------
    UnsupportedError
        There is no function for an operation, such as ``exp_remainder`` of a variable order.

    Examples
    --------
    >>> import difflab as dl
    >>> print(julia(dl.parse("exp(x1) + x1*x2 - tanh(x2)")))
    # x: x1, x2; y: y
    function f(x::AbstractVector{Float64})
        y = zeros(1)
        x1 = x[1]
        x2 = x[2]
        y[1] = exp(x1) + x1 * x2 - tanh(x2)
        return y
    end
    """
    return _Julia(function, name).source()


class _Julia(TranslatedPrinter):
    language = "Julia"
    notation = _NOTATION
    reserved = _NOTATION.words | frozenset(_KEYWORDS.split())
    base = 1
    for_loop = "for {0} in {1}:{2}"
    backwards = "for {0} in {2}:-1:{1}"
    while_loop = "while {0}"
    leaving = "if !({0}) break end"
    branch = "if {0}"
    otherwise = "else"
    end_loop = "end"
    end_branch = "end"
    new_tape = "{0} = Vector{{Float64}}[]"
    forever = "true"

    def defined(self, name: str, parameters: Sequence[str], value: str) -> str:
        arguments = ", ".join(f"{each}::Float64" for each in parameters)
        head = f"function {name}({arguments})"
        return "\n".join([head, *self.lines, f"{self.indent}return {value}", "end"])

    def module(self) -> list[str]:
        return [
            *[line for text in self.definitions().values() for line in (text, "")],
            f"# {self.contents()}",
            f"function {self.name}({self.point}::AbstractVector{{Float64}})",
            f"    {self.result} = zeros({self.view.function.m})",
            *self.lines,
            f"    return {self.result}",
            "end",
        ]

    def array(self, name: str, size: int, *, truths: bool = False) -> str:
        return f"{name} = zeros({'Bool, ' * truths}{size})"

    def copied(self, name: str, value: str, size: int, *, changes: bool = True) -> str:
        return f"{name} = copy({value})"

    def replaced(self, name: str, value: str) -> str:
        return f"copyto!({name}, {value})"

    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        return f"{name} = [{values}]"

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        self.add(f"push!({tape.values}, [{'; '.join(names)}])")

    def turned(self, tape: TapeVariables, record: str) -> list[str]:
        return [f"while !isempty({tape.values})", f"{record} = pop!({tape.values})"]
