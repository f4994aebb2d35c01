"""Graph to Rust."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from difflab.graph.function import Function
from difflab.language.printers.expressions import Notation
from difflab.language.printers.packed import TranslatedPrinter
from difflab.language.printers.statements import TapeVariables

_ON_STACK = 1024
"""Elements of an array above which it is on the heap."""
_KEYWORDS = (
    "abstract as async await become box break const continue crate do dyn else enum extern false "
    "final fn for gen if impl in let loop macro match mod move mut override priv pub ref return "
    "self Self static struct super trait true try type typeof unsafe unsized use virtual where "
    "while yield f64 i usize vec Vec Some"
)
_METHODS = {
    "acos": "acos",
    "asin": "asin",
    "atan": "atan",
    "cbrt": "cbrt",
    "ceil": "ceil",
    "cos": "cos",
    "cosh": "cosh",
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "exp_m1",
    "fabs": "abs",
    "floor": "floor",
    "log": "ln",
    "log10": "log10",
    "log1p": "ln_1p",
    "log2": "log2",
    "rint": "round_ties_even",
    "sin": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
_C_FUNCTIONS = ("acosh", "asinh", "atanh", "erf", "erfc", "lgamma", "tgamma")
"""Functions of the C library, which Rust's library is linked to; its own inverse hyperbolic
functions lose digits."""


def _linked(name: str) -> str:
    return "\n".join(
        [
            f"fn {name}(x: f64) -> f64 {{",
            '    extern "C" {',
            f"        fn {name}(x: f64) -> f64;",
            "    }",
            f"    unsafe {{ {name}(x) }}",
            "}",
        ]
    )


_NOTATION = Notation(
    functions={
        **{name: f"f64::{method}({{0}})" for name, method in _METHODS.items()},
        "pow": "f64::powf({0}, {1})",
        "hypot": "f64::hypot({0}, {1})",
        "atan2": "f64::atan2({0}, {1})",
        "fmod": "{0} % {1}",
        "float32": "f64::from({0} as f32)",
        **{name: f"{name}({{0}})" for name in _C_FUNCTIONS},
    },
    definitions={name: _linked(name) for name in _C_FUNCTIONS},
    constants={"NAN": "f64::NAN", "INFINITY": "f64::INFINITY"},
    choice="if {0} {{ {1} }} else {{ {2} }}",
)


def rust(function: Function, name: str = "f") -> str:
    """Return a Rust function ``f(x: &[f64], y: &mut [f64])``.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        The name of the Rust function.

    Returns
    -------
    str
        The source. `x` holds the inputs one after the other, in the order of ``function.inputs``,
        and `y` receives the outputs; arrays are flat and row-major. Functions that Rust lacks are
        those of the C library, to which it is linked, or defined before the function. The code
        needs Rust 1.77.

    Raises
    ------
    UnsupportedError
        There is no function for an operation, such as ``exp_remainder`` of a variable order.

    Examples
    --------
    >>> import difflab as dl
    >>> print(rust(dl.gradient(dl.parse("ln(x1) + x1*x2"))))
    // x: x1, x2; y: gradient
    #[allow(unused_mut, unused_variables)]
    pub fn f(x: &[f64], y: &mut [f64]) {
        let x1 = x[0];
        let x2 = x[1];
        y[0] = x2 + (if x1 < 0.0 { f64::NAN } else { 1.0 / x1 });
        y[1] = x1;
    }
    """
    return _Rust(function, name).source()


class _Rust(TranslatedPrinter):
    language = "Rust"
    notation = _NOTATION
    reserved = _NOTATION.words | frozenset(_KEYWORDS.split())
    end = ";"
    for_loop = "for {0} in {1}..{3} {{"
    backwards = "for {0} in ({1}..{3}).rev() {{"
    while_loop = "while {0} {{"
    leaving = "if !({0}) {{ break; }}"
    branch = "if {0} {{"
    otherwise = "} else {"
    end_loop = "}"
    end_branch = "}"
    new_tape = "let mut {0}: Vec<[f64; {1}]> = Vec::new();"
    forever = "true"

    def defined(self, name: str, parameters: Sequence[str], value: str) -> str:
        arguments = ", ".join(f"{each}: f64" for each in parameters)
        head = f"fn {name}({arguments}) -> f64 {{"
        return "\n".join([head, *self.lines, f"{self.indent}{value}", "}"])

    def module(self) -> list[str]:
        return [
            *[line for text in self.definitions().values() for line in (text, "")],
            f"// {self.contents()}",
            "#[allow(unused_mut, unused_variables)]",
            f"pub fn {self.name}({self.point}: &[f64], {self.result}: &mut [f64]) {{",
            *self.lines,
            "}",
        ]

    def spelled(self, name: str) -> str:
        """Return a name in lower case, as Rust's style has it."""
        return super().spelled(name).lower()

    def going(self, condition: str) -> str:
        return "loop {" if condition == self.forever else super().going(condition)

    def unpacked(self, name: str, array: str, start: int, size: int | None) -> str:
        if size is None:
            return f"let {name} = {array}[{start}];"
        return f"let {name} = &{array}[{start}..{start + size}];"

    def definition(self, *, truth: bool) -> str:
        return f"let %s: {'bool' if truth else 'f64'} = %s;"

    def variable(self, name: str, value: str) -> str:
        return f"let mut {name}: f64 = {value};"

    def array(self, name: str, size: int, *, truths: bool = False) -> str:
        zero = "false" if truths else "0.0_f64"
        return f"let mut {name} = {'vec!' * (size > _ON_STACK)}[{zero}; {size}];"

    def copied(self, name: str, value: str, size: int, *, changes: bool = True) -> str:
        return f"let {'mut ' * changes}{name} = {value}.to_vec();"

    def replaced(self, name: str, value: str) -> str:
        return f"{name}.copy_from_slice(&{value});"

    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        return f"let {name}: &[{'usize' if places else 'f64'}; {size}] = &[{values}];"

    def assigned_later(self, name: str) -> None:
        self.add(f"let {name}: f64;")

    def ignore(self, name: str) -> None:
        self.add(f"let _ = {name};")

    def part(self, name: str, array: str, counter: str, size: int) -> str:
        return f"let {name} = &{array}[{size}*{counter}..{size}*{counter} + {size}];"

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        record, start = self.fresh.numbered("t"), 0
        self.add(f"let mut {record} = [0.0_f64; {sum(map(prod, tape.shapes))}];")
        for name, shape in zip(names, tape.shapes, strict=True):
            size = prod(shape)
            if shape:
                self.add(f"{record}[{start}..{start + size}].copy_from_slice(&{name});")
            else:
                self.add(f"{record}[{start}] = {name};")
            start += size
        self.add(f"{tape.values}.push({record});")

    def turned(self, tape: TapeVariables, record: str) -> list[str]:
        return [f"while let Some({record}) = {tape.values}.pop() {{"]
