"""Control nodes: loops and choices, which hold functions, and how they are computed.

A row of the graph holds one of them. Its outputs form one packed vector; values may have batch axes
in front.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, ClassVar, Self

import numpy as np

from difflab.graph.evaluate import ArrayInterpreter, Fold, Interpreter
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node, as_nodes
from difflab.primitives import where

WORTH_CODE = 100
"""Evaluations of a step above which its Python code, which takes a millisecond, pays off."""
LARGEST_CODE = 2_000
"""Nodes of a step above which its Python code takes too long to compile."""

Step = Callable[[Sequence[Any]], list[Any]]
"""A function evaluated on one value per input."""


@dataclass(frozen=True)
class Control:
    """Base class of control flow: functions that a primitive holds, and when they are called."""

    roles: ClassVar[Mapping[str, str]]
    """What each function inside it is called, by the name of its attribute."""

    @property
    def name(self) -> str:
        """The name of the primitives that hold it."""
        raise NotImplementedError

    @property
    def single(self) -> bool:
        """Whether the only output is the node's value, which is a vector of all outputs else."""
        return False

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions inside it."""
        return tuple([getattr(self, name) for name in self.roles])

    def with_functions(self, functions: Sequence[Function]) -> Self:
        """Return the same control of other functions, of the same inputs and outputs."""
        return replace(self, **dict(zip(self.roles, functions, strict=True)))

    @property
    def input_shapes(self) -> Sequence[Shape]:
        """The shape of each argument."""
        raise NotImplementedError

    @property
    def output_shapes(self) -> Sequence[Shape]:
        """The shape of each output."""
        raise NotImplementedError

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the outputs; values may have batch axes in front."""
        raise NotImplementedError


@dataclass(frozen=True)
class Loop(Control):
    """A step that is repeated, as a function.

    Attributes
    ----------
    body : Function
        Its inputs are the carries, an element of each looped array, and constants; its outputs
        the next carries and the results.
    carries, arrays : int
        How many inputs are carries, and how many are elements of looped arrays.
    steps : int
        The number of steps.
    reverse : bool
        Whether the last element comes first.
    """

    body: Function
    carries: int
    arrays: int
    steps: int
    reverse: bool
    name = "scan"
    roles: ClassVar[Mapping[str, str]] = {"body": "step"}

    @property
    def input_shapes(self) -> list[Shape]:
        """The shapes of the first carries, the looped arrays and the constants."""
        shapes = self.body.input_shapes
        return [
            (self.steps, *shape) if self.carries <= index < self.carries + self.arrays else shape
            for index, shape in enumerate(shapes)
        ]

    @property
    def output_shapes(self) -> list[Shape]:
        """The shapes of the last carries and of the stacked results."""
        shapes = self.body.output_shapes
        stacked = [(self.steps, *shape) for shape in shapes[self.carries :]]
        return [*shapes[: self.carries], *stacked]

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the outputs; values may have batch axes in front."""
        step = prepared(self.body, on)
        arrays_end = self.carries + self.arrays
        carry, constants = list(values[: self.carries]), values[arrays_end:]
        looped = values[self.carries : arrays_end]
        behind = [(slice(None),) * len(shape) for shape in self.body.input_shapes[self.carries :]]
        results: list[list[Any]] = []
        carries, stacked = self.carries, len(self.body.outputs) > self.carries
        order = range(self.steps)
        for number in reversed(order) if self.reverse else order:
            x = [
                array[(..., number, *axes)] if batch else array[number]
                for array, axes in zip(looped, behind, strict=False)
            ]
            outputs = step([*carry, *x, *constants])
            carry = outputs[:carries]
            if stacked:
                results.append(outputs[carries:])
        if self.reverse:
            results.reverse()
        shapes = self.body.output_shapes[self.carries :]
        stacks = [
            _stacked([parts[index] for parts in results], shape, batch)
            for index, shape in enumerate(shapes)
        ]
        return [*carry, *stacks]


@dataclass(frozen=True)
class Branches(Control):
    """Two functions of the same inputs and outputs."""

    true: Function
    false: Function
    name = "cond"
    roles: ClassVar[Mapping[str, str]] = {"true": "if true", "false": "if false"}

    @property
    def input_shapes(self) -> list[Shape]:
        """The shapes of the predicate and of the functions' arguments."""
        return [(), *self.true.input_shapes]

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the results."""
        return self.true.output_shapes

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the outputs; values may have batch axes in front."""
        pred, operands = values[0], values[1:]
        if not batch and not isinstance(pred, Node):
            return prepared(self.true if pred else self.false, on)(operands)
        yes, no = prepared(self.true, on)(operands), prepared(self.false, on)(operands)
        return chosen(on, pred, yes, no, self.true.output_shapes)


