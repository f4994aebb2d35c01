"""Graph to C99, and to CUDA C++."""

from __future__ import annotations

import math
from collections.abc import Sequence

from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.language.printers.array_loops import flat_index
from difflab.language.printers.expressions import Notation
from difflab.language.printers.packed import PackedPrinter
from difflab.language.printers.statements import TapeVariables
from difflab.primitives.c99 import C99

__all__ = ["c", "cuda"]

_ON_STACK = 16_384
"""Maximum number of elements of all intermediate arrays that are kept on the stack."""

_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while main i x y"
)
_NOTATION = Notation(
    functions={
        **{name: f"{name}({{0}})" for name in C99.values()},
        **{name: f"{name}({{0}}, {{1}})" for name in ("atan2", "fmod", "hypot", "pow")},
        **{name: f"{name}({{0}}, {{1}})" for name in ("jn", "yn")},
        "float32": "(double)(float)({0})",
    },
    definitions={
        "jn": "double jn(int n, double x);",  # of POSIX, which strict C99 does not declare
        "yn": "double yn(int n, double x);",
    },
)
_RESERVED = (
    frozenset(_KEYWORDS.split()) - {"x", "y"}
    | _NOTATION.words
    | {"INFINITY", "NAN", "NULL", "calloc", "free", "realloc"}
)


def c(function: Function, name: str = "f") -> str:
    """Return a complete C99 function ``void f(const double *x, double *y)``.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        The name of the C function.

    Returns
    -------
    str
        The source, preceded by definitions of functions that C99 lacks. `x` holds the
        inputs one after the other, in the order of ``function.inputs``, and `y` receives the
        outputs; arrays are flat and row-major. The two must not overlap.
        Intermediate arrays are on the stack or, if they are large, in memory that each call
        allocates and frees, as are the residuals of each iteration of a `while_loop`; if the
        allocation fails, all outputs are NAN. Loops and branches are statements. The graph is
        printed as it is, so that code and graph have the same operations: terms of one form
        become a loop where `difflab.graph.repetition.rolled` has made them one operation, as
        ``difflab derive`` lets it do with large functions.

    Raises
    ------
    UnsupportedError
        There is no function for an operation, such as ``exp_remainder`` of a variable order.

    Examples
    --------
    >>> import difflab as dl
    >>> print(c(dl.parse("ln(x1) + x1*x2 - sin(x2)")))
    #include <math.h>
    <BLANKLINE>
    /* x: x1, x2; y: y */
    void f(const double *x, double *y)
    {
        const double x1 = x[0];
        const double x2 = x[1];
        y[0] = log(x1) + x1 * x2 - sin(x2);
    }
    """
    return CPrinter(function, name).source()


