"""The rows of an evaluation trace: steps and contributions with their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from difflab.drawing.order import BAR, DOT, short, subscript
from difflab.graph.calls import call_name
from difflab.graph.described import taken
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT
from difflab.report.trace.lines import Line, call_text, sum_text
from difflab.report.trace.rules import OperationFormula
from difflab.report.trace.steps import Adjoint, TraceStep, plain

__all__ = ["RowTexts"]

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
        return Adjoint(name, shown, text, text, "", plain(value), plain(value))

    def received(
        self, node: int, place: int, formula: OperationFormula, bar: Any, part: Any, mask: Any,
        total: Any, accumulates: bool,
    ) -> Adjoint:  # fmt: skip
        """Return a contribution with its formula in names and in values."""
        args = self.graph.arguments(node)
        arg = args[place]
        names, numbers = self._texts(node)
        names["t"], numbers["t"] = self.shown(node, BAR), _numeral(bar)
        product = f"{names['t']} {self._slope(node, arg)}"
        if args.count(arg) > 1:
            product += f" (argument {place + 1})"
        return Adjoint(
            name=self.names[arg] + "_bar",
            shown=self.shown(arg, BAR),
            partial=product,
            formula=_as_product(formula.text(names), names["t"]),
            numbers=_as_product(formula.text(numbers), numbers["t"]),
            contribution=plain(part),
            value=plain(total),
            accumulates=accumulates,
            mask=None if mask is None else plain(mask),
            call=self._call(node),
        )

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
        return Adjoint(
            name=self.names[arg] + "_bar",
            shown=self.shown(arg, BAR),
            partial=product,
            formula=product,
            numbers="",
            contribution=plain(part),
            value=plain(total),
            accumulates=accumulates,
            mask=None if mask is None else plain(mask),
            call=line.call,
        )

    def _slope(self, node: int, arg: int) -> str:
        return f"∂{self.shown(node)}/∂{self.shown(arg)}"


def _as_product(text: str, bar: str) -> str:
    """Return the factor of a sum or a difference as in the paper: v̄₅ × (−1)."""
    return {bar: f"{bar} × 1", f"−{bar}": f"{bar} × (−1)"}.get(text, text)


def _numeral(value: Any) -> str:
    text = short(value, DIGITS)
    return f"({text})" if text.startswith("−") else text
