"""The steps of an evaluation trace: their record and their texts.

Large traces keep their first and last steps; dropped ones are never formatted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from difflab.core.strict_json import dumps, strict
from difflab.drawing.order import BAR, DOT, short, subscript
from difflab.graph.calls import call_name
from difflab.graph.described import taken
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT
from difflab.report.trace.formulas import OperationFormula
from difflab.report.trace.lines import Line, call_text, sum_text

TraceRow = TypeVar("TraceRow")
NamedValue = tuple[str, Any]


@dataclass(frozen=True)
class TraceStep:
    """A line of a primal or tangent trace: ``v₁ = ln v₋₁ = ln 2 = 0.693147``.

    Attributes
    ----------
    name, shown : str
        ``v1``, printed v₁; its tangent is ``v1_dot``.
    formula, numbers : str
        The formula with names, and with values inserted.
    value : number or array
    call : str
        The function or layer in whose call it is computed; empty outside of calls.
    """

    name: str
    shown: str
    formula: str
    numbers: str
    value: Any
    call: str = ""


@dataclass(frozen=True)
class Adjoint:
    """A line of a reverse trace: one contribution to one adjoint.

    Attributes
    ----------
    name, shown : str
        The adjoint that is updated: ``v0_bar``, printed v̄₀.
    partial : str
        The contribution as a product: ``v̄₃ ∂v₃/∂v₀``.
    formula, numbers : str
        The formula with names, and with values inserted.
    contribution, value : number or array
        The value of the contribution, and the adjoint after adding it.
    accumulates : bool
        Whether the adjoint had an earlier contribution.
    mask : truth value or array, or None
        The elements whose branch was selected; None outside branches.
    call : str
        The function or layer whose operation contributes; empty outside of calls.
    """

    name: str
    shown: str
    accumulates: bool
    partial: str
    formula: str
    numbers: str
    contribution: Any
    value: Any
    mask: Any = None
    call: str = ""


@dataclass(frozen=True)
class TraceRows(Generic[TraceRow]):
    """The first and the last rows, and the number of omitted rows between them."""

    head: tuple[TraceRow, ...]
    tail: tuple[TraceRow, ...] = ()
    skipped: int = 0

    def __iter__(self) -> Iterator[TraceRow]:
        return iter(self.head + self.tail)

    def __len__(self) -> int:
        return len(self.head) + len(self.tail)


class Collector(Generic[TraceRow]):
    """Collects functions that make rows, and calls those of the rows that are kept."""

    def __init__(self, limit: int | None) -> None:
        self.first = math.inf if limit is None else limit - limit // 3
        self.head: list[Callable[[], TraceRow]] = []
        self.tail: deque[Callable[[], TraceRow]] = deque(maxlen=0 if limit is None else limit // 3)
        self.count = 0

    def add(self, row: Callable[[], TraceRow]) -> None:
        """Add a row."""
        self.count += 1
        (self.head if len(self.head) < self.first else self.tail).append(row)

    def rows(self) -> TraceRows[TraceRow]:
        """Make the rows that are kept."""
        head, tail = tuple(row() for row in self.head), tuple(row() for row in self.tail)
        return TraceRows(head, tail, self.count - len(head) - len(tail))


@dataclass(frozen=True)
class EvaluationTrace:
    """The evaluation trace of a function at a point.

    Attributes
    ----------
    expression : str
        The text of the function.
    point, outputs : tuple of (str, value)
        The inputs and the outputs.
    primal : TraceRows of TraceStep
        v₁, v₂, … in the order of evaluation.
    seed, tangents, directional
        The input of differentiation, the tangents, and ẏ of every output; None, None and ()
        without forward mode.
    output, adjoints, gradient
        The output of differentiation, the contributions to the adjoints, and its derivative by
        every input; None, None and () without reverse mode.
    notes : tuple of str
        Which inputs of a small function have a derivative that is exactly 0, and why.
    """

    expression: str
    point: tuple[NamedValue, ...]
    outputs: tuple[NamedValue, ...]
    primal: TraceRows[TraceStep]
    seed: str | None = None
    tangents: TraceRows[TraceStep] | None = None
    directional: tuple[NamedValue, ...] = ()
    output: str | None = None
    adjoints: TraceRows[Adjoint] | None = None
    gradient: tuple[NamedValue, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dictionary for strict JSON, schema ``difflab.trace/1``."""
        record: dict[str, Any] = {
            "schema": "difflab.trace/1",
            "expression": self.expression,
            "point": _mapping(self.point),
            "outputs": _mapping(self.outputs),
            "primal": _rows(self.primal),
        }
        if self.tangents is not None:
            record["forward"] = {
                "seed": self.seed,
                "tangents": _rows(self.tangents),
                "derivative": _mapping(self.directional),
            }
        if self.adjoints is not None:
            record["reverse"] = {
                "output": self.output,
                "adjoints": _rows(self.adjoints),
                "gradient": _mapping(self.gradient),
            }
        if self.notes:
            record["notes"] = list(self.notes)
        return record

    def to_json(self) -> str:
        """Return `to_dict` as strict JSON text."""
        return dumps(self.to_dict())