class CPrinter(PackedPrinter):
    """Printer of a C99 function."""

    language = "C99"
    notation = _NOTATION
    reserved = _RESERVED
    end = ";"
    for_loop = "for (long {0} = {1}; {0} < {3}; {0}++)"
    backwards = "for (long {0} = {3}; {0}-- > 0;)"
    while_loop = "while ({0})"
    leaving = "if (!({0})) break;"
    branch = "if ({0})"
    otherwise = "} else {"
    opening = " {"
    end_loop = end_branch = "}"

    def _begin(self) -> None:
        super()._begin()
        self.declared: list[tuple[int, str, int]] = []
        """The intermediate arrays: index of the declaring line, name and size."""
        outer = self.outer
        self.tapes: list[TapeVariables] = [] if outer is None else outer.tapes
        self.label: str = self.fresh.fresh("end") if outer is None else outer.label

    def source(self) -> str:
        """Return the source of the function."""
        self.unpack()
        self.compute()
        begins, ends = self._workspace()
        kept, freed = self._kept()
        self.pack()
        head = [
            "#include <math.h>",
            *(["#include <stdlib.h>"] if begins or kept else []),
            "",
            *[line for text in self.definitions().values() for line in (text, "")],
            f"/* {self.contents()} */",
            f"void {self.name}(const double *{self.point}, double *{self.result})",
        ]
        return "\n".join([*head, "{", *begins, *kept, *self.lines, *freed, *ends, "}"])

    def _workspace(self) -> tuple[list[str], list[str]]:
        """Allocate large arrays on the heap; return the lines that allocate and free them."""
        total = sum(size for _, _, size in self.declared)
        if total <= _ON_STACK:
            return [], []
        work, start = self.fresh.fresh("work"), 0
        for line, name, size in self.declared:
            self.lines[line] = f"{self.indent}double *const {name} = {work} + {start};"
            start += size
        begins = [
            f"double *const {work} = calloc({total}, sizeof(double));",
            f"if (!{work}) {{",
            f"{self.indent}{self._undefined()}",
            f"{self.indent}return;",
            "}",
        ]
        return [self.indent + line for line in begins], [f"{self.indent}free({work});"]

    def _undefined(self) -> str:
        """Return the line that makes all outputs NAN."""
        if self.outer is not None:
            return self.outer._undefined()
        outputs = sum(math.prod(self.graph.shape(node)) for node in self.view.outputs)
        return f"{self.loop('i', outputs)} {self.result}[i] = NAN;"

    def _kept(self) -> tuple[list[str], list[str]]:
        """Return the lines that declare the tapes and those that free them."""
        begins = [f"double *{t.values} = NULL; long {t.capacity} = 0;" for t in self.tapes]
        frees = [f"free({t.values});" for t in self.tapes]
        label = [f"{self.label}:"] if frees else []
        return [self.indent + line for line in begins], [
            *label,
            *[self.indent + line for line in frees],
        ]

    def unpacked(self, name: str, array: str, start: int, size: int | None) -> str:
        if size is None:
            return f"const double {name} = {array}[{start}];"
        pointer = f"{array} + {start}" if start else array
        return f"const double *const {name} = {pointer};"

    def defined(self, name: str, parameters: Sequence[str], value: str) -> str:
        arguments = ", ".join(f"double {each}" for each in parameters)
        head = f"static double {name}({arguments})"
        return "\n".join([head, "{", *self.lines, f"{self.indent}return {value};", "}"])

    def definition(self, *, truth: bool) -> str:
        return f"const {'int' if truth else 'double'} %s = %s;"

    def array(self, name: str, size: int, *, truths: bool = False) -> str:
        if self.outer is not None:  # declared once, and cleared in each iteration
            self.outer.add(self.outer.array(name, size))
            return f"{self.loop('i', size)} {name}[i] = 0.0;"
        self.declared.append((len(self.lines), name, size))
        return f"double {name}[{size}] = {{0}};"

    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        kind = "long" if places else "double"
        return f"static const {kind} {name}[{size}] = {{{values}}};"

    def carry(self, name: str, value: str, size: int | None) -> None:
        if size is None:
            self.add(f"double {name} = {value};")
        else:
            self.add(self.array(name, size))
            self.assign_array(name, value, size)

    def assigned_later(self, name: str) -> None:
        self.add(f"double {name};")

    def ignore(self, name: str) -> None:
        if name:  # an array without elements has none
            self.add(f"(void){name};")

    def collected(self, elements: Sequence[str]) -> str:
        name = self._room(len(elements))
        for position, element in enumerate(elements):
            self.add(self.assignment(f"{name}[{position}]", "=", element))
        return name

    def saved(self, value: str, size: int | None) -> str:
        """Write a copy of a value and return its name."""
        if size is None:
            return super().saved(value, size)
        name = self._room(size)
        self.assign_array(name, value, size)
        return name

    def assign_array(self, name: str, value: str, size: int) -> None:
        """Write the loop that copies the elements of an array."""
        self.loops([("i", size)], f"{name}[i]", "=", f"{value}[i]")

    def _room(self, size: int) -> str:
        """Return an array that is written before it is read, declared outside of the loop."""
        name = self.fresh.numbered("t")
        around = self.outer or self
        around.add(around.array(name, size))
        return name

    def tape(self, shapes: Sequence[Shape]) -> TapeVariables:
        values, count, capacity = (self.fresh.numbered("t") for _ in range(3))
        variables = TapeVariables(values, count, capacity, shapes)
        self.tapes.append(variables)
        self.add(f"long {variables.count} = 0;")
        return variables

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        count, capacity, width = tape.count, tape.capacity, sum(map(math.prod, tape.shapes))
        grown = self.fresh.numbered("t")
        self.add(f"if ({count} == {capacity}) {{")
        inner = [
            f"{capacity} = 2*{capacity} + 64;",
            f"double *const {grown} = realloc({tape.values}, {width}*{capacity}*sizeof(double));",
            f"if (!{grown}) {{",
            f"{self.indent}{self._undefined()}",
            f"{self.indent}goto {self.label};",
            "}",
            f"{tape.values} = {grown};",
        ]
        self.add(*[self.indent + line for line in inner], indent=self.indent)
        self.add("}")
        for name, (start, size) in zip(names, _places(tape.shapes), strict=True):
            index = flat_index((start, (width, 1)), [count, "i"])
            if size is None:
                index = flat_index((start, (width,)), [count])
                self.add(self.assignment(f"{tape.values}[{index}]", "=", name))
            else:
                self.loops([("i", size)], f"{tape.values}[{index}]", "=", f"{name}[i]")
        self.add(f"{count}++;")

    def unwind(self, tape: TapeVariables) -> tuple[str, list[str]]:
        width, names = sum(map(math.prod, tape.shapes)), []
        for start, size in _places(tape.shapes):
            index = flat_index((start, (width,)), [tape.count])
            names.append(
                f"{tape.values}[{index}]" if size is None else f"({tape.values} + {index})"
            )
        return f"while ({tape.count}-- > 0) {{", names

    def part(self, name: str, array: str, counter: str, size: int) -> str:
        return f"const double *const {name} = {array} + {size}*{counter};"


