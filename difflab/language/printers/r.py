"""Graph to R."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from difflab.graph.function import Function
from difflab.language.printers.expressions import Notation
from difflab.language.printers.packed import TranslatedPrinter
from difflab.language.printers.statements import TapeVariables

_KEYWORDS = (
    "if else repeat while function for next break TRUE FALSE NULL Inf NaN NA in c T F rev numeric "
    "logical seq_along length list"
)
_SAME = "acos acosh asin asinh atan atanh cos cosh exp expm1 floor log log10 log1p log2 sin sinh"
_ROOT = """\
cube_root <- function(x) {
    if (x == 0 || !is.finite(x)) return(x)
    root <- sign(x) * abs(x)^(1 / 3)
    root - (root - x / root / root) / 3
}"""
_POWER = """\
power <- function(a, b) {
    if (isTRUE(a <= 0 && (is.infinite(b) || a == -Inf && b != trunc(b)))) return(abs(a)^b)
    if (isTRUE(a == 0 && b < 0 && b %% 2 == 1)) return(1 / a)
    a^b
}"""
_REMAINDER = """\
remainder <- function(a, b) {
    if (is.nan(a) || is.nan(b) || is.infinite(a) || b == 0) return(NaN)
    rest <- abs(a)
    divisor <- abs(b)
    multiple <- divisor
    while (multiple <= rest / 2) multiple <- 2 * multiple
    while (multiple >= divisor && rest >= divisor) {
        if (rest >= multiple) rest <- rest - multiple
        multiple <- multiple / 2
    }
    if (a < 0) -rest else rest
}"""
_SINGLE = """\
single_precision <- function(x) {
    readBin(writeBin(x, raw(), size = 4), "double", size = 4)
}"""

_NOTATION = Notation(
    functions={
        **{name: f"{name}({{0}})" for name in [*_SAME.split(), "sqrt", "tan", "tanh"]},
        "atan2": "atan2({0}, {1})",
        "cbrt": "cube_root({0})",
        "ceil": "ceiling({0})",
        "exp2": "2^{0}",
        "fabs": "abs({0})",
        "float32": "single_precision({0})",
        "fmod": "remainder({0}, {1})",
        "hypot": "hypotenuse({0}, {1})",
        "pow": "power({0}, {1})",
        "rint": "round({0})",
    },
    definitions={
        "cube_root": _ROOT,
        "hypotenuse": "hypotenuse <- function(a, b) Mod(complex(real = a, imaginary = b))",
        "power": _POWER,
        "remainder": _REMAINDER,
        "single_precision": _SINGLE,
    },
    constants={"NAN": "NaN", "INFINITY": "Inf"},
    choice="(if ({0}) {1} else {2})",
    # A comparison with nan is neither true nor false in R.
    comparison="isTRUE({0} {sign} {1})",
    unequal="!isTRUE({0} == {1})",
)


def r(function: Function, name: str = "f") -> str:
    """Return an R function ``f(x)``, which returns a vector.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        The name of the R function.

    Returns
    -------
    str
        The source. `x` holds the inputs one after the other, in the order of ``function.inputs``,
        and the result the outputs; arrays are flat and row-major. Outside of a function's domain
        the value is NaN, and R warns.

    Raises
    ------
    UnsupportedError
        There is no function for an operation, such as ``exp_remainder`` of a variable order.

    Examples
    --------
    >>> import difflab as dl
    >>> print(r(dl.parse("exp(x1) + x1*x2 - tanh(x2)")))
    # x: x1, x2; y: y
    f <- function(x) {
        y <- numeric(1)
        x1 <- x[1]
        x2 <- x[2]
        y[1] <- exp(x1) + x1 * x2 - tanh(x2)
        y
    }
    """
    return _R(function, name).source()


class _R(TranslatedPrinter):
    language = "R"
    notation = _NOTATION
    reserved = _NOTATION.words | frozenset(_KEYWORDS.split())
    base = 1
    assigns = "<-"
    adds = "{0} <- {0} + {1}"
    for_loop = "for ({0} in {1}:{2}) {{"
    backwards = "for ({0} in {2}:{1}) {{"
    while_loop = "while ({0}) {{"
    leaving = "if (!({0})) break"
    branch = "if ({0}) {{"
    otherwise = "} else {"
    end_loop = "}"
    end_branch = "}"
    new_tape = "{0} <- list()"
    forever = "TRUE"

    def defined(self, name: str, parameters: Sequence[str], value: str) -> str:
        head = f"{name} <- function({', '.join(parameters)}) {{"
        return "\n".join([head, *self.lines, f"{self.indent}{value}", "}"])

    def module(self) -> list[str]:
        function = [
            f"function({self.point}) {{",
            f"    {self.result} <- numeric({self.view.function.m})",
            *self.lines,
            f"    {self.result}",
            "}",
        ]
        texts = self.definitions().values()
        if not texts:
            function[0] = f"{self.name} <- {function[0]}"
            return [f"# {self.contents()}", *function]
        # Names such as `gamma` are defined for the function only, beside R's own.
        local = "\n\n".join([*texts, "\n".join(function)])
        return [
            f"# {self.contents()}",
            f"{self.name} <- local({{",
            indent(local, self.indent),
            "})",
        ]

    def spelled(self, name: str) -> str:
        """Return a name that R accepts."""
        return "v" * name.startswith("_") + super().spelled(name)

    def array(self, name: str, size: int, *, truths: bool = False) -> str:
        return f"{name} <- {'logical' if truths else 'numeric'}({size})"

    def part(self, name: str, array: str, counter: str, size: int) -> str:
        return f"{name} <- {array}[{size} * ({counter} - 1) + seq_len({size})]"

    def copied(self, name: str, value: str, size: int, *, changes: bool = True) -> str:
        return f"{name} <- {value}"

    def collected(self, elements: Sequence[str]) -> str:
        return f"c({', '.join(elements)})"

    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        return f"{name} <- c({values})"

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        self.add(f"{tape.values}[[length({tape.values}) + 1]] <- c({', '.join(names)})")

    def turned(self, tape: TapeVariables, record: str) -> list[str]:
        counter = self.fresh.numbered("k")
        return [
            f"for ({counter} in rev(seq_along({tape.values}))) {{",
            f"{record} <- {tape.values}[[{counter}]]",
        ]
