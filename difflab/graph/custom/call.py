"""One call of a custom function: runs the user's code and checks its result.

The code runs on any kind of argument: arrays, eager tensors, nodes of a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from difflab.arrays.given import shape_of
from difflab.arrays.shapes import fits
from difflab.core.apply import module_of
from difflab.core.conversions import without_parts
from difflab.core.primitive import Shape
from difflab.core.wording import counted
from difflab.errors import InputError, ShapeError, UnsupportedError
from difflab.graph.pytree import flatten
from difflab.primitives import broadcast


class Context:
    """The argument `ctx`, in which `forward` saves values for `backward` and `jvp`.

    Any attribute may be set on it, for scalars and settings; arrays are saved by
    `save_for_backward`.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For every argument of `forward`, whether its gradient is required.
    """

    def __init__(self, owner: str, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._owner = owner
        self._saved: tuple[Any, ...] | None = None

    def save_for_backward(self, *values: Any) -> None:
        """Keep arrays for `backward` and `jvp`, which find them in `saved_tensors`."""
        self._saved = values

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values that `forward` saved, in order."""
        if self._saved is None:
            raise InputError(
                f"{self._owner} reads ctx.saved_tensors, and its forward has saved nothing",
                hint="call ctx.save_for_backward(...) in forward",
            )
        return self._saved

    def replaced(self, values: dict[int, Any]) -> Context:
        """Return a context with saved values replaced, keyed by their ``id``."""
        made = Context(self._owner, self.needs_input_grad)
        made.__dict__.update(self.__dict__)
        if self._saved is not None:
            made._saved = tuple([values.get(id(value), value) for value in self._saved])
        return made

    @property
    def kept(self) -> tuple[Any, ...]:
        """The values that `forward` saved, if any."""
        return self._saved or ()

    @property
    def settings(self) -> dict[str, Any]:
        """The attributes that `forward` set."""
        own = ("needs_input_grad", "_owner", "_saved")
        return {name: value for name, value in vars(self).items() if name not in own}


class ForwardResult(NamedTuple):
    """The result of one run of `forward`."""

    outputs: tuple[Any, ...]
    single: bool
    context: Context


class _Hole:
    """Placeholder for an array among the arguments of a call."""

    def __repr__(self) -> str:
        return "*"


HOLE = _Hole()


