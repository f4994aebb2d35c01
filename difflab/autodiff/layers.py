"""A function on tensors as one operation, whose backward evaluates the function's vjp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from difflab.autodiff.engine.argnums import cotangents_of
from difflab.graph.custom.call import Context
from difflab.graph.custom.function import CustomFunction
from difflab.graph.function import Function

__all__ = ["Evaluation", "Layer"]

Evaluation = Callable[[Sequence[Any]], Sequence[Any]]
"""Computes the outputs of a function from one array per input, with batch axes in front."""


@dataclass(frozen=True, eq=False)
class Layer:
    """A function, and how it and its derivatives are evaluated on arrays.

    Attributes
    ----------
    function : Function
        The function to apply.
    prepare : callable
        Returns the evaluation of a function.
    """

    function: Function
    prepare: Callable[[Function], Evaluation]
    pulls: dict[tuple[int, ...], Layer] = field(default_factory=dict)

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Return the outputs for tensors and arrays, whose leading axes are a batch."""
        outputs = FunctionStep.apply(self, *values)
        return list(outputs) if isinstance(outputs, tuple) else [outputs]

    def evaluated(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs for arrays."""
        if "evaluation" not in self.__dict__:
            object.__setattr__(self, "evaluation", self.prepare(self.function))
        return tuple(self.__dict__["evaluation"](values))

    def pull(self, sources: tuple[int, ...]) -> Layer:
        """Return the cotangents of some inputs, from the inputs and the outputs' cotangents."""
        layer = self.pulls.get(sources)
        if layer is None:
            function = cotangents_of(self.function, sources)
            layer = self.pulls[sources] = Layer(function, self.prepare)
        return layer


class FunctionStep(CustomFunction):
    """Applies a `Layer`; on tensors it is one step of the tape."""

    @staticmethod
    def forward(ctx: Context, layer: Layer, *values: Any) -> Any:
        """Compute the outputs, and keep the inputs."""
        ctx.layer = layer  # type: ignore[attr-defined]
        ctx.save_for_backward(*values)
        return layer.evaluated(values)

    @staticmethod
    def backward(ctx: Context, *bars: Any) -> Any:
        """Return the cotangents of the inputs that need one; those of a batch are added up."""
        layer: Layer = ctx.layer  # type: ignore[attr-defined]
        needs = ctx.needs_input_grad[1:]
        sources = tuple([index for index, needed in enumerate(needs) if needed])
        bar_of = dict(zip(sources, layer.pull(sources)([*ctx.saved_tensors, *bars]), strict=True))
        return (None, *(bar_of.get(index) for index in range(len(needs))))
