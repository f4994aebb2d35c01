"""Evaluation traces: a function and its derivative, one elementary step at a time.

As in Tables 2 and 3 of Baydin, Pearlmutter, Radul & Siskind (2018), *Automatic Differentiation
in Machine Learning: a Survey*, JMLR 18(153): in forward mode every step v₁, v₂, … has a tangent
v̇ᵢ = ∂vᵢ/∂x; in reverse mode the adjoints v̄ᵢ = ∂y/∂vᵢ are accumulated from the output back, one
contribution at a time, so that the sum at every fan-out is shown term by term.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from difflab.core.wording import did_you_mean
from difflab.diagnose.point_check import checked_point
from difflab.diagnose.zero_gradients import flat_inputs
from difflab.drawing import opened
from difflab.drawing.order import (
    BAR,
    DOT,
    evaluation_order,
    marked,
    output_labels,
    trace_names,
)
from difflab.errors import InputError
from difflab.execute.long_loops import interpreter_of
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.function import Function, evaluate_all
from difflab.graph.ir import FIRST_ROW
from difflab.graph.names import shortened
from difflab.report.summary import heading
from difflab.report.trace.formulas import OperationFormula, Rules, operation_at
from difflab.report.trace.lines import Line, lines_of, with_turns
from difflab.report.trace.steps import (
    Adjoint,
    Collector,
    EvaluationTrace,
    RowTexts,
    TraceRows,
    TraceStep,
    plain,
)

ElementIndex = tuple[int, tuple[int, ...]]
"""The position of an input or output, and the indices of an element of it."""


def chosen_elements(
    function: Function, mode: str, seed: str | None
) -> tuple[ElementIndex, ElementIndex]:
    """Return the input to differentiate by and the output to differentiate."""
    sides = {
        "input": (function.inputs, function.input_shapes),
        "output": (output_labels(function), function.output_shapes),
    }
    elements = {what: _element(*side, seed) for what, side in sides.items()}
    sought = {"forward": ["input"], "reverse": ["output"], "both": ["input", "output"]}[mode]
    if seed is not None and all(elements[what] is None for what in sought):
        names = [name for what in sought for name in sides[what][0]]
        raise InputError(
            f"the function has no {' or '.join(sought)} {seed!r} for the seed",
            hint=did_you_mean(seed, names) or f"one of: {shortened(names)}",
        )
    first = {what: _element(*side, None) for what, side in sides.items()}
    source, output = (elements[what] or first[what] or (0, ()) for what in sides)
    return source, output


def _element(
    names: Sequence[str], shapes: Sequence[tuple[int, ...]], text: str | None
) -> ElementIndex | None:
    """Return the variable and the element that `text` names; the first ones for None."""
    if text is None:
        return (0, (0,) * len(shapes[0])) if names else None
    name, bracket, rest = text.strip().partition("[")
    if name not in names:
        return None
    shape = shapes[names.index(name)]
    key = (0,) * len(shape)
    if bracket:
        parts = [part.strip() for part in rest.removesuffix("]").split(",")]
        key = tuple(int(part) if part.isdecimal() else -1 for part in parts)
    inside = len(key) == len(shape) and all(0 <= k < n for k, n in zip(key, shape, strict=True))
    return (names.index(name), key) if inside else None


def element_name(names: Sequence[str], element: ElementIndex) -> str:
    """Return ``x`` or ``x[3]``."""
    if not names:
        return ""
    which, key = element
    return names[which] + (f"[{','.join(map(str, key))}]" if key else "")


ModeName = Literal["forward", "reverse", "both"]

MODES = ("both", "forward", "reverse")
SHOWN = 45
MOST_EXPLAINED = 1000
"""Most nodes of a function for which the trace explains why a derivative is 0."""


def trace(
    function: Function,
    point: Mapping[str, Any],
    *,
    mode: ModeName = "both",
    seed: str | None = None,
    limit: int | None = SHOWN,
    open: str | Iterable[str] | None = None,
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
    open : str or iterable of str, optional
        What is opened, as of `Function.trace`.

    Returns
    -------
    EvaluationTrace
        The steps, and the resulting derivatives.

    Raises
    ------
    InputError
        `mode` or `seed` is unknown, nothing has a name in `open`, or a loop in it has too many
        turns.
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
    run = _evaluation(function, values, limit, on, open)
    parts: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        if mode != "reverse":
            parts |= run.forward(source)
        if mode != "forward":
            parts |= run.reverse(target)
    results = [plain(run.values[node]) for node in run.function.outputs]
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


def _evaluation(
    function: Function,
    values: Sequence[Any],
    limit: int | None,
    on: ArrayInterpreter,
    open: str | Iterable[str] | None,
) -> _TracedEvaluation:
    """Return the evaluation of a function of which the calls and loops in `open` are opened."""
    names = None if open is None else opened(function, open)
    function, loops = with_turns(function, values, names or (), on)
    return _TracedEvaluation(function, values, limit, on, lines_of(function, names, loops))


class _TracedEvaluation:
    """An evaluation of a function: values and names of all nodes, and the sweeps over them."""

    def __init__(
        self,
        function: Function,
        values: Sequence[Any],
        limit: int | None,
        on: ArrayInterpreter,
        lines: Sequence[Line],
    ) -> None:
        self.function, self.graph, self.limit, self.lines = function, function.graph, limit, lines
        leaves = [n for n in evaluation_order(function) if self.graph.opcode[n] < FIRST_ROW]
        named = [node for line in lines for node in line.results]
        self.values = evaluate_all(function, values, on)
        self.text = RowTexts(function, trace_names(function, leaves + named), self.values)
        self.rules = Rules(on)
        self.operations = {
            node: operation_at(self.graph, node) for line in lines for node in line.nodes
        }

    def primal(self) -> TraceRows[TraceStep]:
        """Return the forward evaluation trace."""
        rows = Collector[TraceStep](self.limit)
        for name, node in zip(self.function.inputs, self.function.input_nodes, strict=True):
            rows.add(partial(self.text.step, node, "", name, "", self.values[node]))
        for line in self.lines:
            for node in line.results:
                if line.called:
                    rows.add(partial(self.text.returned, line, node))
                else:
                    formula = self.rules.result(self.operations[node])
                    rows.add(partial(self.text.computed, node, formula))
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
            rows.add(partial(self.text.step, node, DOT, marked(name, DOT), "", dots[node]))
        for line in self.lines:
            for node in line.nodes:
                formula, tangents = self._tangent(node, dots)
                if formula is not None:
                    value = formula(self.text.arguments(node) | tangents)
                    dots[node] = _broadcast(value, self.graph.shape(node))
                    if not line.called:
                        rows.add(
                            partial(self.text.written, node, DOT, formula, tangents, dots[node])
                        )
            moving = [arg for arg in line.arguments if arg in dots]
            for node in line.results:
                if node not in dots:
                    zero = np.zeros(self.graph.shape(node))
                    rows.add(partial(self.text.step, node, DOT, "0", "", zero))
                elif line.called:
                    rows.add(partial(self.text.moved, line, node, moving, dots[node]))
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
        rows.add(partial(self.text.seeded, start, marked(name, BAR), seed))
        active = self._active()
        for line in reversed(self.lines):
            self._pull_back(line, bars, active, rows)
        ends = [
            plain(bars[node][0] if node in bars else np.zeros(self.graph.shape(node)))
            for node in function.input_nodes
        ]
        return {
            "output": element_name(output_labels(function), target),
            "adjoints": rows.rows(),
            "gradient": tuple(zip(function.inputs, ends, strict=True)),
        }

    def _pull_back(
        self,
        line: Line,
        bars: dict[int, tuple[Any, Any]],
        active: set[int],
        rows: Collector[Adjoint],
    ) -> None:
        """Add a line's contributions to `bars`, and their rows: of a call one to each argument."""
        before = set(bars)
        sums: dict[int, tuple[Any, Any]] = {}
        for node in reversed(line.nodes):
            if node not in bars or node not in active:
                continue
            for position, arg in enumerate(self.graph.arguments(node)):
                if arg not in active:
                    continue
                formula = self.rules.cotangent(self.operations[node], position)
                if formula is None:
                    continue
                part = self._contribution(node, position, formula, *bars[node])
                accumulates = arg in bars
                bars[arg] = _sum(bars[arg], part) if accumulates else part
                if line.called:
                    sums[arg] = _sum(sums[arg], part) if arg in sums else part
                else:
                    total, bar = bars[arg][0], bars[node][0]
                    rows.add(
                        partial(
                            self.text.received,
                            node,
                            position,
                            formula,
                            bar,
                            *part,
                            total,
                            accumulates,
                        )
                    )
        results = [node for node in line.results if node in before]
        for arg in line.arguments if line.called else ():
            if arg in sums:
                total, accumulates = bars[arg][0], arg in before
                rows.add(
                    partial(self.text.passed, line, results, arg, *sums[arg], total, accumulates)
                )

    def _tangent(
        self, node: int, dots: Mapping[int, Any]
    ) -> tuple[OperationFormula | None, dict[str, Any]]:
        """Return the formula of a tangent, None if it is zero, and the tangents in it."""
        args = self.graph.arguments(node)
        moving = tuple(arg in dots for arg in args)
        formula = self.rules.tangent(self.operations[node], moving) if any(moving) else None
        return formula, {f"d{k}": dots[arg] for k, arg in enumerate(args) if moving[k]}

    def _active(self) -> set[int]:
        """Return the nodes that depend on an input."""
        active = set(self.function.input_nodes)
        for node in self.operations:
            if not active.isdisjoint(self.graph.arguments(node)):
                active.add(node)
        return active

    def _contribution(
        self, node: int, position: int, formula: OperationFormula, bar: Any, mask: Any
    ) -> tuple[Any, Any]:
        """Return the contribution to one argument, exactly zero in an unselected branch."""
        operation = self.operations[node]
        slots = self.text.arguments(node)
        shape = self.graph.shape(self.graph.arguments(node)[position])
        part = _broadcast(formula(slots | {"t": bar}), shape)
        if mask is not None and self.rules.moves_data(operation):
            mask = _broadcast(formula(slots | {"t": mask * 1.0}), shape) != 0
        condition = self.rules.condition(operation, position)
        if condition is not None:
            selected = _broadcast(condition(slots), shape)
            mask = selected if mask is None else mask & selected
        return (part if mask is None else np.where(mask, part, 0.0)), mask


def _broadcast(value: Any, shape: tuple[int, ...]) -> Any:
    """Return `value` broadcast to `shape`, unless the shape is that of a scalar."""
    return np.broadcast_to(value, shape) if shape else value


def _sum(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Add two contributions; the mask of the sum is the union of theirs."""
    union = None if a[1] is None or b[1] is None else a[1] | b[1]
    return a[0] + b[0], union