@dataclass(frozen=True)
class CustomCall:
    """A custom function with its non-array arguments.

    Attributes
    ----------
    function : type
        The user's class.
    template : tuple
        The arguments, with a placeholder for each array.
    """

    function: type
    template: tuple[Any, ...]

    @classmethod
    def of(cls, function: type, args: Sequence[Any]) -> tuple[CustomCall, list[Any]]:
        """Return the call and its arrays, the arguments to differentiate by."""
        args = [
            without_parts(arg, f"argument {index + 1} of {function.__name__}")
            if _is_array(arg)
            else arg
            for index, arg in enumerate(args)
        ]
        arrays = [arg for arg in args if _is_array(arg)]
        template = tuple([HOLE if _is_array(arg) else arg for arg in args])
        for index, arg in enumerate(template):
            if any(_is_carrier(leaf) for leaf in flatten(arg)[0]):
                raise InputError(
                    f"argument {index + 1} of {function.__name__} contains traced values or"
                    " tensors",
                    hint="pass each of them to apply() as a separate argument",
                )
        return cls(function, template), arrays

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.function.__name__

    @property
    def holes(self) -> list[int]:
        """The positions of the arrays among the arguments."""
        return [index for index, arg in enumerate(self.template) if arg is HOLE]

    def filled(self, values: Sequence[Any], other: Any = HOLE) -> list[Any]:
        """Return a value per argument: `values` for the arrays, the others as they are."""
        remaining = iter(values)
        rest = self.template if other is HOLE else (other,) * len(self.template)
        pairs = zip(self.template, rest, strict=True)
        return [next(remaining) if arg is HOLE else fixed for arg, fixed in pairs]

    def key(self) -> Any:
        """Return a key that is equal for equal calls, including scalar types; may be unhashable."""
        return (self.function, tuple([(type(arg), arg) for arg in self.template]))

    def run(self, values: Sequence[Any], needs: Sequence[bool] | None = None) -> ForwardResult:
        """Run `forward` on read-only views of the arrays."""
        wanted = [True] * len(values) if needs is None else needs
        context = Context(self.name, tuple(self.filled(wanted, False)))
        protected = [read_only(value) for value in values]
        result = self.function.forward(context, *self.filled(protected))  # type: ignore[attr-defined]
        single = not isinstance(result, tuple | list)
        outputs = (result,) if single else tuple(result)
        for index, output in enumerate(outputs):
            elsewhere = _is_carrier(output) or module_of(output) is not np
            if not (elsewhere or np.asarray(output).dtype.kind in "biufc"):
                raise InputError(
                    f"{self.name}.forward returns {_described(output)} as output {index + 1}",
                    hint="it returns an array, or a tuple of arrays",
                )
        return ForwardResult(tuple(map(_number, outputs)), single, context)

    def pull(self, context: Context, bars: Sequence[Any], shapes: Sequence[Shape]) -> list[Any]:
        """Run `backward` on the cotangents of all outputs; see `cotangents`."""
        reason = no_rule(self.function, "backward")
        if reason:
            raise UnsupportedError(reason)
        return self.cotangents(self.function.backward(context, *bars), shapes)  # type: ignore[attr-defined]

    def cotangents(self, returned: Any, shapes: Sequence[Shape]) -> list[Any]:
        """Return the cotangent of each array, None for none, checked and un-broadcast."""
        bars = list(returned) if isinstance(returned, tuple | list) else [returned]
        count = len(self.template)
        if len(bars) != count:
            raise InputError(
                f"{self.name}.backward returned {counted(len(bars), 'cotangent')}, and forward"
                f" takes {counted(count, 'argument')}",
                hint="return one for every argument but ctx, None for those without derivative",
            )
        chosen = [bars[index] for index in self.holes]
        return [
            None if bar is None else self._narrowed(_number(bar), shape, index)
            for bar, shape, index in zip(chosen, shapes, self.holes, strict=True)
        ]

    def _narrowed(self, bar: Any, shape: Shape, index: int) -> Any:
        """Return a cotangent summed over the axes along which its argument was broadcast."""
        wide = shape_of(bar)
        if wide == shape:
            return bar
        if not fits(shape, wide):
            raise ShapeError(
                f"{self.name}.backward returned a cotangent of shape {wide} for argument"
                f" {index + 1} of forward, whose shape is {shape}"
            )
        rule: Any = broadcast.rule
        return rule.transpose(bar, 0, (shape,), shape=wide, rank=len(shape))

    def push(self, context: Context, dots: Sequence[Any], outputs: Sequence[Shape]) -> list[Any]:
        """Run `jvp` on the tangents of the arrays, and return those of the outputs."""
        reason = no_rule(self.function, "jvp")
        if reason:
            raise UnsupportedError(reason)
        tangents = self.function.jvp(context, *self.filled(dots, None))  # type: ignore[attr-defined]
        return self.tangents(tangents, outputs)

    def tangents(self, returned: Any, outputs: Sequence[Shape]) -> list[Any]:
        """Return the tangents of the outputs, checked; None becomes zero."""
        dots = list(returned) if isinstance(returned, tuple | list) else [returned]
        if len(dots) != len(outputs):
            raise InputError(
                f"{self.name}.jvp returned {counted(len(dots), 'tangent')}, and forward returns"
                f" {counted(len(outputs), 'output')}"
            )
        dots = [
            np.zeros(shape)[()] if dot is None else _number(dot)
            for dot, shape in zip(dots, outputs, strict=True)
        ]
        for index, (dot, shape) in enumerate(zip(dots, outputs, strict=True)):
            if shape_of(dot) != shape:
                raise ShapeError(
                    f"{self.name}.jvp returned a tangent of shape {shape_of(dot)} for output"
                    f" {index + 1} of forward, whose shape is {shape}"
                )
        return dots


_RULES = {
    "backward": ("reverse rule", "forward mode", "backward(ctx, *cotangents)"),
    "jvp": ("forward rule", "reverse mode", "jvp(ctx, *tangents)"),
}


def no_rule(function: type, name: str) -> str:
    """Return why a custom function lacks a rule; empty if it has one."""
    if getattr(function, name, None) is not None:
        return ""
    what, other, signature = _RULES[name]
    return f"{function.__name__} has no {what}: use {other}, or give it a static method {signature}"


def _described(output: Any) -> str:
    """Return the dtype of an array, or the type of another value."""
    dtype = getattr(output, "dtype", None)
    return type(output).__name__ if dtype is None else f"an array of {dtype}"


def _is_carrier(value: Any) -> bool:
    return hasattr(value, "__difflab_apply__")


def _is_array(value: Any) -> bool:
    """Whether an argument can be differentiated by; Python scalars are settings."""
    is_array = _is_carrier(value) or isinstance(value, np.ndarray | np.floating)
    return is_array or module_of(value) is not np


def _number(value: Any) -> Any:
    """Return a Python scalar as a NumPy scalar; lists become arrays."""
    return value if hasattr(value, "shape") else np.asarray(value, dtype=np.float64)[()]


def read_only(value: Any) -> Any:
    """Return a read-only view of an array; other values are returned unchanged."""
    if not isinstance(value, np.ndarray) or not value.flags.writeable:
        return value
    view = value.view()
    view.flags.writeable = False
    return view
