"""The pull-back of a tape as a graph, from the seed and the kept values to the cotangents.

The sweep is run once on nodes. Its graph has the kernel calls of a sweep on arrays and nothing
else, so it computes what that did.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from difflab.core.devices import on_host
from difflab.core.primitive import Params, Primitive, Shape
from difflab.eager.recording.plan import NUMBERS
from difflab.eager.recording.rows import cast, zeros
from difflab.eager.recording.tape import TapeStep
from difflab.eager.sweep.values import Calculator, Scattered
from difflab.graph.builder import KernelBuilder
from difflab.graph.ir import FIRST_ROW
from difflab.primitives import broadcast


class GraphValue:
    """A value of a sweep on nodes."""

    __slots__ = ("calculator", "node", "shape")

    def __init__(self, calculator: GraphCalculator, node: int) -> None:
        self.calculator = calculator
        self.node = node
        self.shape: Shape = calculator.builder.shape(node)

    def __difflab_held__(self) -> Any:
        return self.calculator.sources[0]

    def __difflab_apply__(
        self, primitive: Primitive, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> GraphValue:
        return self.calculator.emit(primitive, args, tuple(sorted(params.items())))


class GraphCalculator(Calculator):
    """A calculator on the nodes of a graph.

    Attributes
    ----------
    builder : KernelBuilder
        The graph.
    sources : list
        For each input where its value comes from: the seed, the index of a step and a slot, or an
        array that a rule writes, such as a triangle of ones.
    seed : GraphValue
        The first input.
    """

    def __init__(self, steps: Sequence[TapeStep], seed: Any, xp: Any) -> None:
        super().__init__(xp)
        self.kernels = None
        self.builder = KernelBuilder()
        self.sources: list[Any] = []
        self.seed = self._input(seed, seed.shape)
        self._indices = {step: index for index, step in enumerate(steps)}
        self._arrays: dict[tuple[Shape, bytes], GraphValue] = {}

    def _input(self, source: Any, shape: Shape) -> GraphValue:
        node = self.builder.input(f"x{len(self.sources)}", shape)
        self.sources.append(source)
        return GraphValue(self, node)

    def slots(self, step: TapeStep) -> list[Any]:
        """Return the values that the maps of a step read; each is read from its own slot."""
        slots = super().slots(step)
        for slot, _ in step.plan.keep:
            if type(slots[slot]) not in NUMBERS:
                slots[slot] = self._input((self._indices[step], slot), slots[slot].shape)
        return slots

    def emit(self, primitive: Primitive, args: Sequence[Any], params: Params = ()) -> GraphValue:
        """Append the call of a row's kernel; equal calls are made once."""
        operands = [self._node(self.dense(arg) if type(arg) is Scattered else arg) for arg in args]
        if primitive.shape is None:
            self._narrow(operands)
        return GraphValue(self, self.builder.emit(primitive, operands, params))

    def computed_elements(self) -> int:
        """Return the number of elements of all results."""
        builder = self.builder
        results = [node for node, opcode in enumerate(builder.opcode) if opcode >= FIRST_ROW]
        return sum(map(math.prod, map(builder.shape, results)))

    def _node(self, operand: Any) -> int:
        if getattr(operand, "ndim", 0):
            key = operand.shape, on_host(operand).tobytes()
            if key not in self._arrays:
                self._arrays[key] = self._input(operand, operand.shape)
            operand = self._arrays[key]
        # NumPy is faster with a float than with an integer.
        own = type(operand) is GraphValue
        return operand.node if own else self.builder.constant(float(operand))

    def _narrow(self, operands: list[int]) -> None:
        """Replace an array that repeats one element by that element, if a kernel repeats it too.

        Beside an array of the full shape this affects neither the result nor its memory layout.
        """
        builder = self.builder
        for index, operand in enumerate(operands):
            if builder.primitive(operand) is broadcast:
                (element,) = builder.arguments(operand)
                others = [builder.shape(other) for other in operands]
                shape = others.pop(index)
                if math.prod(builder.shape(element)) == 1 and np.broadcast_shapes(*others) == shape:
                    operands[index] = element

    def zeros(self, shape: Shape, dtype: Any) -> Any:
        """Return zeros, the contribution of a map without derivative."""
        return self.emit(zeros, (), (("dtype", dtype), ("shape", shape)))

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """Return a cotangent converted to the dtype of its primal; the call is always appended."""
        if type(value) is Scattered:
            return super().cast(value, dtype)
        return self.emit(cast, (value,), (("dtype", dtype),))
