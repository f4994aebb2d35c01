"""Graph to Fortran 2008."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Graph, Params, Shape
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten
from difflab.language.printers.expressions import PRODUCT, SUM, Notation, Part
from difflab.language.printers.packed import TranslatedPrinter
from difflab.language.printers.statements import TapeVariables

_WIDTH = 120
"""Columns of a line; the standard has 132."""
_ON_STACK = 16_384
"""Elements of an array above which it is allocated."""
_NAN = "ieee_value(0.0d0, ieee_quiet_nan)"
_INFINITY = "ieee_value(0.0d0, ieee_positive_inf)"
_C_FUNCTIONS = ("cbrt", "c_ceil", "exp2", "expm1", "c_floor", "log1p", "log2", "rint")
"""Functions of the C library, of one number; a name after ``c_`` is one of Fortran's as well."""


_SAME = (
    "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 log log10 log1p log2 "
    "rint sin sinh sqrt tan tanh"
)


_NOTATION = Notation(
    functions={
        **{name: f"{name}({{0}})" for name in _SAME.split()},
        "fabs": "abs({0})",
        "ceil": "c_ceil({0})",
        "floor": "c_floor({0})",
        "tgamma": "gamma({0})",
        "lgamma": "log_gamma({0})",
        "pow": "{0}**{1}",
        "hypot": "hypot({0}, {1})",
        "atan2": "atan2({0}, {1})",
        "fmod": "mod({0}, {1})",
        "jn": "bessel_jn({0}, {1})",
        "yn": "bessel_yn({0}, {1})",
        "float32": "dble(real({0}, kind(1.0)))",
    },
    exponent="d",
    whole="d0",
    constants={"NAN": _NAN, "INFINITY": _INFINITY},
    choice="merge({1}, {2}, {0})",
    conjunction=".and.",
    disjunction=".or.",
    negation=".not. ",
    unequal="{0} /= {1}",
)

_INTRINSIC = "dasin datan datan2 dcosh dexp dlog dsign dsinh dsqrt dtanh sign mod modulo"
"""Other names of its functions, which no function of the module may have."""


def fortran(function: Function, name: str = "f") -> str:
    """Return a Fortran 2008 module with a pure subroutine ``f(x, y)``.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        The name of the subroutine; the module is called ``f_module``.

    Returns
    -------
    str
        The source. `x` holds the inputs one after the other, in the order of ``function.inputs``,
        and `y` receives the outputs; arrays are flat and row-major. Functions that Fortran lacks
        are those of the C library, or defined in the module.

    Raises
    ------
    UnsupportedError
        There is no function for an operation, such as ``exp_remainder`` of a variable order.

    Examples
    --------
    >>> import difflab as dl
    >>> print(fortran(dl.parse("ln(x1) + x1*x2 - sin(x2)")))
    module f_module
        implicit none
        private
        public :: f
    contains
        ! x: x1, x2; y: y
        pure subroutine f(x, y)
            double precision, intent(in) :: x(0:1)
            double precision, intent(out) :: y(0:0)
            double precision :: x1, x2
            x1 = x(0)
            x2 = x(1)
            y(0) = log(x1) + x1 * x2 - sin(x2)
        end subroutine
    end module
    """
    if _has_constant_operations(function.graph):
        function = rewritten(function.in_floats, _computed)
    return _Fortran(function, name).source()


def _has_constant_operations(graph: Graph) -> bool:
    """Whether all operands of an operation are constants."""
    constant = np.zeros(len(graph), dtype=np.bool_)
    constant[list(graph.constants)] = True
    others = np.append(0, np.cumsum(~constant[graph.args]))[graph.starts]
    return bool(np.any((np.diff(others) == 0) & (np.diff(graph.starts) > 0)))


def _computed(
    builder: Builder, node: int, row: Primitive, args: Args, params: Params
) -> int | None:
    """Fold operations on constants: compilers refuse undefined ones, such as 1/0."""
    values = [builder.number(arg) for arg in args]
    if row.shape is not None or row.boolean or params or not values or None in values:
        return None
    with np.errstate(all="ignore"):
        return builder.constant(float(row.computer(np)(*map(np.float64, values))))


