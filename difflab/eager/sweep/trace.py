"""Records of the kernel calls of one reverse sweep, made while it runs on arrays.

A replay repeats the recorded calls and nothing else, so it computes what the recorded sweep did.
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
from difflab.primitives import broadcast

__all__ = ["KernelRecorder", "RecordedArray"]

LARGEST = 1 << 17
"""Most elements that a recorded sweep computes: a replay frees none of them before it ends."""
KernelCall = tuple[Primitive, Params, tuple[str, ...]]


class RecordedArray:
    """An array of a recorded sweep, and its name in the record.

    Attributes
    ----------
    element : RecordedArray or None
        The array of one element that `broadcast` repeated, if this is the result.
    """

    __slots__ = ("element", "name", "recorder", "value")

    def __init__(
        self, recorder: KernelRecorder, name: str, value: Any, element: RecordedArray | None = None
    ) -> None:
        self.recorder = recorder
        self.name = name
        self.value = value
        self.element = element

    @property
    def shape(self) -> Shape:
        """The shape of the array."""
        shape: Shape = self.value.shape
        return shape

    def __difflab_held__(self) -> Any:
        return self.value

    def __difflab_apply__(
        self, primitive: Primitive, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> RecordedArray:
        return self.recorder.emit(primitive, args, tuple(sorted(params.items())))


class KernelRecorder(Calculator):
    """A calculator on arrays that records its kernel calls; equal calls are made once.

    Attributes
    ----------
    reads : dict
        The index of a step and the slot that is read, by the name of the value.
    constants : dict
        The numbers and arrays among the operands that a rule writes, by name.
    calls : dict
        The recorded calls in order, with their results.
    complete : bool
        Whether all calls are recorded; otherwise the sweep computes more than `LARGEST` elements.
    """

    def __init__(self, steps: Sequence[TapeStep], seed: Any, xp: Any) -> None:
        super().__init__(xp)
        self.kernels = None
        self.seed = RecordedArray(self, "seed", seed)
        self.indices = {step: index for index, step in enumerate(steps)}
        self.reads: dict[str, tuple[int, int]] = {}
        self.constants: dict[str, Any] = {}
        self._arrays: dict[tuple[Shape, bytes], str] = {}
        self.calls: dict[KernelCall, RecordedArray] = {}
        self.elements = 0

    @property
    def complete(self) -> bool:
        """Whether all calls are recorded."""
        return self.elements <= LARGEST

    def slots(self, step: TapeStep) -> list[Any]:
        """Return the values that the maps of a step read; each is read from its own slot."""
        slots = super().slots(step)
        for slot, _ in step.plan.keep:
            if type(slots[slot]) not in NUMBERS:
                name = f"r{len(self.reads)}"
                self.reads[name] = self.indices[step], slot
                slots[slot] = RecordedArray(self, name, slots[slot])
        return slots

    def emit(self, primitive: Primitive, args: Sequence[Any], params: Any = ()) -> RecordedArray:
        """Call the kernel of a row, and record the call."""
        operands = [self.dense(arg) if type(arg) is Scattered else arg for arg in args]
        if primitive.shape is None:
            _narrow(operands)
        call = primitive, params, tuple([self._name(operand) for operand in operands])
        found = self.calls.get(call)
        if found is not None:
            return found
        kernel = primitive.unbatched_computer(self.xp, params)
        value = kernel(*[arg.value if type(arg) is RecordedArray else arg for arg in operands])
        repeats = primitive is broadcast and math.prod(operands[0].shape) == 1
        found = RecordedArray(self, f"v{len(self.calls)}", value, operands[0] if repeats else None)
        self.elements += math.prod(value.shape)
        if self.complete:
            self.calls[call] = found
        return found

    def _name(self, operand: Any) -> str:
        if type(operand) is RecordedArray:
            return operand.name
        if getattr(operand, "ndim", 0):  # an array that a rule writes, such as a triangle of ones
            key = operand.shape, on_host(operand).tobytes()
            name = self._arrays.setdefault(key, f"array{len(self._arrays)}")
            self.constants[name] = operand
            return name
        # By text: -0.0 equals 0.0. NumPy is faster with a float than with an integer.
        name = f"c{float(operand)!r}".translate(_IDENTIFIER)
        self.constants[name] = float(operand)
        return name

    def zeros(self, shape: Shape, dtype: Any) -> Any:
        """Return zeros, the contribution of a map without derivative."""
        return self.emit(zeros, (), (("dtype", dtype), ("shape", shape)))

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """Return a cotangent converted to the dtype of its primal; the call is always recorded."""
        if type(value) is Scattered:
            return super().cast(value, dtype)
        return self.emit(cast, (value,), (("dtype", dtype),))


_IDENTIFIER = str.maketrans({"-": "m", "+": "p", ".": "_"})


def _narrow(operands: list[Any]) -> None:
    """Replace an array that repeats one element by that element, if a kernel repeats it as well.

    Beside an array of the full shape this affects neither the result nor its memory layout.
    """
    for index, operand in enumerate(operands):
        if type(operand) is RecordedArray and operand.element is not None:
            others = [getattr(other, "shape", ()) for other in operands]
            del others[index]
            if np.broadcast_shapes(*others) == operand.shape:
                operands[index] = operand.element
