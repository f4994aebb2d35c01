"""Graph to C99."""

from __future__ import annotations

import math
import re
import unicodedata

from difflab.core.primitive import Primitive
from difflab.graph.function import Function
from difflab.graph.names import shortened
from difflab.language.printers.straight import StraightLinePrinter
from difflab.primitives import TABLE, helpers

__all__ = ["c"]

_ON_STACK = 16_384
"""Maximum number of elements of all intermediate arrays that are kept on the stack."""

_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while main f i x y"
)
_USED = frozenset(word for row in TABLE.values() for word in re.findall(r"[A-Za-z]\w+", row.c))
_RESERVED = (
    frozenset(_KEYWORDS.split()) - {"x", "y"}
    | _USED
    | {"INFINITY", "NAN", "calloc", "free", "sizeof"}
)


def c(function: Function) -> str:
    """Return a complete C99 function ``void f(const double *x, double *y)``.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.

    Returns
    -------
    str
        The source, preceded by definitions of functions that C99 lacks. `x` holds the
        inputs one after the other, in the order of ``function.inputs``, and `y` receives the
        outputs; arrays are flat and row-major.
        Intermediate arrays are on the stack or, if they are large, in memory that each call
        allocates and frees; if the allocation fails, all outputs are NAN.

    Raises
    ------
    UnsupportedError
        C99's math.h lacks a function, such as ``digamma``.

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
    return _C(function).source()


class _C(StraightLinePrinter):
    language = "C99"

    def __init__(self, function: Function) -> None:
        super().__init__(function, _RESERVED)
        self.declared: list[tuple[int, str, int]] = []
        """The intermediate arrays: index of the declaring line, name and size."""
        inputs = self.view.function.inputs
        pointers = ("x", "y") if not {"x", "y"} & set(inputs) else ("point", "result")
        plain = [_ascii(name) for name in inputs]
        self.point, self.result = (_unused(name, plain) for name in pointers)
        for name in (self.point, self.result):
            self.fresh.fresh(name)
        for node, name in zip(self.view.function.input_nodes, plain, strict=True):
            self.names[node] = self.fresh.fresh(name)

    def source(self) -> str:
        """Return the source of the function."""
        self._unpack()
        self.compute()
        begins, ends = self._workspace()
        self._pack()
        inputs = shortened(self.view.function.inputs) or "nothing"
        outputs = shortened(self.view.function.output_names)
        head = [
            "#include <math.h>",
            *(["#include <stdlib.h>"] if begins else []),
            "",
            *[line for text in self._helpers() for line in (text, "")],
            f"/* {self.point}: {inputs}; {self.result}: {outputs} */",
            f"void f(const double *{self.point}, double *{self.result})",
        ]
        return "\n".join([*head, "{", *begins, *self.lines, *ends, "}"])

    def _helpers(self) -> list[str]:
        """Return the definitions of the helper functions that the templates call."""
        return list(helpers.used([row.c for row in self.forms], helpers.C).values())

    def _workspace(self) -> tuple[list[str], list[str]]:
        """Allocate large arrays on the heap; return the lines that allocate and free them."""
        total = sum(size for _, _, size in self.declared)
        if total <= _ON_STACK:
            return [], []
        work, start = self.fresh.fresh("work"), 0
        for line, name, size in self.declared:
            self.lines[line] = f"{self.indent}double *const {name} = {work} + {start};"
            start += size
        outputs = sum(math.prod(self.graph.shape(node)) for node in self.view.outputs)
        begins = [
            f"double *const {work} = calloc({total}, sizeof(double));",
            f"if (!{work}) {{",
            f"{self.indent}{self.loop('i', outputs)} {self.result}[i] = NAN;",
            f"{self.indent}return;",
            "}",
        ]
        return [self.indent + line for line in begins], [f"{self.indent}free({work});"]

    def _unpack(self) -> None:
        """Name the used inputs; compilers warn about unused variables."""
        start = 0
        for node in self.view.function.input_nodes:
            shape, name = self.graph.shape(node), self.names[node]
            if self.view.uses[node]:
                line = (
                    f"const double *const {name} = {self.point} + {start};"
                    if shape
                    else f"const double {name} = {self.point}[{start}];"
                )
                self.lines.append(self.indent + line)
            start += math.prod(shape)

    def _pack(self) -> None:
        """Write the outputs into the result, one after the other."""
        start = 0
        for node in self.view.outputs:
            size = math.prod(self.graph.shape(node))
            if self.graph.shape(node) and node not in self.listed:
                target = f"{self.result}[{start} + i]" if start else f"{self.result}[i]"
                self.loops([("i", size)], target, "=", f"{self.names[node]}[i]")
            else:
                for position, element in enumerate(self.elements(node), start):
                    self.lines.append(f"{self.indent}{self.result}[{position}] = {element};")
            start += size

    def spelled(self, name: str) -> str:
        return _ascii(name)

    def template(self, row: Primitive) -> str:
        return row.c

    def number(self, value: float, name: str | None) -> str:
        written = repr(float(value))
        return {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}.get(written, written)

    def scalar(self, name: str, value: str, row: Primitive | None) -> str:
        kind = "int" if row is not None and row.boolean else "double"
        return f"const {kind} {name} = {value};"

    def array(self, name: str, size: int) -> str:
        self.declared.append((len(self.lines), name, size))
        return f"double {name}[{size}] = {{0}};"

    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        kind = "long" if places else "double"
        return f"static const {kind} {name}[{size}] = {{{values}}};"

    def loop(self, counter: str, size: int) -> str:
        return f"for (long {counter} = 0; {counter} < {size}; {counter}++)"

    def assignment(self, target: str, sign: str, value: str) -> str:
        return f"{target} {sign} {value};"


def _ascii(name: str) -> str:
    """Return an ASCII name: Greek letters by name, others by code point."""
    return "".join(character if character.isascii() else _spelled(character) for character in name)


def _spelled(character: str) -> str:
    words = unicodedata.name(character, "").split()
    greek = words[:1] == ["GREEK"] and len(words) == 4
    return words[3].lower() if greek else f"u{ord(character):04x}"


def _unused(name: str, used: list[str]) -> str:
    while name in used:
        name += "_"
    return name
