"""The engine's derivative of one operation, as a formula to read and as a program to run.

An evaluation trace shows one operation at a time. Here the operation stands alone, as a
function with inputs of its own, and the engine's sweeps run over it: formula and number come
from the same graph, and no derivative is stated a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from difflab.autodiff.engine.forward import push_forward
from difflab.autodiff.engine.reverse import pull_back
from difflab.autodiff.engine.sweep import Sweep
from difflab.core.primitive import ByArgument, Linear, Params, Primitive, Select
from difflab.graph.builder import Builder
from difflab.graph.evaluate import ArrayInterpreter, fold
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT, Graph
from difflab.graph.node import Node
from difflab.primitives import not_equal
from difflab.report.trace.notation import LOGIC, RELATION, NotationPrinter, Phrase, atom

__all__ = ["IsolatedOperation", "OperationFormula", "Rules", "operation_at"]

# Constants up to this size are part of an operation, as the exponent of x² is; others are
# arguments like any, so that a thousand coefficients do not make a thousand operations.
SMALL = 16
T = "t"


@dataclass(frozen=True)
class IsolatedOperation:
    """One operation apart from its place: the key under which its formulas are kept."""

    primitive: Primitive
    params: Params
    # For each argument a small constant, or its shape and whether it is a truth value.
    arguments: tuple[tuple[Any, ...], ...]


class OperationFormula:
    """A graph with slots: a template of its text and a program for its value.

    Slots are ``a0``, ``a1``, … for the arguments, ``d0``, … for their tangents, ``t`` for the
    cotangent of the result and ``y`` for the result.
    """

    def __init__(self, graph: Graph, output: int, known: Mapping[Any, Phrase]) -> None:
        self.output = output
        self.slots = dict(graph.names)
        interpreter = ArrayInterpreter()
        self.steps = [
            (
                node,
                interpreter.operation(graph.primitives[code - FIRST_ROW]),
                args,
                graph.params(node),
            )
            for node, (code, args) in enumerate(graph.rows())
            if code >= FIRST_ROW
        ]
        self.values: list[Any] = [None] * len(graph)
        for node, number in graph.constants.items():
            self.values[node] = interpreter.constant(*number)
        phrases = {node: atom(_slot(name)) for node, name in self.slots.items()}
        phrase: Phrase = fold(graph, dict(phrases), [output], NotationPrinter(known))[0]
        self.template = f"({phrase.text})" if phrase.level in (LOGIC, RELATION) else phrase.text

    def __call__(self, slots: Mapping[str, Any]) -> Any:
        """Return the value, given the values of the slots."""
        values = self.values.copy()
        for node, name in self.slots.items():
            values[node] = slots.get(name)
        for node, operation, args, params in self.steps:
            values[node] = operation(*[values[arg] for arg in args], **params)
        return values[self.output]

    def text(self, names: Mapping[str, str]) -> str:
        """Return the formula with `names` in its slots."""
        text = self.template
        for name, replacement in names.items():
            text = text.replace(_slot(name), replacement)
        return text


def _slot(name: str) -> str:
    """Return a mark that no formula contains: two characters for private use around a name."""
    return f"\ue000{name}\ue001"


class Rules:
    """Formulas of operations, each derived once."""

    def __init__(self) -> None:
        self._results: dict[IsolatedOperation, OperationFormula] = {}
        self._tangents: dict[
            tuple[IsolatedOperation, tuple[bool, ...]], OperationFormula | None
        ] = {}
        self._cotangents: dict[tuple[IsolatedOperation, int], OperationFormula | None] = {}
        self._conditions: dict[tuple[IsolatedOperation, int], OperationFormula | None] = {}

    def result(self, operation: IsolatedOperation) -> OperationFormula:
        """Return y as a formula of the arguments."""
        if operation not in self._results:
            alone = _alone(operation)
            known = _truths(operation)
            self._results[operation] = OperationFormula(alone.graph, alone.outputs[0], known)
        return self._results[operation]

    def tangent(
        self, operation: IsolatedOperation, moving: tuple[bool, ...]
    ) -> OperationFormula | None:
        """Return ẏ as a formula of the arguments that are `moving` and their tangents."""
        key = (operation, moving)
        if key not in self._tangents:
            sweep = Sweep(_alone(operation))
            seeds = {}
            for place, node in _inputs(operation, sweep.function).items():
                if moving[place]:
                    shape = sweep.builder.shape(node)
                    seeds[node] = sweep.node(sweep.builder.input(f"d{place}", shape))
            (output,) = sweep.function.outputs
            found = push_forward(sweep, seeds, [output]).get(output)
            self._tangents[key] = self._formula(operation, sweep, found)
        return self._tangents[key]

    def cotangent(self, operation: IsolatedOperation, place: int) -> OperationFormula | None:
        """Return what ȳ contributes to the cotangent of one argument; None if nothing."""
        key = (operation, place)
        if key not in self._cotangents:
            sweep = Sweep(_alone(operation))
            source = _inputs(operation, sweep.function)[place]
            output = sweep.function.outputs[0]
            seed = sweep.node(sweep.builder.input(T, sweep.builder.shape(output)))
            found = pull_back(sweep, {output: seed}, [source]).get(source)
            self._cotangents[key] = self._formula(operation, sweep, found)
        return self._cotangents[key]

    def condition(self, operation: IsolatedOperation, place: int) -> OperationFormula | None:
        """Return when a selecting operation passes the argument on; None if it never asks."""
        key = (operation, place)
        if key not in self._conditions:
            rule = operation.primitive.rule
            asks = rule.conditions[place] if isinstance(rule, Select) else None
            sweep = Sweep(_alone(operation))
            nodes = [sweep.node(arg) for arg in sweep.graph.arguments(sweep.function.outputs[0])]
            found = None if asks is None else asks(*nodes)
            self._conditions[key] = self._formula(operation, sweep, found)
        return self._conditions[key]

    @staticmethod
    def moves_data(operation: IsolatedOperation) -> bool:
        """Return whether a mask has to go through the operation as its cotangent does."""
        return isinstance(operation.primitive.rule, Linear | ByArgument)

    def _formula(
        self, operation: IsolatedOperation, sweep: Sweep, found: Node | None
    ) -> OperationFormula | None:
        # A zero that the engine knows of ends its sweeps: no infinite slope beyond makes it nan.
        if found is None or sweep.builder.number(found.id) == 0:
            return None
        graph, (output,) = sweep.builder.freeze([found.id])
        known = _truths(operation)
        known[operation.primitive, _texts(operation)] = atom(_slot("y"))
        return OperationFormula(graph, output, known)


def operation_at(graph: Graph, node: int) -> IsolatedOperation:
    """Return the operation of a node, apart from its place."""
    primitive = graph.primitive(node)
    if primitive is None:
        raise ValueError("inputs and constants are not operations")
    return IsolatedOperation(
        primitive,
        graph.param_table[graph.param_ids[node]],
        tuple(_argument(graph, primitive, argument) for argument in graph.arguments(node)),
    )


def _argument(graph: Graph, primitive: Primitive, node: int) -> tuple[Any, ...]:
    if graph.opcode[node] == CONSTANT:
        value, name = graph.constants[node]
        small = isinstance(value, int) and abs(value) <= SMALL
        if small or name is not None or primitive.name == "power":
            return ("constant", value, name)
    row = graph.primitive(node)
    return ("input", graph.shape(node), row is not None and row.boolean)


def _texts(operation: IsolatedOperation) -> tuple[str, ...]:
    """Return the arguments as they stand in a template."""
    say = NotationPrinter()
    return tuple(
        say.constant(value, extra).text if kind == "constant" else _slot(f"a{place}")
        for place, (kind, value, extra) in enumerate(operation.arguments)
    )


def _truths(operation: IsolatedOperation) -> dict[tuple[Primitive, tuple[str, ...]], Phrase]:
    """Return what truth values are called: alone, an argument is a number that is not 0."""
    return {
        (not_equal, (_slot(f"a{place}"), "0")): atom(_slot(f"a{place}"))
        for place, (kind, _, truth) in enumerate(operation.arguments)
        if kind == "input" and truth
    }


def _alone(operation: IsolatedOperation) -> Function:
    """Return the operation as a function of its arguments that are not constants."""
    builder = Builder()
    nodes = [
        builder.constant(value, extra) if kind == "constant" else builder.input(f"a{place}", value)
        for place, (kind, value, extra) in enumerate(operation.arguments)
    ]
    y = builder.emit(operation.primitive, nodes, operation.params)
    inputs = [node for node in nodes if builder.opcode[node] == INPUT]
    return Function.build(builder, inputs, [y], [T])


def _inputs(operation: IsolatedOperation, function: Function) -> dict[int, int]:
    """Return for each argument that is not a constant its node."""
    return {
        int(name[1:]): node
        for name, node in zip(function.inputs, function.input_nodes, strict=True)
    }