class _Fortran(TranslatedPrinter):
    language = "Fortran"
    notation = _NOTATION
    reserved = _NOTATION.words | {"i", "size", "allocated", *_INTRINSIC.split()}
    subscript = ("(", ")")
    adds = "{0} = {0} + {1}"
    added = PRODUCT
    for_loop = "do {0} = {1}, {2}"
    backwards = "do {0} = {2}, {1}, -1"
    while_loop = "do while ({0})"
    leaving = "if (.not. ({0})) exit"
    branch = "if ({0}) then"
    otherwise = "else"
    end_loop = "end do"
    end_branch = "end if"
    forever = ".true."

    def _begin(self) -> None:
        super()._begin()
        self.declared: dict[str, dict[str, None]] = {}
        """The local variables of each type."""
        self.constants: list[str] = []
        """The declarations of constant arrays."""
        self.allocated: list[str] = []
        """The statements that allocate large arrays."""

    def defined(self, name: str, parameters: Sequence[str], value: str) -> str:
        params, result = ", ".join(parameters), self.fresh.fresh("value")
        head = f"pure double precision function {name}({params}) result({result})"
        declared = [f"{self.indent}double precision, intent(in) :: {params}", *self._declarations()]
        last = f"{self.indent}{result} = {value}"
        return "\n".join([head, *declared, *self.lines, last, "end function"])

    def module(self) -> list[str]:
        definitions = "\n".join(self.definitions().values())
        body = [*self._declarations(), *self.allocated, *self.lines]
        text = "\n".join(body)
        arguments = f"{self.point}, {self.result}"
        inner = [
            f"! {self.contents()}",
            f"pure subroutine {self.name}({arguments})",
            f"    double precision, intent(in) :: {self.point}(0:{self.view.function.n - 1})",
            f"    double precision, intent(out) :: {self.result}(0:{self.view.function.m - 1})",
            *body,
            "end subroutine",
            *definitions.splitlines(),
        ]
        words = self.words()
        return [
            f"module {self.name}_module",
            *self._uses(text + definitions),
            f"{self.indent}implicit none",
            f"{self.indent}private",
            f"{self.indent}public :: {self.name}",
            *self._interface([each for each in _C_FUNCTIONS if each in words]),
            "contains",
            *[wrapped(self.indent + line) for line in inner],
            "end module",
        ]

    def _uses(self, text: str) -> list[str]:
        """Return the line that imports the intrinsics that create nan and infinities."""
        names = [name for name in ("ieee_quiet_nan", "ieee_positive_inf") if name in text]
        if not names:
            return []
        listed = ", ".join(["ieee_value", *names])
        return [f"{self.indent}use, intrinsic :: ieee_arithmetic, only: {listed}"]

    def _interface(self, names: Sequence[str]) -> list[str]:
        """Return the declarations of functions of the C library."""
        lines = []
        for name in names:
            lines += [
                f'    pure function {name}(x) bind(c, name="{name.removeprefix("c_")}") result(y)',
                "        use, intrinsic :: iso_c_binding, only: c_double",
                "        real(c_double), value :: x",
                "        real(c_double) :: y",
                "    end function",
            ]
        inner = ["interface", *lines, "end interface"] if names else []
        return [self.indent + line for line in inner]

    def _declarations(self) -> list[str]:
        lines = self.constants
        for kind, names in self.declared.items():
            line = f"{self.indent}{kind} :: "
            for name in names:
                if len(line) + len(name) > _WIDTH - 20:
                    lines.append(line.removesuffix(", "))
                    line = f"{self.indent}{kind} :: "
                line += f"{name}, "
            lines.append(line.removesuffix(", "))
        return lines

    def declare(self, kind: str, name: str) -> None:
        """Declare a local variable of the subroutine."""
        self.root.declared.setdefault(kind, {})[name] = None

    def spelled(self, name: str) -> str:
        """Return a name in lower case, for Fortran knows no other, of a length that it accepts."""
        return "v" * name.startswith("_") + super().spelled(name).lower()[:50]

    def describe(self, node: int) -> tuple[Sequence[Part], int]:
        """Return the parts of a node; a leading minus needs parentheses in a product."""
        parts, level = super().describe(node)
        begins = parts[0]
        negative = isinstance(begins, str) and begins.startswith("-")
        return parts, SUM if negative else level

    def unpacked(self, name: str, array: str, start: int, size: int | None) -> str:
        if size is None:
            return self.scalar(name, f"{array}({start})", None)
        return self.copied(name, f"{array}({start}:{start + size - 1})", size)

    def declare_scalars(self, names: Sequence[str], *, truths: bool) -> None:
        kind = "logical" if truths else "double precision"
        self.root.declared.setdefault(kind, {}).update(dict.fromkeys(names))

    def variable(self, name: str, value: str) -> str:
        return self.scalar(name, value, None)

    def array(self, name: str, size: int, *, truths: bool = False) -> str:
        self._room(name, size, "logical" if truths else "double precision")
        return f"{name} = {'.false.' if truths else '0.0d0'}"

    def copied(self, name: str, value: str, size: int, *, changes: bool = True) -> str:
        self._room(name, size, "double precision")
        return f"{name} = {value}"

    def _room(self, name: str, size: int, kind: str) -> None:
        if size <= _ON_STACK:
            self.declare(kind, f"{name}(0:{size - 1})")
        else:
            self.declare(f"{kind}, allocatable", f"{name}(:)")
            self.root.allocated.append(f"{self.indent}allocate({name}(0:{size - 1}))")

    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        kind, text = "integer" if places else "double precision", f"[{values}]"
        text = text.replace(",\n", ", &\n")
        if "ieee_value" in values:  # which is no constant
            self.declare(kind, f"{name}(0:{size - 1})")
            return f"{name} = {text}"
        declared = f"{self.indent}{kind}, parameter :: {name}(0:{size - 1}) = {text}"
        self.root.constants.append(declared)
        return f"! {name}: {size} constants"

    def loop(self, counter: str, size: int) -> str:
        self.declare("integer", counter)
        return super().loop(counter, size)

    def counting(self, counter: str, steps: int, reverse: bool) -> str:
        self.declare("integer", counter)
        return super().counting(counter, steps, reverse)

    def part(self, name: str, array: str, counter: str, size: int) -> str:
        return self.copied(name, f"{array}({size}*{counter}:{size}*{counter} + {size - 1})", size)

    def tape(self, shapes: Sequence[Shape]) -> TapeVariables:
        values, count, grown = (self.fresh.numbered("t") for _ in range(3))
        width = sum(map(prod, shapes))
        for name in (values, grown):
            self.declare("double precision, allocatable", f"{name}(:, :)")
        self.declare("integer", count)
        again = "" if self.outer is None else f"if (allocated({values})) deallocate({values})"
        self.add(*[again] * bool(again), f"allocate({values}({width}, 64))", f"{count} = 0")
        return TapeVariables(values, count, grown, shapes)

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        values, count, grown = tape.values, tape.count, tape.capacity
        width = sum(map(prod, tape.shapes))
        self.add(
            f"if ({count} == size({values}, 2)) then",
            f"    allocate({grown}({width}, 2*{count}))",
            f"    {grown}(:, :{count}) = {values}",
            f"    call move_alloc({grown}, {values})",
            "end if",
            f"{count} = {count} + 1",
            f"{values}(:, {count}) = [{', '.join(names)}]",
        )

    def turned(self, tape: TapeVariables, record: str) -> list[str]:
        size = sum(map(prod, tape.shapes))
        copy = self.copied(record, f"{tape.values}(:, {tape.count})", size)
        return [f"do {tape.count} = {tape.count}, 1, -1", copy]


def wrapped(line: str) -> str:
    """Return a line in pieces that are short enough."""
    if len(line) <= _WIDTH:
        return line
    pieces = []
    for row in line.split("\n"):
        piece = row.removesuffix(" &")
        while len(piece) > _WIDTH:
            cut = piece.rfind(" ", 20, _WIDTH)
            if cut < 0:
                break
            pieces.append(piece[:cut] + " &")
            piece = "        " + piece[cut:].lstrip()
        pieces.append(piece + " &" if row.endswith(" &") else piece)
    return "\n".join(pieces)
