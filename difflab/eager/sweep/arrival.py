"""Cotangents that have arrived: shown to hooks, retained, and added to the gradients of leaves.

Whose memory they are is `core.ownership`'s to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from difflab.eager.recording.record import TapedArray, record
from difflab.eager.recording.rows import cast
from difflab.eager.recording.tape import TapeStep
from difflab.errors import ShapeError

__all__ = ["arrive", "show"]

TensorType = Callable[..., Any]
"""Makes a tensor."""


def _hooked(hooks: Mapping[int, Callable[..., Any]], bar: Any, kind: TensorType) -> Any:
    """Show a cotangent to hooks, each of which may replace it.

    A hook is given a tensor of its own: what it does to that in place changes nothing else.
    """
    plain = not isinstance(bar, TapedArray)
    data = bar if plain else bar._data
    step = None if plain else bar._step
    for hook in tuple(hooks.values()):
        given = hook(kind(data, step))
        if given is None:
            continue
        replaced: Any = given if isinstance(given, TapedArray) else kind(np.array(given))
        if replaced.shape != data.shape:
            raise ShapeError(
                f"a hook returned shape {replaced.shape} for a gradient of {data.shape}"
            )
        if replaced.dtype != data.dtype:
            replaced = record(cast, (replaced,), {"dtype": data.dtype})
        data, step = replaced._data, replaced._step
    return data if plain else kind(data, step)


def show(step: TapeStep, bar: Any, kind: TensorType) -> Any:
    """Show the cotangent of a step to its hooks and to the tensor that retains it."""
    if step.hooks:
        bar = _hooked(step.hooks, bar, kind)
    keeper = step.retained and step.retained()
    if keeper is not None:
        own = bar.copy()
        gradient = own if isinstance(own, TapedArray) else kind(own)
        keeper._grad = gradient if keeper._grad is None else keeper._grad + gradient
    return bar


def arrive(found: list[tuple[Any, Any]], seed: Any, kind: TensorType) -> None:
    """Add cotangents to the gradients of leaves; every gradient has memory of its own."""
    taken = {id(seed)}
    for leaf, bar in found:
        lent = id(bar) in taken
        taken.add(id(bar))
        if leaf.hooks:
            bar, lent = _hooked(leaf.hooks, bar, kind), True
        if leaf.grad is not None:
            with np.errstate(all="ignore"):
                leaf.grad = (
                    leaf.grad + bar if isinstance(bar, TapedArray) else kind(leaf.grad._data + bar)
                )
            continue
        recorded = isinstance(bar, TapedArray)
        if lent or (bar._data if recorded else bar).base is not None:
            bar = bar.copy()
        leaf.grad = bar if recorded else kind(bar)