def plain(value: Any) -> Any:
    """Return a Python scalar for a zero-dimensional array, else the array."""
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array


def _mapping(pairs: tuple[NamedValue, ...]) -> dict[str, Any]:
    return {name: strict(value) for name, value in pairs}


def _rows(rows: TraceRows[Any]) -> list[dict[str, Any]]:
    """Return rows as JSON, without how the name is shown, and without an empty call."""
    return [
        {
            name: cell
            for name, cell in strict(row).items()
            if name != "shown" and (name != "call" or cell)
        }
        for row in rows
    ]


DIGITS = 4


class RowTexts:
    """Makes the rows of an evaluation.

    Parameters
    ----------
    function : Function
    names : mapping of int to str
        The names of the nodes that are shown.
    values : sequence
        The value of every node.
    """

    def __init__(self, function: Function, names: Mapping[int, str], values: Sequence[Any]) -> None:
        self.graph, self.names, self.values = function.graph, names, values

    def arguments(self, node: int) -> dict[str, Any]:
        """Return the values of an operation's arguments by their slots in a formula."""
        return {f"a{k}": self.values[arg] for k, arg in enumerate(self.graph.arguments(node))}

    def shown(self, node: int, mark: str = "") -> str:
        """Return a name as it is printed: v₃, v̇₃, v̄₃."""
        constant = self.graph.opcode[node] == CONSTANT
        return subscript(self.names[node], "" if constant else mark)

    def step(
        self,
        node: int,
        mark: str,
        formula: str,
        numbers: str,
        value: Any,
        line: Line | None = None,
    ) -> TraceStep:
        """Return the step of a node, in the calls of its line or in its own."""
        name = self.names[node] + {"": "", DOT: "_dot"}[mark]
        call = self._call(node) if line is None else line.call
        return TraceStep(name, self.shown(node, mark), formula, numbers, plain(value), call)

    def _call(self, node: int) -> str:
        return call_name(self.graph.source.call(int(self.graph.spans[node])))

    def written(
        self,
        node: int,
        mark: str,
        formula: OperationFormula,
        tangents: Mapping[str, Any],
        value: Any,
    ) -> TraceStep:
        """Return a step with its formula in names and in values."""
        names, numbers = self._texts(node)
        args = self.graph.arguments(node)
        names |= {slot: self.shown(args[int(slot[1:])], DOT) for slot in tangents}
        numbers |= {slot: _numeral(dot) for slot, dot in tangents.items()}
        return self.step(node, mark, formula.text(names), formula.text(numbers), value)

    def computed(self, node: int, formula: OperationFormula) -> TraceStep:
        """Return the step of an operation; of a loop or a branch also how often it ran."""
        step = self.written(node, "", formula, {}, self.values[node])
        row = self.graph.primitive(node)
        if row is None or row.holds is None:
            return step
        ran = taken(row.holds, list(self.arguments(node).values()))
        if not ran:
            return step
        return replace(step, formula=f"{step.formula}  ({ran})", numbers=f"{step.numbers}  ({ran})")

    def _texts(self, node: int) -> tuple[dict[str, str], dict[str, str]]:
        """Return the texts for the slots of a formula: names, and values."""
        args = self.graph.arguments(node)
        names = {f"a{k}": self.shown(arg) for k, arg in enumerate(args)}
        numbers = {f"a{k}": _numeral(self.values[arg]) for k, arg in enumerate(args)}
        return names | {"y": self.shown(node)}, numbers | {"y": _numeral(self.values[node])}

    def seeded(self, node: int, text: str, value: Any) -> Adjoint:
        """Return the adjoint that the reverse sweep starts from."""
        name, shown = self.names[node] + "_bar", self.shown(node, BAR)
        return Adjoint(name, shown, False, text, text, "", plain(value), plain(value))

    def received(
        self, node: int, position: int, formula: OperationFormula, bar: Any, part: Any, mask: Any,
        total: Any, accumulates: bool,
    ) -> Adjoint:  # fmt: skip
        """Return a contribution with its formula in names and in values."""
        args = self.graph.arguments(node)
        arg = args[position]
        names, numbers = self._texts(node)
        names["t"], numbers["t"] = self.shown(node, BAR), _numeral(bar)
        product = f"{names['t']} {self._slope(node, arg)}"
        if args.count(arg) > 1:
            product += f" (argument {position + 1})"
        named, counted = (_as_product(formula.text(each), each["t"]) for each in (names, numbers))
        texts = (product, named, counted)
        return self._adjoint(arg, texts, (part, total, mask), accumulates, self._call(node))

    def returned(self, line: Line, node: int) -> TraceStep:
        """Return the step of a result of a call."""
        texts = [self.shown(arg) for arg in line.arguments]
        numerals = [_numeral(self.values[arg]) for arg in line.arguments]
        formula, numbers = call_text(line.called, texts), call_text(line.called, numerals)
        return self.step(node, "", formula, numbers, self.values[node], line)

    def moved(self, line: Line, node: int, moving: Sequence[int], dot: Any) -> TraceStep:
        """Return the tangent step of a result of a call, whose arguments `moving` have tangents."""
        formula = sum_text([f"{self._slope(node, arg)} {self.shown(arg, DOT)}" for arg in moving])
        return self.step(node, DOT, formula, "", dot, line)

    def passed(
        self, line: Line, results: Sequence[int], arg: int, part: Any, mask: Any, total: Any,
        accumulates: bool,
    ) -> Adjoint:  # fmt: skip
        """Return all that the operations of a call contribute to an argument."""
        product = sum_text([f"{self.shown(n, BAR)} {self._slope(n, arg)}" for n in results])
        return self._adjoint(
            arg, (product, product, ""), (part, total, mask), accumulates, line.call
        )

    def _adjoint(
        self,
        arg: int,
        texts: tuple[str, str, str],
        values: tuple[Any, ...],
        accumulates: bool,
        call: str,
    ) -> Adjoint:
        """Return a contribution to a node: its texts, and its value, the sum and the mask."""
        part, total, mask = (None if value is None else plain(value) for value in values)
        name, shown = self.names[arg] + "_bar", self.shown(arg, BAR)
        return Adjoint(name, shown, accumulates, *texts, part, total, mask, call)

    def _slope(self, node: int, arg: int) -> str:
        return f"∂{self.shown(node)}/∂{self.shown(arg)}"


def _as_product(text: str, bar: str) -> str:
    """Return the factor of a sum or a difference as in the paper: v̄₅ × (−1)."""
    return {bar: f"{bar} × 1", f"−{bar}": f"{bar} × (−1)"}.get(text, text)


def _numeral(value: Any) -> str:
    text = short(value, DIGITS)
    return f"({text})" if text.startswith("−") else text
