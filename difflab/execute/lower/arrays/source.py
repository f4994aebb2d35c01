"""Array programs as straight-line source over NumPy and BLAS, and calls of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from difflab.execute.lower import scalar
from difflab.execute.lower.arrays.layout import BufferLayout
from difflab.execute.lower.ops import BOOL, FEW, FLOAT, Array, Op, OpForm
from difflab.execute.memory_plan import MemoryPlan
from difflab.graph.ir import Shape
from difflab.graph.pytree import Structure, expression

_PIECE = 2000  # statements per function; CPython compiles longer ones in superlinear time
_SMALL = 8192  # elements of an array: constants may be broadcast, BLAS starts no threads
_EXTREMES = (np.maximum, np.minimum)


def compiled(source: str, scope: dict[str, Any]) -> dict[str, Any]:
    """Execute `source` in the namespace `scope`, and return it."""
    code = compile(source, "<difflab.compile>", "exec", dont_inherit=True)
    exec(code, scope)  # noqa: S102 - the source holds only NumPy names and numbers
    return scope


class SourceWriter:
    """Writes the statements of a program.

    Attributes
    ----------
    source : str
        The whole code.
    prepared : list of int
        The prepared values that it names.
    """

    def __init__(self, layout: BufferLayout) -> None:
        self.layout = layout
        self.program = layout.program
        self.scope: dict[str, Any] = {
            "broadcast_to": np.broadcast_to,
            "copyto": np.copyto,
            "concatenate": np.concatenate,
            "empty": np.empty,
            "asarray": np.asarray,
            "float64": np.float64,
            "matmul": np.matmul,
            "vecdot": np.vecdot,
            "owned": _owned,
            "inf": math.inf,
            "nan": math.nan,
        }
        self.cells: dict[int, int] = {}
        self.returned: set[int] = set()
        ops = [op for op in self.program.ops if layout.runs(op)]
        self.large = len(ops) > _PIECE
        lines = [line for op in ops for line in (*self._statement(op), *self._dropped(op))]
        results = "".join(f"{self._result(number)}, " for number in self.program.outputs)
        lines.append(f"return ({results.removesuffix(' ')})")
        self.source = "\n".join(self._in_pieces(lines) if self.large else self._whole(lines))

    @property
    def prepared(self) -> list[int]:
        """The prepared values that the code names."""
        return list(self.cells)

    def factory(self) -> Callable[..., Callable[..., tuple[Any, ...]]]:
        """Return the function that binds the code to prepared values."""
        body = "\n".join(f"    {line}" for line in self.source.splitlines())
        names = "".join(f"c{number}, " for number in self.cells)
        unpacked = f"    {names}= c\n" if names and not self.large else ""
        source = f"def make(c):\n{unpacked}{body}\n    return point"
        made: Callable[..., Any] = compiled(source, self.scope)["make"]
        return made

    def _whole(self, lines: Sequence[str]) -> list[str]:
        head = ", ".join(f"a{index}" for index in range(len(self.program.input_shapes)))
        return [f"def point({head}):", *(f"    {line}" for line in lines)]

    def _in_pieces(self, lines: Sequence[str]) -> list[str]:
        """Split the statements into functions, which share the values in a list."""
        pieces = [lines[start : start + _PIECE] for start in range(0, len(lines), _PIECE)]
        text: list[str] = []
        for index, piece in enumerate(pieces):
            text += [f"def piece{index}(v):", *(f"    {line}" for line in piece), ""]
        size = self.layout.values
        text += ["def point(*given):", f"    v = [*given, *[None] * {size - self.layout.inputs}]"]
        text += [f"    piece{index}(v)" for index in range(len(pieces) - 1)]
        return [*text, f"    return piece{len(pieces) - 1}(v)"]

    # --- names ----------------------------------------------------------------------------

    def _name(self, number: int) -> str:
        if number in self.layout.prepared:
            number = self.layout.first.get(number, number)
            index = self.cells.setdefault(number, len(self.cells))
            return f"c[{index}]" if self.large else f"c{number}"
        if self.large:
            return f"v[{number}]"
        return f"a{number}" if number < self.layout.inputs else f"v{number}"

    def _function(self, function: Callable[..., Any], name: str) -> str:
        """Return a unique name for a function, and define it in the scope."""
        while self.scope.setdefault(name, function) is not function:
            name += "_"
        return name

    def _array(self, number: int) -> str:
        """Return an expression of a value that has the methods of an array."""
        name = self._name(number)
        if self.layout.shape(number) == () and number not in self.layout.prepared:
            return f"asarray({name})"
        return name

    def _result(self, number: int) -> str:
        """Return the expression of an output, which shares no memory with other arrays."""
        name = self._name(number)
        if self.layout.shape(number) == ():
            op = self.program.made.get(number)
            return f"{'bool' if op is not None and op.dtype == BOOL else 'float'}({name})"
        below = self.layout.below(number)
        if below in self.returned:
            return f"{name}.copy()"
        self.returned.add(below)
        if below in self.layout.fresh:
            return name
        op = self.program.made.get(below)
        if op is not None and op.form == OpForm.KERNEL and below == number:
            return f"owned({', '.join([name, *map(self._name, op.reads)])})"
        return f"{name}.copy()"

    # --- statements -----------------------------------------------------------------------

    def _statement(self, op: Op) -> list[str]:
        written = self.layout.written(op)
        target = "" if written else self._name(op.number)
        if op.form == OpForm.SELECT and op.shape != ():
            lines = [] if written else [f"{target} = empty({op.shape}, '{op.dtype.str}')"]
            out = self._name(op.number)
            condition, value, other = map(self._name, op.reads)
            return [*lines, f"copyto({out}, {other})", f"copyto({out}, {value}, where={condition})"]
        if op.form == OpForm.PLACE:
            lines = [] if written else [f"{target} = empty({op.shape})"]
            return [*lines, *self._placed(op)]
        out = self._name(op.number) if written else ""
        text = getattr(self, f"_{op.form}")(op, out)
        return [text if written else f"{target} = {text}"]

    def _dropped(self, op: Op) -> list[str]:
        return [f"{self._name(number)} = None" for number in self.layout.dropped.get(op.number, ())]

    def _ufunc(self, op: Op, out: str) -> str:
        name = self._function(op.detail, op.detail.__name__)
        args = [self._name(number) for number in op.reads]
        if op.detail in _EXTREMES:
            args = [self._spread(number, op.shape) for number in op.reads]
        if out:
            # The extremes accept `out` by keyword only.
            args.append(f"out={out}" if op.detail in _EXTREMES else out)
        return f"{name}({', '.join(args)})"

    def _spread(self, number: int, shape: tuple[int, ...]) -> str:
        """Return an operand of an extreme: NumPy's vector code needs contiguous elements."""
        known = self.program.known.get(number)
        if known is None or known.shape != () or shape == ():
            return self._name(number)
        stored = shape if math.prod(shape) <= _SMALL else shape[-1:]
        name = f"c{number}_{'_'.join(map(str, stored))}"
        self.scope.setdefault(name, np.full(stored, known))
        return name

    def _reduce(self, op: Op, out: str) -> str:
        ufunc, axes, keepdims = op.detail
        x = self._name(op.reads[0])
        shape = self.layout.shape(op.reads[0])
        matrix = ufunc is np.add and not keepdims and axes is not None and len(shape) == 2
        # For large matrices BLAS would start threads, which costs more than the work.
        if matrix and shape[axes[0]] <= FEW and math.prod(shape) <= _SMALL:
            ones = self._ones(shape[axes[0]])
            tail = f", {out}" if out else ""
            return f"{ones}.dot({x}{tail})" if axes == (0,) else f"{x}.dot({ones}{tail})"
        name = self._function(ufunc, ufunc.__name__)
        tail = ""
        if keepdims:
            tail = f", None, {out or None}, True"
        elif out:
            tail = f", None, {out}"
        axis = axes[0] if axes is not None and len(axes) == 1 else axes
        return f"{name}.reduce({x}, {axis}{tail})"

    def _ones(self, size: int) -> str:
        name = f"ones{size}"
        self.scope.setdefault(name, np.ones(size))
        return name

    def _product(self, op: Op, out: str) -> str:
        x, y = map(self._name, op.reads)
        tail = f", {out}" if out else ""
        shapes = [self.layout.shape(number) for number in op.reads]
        singles = [
            name for name, shape in zip((x, y), shapes, strict=True) if math.prod(shape) == 1
        ]
        if max(map(len, shapes)) > 2 or len(singles) == 2:
            return f"matmul({x}, {y}{tail})"
        if singles:  # `dot` scales by the one element, and 0 then gives 0 for inf
            return f"{x}.dot({y}{tail}) if {singles[0]} else matmul({x}, {y}{tail})"
        return f"{x}.dot({y}{tail})"

    def _inner(self, op: Op, out: str) -> str:
        x, y = (
            name if len(self.layout.shape(number)) == 1 else f"{name}.reshape(-1)"
            for name, number in zip(map(self._name, op.reads), op.reads, strict=True)
        )
        return f"{x}.dot({y})"

    def _along(self, op: Op, out: str) -> str:
        x, y = map(self._name, op.reads)
        return f"vecdot({x}, {y}{f', {out}' if out else ''})"

    def _view(self, op: Op, out: str) -> str:
        name, detail = op.detail
        x = self._array(op.reads[0])
        if name == "broadcast":
            return f"broadcast_to({x}, {detail})"
        if name == "index":
            return f"{x}[{', '.join(map(_entry, detail))}]"
        if name == "transpose" and detail == tuple(range(len(detail)))[::-1]:
            return f"{x}.T"
        return f"{x}.{name}({repr(detail.str) if name == 'view' else detail})"

    def _item(self, op: Op, out: str) -> str:
        return f"{self._array(op.reads[0])}.item({', '.join(map(str, op.detail))})"

    def _widen(self, op: Op, out: str) -> str:
        x = self._name(op.reads[0])
        return f"copyto({out}, {x})" if out else f"{x}.astype('{op.dtype.str}')"

    def _select(self, op: Op, out: str) -> str:
        condition, value, other = map(self._name, op.reads)
        return f"{value} if {condition} else {other}"

    def _join(self, op: Op, out: str) -> str:
        parts = ", ".join(map(self._name, op.reads))
        return f"concatenate(({parts},), {op.detail}{f', {out}' if out else ''})"

    def _take(self, op: Op, out: str) -> str:
        x, indices = map(self._name, op.reads)
        # The indices are in range: clipping changes none, and avoids a copy of the output.
        return f"{x}.take({indices}, {op.detail}, {out or None}, 'clip')"

    def _placed(self, op: Op) -> list[str]:
        """Assign the parts to the result; add them if parts may overlap."""
        keys, gaps = op.detail
        out = self._name(op.number)
        lines = [f"{out}.fill(0.0)"] if gaps else []
        for index, (number, key) in enumerate(zip(op.reads, keys, strict=True)):
            entries = ", ".join(map(_entry, key)) or "..."
            sign = "+=" if gaps and index else "="
            lines.append(f"{out}[{entries}] {sign} {self._name(number)}")
        return lines

    def _scalar(self, op: Op, out: str) -> str:
        template, names = scalar.guarded(op.detail)
        for name, value in names.items():
            self.scope[name] = value
        return template.format(*[self._number(number) for number in op.reads])

    def _number(self, number: int) -> str:
        if number not in self.program.known:
            return self._name(number)
        value = self.program.known[number].item()
        return f"({value!r})" if str(value)[0] == "-" else repr(value)

    def _kernel(self, op: Op, out: str) -> str:
        name = self._function(op.kernel, f"{op.detail[0].name}_{op.number}")
        args = [
            f"float64({self._name(number)})"
            if self.layout.shape(number) == ()
            else self._name(number)
            for number in op.reads
        ]
        return f"{name}({', '.join(args)})"


