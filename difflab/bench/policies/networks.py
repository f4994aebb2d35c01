"""The network under a policy, in difflab, JAX and PyTorch; and its measurement in a process.

Every layer is checkpointed under the policy, so that the reverse sweep holds what is kept of all
layers, and the values of one. The peak is that of resident memory, as Linux counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import difflab
from difflab.core.worker import Handlers, ReportProgress
from difflab.methods.timer import resident_peak

CHECKED = 32  # rows of the call that comes before the measured one, and is compared
REPEATED = 5


class Size(NamedTuple):
    """The network: rows of a batch, columns of a state, and layers."""

    rows: int
    columns: int
    layers: int


def layer(xp: Any, name: Callable[..., Any], state: Any, weight: Any) -> Any:
    """Return the next state; its product and its bend are named."""
    bent = name(xp.tanh(name(state @ weight, "z")), "a")
    wave = xp.sin(3.0 * bent)
    return 0.5 * state + bent * xp.exp(-wave * wave)


def _arrays(size: Size) -> tuple[Any, list[Any]]:
    draw = np.random.default_rng(0)
    state = draw.normal(size=(size.rows, size.columns))
    scale = size.columns**0.5
    shape = (size.columns, size.columns)
    return state, [draw.normal(size=shape) / scale for _ in range(size.layers)]


def _policy(text: str) -> Any:
    """Return the policy of difflab that a row names; None for no checkpoint."""
    from difflab.autodiff import policies

    name, _, argument = text.partition(" ")
    if name == "optimal":
        return policies.optimal(bytes=int(argument))
    if name == "save_only":
        return policies.save_only(*argument.split(","))
    return None if name == "none" else getattr(policies, name)


def predicted(text: str, size: Size) -> tuple[int, int]:
    """Return the bytes kept beside the layers' states, and the operations computed again."""
    from difflab.autodiff import policies

    policy = _policy(text) or policies.everything
    state, weights = _arrays(size._replace(layers=1))
    found = policies.account(policy, partial(layer, np, policies.name), state, weights[0])
    return size.layers * found.bytes, size.layers * found.operations


def _checkpointed(text: str) -> Callable[[Any, Any], Any]:
    """Return a layer under a policy of difflab."""
    from difflab.autodiff import policies
    from difflab.eager import checkpoint_with

    policy, step = _policy(text), partial(layer, np, policies.name)
    return step if policy is None else checkpoint_with(policy)(step)


def _difflab(text: str, size: Size) -> Callable[[], Any]:
    from difflab.eager import tensor

    step = _checkpointed(text)
    state, weights = _arrays(size)

    def call() -> Any:
        leaves, now = [tensor(weight, requires_grad=True) for weight in weights], state
        for leaf in leaves:
            now = step(now, leaf)
        np.sum(now).backward()
        return sum(float(leaf.grad.numpy().sum()) for leaf in leaves if leaf.grad is not None)

    return call


def _difflab_compiled(text: str, size: Size) -> Callable[[], Any]:
    step = _checkpointed(text)
    state, weights = _arrays(size)

    def loss(weights: Any) -> Any:
        now = state
        for weight in weights:
            now = step(now, weight)
        return np.sum(now)

    fast = difflab.compile(difflab.trace(difflab.grad(loss), weights))
    return lambda: sum(float(slope.sum()) for slope in fast(*weights))


def _jax(text: str, size: Size) -> Callable[[], Any]:
    import jax
    from jax.ad_checkpoint import checkpoint_name

    jax.config.update("jax_enable_x64", True)
    known = jax.checkpoint_policies
    name, _, argument = text.partition(" ")
    policies = {
        "nothing": known.nothing_saveable,
        "everything": known.everything_saveable,
        "dots": known.dots_saveable,
        "save_only": known.save_only_these_names(*argument.split(",")),
    }
    step = partial(layer, jax.numpy, checkpoint_name)
    if name != "none":
        step = jax.checkpoint(step, policy=policies[name])
    state, weights = _arrays(size)
    stack, first = jax.numpy.stack(weights), jax.numpy.asarray(state)

    # Of a loop in Python XLA would see that values are computed twice, and keep them.
    def loss(stack: Any, first: Any) -> Any:
        last = jax.lax.scan(lambda now, weight: (step(now, weight), None), first, stack)[0]
        return jax.numpy.sum(last)

    fast = jax.jit(jax.grad(loss)).lower(stack, first).compile()
    return lambda: float(fast(stack, first).sum())


def _torch(text: str, size: Size) -> Callable[[], Any]:
    import torch
    from torch.utils.checkpoint import (
        checkpoint,
        create_selective_checkpoint_contexts,
    )

    torch.set_num_threads(1)
    step = partial(layer, torch, lambda value, name: value)
    state, arrays = _arrays(size)
    first, kept = torch.as_tensor(state), {}
    if text == "dots":
        saved = [torch.ops.aten.mm.default]
        kept = {"context_fn": partial(create_selective_checkpoint_contexts, saved)}

    def call() -> Any:
        leaves, now = [torch.tensor(weight, requires_grad=True) for weight in arrays], first
        for leaf in leaves:
            if text == "none":
                now = step(now, leaf)
            else:
                now = checkpoint(step, now, leaf, use_reentrant=False, **kept)
        now.sum().backward()
        return sum(float(leaf.grad.sum()) for leaf in leaves)

    return call


LIBRARIES: Mapping[str, Callable[[str, Size], Callable[[], Any]]] = {
    "difflab": _difflab,
    "difflab compiled": _difflab_compiled,
    "jax": _jax,
    "torch": _torch,
}
OWN = ("difflab", "difflab compiled")
"""On tensors, which keep what a tape keeps; and as a compiled function."""
_NAMED = ("none", "everything", "dots", "save_only z,a", "save_only a", "nothing")
POLICIES: Mapping[str, tuple[str, ...]] = {
    "difflab": _NAMED,
    "difflab compiled": _NAMED,
    "jax": _NAMED,
    "torch": ("none", "dots", "nothing"),
}
"""Those that a library has by name; difflab's optimal choices are added."""


def measure(library: str, policy: str, size: tuple[int, int, int]) -> dict[str, float]:
    """Return the peak of one call in bytes, the seconds of several, and a sum of a gradient."""
    prepare = LIBRARIES[library]
    checked = prepare(policy, Size(CHECKED, *size[1:]))()
    call = prepare(policy, Size(*size))
    peak, _ = resident_peak(call)
    seconds = []
    for _ in range(REPEATED):
        began = perf_counter()
        call()
        seconds.append(perf_counter() - began)
    spread = (sorted(seconds)[-2] - sorted(seconds)[1]) / median(seconds)
    return {"peak": peak, "seconds": min(seconds), "spread": spread, "total": checked}


def handlers(report: ReportProgress) -> Handlers:
    """Return the handlers of the process of one row."""
    return {"measure": measure}
