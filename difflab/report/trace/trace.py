"""Evaluation traces: a function and its derivative, one elementary step at a time.

As in Tables 2 and 3 of Baydin, Pearlmutter, Radul & Siskind (2018), *Automatic Differentiation
in Machine Learning: a Survey*, JMLR 18(153): in forward mode every step v₁, v₂, … has a tangent
v̇ᵢ = ∂vᵢ/∂x; in reverse mode the adjoints v̄ᵢ = ∂y/∂vᵢ are accumulated from the output back, one
contribution at a time, so that the sum at every fan-out is shown term by term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from difflab.diagnose.point_check import checked_point
from difflab.diagnose.zero_gradients import flat_inputs
from difflab.drawing.order import (
    BAR,
    DOT,
    evaluation_order,
    marked,
    output_labels,
    short,
    subscript,
    trace_names,
)
from difflab.errors import InputError
from difflab.execute.long_loops import interpreter_of
from difflab.graph.calls import call_name
from difflab.graph.described import taken
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.function import Function, evaluate_all
from difflab.graph.ir import CONSTANT, FIRST_ROW
from difflab.report.heading import heading
from difflab.report.trace.rules import OperationFormula, Rules, operation_at
from difflab.report.trace.seeds import ElementIndex, chosen_elements, element_name
from difflab.report.trace.steps import (
    Adjoint,
    Collector,
    EvaluationTrace,
    TraceRows,
    TraceStep,
    plain,
)

__all__ = ["MODES", "SHOWN", "trace"]

ModeName = Literal["forward", "reverse", "both"]

MODES = ("both", "forward", "reverse")
SHOWN = 45
DIGITS = 4
MOST_EXPLAINED = 1000
"""Most nodes of a function for which the trace explains why a derivative is 0."""


def trace(
    function: Function,
    point: Mapping[str, Any],
    *,
    mode: ModeName = "both",
    seed: str | None = None,
    limit: int | None = SHOWN,
) -> EvaluationTrace:
    """Return the evaluation trace of a function.

    Parameters
    ----------
    function : Function
        The function to trace.
    point : mapping of str to number or array
        A value for every input, of the input's shape.
    mode : {"both", "forward", "reverse"}
        Which derivatives to show.
    seed : str, optional
        In forward mode the input to differentiate by, in reverse mode the output to
        differentiate; an element of an array as ``x[3]``. The first one by default.
    limit : int, optional
        Rows to keep of every table; None keeps all.

    Returns
    -------
    EvaluationTrace
        The steps, and the resulting derivatives.

    Raises
    ------
    InputError
        `mode` or `seed` is unknown.
    PointError
        A value is missing, unknown, not finite or of the wrong shape.
    DomainError
        The function is undefined at the point.

    Examples
    --------
    >>> import difflab as dl
    >>> steps = trace(dl.parse("ln(x1) + x1*x2 - sin(x2)"), {"x1": 2, "x2": 5})
    >>> [step.formula for step in steps.primal][2:5]
    ['ln v₋₁', 'v₋₁ × v₀', 'sin v₀']
    >>> dict(steps.gradient)
    {'x1': 5.5, 'x2': 1.7163378145367738}
    """
    if mode not in MODES:
        raise InputError(f"unknown mode {mode!r}", hint=f"one of {', '.join(MODES)}")
    on = interpreter_of(function)
    values = [np.asarray(value) for value in checked_point(function, point, on=on).values()]
    source, target = chosen_elements(function, mode, seed)
    run = _TracedEvaluation(function, values, limit, on)
    parts: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        if mode != "reverse":
            parts |= run.forward(source)
        if mode != "forward":
            parts |= run.reverse(target)
    results = [plain(run.values[node]) for node in function.outputs]
    return EvaluationTrace(
        expression=heading(function),
        point=tuple(zip(function.inputs, map(plain, values), strict=True)),
        outputs=tuple(zip(output_labels(function), results, strict=True)),
        primal=run.primal(),
        **parts,
        notes=_notes(function, values, parts.get("gradient", ())),
    )


def _notes(
    function: Function, values: Sequence[Any], gradient: Sequence[tuple[str, Any]]
) -> tuple[str, ...]:
    """Return which derivatives are exactly 0 and why, if this is cheap to find."""
    if not gradient or len(function.graph) > MOST_EXPLAINED or len(function.outputs) > 1:
        return ()
    bars = {function.inputs.index(name): bar for name, bar in gradient}
    with np.errstate(all="ignore"):
        return tuple(map(str, flat_inputs(function, values, bars, function.graph.place)))


class _TracedEvaluation:
    """An evaluation of a function: values and names of all nodes, and the sweeps over them."""

    def __init__(
        self, function: Function, values: Sequence[Any], limit: int | None, on: ArrayInterpreter
    ) -> None:
        self.function, self.graph, self.limit = function, function.graph, limit
        order = evaluation_order(function)
        self.names = trace_names(function, order)
        self.values = evaluate_all(function, values, on)
        self.rules = Rules(on)
        self.operations = {
            node: operation_at(self.graph, node)
            for node in order
            if self.graph.opcode[node] >= FIRST_ROW
        }

    def primal(self) -> TraceRows[TraceStep]:
        """Return the forward evaluation trace."""
        rows = Collector[TraceStep](self.limit)
        for name, node in zip(self.function.inputs, self.function.input_nodes, strict=True):
            rows.add(partial(self._step, node, "", name, "", self.values[node]))
        for node, operation in self.operations.items():
            formula = self.rules.result(operation)
            rows.add(partial(self._computed, node, formula))
        return rows.rows()

    def forward(self, source: ElementIndex) -> dict[str, Any]:
        """Return the tangents with respect to one input, and those of the outputs."""
        function, rows = self.function, Collector[TraceStep](self.limit)
        dots: dict[int, Any] = {}
        for which, node in enumerate(function.input_nodes):
            dots[node] = np.zeros(self.graph.shape(node))
            if which == source[0]:
                dots[node][source[1]] = 1.0
            name = function.inputs[which]
            rows.add(partial(self._step, node, DOT, marked(name, DOT), "", dots[node]))
        for node, operation in self.operations.items():
            args = self.graph.arguments(node)
            moving = tuple(arg in dots for arg in args)
            formula = self.rules.tangent(operation, moving) if any(moving) else None
            if formula is None:
                zero = np.zeros(self.graph.shape(node))
                rows.add(partial(self._step, node, DOT, "0", "", zero))
                continue
            tangents = {f"d{place}": dots[arg] for place, arg in enumerate(args) if moving[place]}
            value = formula(self._arguments(node) | tangents)
            dots[node] = _broadcast(value, self.graph.shape(node))
            rows.add(partial(self._written, node, DOT, formula, tangents, dots[node]))
        ends = [plain(dots.get(node, 0.0)) for node in function.outputs]
        return {
            "seed": element_name(function.inputs, source),
            "tangents": rows.rows(),
            "directional": tuple(zip(output_labels(function), ends, strict=True)),
        }

    def reverse(self, target: ElementIndex) -> dict[str, Any]:
        """Return every contribution to every adjoint, and the gradient of one output."""
        function, rows = self.function, Collector[Adjoint](self.limit)
        start = function.outputs[target[0]]
        seed = np.zeros(self.graph.shape(start))
        seed[target[1]] = 1.0
        bars: dict[int, tuple[Any, Any]] = {start: (seed, None)}
        name = output_labels(function)[target[0]]
        rows.add(partial(self._seeded, start, marked(name, BAR), seed))
        active = self._active()
        for node in reversed(self.operations):
            if node not in bars or node not in active:
                continue
            for place, arg in enumerate(self.graph.arguments(node)):
                if arg not in active:
                    continue
                formula = self.rules.cotangent(self.operations[node], place)
                if formula is None:
                    continue
                part, mask = self._contribution(node, place, formula, *bars[node])
                before = bars.get(arg)
                bars[arg] = (part, mask) if before is None else _sum(before, (part, mask))
                rows.add(
                    partial(
                        self._received, node, place, formula, bars[node][0], part, mask,
                        bars[arg][0], before is not None,
                    )
                )  # fmt: skip
        ends = [
            plain(bars[node][0] if node in bars else np.zeros(self.graph.shape(node)))
            for node in function.input_nodes
        ]
        return {
            "output": element_name(output_labels(function), target),
            "adjoints": rows.rows(),
            "gradient": tuple(zip(function.inputs, ends, strict=True)),
        }

    def _active(self) -> set[int]:
        """Return the nodes that depend on an input."""
        active = set(self.function.input_nodes)
        for node in self.operations:
            if not active.isdisjoint(self.graph.arguments(node)):
                active.add(node)
        return active

    def _contribution(
        self, node: int, place: int, formula: OperationFormula, bar: Any, mask: Any
    ) -> tuple[Any, Any]:
        """Return the contribution to one argument, exactly zero in an unselected branch."""
        operation = self.operations[node]
        slots = self._arguments(node)
        shape = self.graph.shape(self.graph.arguments(node)[place])
        part = _broadcast(formula(slots | {"t": bar}), shape)
        if mask is not None and self.rules.moves_data(operation):
            mask = _broadcast(formula(slots | {"t": mask * 1.0}), shape) != 0
        condition = self.rules.condition(operation, place)
        if condition is not None:
            selected = _broadcast(condition(slots), shape)
            mask = selected if mask is None else mask & selected
        return (part if mask is None else np.where(mask, part, 0.0)), mask

    def _arguments(self, node: int) -> dict[str, Any]:
        return {f"a{k}": self.values[arg] for k, arg in enumerate(self.graph.arguments(node))}

    def _shown(self, node: int, mark: str = "") -> str:
        """Return a name as it is printed: v₃, v̇₃, v̄₃."""
        constant = self.graph.opcode[node] == CONSTANT
        return subscript(self.names[node], "" if constant else mark)

    def _step(self, node: int, mark: str, formula: str, numbers: str, value: Any) -> TraceStep:
        name = self.names[node] + {"": "", DOT: "_dot"}[mark]
        call = call_name(self.graph.source.call(int(self.graph.spans[node])))
        return TraceStep(name, self._shown(node, mark), formula, numbers, plain(value), call)

    def _written(
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
        names |= {slot: self._shown(args[int(slot[1:])], DOT) for slot in tangents}
        numbers |= {slot: _numeral(dot) for slot, dot in tangents.items()}
        return self._step(node, mark, formula.text(names), formula.text(numbers), value)

    def _computed(self, node: int, formula: OperationFormula) -> TraceStep:
        """Return the step of an operation; of a loop or a branch also how often it ran."""
        step = self._written(node, "", formula, {}, self.values[node])
        row = self.graph.primitive(node)
        if row is None or row.holds is None:
            return step
        ran = taken(row.holds, list(self._arguments(node).values()))
        if not ran:
            return step
        return replace(step, formula=f"{step.formula}  ({ran})", numbers=f"{step.numbers}  ({ran})")

    def _texts(self, node: int) -> tuple[dict[str, str], dict[str, str]]:
        """Return the texts for the slots of a formula: names, and values."""
        args = self.graph.arguments(node)
        names = {f"a{k}": self._shown(arg) for k, arg in enumerate(args)}
        numbers = {f"a{k}": _numeral(self.values[arg]) for k, arg in enumerate(args)}
        return names | {"y": self._shown(node)}, numbers | {"y": _numeral(self.values[node])}

    def _seeded(self, node: int, text: str, value: Any) -> Adjoint:
        name, shown = self.names[node] + "_bar", self._shown(node, BAR)
        return Adjoint(name, shown, text, text, "", plain(value), plain(value))

    def _received(
        self, node: int, place: int, formula: OperationFormula, bar: Any, part: Any, mask: Any,
        total: Any, accumulates: bool,
    ) -> Adjoint:  # fmt: skip
        """Return a contribution with its formula in names and in values."""
        args = self.graph.arguments(node)
        arg = args[place]
        names, numbers = self._texts(node)
        names["t"], numbers["t"] = self._shown(node, BAR), _numeral(bar)
        product = f"{names['t']} ∂{self._shown(node)}/∂{self._shown(arg)}"
        if args.count(arg) > 1:
            product += f" (argument {place + 1})"
        return Adjoint(
            name=self.names[arg] + "_bar",
            shown=self._shown(arg, BAR),
            partial=product,
            formula=_as_product(formula.text(names), names["t"]),
            numbers=_as_product(formula.text(numbers), numbers["t"]),
            contribution=plain(part),
            value=plain(total),
            accumulates=accumulates,
            mask=None if mask is None else plain(mask),
            call=call_name(self.graph.source.call(int(self.graph.spans[node]))),
        )


def _as_product(text: str, bar: str) -> str:
    """Return the factor of a sum or a difference as in the paper: v̄₅ × (−1)."""
    return {bar: f"{bar} × 1", f"−{bar}": f"{bar} × (−1)"}.get(text, text)


def _numeral(value: Any) -> str:
    text = short(value, DIGITS)
    return f"({text})" if text.startswith("−") else text


def _broadcast(value: Any, shape: tuple[int, ...]) -> Any:
    """Return `value` broadcast to `shape`, unless the shape is that of a scalar."""
    return np.broadcast_to(value, shape) if shape else value


def _sum(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Add two contributions; the mask of the sum is the union of theirs."""
    union = None if a[1] is None or b[1] is None else a[1] | b[1]
    return a[0] + b[0], union
