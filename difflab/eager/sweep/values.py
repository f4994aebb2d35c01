"""Calculators: the interface of a graph builder on values, for the reverse sweep.

`autodiff.engine.masked` adds up derivatives under masks for any writer: a graph's `Builder`
appends nodes, a `Calculator` computes, on arrays or, to record the sweep, on tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from difflab.autodiff.engine.masked import Masked, accumulate, moved
from difflab.core.devices import module_of
from difflab.core.primitive import Primitive
from difflab.eager.recording.rows import cast, reached, widened
from difflab.eager.recording.tape import TapeStep
from difflab.graph.ir import Shape
from difflab.primitives import add, broadcast, scatter, where


class Scattered:
    """The cotangent of ``x[key]``, not yet written into zeros of the shape of x.

    All cotangents of one array are written together, so that the reverse sweep of a loop over
    the elements of x takes linear time.
    """

    __slots__ = ("key", "part", "shape")

    def __init__(self, part: Any, key: tuple[Any, ...], shape: Shape) -> None:
        self.part = part
        self.key = key
        self.shape = shape


class Calculator:
    """A writer (see `autodiff.engine.masked`) whose nodes are arrays; one for each sweep.

    Attributes
    ----------
    xp : module
        The array module.
    kernels : module or None
        The array module whose kernels compute; None if the values are carriers, to which rows
        are applied.
    several : bool
        Whether the sweep has gone from one device to another.
    """

    def __init__(self, xp: Any = np) -> None:
        self.xp = xp
        self.kernels = xp
        self.several = False
        self.last_masked: tuple[Any, Any, Any] = (None, None, None)

    def follow(self, value: Any) -> None:
        """Compute on the device of a cotangent from now on, if the sweep has several."""
        if not self.several:
            return
        held = value.part if type(value) is Scattered else value
        self.xp = module_of(getattr(held, "_data", held))
        if self.kernels is not None:
            self.kernels = self.xp

    def slots(self, step: TapeStep) -> list[Any]:
        """Return the values that the maps of a step read."""
        slots: list[Any] = step.slots.copy()
        return slots

    def emit(self, primitive: Primitive, args: Sequence[Any], params: Any = ()) -> Any:
        """Compute a row."""
        dense = [self.dense(arg) if type(arg) is Scattered else arg for arg in args]
        return primitive(*dense, **dict(params))

    def zeros(self, shape: Shape, dtype: Any) -> Any:
        """Return zeros, the contribution of a map without derivative."""
        return self.xp.zeros(shape, dtype)

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """Return a cotangent converted to the dtype of its primal."""
        if type(value) is Scattered:
            return Scattered(self.cast(value.part, dtype), value.key, value.shape)
        same = getattr(value, "dtype", None) == dtype
        return value if same else self.emit(cast, (value,), (("dtype", dtype),))

    def spread(self, mask: Any, shape: Shape) -> Any:
        """Return a mask broadcast to the shape of its values."""
        if mask.shape == shape:
            return mask
        return self.emit(widened, (mask,), (("shape", shape),))

    def constant(self, value: float) -> Any:
        """Return the number."""
        return value

    def primitive(self, node: Any) -> Primitive | None:
        """Return `scatter` for a cotangent not yet written into its array."""
        return scatter if type(node) is Scattered else None

    def arguments(self, node: Scattered) -> tuple[Any, ...]:
        """Return the part of a scattered cotangent."""
        return (node.part,)

    def params(self, node: Scattered) -> dict[str, Any]:
        """Return the key of a scattered cotangent."""
        return {"keys": (node.key,)}

    def shape(self, node: Scattered) -> Shape:
        """Return the array's shape."""
        return node.shape

    def dense(self, value: Scattered) -> Any:
        """Return a scattered cotangent written into zeros."""
        return scatter(value.part, keys=(value.key,), shape=value.shape)

    def join(self, parts: list[Masked], value: Any, mask: Any) -> None:
        """Append a cotangent to the parts of an edge; add it if that keeps a graph's order."""
        if parts and mask is None and type(value) is not Scattered:
            last = parts[-1].value
            whole = parts[-1].mask is None and type(last) is not Scattered
            if whole and last.shape == value.shape and len(parts) == 1:
                parts[-1] = Masked(self.emit(add, (last, value)))
                return
        parts.append(Masked(value, mask))

    def total(self, parts: list[Masked], shape: Shape | None, *, final: bool) -> Masked:
        """Add up the cotangents of an edge; those wider than `shape` are un-broadcast."""
        if shape is not None:
            parts = self._narrowed(parts, shape, final=final)
        part = parts[0] if len(parts) == 1 else accumulate(self, parts)
        if type(part.value) is Scattered:
            return Masked(self.dense(part.value), part.mask)
        return part

    def _narrowed(self, parts: list[Masked], shape: Shape, *, final: bool) -> list[Masked]:
        """Add parts of equal shape, then un-broadcast once: as at the broadcast node of a graph.

        That node precedes all its users, so the sweep visits it after the last of them.
        """
        groups: dict[Any, list[Masked]] = {}
        for number, part in enumerate(parts):
            wide = part.value.shape
            key = number if wide == shape else wide
            group = groups.pop(key, [])
            group.append(part)
            groups[key] = group
        narrow = []
        for key, group in groups.items():
            part = accumulate(self, group)
            if isinstance(key, tuple):
                part = Masked(*self.unbroadcast(part.value, part.mask, shape, final=final))
            narrow.append(part)
        return narrow

    def masked(self, value: Any, mask: Any) -> Any:
        """Return a derivative with zeros where its mask is false.

        The latest result is cached: it is needed again for each argument of a step.
        """
        if mask is None:
            return value
        last_value, last_mask, result = self.last_masked
        if value is not last_value or mask is not last_mask:
            result = self.emit(where, (mask, value, 0))
            self.last_masked = (value, mask, result)
        return result

    def reached(self, mask: Any, shape: Shape) -> Any:
        """Return the mask of elements of `shape` that depend on all of the masked array."""
        return self.emit(reached, (mask,), (("shape", shape),))

    def moved(
        self, value: Any, mask: Any, move: Callable[[Any], Any], *, final: bool
    ) -> tuple[Any, Any]:
        """Apply a linear map of arrays to a cotangent, and to its mask unless it is `final`."""
        part = Masked(self.masked(value, mask), mask, clean=True)
        found = moved(self, part, move, final=final)
        return found.value, found.mask

    def unbroadcast(self, value: Any, mask: Any, shape: Shape, *, final: bool) -> tuple[Any, Any]:
        """Sum a cotangent over the axes along which an operand of `shape` was repeated."""
        return self.moved(value, mask, partial(self.summed, shape), final=final)

    def summed(self, shape: Shape, value: Any) -> Any:
        """Sum a value over the axes along which `shape` was repeated."""
        rule: Any = broadcast.rule
        return rule.transpose(value, 0, (shape,), shape=value.shape, rank=len(shape))


class TensorCalculator(Calculator):
    """A writer whose nodes are tensors, which record the operations on them.

    Parameters
    ----------
    kind : callable
        The class `Tensor`, which the tape does not import.
    xp : module
        The array module of the tensors' values.
    """

    def __init__(self, kind: Callable[..., Any], xp: Any = np) -> None:
        super().__init__(xp)
        self.kernels = None
        self.kind = kind

    def slots(self, step: TapeStep) -> list[Any]:
        """Return the values that the maps of a step read, as tensors where derivatives flow."""
        slots, edges = super().slots(step), step.edges or ()
        for slot, source in step.plan.keep:
            edge = step if source == len(edges) else edges[source]
            if edge is not None:
                slots[slot] = self.kind(slots[slot], edge)
        return slots