@dataclass(frozen=True)
class WhileLoop(Control):
    """A step that is repeated while a condition holds.

    Attributes
    ----------
    test, body : Function
        Of the same inputs: the value, then constants. The outputs of `body` are the next value.
    """

    test: Function
    body: Function
    name = "while_loop"
    roles: ClassVar[Mapping[str, str]] = {"test": "while", "body": "step"}

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the first value and of the constants."""
        return self.body.input_shapes

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the value."""
        return self.body.output_shapes

    @property
    def constants(self) -> tuple[Shape, ...]:
        """The shapes of the constants."""
        return self.body.input_shapes[len(self.output_shapes) :]

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the last value; values may have batch axes in front."""
        value: list[Any] = deque(self.visited(on, values, batch), maxlen=1)[0][0]
        return value

    def visited(
        self, on: Interpreter, values: Sequence[Any], batch: Shape
    ) -> Iterator[tuple[list[Any], Any]]:
        """Yield the value before each step and whether that step is executed; last the result."""
        test, step = prepared(self.test, on), prepared(self.body, on)
        count = len(self.output_shapes)
        value, constants = list(values[:count]), values[count:]
        while True:
            (going,) = test([*value, *constants])
            yield value, going
            if not (going.any() if batch else going):
                return
            after = step([*value, *constants])
            value = chosen(on, going, after, value, self.output_shapes) if batch else after


@dataclass(frozen=True)
class WhileLoopVjp(Control):
    """The reverse sweep of a loop: it runs the loop, keeps each value, and goes back.

    Its arguments are those of the loop, then the cotangents of the last value.

    Attributes
    ----------
    test, body : Function
        Those of the loop.
    back : Function
        One step back: from the cotangents of the next value, the sums of the cotangents of the
        constants, the value before the step, and the constants, those cotangents and sums one
        step earlier.
    """

    test: Function
    body: Function
    back: Function
    name = "while_loop_vjp"
    roles: ClassVar[Mapping[str, str]] = {"test": "while", "body": "step", "back": "step back"}

    @property
    def loop(self) -> WhileLoop:
        """The loop."""
        return WhileLoop(self.test, self.body)

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the arguments."""
        return (*self.loop.input_shapes, *self.loop.output_shapes)

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the cotangents of the first value and of the constants."""
        return self.loop.input_shapes

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the cotangents; values may have batch axes in front."""
        shapes, count = self.output_shapes, len(self.loop.output_shapes)
        inputs, bars = values[: len(shapes)], values[len(shapes) :]
        back, constants = prepared(self.back, on), inputs[count:]
        cotangents = [*bars, *[np.zeros(shape)[()] for shape in self.loop.constants]]
        for value, going in list(self.loop.visited(on, inputs, batch))[-2::-1]:
            earlier = back([*cotangents, *value, *constants])
            cotangents = chosen(on, going, earlier, cotangents, shapes) if batch else earlier
        return cotangents


@dataclass(frozen=True)
class Checkpoint(Control):
    """A function whose values inside are not kept: the reverse sweep computes them again.

    Forward it is one node. The reverse sweep appends the operations of the function, in the order
    in which it needs them; they are no common subexpressions with those inside the node. Its last
    outputs, `kept` of them, are values that a policy keeps: they are not computed again.
    """

    function: Function
    kept: int = 0
    roles: ClassVar[Mapping[str, str]] = {"function": "function"}

    @property
    def name(self) -> str:
        """The name of the primitives that hold it."""
        return "checkpoint"

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the arguments."""
        return self.function.input_shapes

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the results."""
        return self.function.output_shapes

    @property
    def single(self) -> bool:
        """Whether the only output is the value of the node."""
        return len(self.function.outputs) == 1

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the outputs; values may have batch axes in front."""
        return prepared(self.function, on)(values)


@dataclass(frozen=True)
class Solution(Checkpoint):
    """A function that solves an equation, with the derivative of the solution.

    It is computed, compiled and printed like any function; its derivatives are those that `rule`
    states, not those of its steps.

    Attributes
    ----------
    rule : object
        Hashable, and as `difflab.autodiff.control.solutions.Rule`.
    """

    rule: Any = field(kw_only=True)
    roles: ClassVar[Mapping[str, str]] = {"function": "solver"}

    @property
    def name(self) -> str:
        """The rule's name."""
        return str(self.rule.name)

    def run(self, on: Interpreter, values: Sequence[Any], batch: Shape) -> list[Any]:
        """Compute the outputs, as the rule says; values may have batch axes in front."""
        solve = partial(super().run, on, values, batch)
        outputs: list[Any] = self.rule.solved(on, solve, values, batch)
        return outputs

    @property
    def written(self) -> bool:
        """Whether the language has a form for it."""
        return bool(self.rule.written)


def prepared(function: Function, on: Interpreter) -> Step:
    """Return a function for many evaluations on values of one kind; on arrays it is kept."""
    if not isinstance(on, ArrayInterpreter):
        return _prepared(function, on)
    cache, key = function.derived_cache, f"evaluation with {on.name}"
    step: Step | None = cache.get(key)
    if step is None:
        step = cache[key] = _prepared(function, on)
    return step


def _prepared(function: Function, on: Interpreter) -> Step:
    fold = Fold(function.graph, function.outputs, on)
    nodes = function.input_nodes
    calls = count(1)
    code: Step | None = None

    def step(values: Sequence[Any]) -> list[Any]:
        nonlocal code
        if code is not None:
            return code(values)
        if next(calls) == WORTH_CODE and len(function.graph) <= LARGEST_CODE:
            code = fold.straight(nodes)
        return fold.again(dict(zip(nodes, values, strict=True)))

    return step


def chosen(
    on: Interpreter, truth: Any, new: Sequence[Any], old: Sequence[Any], shapes: Sequence[Shape]
) -> list[Any]:
    """Return `new` where the truth values of a batch hold, else `old`; values of these shapes."""
    choose = on.operation(where)
    return [
        choose(truth.reshape(truth.shape + (1,) * len(shape)) if truth.shape else truth, one, two)
        for one, two, shape in zip(new, old, shapes, strict=True)
    ]


def _stacked(parts: Sequence[Any], shape: Shape, batch: Shape) -> Any:
    """Return results of all steps along a new axis behind the batch axes."""
    if not parts:
        return np.zeros((*batch, 0, *shape))
    if batch:
        parts = [np.broadcast_to(part, (*batch, *shape)) for part in parts]
    if any(isinstance(part, Node) for part in parts):
        builder = next(part.builder for part in parts if isinstance(part, Node))
        parts = as_nodes(builder, parts)
    return np.stack(list(parts), axis=len(batch))
