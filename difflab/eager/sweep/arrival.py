"""Accumulated cotangents: passed to hooks, retained, and added to the gradients of leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from difflab.eager.recording.record import TapedArray, record
from difflab.eager.recording.rows import cast
from difflab.eager.recording.tape import TapeStep
from difflab.errors import ShapeError

TensorType = Callable[..., Any]
"""The class `Tensor`, which the tape does not import."""


def hooked(hooks: Mapping[int, Callable[..., Any]], bar: Any, kind: TensorType) -> Any:
    """Call hooks with a cotangent; each may return a replacement.

    Each hook gets a tensor of its own, whose changes in place affect nothing else.
    """
    plain = not isinstance(bar, TapedArray)
    data = bar if plain else bar._data
    step = None if plain else bar._step
    for hook in tuple(hooks.values()):
        returned = hook(kind(data, step))
        if returned is None:
            continue
        replaced: Any = returned if isinstance(returned, TapedArray) else kind(np.array(returned))
        if replaced.shape != data.shape:
            raise ShapeError(
                f"a hook returned shape {replaced.shape} for a gradient of {data.shape}"
            )
        if replaced.dtype != data.dtype:
            replaced = record(cast, (replaced,), {"dtype": data.dtype})
        data, step = replaced._data, replaced._step
    return data if plain else kind(data, step)


def show(step: TapeStep, bar: Any, kind: TensorType) -> Any:
    """Pass the cotangent of a step to its hooks and to the tensor that retains it."""
    if step.hooks:
        bar = hooked(step.hooks, bar, kind)
    keeper = step.retained and step.retained()
    if keeper is not None:
        own = bar.copy()
        gradient = own if isinstance(own, TapedArray) else kind(own)
        keeper._grad = gradient if keeper._grad is None else keeper._grad + gradient
    return bar


def arrive(found: list[tuple[Any, Any]], seed: Any, kind: TensorType) -> None:
    """Add cotangents to the gradients of leaves; gradients share no memory."""
    used = {id(seed)}
    for leaf, bar in found:
        shared = id(bar) in used
        used.add(id(bar))
        if leaf.hooks:
            bar, shared = hooked(leaf.hooks, bar, kind), True
        if leaf.grad is not None:
            with np.errstate(all="ignore"):
                leaf.grad = (
                    leaf.grad + bar if isinstance(bar, TapedArray) else kind(leaf.grad._data + bar)
                )
            continue
        recorded = isinstance(bar, TapedArray)
        if shared or (bar._data if recorded else bar).base is not None:
            bar = bar.copy()
        leaf.grad = bar if recorded else kind(bar)