def _places(shapes: Sequence[Shape]) -> list[tuple[int, int | None]]:
    """Return the offsets of one iteration's values on a tape, and the sizes of arrays."""
    sizes = [math.prod(shape) for shape in shapes]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return [
        (start, size if shape else None)
        for start, size, shape in zip(starts, sizes, shapes, strict=True)
    ]


# --- CUDA C++: a function for each thread, and a kernel over points ------------------------------

_PER_THREAD = 16_384
"""Maximum number of elements of all intermediate arrays, which each thread has in its memory."""
_CUDA_KEYWORDS = (
    "and bool catch class delete explicit export false friend mutable namespace new not nullptr "
    "operator or private protected public template this throw true try typename using virtual xor "
    "blockIdx blockDim threadIdx gridDim"
)


def cuda(function: Function, name: str = "f") -> str:
    """Return CUDA C++: a function ``f(x, y)`` of one point, and a kernel over many.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        The name of the function; the kernel is called ``f_points``.

    Returns
    -------
    str
        The source. `x` holds the inputs one after the other, in the order of ``function.inputs``,
        and `y` receives the outputs; arrays are flat and row-major. The function can be called on
        the host as well. The kernel takes the points one after the other, and their number.

    Raises
    ------
    UnsupportedError
        There is no function for an operation, such as ``exp_remainder`` of a variable order; a
        thread has no memory for the intermediate arrays, or none that grows, which the derivative
        of a `while_loop` needs.

    Examples
    --------
    >>> import difflab as dl
    >>> print(cuda(dl.parse("ln(x1) + x1*x2 - sin(x2)")))
    #include <math.h>
    <BLANKLINE>
    // x: x1, x2; y: y
    __host__ __device__ void f(const double *x, double *y)
    {
        const double x1 = x[0];
        const double x2 = x[1];
        y[0] = log(x1) + x1 * x2 - sin(x2);
    }
    <BLANKLINE>
    __global__ void f_points(const double *x, double *y, long points)
    {
        const long k = blockIdx.x * (long)blockDim.x + threadIdx.x;
        if (k < points)
            f(x + 2 * k, y + k);
    }
    """
    return _Cuda(function, name).source()


class _Cuda(CPrinter):
    language = "CUDA"
    reserved = CPrinter.reserved | frozenset(_CUDA_KEYWORDS.split())

    def source(self) -> str:
        """Return the source of the function and of the kernel."""
        self.unpack()
        self.compute()
        self.pack()
        count = sum(size for _, _, size in self.declared)
        if count > _PER_THREAD:
            raise UnsupportedError(
                f"the intermediate arrays have {count:,} numbers, and a thread of CUDA should have "
                f"at most {_PER_THREAD:,}; difflab.compile(f, target='cupy') runs array by array"
            )
        n, m = self.view.function.n, self.view.function.m
        x, y = (f"{'' if size == 1 else f'{size} * '}k" for size in (n, m))
        return "\n".join(
            [
                "#include <math.h>",
                "",
                *[line for text in self.definitions().values() for line in (text, "")],
                f"// {self.contents()}",
                f"__host__ __device__ void {self.name}"
                f"(const double *{self.point}, double *{self.result})",
                "{",
                *self.lines,
                "}",
                "",
                f"__global__ void {self.name}_points(const double *x, double *y, long points)",
                "{",
                "    const long k = blockIdx.x * (long)blockDim.x + threadIdx.x;",
                "    if (k < points)",
                f"        {self.name}(x + {x}, y + {y});",
                "}",
            ]
        )

    def definitions(self) -> dict[str, str]:
        """Return the functions that the templates call, for both sides."""
        return {
            name: text.replace("static double", "__host__ __device__ static double")
            for name, text in super().definitions().items()
            if not text.endswith(";")  # declared by CUDA
        }

    def tape(self, shapes: Sequence[Shape]) -> TapeVariables:
        raise UnsupportedError(
            "a thread of CUDA has no array that grows, which the derivative of a while loop needs; "
            "use a loop of a fixed number of steps, or another language"
        )
