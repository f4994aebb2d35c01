"""Formulas of single operations and of their derivatives: text in mathematical notation, and value.

An operation is isolated as a function with its own inputs, and the sweeps of `difflab.autodiff`
run over it. Formula and value come from the same graph, and no derivative rule is stated twice.
Formulas are written as ``v̄₃ × cos v₀`` or ``v̄₁ / v₋₁``. This text is not meant to be parsed;
`difflab.language.printers` writes text that parses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from difflab import primitives as rows
from difflab.autodiff.engine.forward import push_forward
from difflab.autodiff.engine.masked import resolved
from difflab.autodiff.engine.reverse import pull_back
from difflab.autodiff.engine.sweep import Sweep
from difflab.core.primitive import ByArgument, LinearMap, Params, Primitive, Select
from difflab.drawing.order import key_text, short
from difflab.graph.builder import Builder
from difflab.graph.evaluate import ArrayInterpreter, Fold, fold
from difflab.graph.expansion import expansion_value
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, INPUT, Graph, Number
from difflab.graph.node import Node

# Precedence of the outermost operator of a phrase, from the weakest.
CHOICE, LOGIC, RELATION, SUM, PRODUCT, PREFIX, POWER, ATOM = range(8)

LEVELS = {
    **dict.fromkeys(("and", "or"), LOGIC),
    **dict.fromkeys(("<", "≤", ">", "≥", "=", "≠"), RELATION),
    **dict.fromkeys(("+", "−"), SUM),
}
"""Precedence of the infix signs; all others bind like a product."""
SUPERSCRIPTS = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
LISTED = 6
_FIELD = re.compile(r"\{\d\}")


@dataclass(frozen=True)
class Phrase:
    """A text and the precedence of its outermost operator."""

    text: str
    level: int = ATOM

    def within(self, level: int) -> str:
        """Return the text, in parentheses if `level` binds more tightly."""
        return self.text if self.level >= level else f"({self.text})"


def atom(text: str) -> Phrase:
    """Return a name or another text that never needs parentheses."""
    return Phrase(text)


class NotationPrinter:
    """An interpreter of graphs whose values are phrases.

    Parameters
    ----------
    known : mapping of (primitive, argument texts) to Phrase, optional
        Results with a name of their own, such as v₃.

    Examples
    --------
    >>> from difflab.primitives import log, multiply
    >>> printer = NotationPrinter()
    >>> printer.operation(multiply)(atom("t"), printer.operation(log)(atom("x"))).text
    't × ln x'
    """

    def __init__(
        self, known: Mapping[tuple[Primitive, tuple[str, ...]], Phrase] | None = None
    ) -> None:
        self.known = known or {}

    def constant(self, value: Number, name: str | None) -> Phrase:
        """Return the phrase of a constant."""
        if name is not None:
            return atom({"pi": "π"}.get(name, name))
        text = short(value)
        return Phrase(text, PREFIX if text.startswith("−") else ATOM)

    def operation(self, primitive: Primitive) -> Callable[..., Phrase]:
        """Return the function from argument phrases to the phrase of `primitive`."""

        def written(*args: Phrase, **params: Any) -> Phrase:
            phrase = self.known.get((primitive, tuple(arg.text for arg in args)))
            return self._written(primitive, args, params) if phrase is None else phrase

        return written

    def _written(
        self, primitive: Primitive, args: tuple[Phrase, ...], params: Mapping[str, Any]
    ) -> Phrase:
        special = _SPECIAL.get(primitive)
        if special is not None:
            return special(*args, **params)
        if primitive.expansion is not None and primitive.shape is None:
            phrase: Phrase = expansion_value(primitive, args, self)
            return phrase
        before, *signs = _FIELD.split(primitive.notation)
        if not signs:
            return _function(before, args)
        if before:
            return _enclosed(before, args[0], signs[-1])
        return _infix(primitive, signs[0].strip(), *args)


def _enclosed(before: str, x: Phrase, behind: str) -> Phrase:
    """Return ``|x|``, or a prefix: ``−x``, ``not x``, ``√x``."""
    if behind:
        return Phrase(f"{before}{x.text}{behind}")
    operand = x.within(POWER if before == "−" else ATOM)
    return Phrase(f"{before}{operand}", POWER if before == "√" else PREFIX)


def _infix(row: Primitive, sign: str, a: Phrase, b: Phrase) -> Phrase:
    level = LEVELS.get(sign, PRODUCT)
    if row.degrees == (1, 1) and b.text.startswith("1 / ") and b.level == PRODUCT:
        # t × (1 / x) is written t / x, as in Baydin et al.
        return Phrase(f"{a.within(level)} / {b.text[4:]}", level)
    if row.signs == (1, 1) and b.level == PREFIX and b.text.startswith("−"):
        return Phrase(f"{a.within(level)} − {b.text[1:]}", level)
    tighter = level + ((1, 1) not in (row.signs, row.degrees))
    right = b.within(max(tighter, PRODUCT if b.text.startswith("−") else 0))
    if b.text.startswith("−") and not right.startswith("("):
        right = f"({right})"
    if row.degrees == (1, 1) and b.level == PRODUCT and " / " in b.text:
        right = f"({b.text})"
    return Phrase(f"{a.within(level)} {sign} {right}", level)


def _function(name: str, args: tuple[Phrase, ...]) -> Phrase:
    """Return ``sin v₀`` for an atomic argument, else a call with parentheses."""
    if len(args) == 1 and args[0].level == ATOM and " " not in args[0].text:
        return Phrase(f"{name} {args[0].text}", POWER)
    return Phrase(f"{name}({', '.join(arg.text for arg in args)})")


def _power(x: Phrase, p: Phrase) -> Phrase:
    base = x.within(ATOM)
    digits = p.text.removeprefix("−")
    if digits.isdecimal():
        return Phrase(base + p.text.translate(SUPERSCRIPTS), POWER)
    return Phrase(f"{base}^{p.within(ATOM)}", POWER)


def _list(*args: Phrase, **_params: Any) -> Phrase:
    texts = [arg.text for arg in args]
    if len(texts) > LISTED:
        texts[LISTED - 2 : -1] = ["…"]
    return Phrase(f"[{', '.join(texts)}]")


def _indexed(x: Phrase, *, key: tuple[Any, ...], rank: int) -> Phrase:
    return Phrase(f"{x.within(ATOM)}{key_text(key)}")


# Rows that move data, by their parameters, and the two with a layout of their own.
_SPECIAL: Mapping[Primitive, Callable[..., Phrase]] = {
    rows.power: _power,
    rows.where: lambda c, a, b: Phrase(
        f"{a.within(LOGIC)} if {c.text} else {b.within(CHOICE)}", CHOICE
    ),
    rows.broadcast: lambda x, shape, rank: Phrase(f"spread {x.within(ATOM)}", POWER),
    rows.reshape: lambda x, shape, rank: x,
    rows.scatter: lambda *parts, keys, shape: Phrase(f"scatter{_list(*parts).text}"),
    rows.index: _indexed,
    rows.pack: _list,
}


# Integer constants up to this size are part of an operation, such as the exponent of x². Others
# are arguments, so that a thousand coefficients do not make a thousand different operations.
SMALL = 16
T = "t"


@dataclass(frozen=True)
class IsolatedOperation:
    """An operation without its position in the graph: the key of its cached formulas."""

    primitive: Primitive
    params: Params
    # For each argument a small constant, or its shape and whether it is a truth value.
    arguments: tuple[tuple[Any, ...], ...]


class OperationFormula:
    """A graph with slots: a template of its text and a program for its value.

    Slots are ``a0``, ``a1``, … for the arguments, ``d0``, … for their tangents, ``t`` for the
    cotangent of the result and ``y`` for the result.
    """

    def __init__(
        self, graph: Graph, output: int, known: Mapping[Any, Phrase], interpreter: ArrayInterpreter
    ) -> None:
        self.graph, self.output = graph, output
        self.slots = dict(graph.names)
        self._value = Fold(graph, [output], interpreter)
        phrases = {node: atom(_slot(name)) for node, name in self.slots.items()}
        phrase: Phrase = fold(graph, dict(phrases), [output], NotationPrinter(known))[0]
        self.template = f"({phrase.text})" if phrase.level in (LOGIC, RELATION) else phrase.text

    def __call__(self, slots: Mapping[str, Any]) -> Any:
        """Return the value, given the values of the slots."""
        return self._value.again({node: slots.get(name) for node, name in self.slots.items()})[0]

    def text(self, names: Mapping[str, str]) -> str:
        """Return the formula with `names` in its slots."""
        text = self.template
        for name, replacement in names.items():
            text = text.replace(_slot(name), replacement)
        return text


def _slot(name: str) -> str:
    """Return the text of a slot: its name between two private-use characters."""
    return f"\ue000{name}\ue001"


Rule = TypeVar("Rule", bound=Callable[..., Any])


def _kept(rule: Rule) -> Rule:
    """Return a method of `Rules` that computes each formula once."""

    @wraps(rule)
    def kept(self: Rules, *key: Any) -> Any:
        name = rule.__name__, *key
        if name not in self.known:
            self.known[name] = rule(self, *key)
        return self.known[name]

    return cast(Rule, kept)


class Rules:
    """Cache of the formulas of operations and of their derivatives."""

    def __init__(self, on: ArrayInterpreter) -> None:
        self._on = on
        self.known: dict[tuple[Any, ...], OperationFormula | None] = {}

    @_kept
    def result(self, operation: IsolatedOperation) -> OperationFormula:
        """Return the formula of the result y in terms of the arguments."""
        alone = _alone(operation)
        return OperationFormula(alone.graph, alone.outputs[0], _truths(operation), self._on)

    @_kept
    def tangent(
        self, operation: IsolatedOperation, moving: tuple[bool, ...]
    ) -> OperationFormula | None:
        """Return the formula of ẏ; `moving` says which arguments have a tangent."""
        sweep = Sweep(_alone(operation))
        seeds = {
            node: sweep.node(sweep.builder.input(f"d{position}", sweep.builder.shape(node)))
            for position, node in _inputs(operation, sweep.function).items()
            if moving[position]
        }
        (output,) = sweep.function.outputs
        return self._formula(operation, sweep, push_forward(sweep, seeds, [output]).get(output))

    @_kept
    def cotangent(self, operation: IsolatedOperation, position: int) -> OperationFormula | None:
        """Return the contribution of ȳ to the cotangent of an argument, or None if it is zero."""
        sweep = Sweep(_alone(operation))
        source = _inputs(operation, sweep.function)[position]
        output = sweep.function.outputs[0]
        seed = sweep.node(sweep.builder.input(T, sweep.builder.shape(output)))
        cotangent = pull_back(sweep, {output: seed}, [source]).get(source)
        bar = None if cotangent is None else sweep.node(resolved(sweep.builder, cotangent))
        return self._formula(operation, sweep, bar)

    @_kept
    def condition(self, operation: IsolatedOperation, position: int) -> OperationFormula | None:
        """Return the condition under which an operation selects the argument, or None."""
        rule = operation.primitive.rule
        selects = rule.conditions[position] if isinstance(rule, Select) else None
        if selects is None:
            return None
        sweep = Sweep(_alone(operation))
        nodes = [sweep.node(arg) for arg in sweep.graph.arguments(sweep.function.outputs[0])]
        return self._formula(operation, sweep, selects(*nodes))

    @staticmethod
    def moves_data(operation: IsolatedOperation) -> bool:
        """Return whether a mask is propagated through the operation like a cotangent."""
        return isinstance(operation.primitive.rule, LinearMap | ByArgument)

    def _formula(
        self, operation: IsolatedOperation, sweep: Sweep, derivative: Node | None
    ) -> OperationFormula | None:
        # A structural zero ends the sweep, so that no infinite slope turns it into nan.
        if derivative is None or sweep.builder.number(derivative.id) == 0:
            return None
        graph, (output,) = sweep.builder.freeze([derivative.id])
        known = _truths(operation)
        known[operation.primitive, _texts(operation)] = atom(_slot("y"))
        return OperationFormula(graph, output, known, self._on)


def operation_at(graph: Graph, node: int) -> IsolatedOperation:
    """Return the operation of a node without its position in the graph."""
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
    """Return the texts of the arguments in a template."""
    printer = NotationPrinter()
    return tuple(
        printer.constant(value, extra).text if kind == "constant" else _slot(f"a{k}")
        for k, (kind, value, extra) in enumerate(operation.arguments)
    )


def _truths(operation: IsolatedOperation) -> dict[tuple[Primitive, tuple[str, ...]], Phrase]:
    """Return the texts of truth values: ``a != 0`` of a boolean argument is ``a`` itself."""
    return {
        (rows.not_equal, (_slot(f"a{k}"), "0")): atom(_slot(f"a{k}"))
        for k, (kind, _, truth) in enumerate(operation.arguments)
        if kind == "input" and truth
    }


def _alone(operation: IsolatedOperation) -> Function:
    """Return the operation as a function of its arguments that are not constants."""
    builder = Builder()
    nodes = [
        builder.constant(value, extra) if kind == "constant" else builder.input(f"a{k}", value)
        for k, (kind, value, extra) in enumerate(operation.arguments)
    ]
    y = builder.emit(operation.primitive, nodes, operation.params)
    inputs = [node for node in nodes if builder.opcode[node] == INPUT]
    return Function.build(builder, inputs, [y], [T])


def _inputs(operation: IsolatedOperation, function: Function) -> dict[int, int]:
    """Return the input node of each argument that is not a constant."""
    return {
        int(name[1:]): node
        for name, node in zip(function.inputs, function.input_nodes, strict=True)
    }
