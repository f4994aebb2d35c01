"""Graph to MATLAB, which GNU Octave reads as well."""

from __future__ import annotations

from collections.abc import Sequence

from difflab.graph.function import Function
from difflab.language.printers.expressions import PRODUCT, Notation
from difflab.language.printers.packed import TranslatedPrinter
from difflab.language.printers.statements import TapeVariables

_KEYWORDS = (
    "break case catch classdef continue else elseif end for function global if otherwise parfor "
    "persistent return spmd switch try while until do unwind_protect i pi zeros false numel ans"
)
_SAME = "asinh atan cos cosh erf erfc exp expm1 floor ceil sin sinh tan tanh"
_REAL = "acos acosh asin atanh log log10 log1p log2 sqrt"
"""Functions that are complex outside of their domain."""


_CHOOSE = """\
function value = choose(condition, yes, no)
    if condition
        value = yes;
    else
        value = no;
    end
end"""
_REAL_OR_NAN = """\
function value = real_or_nan(value)
    if ~isreal(value)
        value = NaN;
    end
end"""
_POWER = """\
function value = real_power(a, b)
    if a == 1 || b == 0
        value = 1;
    elseif a >= 0
        value = a^b;
    elseif b == fix(b)
        odd = abs(b) < 2^53 && mod(b, 2) == 1;
        value = (1 - 2 * odd) * (-a)^b;
    elseif a == -Inf
        value = Inf^b;
    else
        value = NaN;
    end
end"""
_GAMMA = """\
function value = gamma_or_nan(x)
    if x < 0 && x == floor(x)
        value = NaN;
    else
        value = gamma(x);
    end
end"""
_LOG_GAMMA = """\
function value = log_gamma(x)
    if x > 0
        value = gammaln(x);
    elseif x == floor(x)
        value = Inf;
    elseif x > -1e-20
        value = -log(-x);
    else
        value = log(pi) - log(abs(x * sin(pi * (x - round(x))))) - gammaln(-x);
    end
end"""
_ROUND = """\
function value = round_half_to_even(x)
    value = round(x);
    if abs(x - fix(x)) == 0.5
        value = 2 * round(x / 2);
    end
end"""
_REMAINDER = """\
function value = exact_remainder(a, b)
    value = abs(a);
    divisor = abs(b);
    if isnan(b) || isinf(a) || b == 0
        value = NaN;
    end
    multiple = divisor;
    while multiple <= value / 2
        multiple = 2 * multiple;
    end
    while multiple >= divisor && value >= divisor
        if value >= multiple
            value = value - multiple;
        end
        multiple = multiple / 2;
    end
    value = value * (1 - 2 * (a < 0));
end"""
_CUBE_ROOT = """\
function value = cube_root(x)
    value = x;
    if x ~= 0 && ~isinf(x)
        value = sign(x) * abs(x)^(1/3);
        value = value - (value - x / value / value) / 3;
    end
end"""

_NOTATION = Notation(
    functions={
        **{name: f"{name}({{0}})" for name in _SAME.split()},
        **{name: f"real_or_nan({name}({{0}}))" for name in _REAL.split()},
        "atan2": "atan2({0}, {1})",
        "cbrt": "cube_root({0})",
        "exp2": "real_power(2, {0})",
        "fabs": "abs({0})",
        "fmod": "exact_remainder({0}, {1})",
        "float32": "double(single({0}))",
        "hypot": "hypot({0}, {1})",
        "lgamma": "log_gamma({0})",
        "pow": "real_power({0}, {1})",
        "rint": "round_half_to_even({0})",
        "tgamma": "gamma_or_nan({0})",
    },
    definitions={
        "choose": _CHOOSE,
        "real_or_nan": _REAL_OR_NAN,
        "real_power": _POWER,
        "gamma_or_nan": _GAMMA,
        "log_gamma": _LOG_GAMMA,
        "round_half_to_even": _ROUND,
        "exact_remainder": _REMAINDER,
        "cube_root": _CUBE_ROOT,
    },
    constants={"NAN": "NaN", "INFINITY": "Inf"},
    choice="choose({0}, {1}, {2})",
    negation="~",
    unequal="{0} ~= {1}",
)


def matlab(function: Function, name: str = "f") -> str:
    """Return a MATLAB function ``y = f(x)``, for a file ``f.m``.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        The name of the MATLAB function.

    Returns
    -------
    str
        The source, which GNU Octave runs too. `x` holds the inputs one after the other, in the
        order of ``function.inputs``, and `y` the outputs; arrays are flat and row-major. Values are
        real: where MATLAB's functions turn complex, they are NaN.

    Raises
    ------
    UnsupportedError
        There is no function for an operation, such as ``exp_remainder`` of a variable order.

    Examples
    --------
    >>> import difflab as dl
    >>> print(matlab(dl.parse("exp(x1) + x1*x2 - sin(x2)")))
    function y = f(x)
        % x: x1, x2; y: y
        y = zeros(1, 1);
        x1 = x(1);
        x2 = x(2);
        y(1) = exp(x1) + x1 * x2 - sin(x2);
    end
    """
    return _Matlab(function, name).source()


class _Matlab(TranslatedPrinter):
    language = "MATLAB"
    notation = _NOTATION
    reserved = _NOTATION.words | frozenset(_KEYWORDS.split())
    base = 1
    subscript = ("(", ")")
    end = ";"
    adds = "{0} = {0} + {1}"
    added = PRODUCT
    for_loop = "for {0} = {1}:{2}"
    backwards = "for {0} = {2}:-1:{1}"
    while_loop = "while {0}"
    leaving = "if ~({0}), break; end"
    branch = "if {0}"
    otherwise = "else"
    end_loop = "end"
    end_branch = "end"
    new_tape = "{0} = {{}};"
    forever = "true"

    def defined(self, name: str, parameters: Sequence[str], value: str) -> str:
        result = self.fresh.fresh("value")
        head = f"function {result} = {name}({', '.join(parameters)})"
        return "\n".join([head, *self.lines, f"{self.indent}{result} = {value};", "end"])

    def module(self) -> list[str]:
        return [
            f"function {self.result} = {self.name}({self.point})",
            f"    % {self.contents()}",
            f"    {self.result} = zeros({self.view.function.m}, 1);",
            *self.lines,
            "end",
            *[line for text in self.definitions().values() for line in ("", text)],
        ]

    def spelled(self, name: str) -> str:
        """Return a name of a length that MATLAB accepts."""
        return "v" * name.startswith("_") + super().spelled(name)[:50]

    def array(self, name: str, size: int, *, truths: bool = False) -> str:
        return f"{name} = {'false' if truths else 'zeros'}({size}, 1);"

    def copied(self, name: str, value: str, size: int, *, changes: bool = True) -> str:
        return f"{name} = {value};"

    def collected(self, elements: Sequence[str]) -> str:
        return f"[{'; '.join(elements)}]"

    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        return f"{name} = [{values.replace(chr(10), f' ...{chr(10)}')}];"

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        kept = "; ".join(
            f"{name}(:)" if shape else name for name, shape in zip(names, tape.shapes, strict=True)
        )
        self.add(f"{tape.values}{{end + 1}} = [{kept}];")

    def turned(self, tape: TapeVariables, record: str) -> list[str]:
        counter = self.fresh.numbered("k")
        return [
            f"for {counter} = numel({tape.values}):-1:1",
            f"{record} = {tape.values}{{{counter}}};",
        ]
