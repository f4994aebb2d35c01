"""The target ``python``: straight-line source over `math`, for one point at a time.

The source is generated from the graph alone: every name in it is an index of the schedule, never
a name of the user's. The plain code runs first; if `math` raises, the guarded code returns
nan and inf as NumPy does. Large graphs are split into several functions, since CPython's compiler
needs more than linear time for one long function.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.execute.call_arguments import written
from difflab.execute.lower import scalar
from difflab.execute.lower.arrays.source import compiled
from difflab.execute.lower.schedule import ScalarProgram, point_by_point
from difflab.graph.ir import Shape

_PIECE = 400  # statements per function
_LONGEST = 12  # operations per expression
_SHORT = 6  # elements of an array that is filled element by element
_DIRECT = 8  # inputs that are parameters of a generated method
FEW_CALLS = 16  # that are interpreted, since writing and compiling the code takes as long as 16
_PLACEHOLDER = re.compile(r"\{(\d)\}")
# One pair of brackets around the whole expression, with at most two more levels inside.
_INNER = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
_CLOSED = re.compile(rf"\w*\({_INNER}\)")

_ARRAYS = {
    "array": np.array,
    "empty": np.empty,
    "float64": np.dtype(np.float64),
    "ndarray": np.ndarray,
    "written": written,
}

Parts = list["str | int"]
Forms = Callable[[Primitive], tuple[str, dict[str, Any]]]


class PythonTarget:
    """A program as Python code.

    Parameters
    ----------
    program : ScalarProgram
        The program to compile.
    input_shapes : sequence of tuple
        The shape of each input at one point.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.execute.lower.schedule import Schedule
    >>> f = dl.value_and_gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)"))
    >>> target = PythonTarget(ScalarProgram.of(f), f.input_shapes)
    >>> print(target.source)
    def point(p):
        a0, a1 = p
        return (log(a0) + (a0 * a1)) - sin(a1), a1 + (nan if a0 < 0.0 else 1.0 / a0), a0 - cos(a1)
    >>> target.point([0.0, 5.0])[:2]
    (-inf, inf)
    """

    def __init__(self, program: ScalarProgram, input_shapes: Sequence[Shape]) -> None:
        self.program = program
        self.input_shapes = input_shapes
        self.shapes: list[Shape] = [cells.shape for cells in program.outputs]
        self.parts = program.parts
        self._calls = 0
        self._safe: Callable[[Sequence[float]], Sequence[Any]] | None = None

    @cached_property
    def _plain(self) -> _PythonWriter:
        return _PythonWriter(self.program, scalar.plain)

    @cached_property
    def source(self) -> str:
        """The code for one point, whose parameter is the flattened inputs."""
        return self._plain.source("point(p)")

    @cached_property
    def run(self) -> Callable[[Sequence[float]], Sequence[Any]]:
        """The compiled plain code, which raises if an operation is undefined or overflows."""
        point: Callable[..., Any] = compiled(self.source, dict(self._plain.names))["point"]
        return point

    def point(self, numbers: Sequence[float]) -> Sequence[Any]:
        """Return the flattened outputs at the flattened inputs, which are Python floats."""
        try:
            if self._calls < FEW_CALLS:
                self._calls += 1
                return self.interpreted(numbers)
            return self.run(numbers)
        except (ArithmeticError, ValueError):
            return self.guarded(numbers)

    def interpreted(self, numbers: Sequence[float]) -> list[Any]:
        """Return the result of `run`, interpreted operation by operation."""
        values = {**self.program.known, **dict(enumerate(numbers))}
        for cell, row, args, _ in self.program.steps:
            values[cell] = scalar.called(row)(*[values[arg] for arg in args])
        return [values[cell] for cells in self.program.outputs for cell in cells.ravel().tolist()]

    def guarded(self, numbers: Sequence[float]) -> Sequence[Any]:
        """Return the flattened outputs where an operation is undefined or overflows."""
        if self._safe is None:
            writer = _PythonWriter(self.program, scalar.guarded)
            self._safe = compiled(writer.source("point(p)"), writer.names)["point"]
        return self._safe(numbers)

    def shaped(self, flat: Sequence[Any]) -> list[Any]:
        """Return the flattened outputs as one scalar or array per output."""
        return [
            np.array(flat[part]).reshape(shape) if shape else flat[part.start]
            for shape, part in zip(self.shapes, self.parts, strict=True)
        ]

    def __call__(self, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Return the outputs for one value per input, point by point."""
        if batch == ():
            return self.shaped(self.point(_flattened(values)))
        count = math.prod(batch)
        rows = [
            point_by_point(value, shape, batch)
            for value, shape in zip(values, self.input_shapes, strict=True)
        ]
        points = np.concatenate(rows, axis=1).tolist() if rows else [[]] * count
        flats = [self.point(point) for point in points]
        return [
            np.array([flat[part] for flat in flats]).reshape(batch + shape)
            for shape, part in zip(self.shapes, self.parts, strict=True)
        ]

    def entry(
        self, *, packed: bool, calls: int = 0, then: Callable[[Any], None] | None = None
    ) -> tuple[str, Callable[..., Any]] | None:
        """Return source and code of a method for float arguments that falls back to `general`.

        None if it would have too many inputs or operations, or if inputs are arrays. After some
        `calls` with floats, each further one calls the method `then` first.
        """
        inputs = self.program.inputs
        if not 0 < inputs <= _DIRECT or (any(self.input_shapes) and not packed):
            return None
        if self._plain.pieces > 1:
            return None
        names = [f"a{cell}" for cell in range(inputs)]
        if packed:
            head = "def call(self, points, /, out=None):"
            check = f"points.__class__ is ndarray and points.shape == ({inputs},)"
            check += " and points.dtype is float64"
            memory = ["    if out is not None:", "        return written(call(self, points), out)"]
            unpacked = [f"{', '.join(names)}{',' * (inputs == 1)} = points.tolist()"]
            otherwise = "points"
        else:
            head = (
                f"def call(self, {', '.join(f'{name}=None' for name in names)}, /, *rest, **named):"
            )
            check = " is ".join(f"{name}.__class__" for name in names)
            check += " is float and not rest and not named"
            memory, unpacked = [], []
            otherwise = f"({', '.join(names)}, *rest), named"
        lines, results = self._plain.body()
        filled, returned = self._returned(results)
        before = [head, *memory, f"    if {check}:", "        try:"]
        computed = [*unpacked, *lines, *filled, f"return {', '.join(returned)}"]
        after = [
            "        except (ArithmeticError, ValueError):",
            "            pass",
            f"    return self.general({otherwise})",
        ]
        inner = [f"            {line}" for line in computed]
        source = "\n".join([*before, *inner, *after])
        scope: dict[str, Any] = {**self._plain.names, **_ARRAYS}
        if then is None:
            return source, compiled(source, scope)["call"]
        scope |= {"calls": repeat(None, calls), "then": then}
        # The loop takes one item for each call, which is the fastest way to count.
        inner = ["            for _ in calls:", *(f"                {line}" for line in computed)]
        counting = "\n".join([*before, *inner, "            then(self)", *after])
        return source, compiled(counting, scope)["call"]

    def _returned(self, results: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the lines that fill the arrays among the outputs, and the outputs.

        A short array is filled fastest element by element.
        """
        lines: list[str] = []
        parts: list[str] = []
        for number, (shape, part) in enumerate(zip(self.shapes, self.parts, strict=True)):
            values = results[part]
            if shape == ():
                parts.append(values[0])
            elif len(values) <= _SHORT and not self._boolean(part):
                parts.append(f"r{number}")
                lines.append(f"r{number} = empty({shape if len(shape) > 1 else shape[0]})")
                keys = [", ".join(map(str, key)) for key in np.ndindex(shape)]
                pairs = zip(keys, values, strict=True)
                lines += [f"r{number}[{key}] = {value}" for key, value in pairs]
            else:
                inner = ", ".join(values)
                parts.append(f"array([{inner}]).reshape({shape})")
        return lines, parts

    def _boolean(self, part: slice) -> bool:
        """Return whether an element of an output is a truth value."""
        truths = {cell for cell, row, _, _ in self.program.steps if row.boolean}
        truths |= {cell for cell, value in self.program.known.items() if isinstance(value, bool)}
        return not truths.isdisjoint(self._plain.flat[part])


def _flattened(values: Sequence[Any]) -> list[float]:
    flat: list[float] = []
    for value in values:
        if np.ndim(value):
            flat += np.ravel(value).tolist()
        else:
            flat.append(float(value))
    return flat


@dataclass(frozen=True)
class _Form:
    """A row's expression, cut at its operands.

    Attributes
    ----------
    texts : tuple of str
        The text before each operand, then the text behind the last.
    places : tuple of int
        The index of the argument that each operand is.
    enclosed : tuple of bool
        Whether brackets or commas of the expression enclose an operand.
    closed : bool
        Whether brackets enclose the expression, so that it needs none as an operand.
    names : dict of str to object
        The functions that it names.
    """

    texts: tuple[str, ...]
    places: tuple[int, ...]
    enclosed: tuple[bool, ...]
    closed: bool
    names: dict[str, Any]


@cache
def _form(read: Forms, row: Primitive) -> _Form:
    """Return the row's expression as `read` writes it."""
    template, names = read(row)
    pieces = _PLACEHOLDER.split(template)
    texts = tuple(pieces[::2])
    enclosed = [
        before.endswith(("(", ", ")) and behind.startswith((")", ", "))
        for before, behind in pairwise(texts)
    ]
    closed = _CLOSED.fullmatch("".join(pieces)) is not None
    return _Form(texts, tuple(map(int, pieces[1::2])), tuple(enclosed), closed, names)


class _PythonWriter:
    """Statements, each an expression of a bounded number of operations."""

    def __init__(self, program: ScalarProgram, forms: Forms) -> None:
        self.program = program
        self.names: dict[str, Any] = {"inf": scalar.NAMES["inf"], "nan": scalar.NAMES["nan"]}
        self.forms = {row: _form(forms, row) for row in {step.row for step in program.steps}}
        for form in self.forms.values():
            self.names.update(form.names)
        self.flat = [int(cell) for cells in program.outputs for cell in cells.ravel()]
        self.inlined: dict[int, Parts] = {}
        self.statements: list[tuple[int, Parts]] = []
        self._write()
        self.pieces = max(1, -(-len(self.statements) // _PIECE))

    def _write(self) -> None:
        uses, inlined = self._uses(), self.inlined
        sizes: dict[int, int] = {}
        closed: set[int] = set()
        for cell, row, args, _ in self.program.steps:
            form = self.forms[row]
            first, *others = form.texts
            parts: Parts = [first]
            size = 1
            for index, enclosed, behind in zip(form.places, form.enclosed, others, strict=True):
                argument = args[index]
                operand = inlined.pop(argument, None)
                if operand is None:
                    parts.append(argument)
                else:
                    size += sizes[argument]
                    bare = enclosed or argument in closed
                    parts += operand if bare else ["(", *operand, ")"]
                parts.append(behind)
            if uses.get(cell) == 1 and size <= _LONGEST:
                inlined[cell], sizes[cell] = parts, size
                if form.closed:
                    closed.add(cell)
            else:
                self.statements.append((cell, parts))

    def _uses(self) -> dict[int, int]:
        """Return how many times each cell appears in the source."""
        forms, cells = self.forms, self.flat.copy()
        for _, row, args, _ in self.program.steps:
            cells += [args[index] for index in forms[row].places]
        return Counter(cells)

    def _text(self, parts: Parts, names: dict[int, str]) -> str:
        return "".join([part if isinstance(part, str) else names[part] for part in parts])

    def _leaf(self, cell: int) -> str | None:
        """Return the literal of a constant."""
        value = self.program.known.get(cell)
        if value is None:
            return None
        return f"({value!r})" if isinstance(value, float) and str(value)[0] == "-" else repr(value)

    def body(self) -> tuple[list[str], list[str]]:
        """Return the statements of a program of one piece, and the expressions of the results."""
        names = {cell: f"a{cell}" for cell in range(self.program.inputs)}
        names.update({cell: self._leaf(cell) or "" for cell in self.program.known})
        lines = []
        for cell, parts in self.statements:
            lines.append(f"t{cell} = {self._text(parts, names)}")
            names[cell] = f"t{cell}"
        ready = {cell: self._text(parts, names) for cell, parts in self.inlined.items()}
        return lines, [ready.get(cell) or names[cell] for cell in self.flat]

    def source(self, head: str) -> str:
        """Return the source of the whole function, which takes a sequence of floats."""
        if self.pieces > 1 or self.program.inputs > _DIRECT or len(self.flat) > _PIECE:
            return "\n".join(self._in_pieces(head))
        lines, results = self.body()
        unpacked = "".join(f"a{cell}, " for cell in range(self.program.inputs))
        body = [f"{unpacked.removesuffix(' ' if self.program.inputs == 1 else ', ')} = p"]
        body = [*(body if self.program.inputs else []), *lines]
        comma = "," if len(results) == 1 else ""
        body.append(f"return {', '.join(results)}{comma}" if results else "return ()")
        return "\n".join([f"def {head}:", *(f"    {line}" for line in body)])

    def _in_pieces(self, head: str) -> Iterator[str]:
        """Yield functions that share values in a list, then the function that calls them."""
        results = [(cell, self.inlined.get(cell, [cell])) for cell in self.flat]
        writes = [*self.statements, *((-1, parts) for _, parts in results)]
        home = {cell: position // _PIECE for position, (cell, _) in enumerate(self.statements)}
        shared = self._shared(writes, home)
        names = {cell: f"p[{cell}]" for cell in range(self.program.inputs)}
        names.update({cell: self._leaf(cell) or "" for cell in self.program.known})
        count = -(-len(writes) // _PIECE)
        for piece in range(count):
            yield f"def piece{piece}(p, v, r):"
            local: list[int] = []
            for position in range(piece * _PIECE, min(len(writes), (piece + 1) * _PIECE)):
                cell, parts = writes[position]
                text = self._text(parts, names)
                if cell < 0:
                    yield f"    r[{position - len(self.statements)}] = {text}"
                    continue
                kept = f"v[{shared[cell]}] = " if cell in shared else ""
                yield f"    {kept}t{cell} = {text}"
                names[cell] = f"t{cell}"
                local.append(cell)
            names.update({cell: f"v[{shared[cell]}]" for cell in local if cell in shared})
        yield ""
        yield f"def {head}:"
        yield f"    v, r = [0.0] * {len(shared)}, [0.0] * {len(self.flat)}"
        yield from (f"    piece{piece}(p, v, r)" for piece in range(count))
        yield "    return r"

    def _shared(self, writes: Sequence[tuple[int, Parts]], home: dict[int, int]) -> dict[int, int]:
        """Assign a list index to each cell that another piece reads."""
        shared: dict[int, int] = {}
        if len(writes) <= _PIECE:
            return shared
        for position, (_, parts) in enumerate(writes):
            piece = position // _PIECE
            for part in parts:
                if isinstance(part, int) and home.get(part, piece) != piece:
                    shared.setdefault(part, len(shared))
        return shared