def _entry(entry: Any) -> str:
    """Return the source text of one entry of an indexing key."""
    if entry is Ellipsis:
        return "..."
    if isinstance(entry, tuple):
        return ":".join("" if part is None else str(part) for part in entry)
    return str(entry)


def _owned(value: Any, *sources: Any) -> Array:
    """Return an array that shares no memory with `sources` or a base array."""
    array = np.asarray(value)
    alone = array.base is None and not any(array is source for source in sources)
    return array if alone else array.copy()


# --- calls at one point: workspaces, each for one call at a time, and a fast call ----------------

Workspace = tuple[Callable[..., Any], Callable[..., Any]]
"""A runner and code bound to its own memory: ``workspace[0](workspace[1], *inputs)``."""


class PointTarget:
    """Base class of targets that compute a function of arrays at one point.

    Parameters
    ----------
    input_shapes : sequence of tuple
        The shape of each input.
    outputs : int
        The number of outputs.
    """

    def __init__(self, input_shapes: Sequence[Shape], outputs: int) -> None:
        self.input_shapes = input_shapes
        self.outputs = outputs
        self._workspaces: list[Workspace] = []

    @property
    def source(self) -> str:
        """The code of one point."""
        raise NotImplementedError

    def workspace(self) -> Workspace:
        """Allocate memory, and return the code bound to it."""
        raise NotImplementedError

    def memory_plan(self) -> MemoryPlan:
        """Return the memory that a call needs."""
        raise NotImplementedError

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Return the outputs for one float64 value per input, at one point."""
        arguments = [
            value if shape else float(value)
            for value, shape in zip(values, self.input_shapes, strict=True)
        ]
        workspace = self._workspaces.pop() if self._workspaces else self.workspace()
        results = workspace[0](workspace[1], *arguments)
        self._workspaces.append(workspace)
        return list(results)

    def entry(self, structure: Structure | None) -> tuple[str, Callable[..., Any]]:
        """Return source and code of a method for float64 arrays; other calls go to `general`."""
        shapes = self.input_shapes
        names = [f"a{number}" for number in range(len(shapes))]
        checks = [
            f"{name}.__class__ is ndarray and {name}.dtype is float64 and {name}.shape == {shape}"
            if shape
            else f"{name}.__class__ is float"
            for name, shape in zip(names, shapes, strict=True)
        ]
        parameters = "".join(f"{name}=None, " for name in names)
        slash = "/, " if names else ""
        run, scope = self._run(", ".join(names), structure)
        source = "\n".join(
            [
                f"def call(self, {parameters}{slash}*rest, **named):",
                f"    if {' and '.join([*checks, 'not rest and not named'])}:",
                *run,
                f"    return self.general(({''.join(f'{name}, ' for name in names)}*rest,), named)",
            ]
        )
        return source, self._loaded(source, scope)

    def unchecked(self, structure: Structure | None) -> Callable[..., Any]:
        """Return a method for a sequence of values that the checks of `entry` accept."""
        run, scope = self._run("*values", structure)
        return self._loaded("\n".join(["def call(self, values):", *run]), scope)

    def _run(
        self, arguments: str, structure: Structure | None
    ) -> tuple[list[str], Mapping[str, Any]]:
        """Return the lines that compute and return the results, and the values that they name."""
        results = [f"r{number}" for number in range(self.outputs)]
        grouped, scope = _grouped(structure, results)
        lines = [
            "        try:",
            "            space = spaces.pop()",
            "        except IndexError:",
            "            space = make()",
            f"        {', '.join(results)}, = space[0](space[1], {arguments})",
            "        spaces.append(space)",
            f"        return {grouped}",
        ]
        return lines, scope

    def _loaded(self, source: str, named: Mapping[str, Any]) -> Callable[..., Any]:
        scope = {
            **named,
            "ndarray": np.ndarray,
            "float64": FLOAT,
            "spaces": self._workspaces,
            "make": self.workspace,
        }
        call: Callable[..., Any] = compiled(source, scope)["call"]
        return call


def _grouped(structure: Structure | None, results: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    """Return the expression that groups the results as a call does, and the values it names."""
    if structure is None:
        return (results[0] if len(results) == 1 else f"({', '.join(results)})"), {}
    grouped = expression(structure, results)
    return grouped or (f"self.function.returned(({', '.join(results)},))", {})
