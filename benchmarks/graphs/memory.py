"""The memory of a compiled gradient, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.graphs.programs import chain
from difflab.core.worker import Handlers, ReportProgress
from difflab.methods.timer import resident_peak

__all__ = ["SIZE", "handlers", "held"]

ROWS, COLUMNS = 2048, 64
SIZE = ROWS * COLUMNS
"""Elements of a state: 1 MiB."""


def _arrays(rows: int) -> tuple[Any, Any]:
    """Return a state of some rows, and the matrix of a step."""
    draw = np.random.default_rng(0)
    return draw.normal(size=(rows, COLUMNS)), draw.normal(size=(COLUMNS, COLUMNS)) / COLUMNS**0.5


def _difflab(checkpoints: bool, steps: int, rows: int) -> Callable[[], Any]:
    from difflab.autodiff import gradient
    from difflab.eager import checkpoint
    from difflab.execute.compiled import compile
    from difflab.graph.trace import trace

    def repeat(segment: Callable[[Any], Any], state: Any, count: int) -> Any:
        for _ in range(count):
            state = checkpoint(segment, state) if checkpoints else segment(state)
        return state

    state, mixing = _arrays(rows)
    fast = compile(gradient(trace(chain(np, repeat, steps, mixing), state)))
    return lambda: fast(state)


def _jax(checkpoints: bool, steps: int, rows: int) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)

    # Of a loop in Python XLA would see that the segments are computed twice, and keep them.
    def repeat(segment: Callable[[Any], Any], state: Any, count: int) -> Any:
        step = jax.checkpoint(segment) if checkpoints else segment
        return jax.lax.scan(lambda s, _: (step(s), None), state, length=count)[0]

    state, mixing = map(jax.numpy.asarray, _arrays(rows))
    fast = jax.jit(jax.grad(chain(jax.numpy, repeat, steps, mixing))).lower(state).compile()
    return lambda: fast(state).block_until_ready()


def _torch(checkpoints: bool, steps: int, rows: int) -> Callable[[], Any]:
    import torch
    from torch.utils.checkpoint import checkpoint

    def repeat(segment: Callable[[Any], Any], state: Any, count: int) -> Any:
        for _ in range(count):
            kept = not checkpoints
            state = segment(state) if kept else checkpoint(segment, state, use_reentrant=False)
        return state

    first, mixing = map(torch.as_tensor, _arrays(rows))
    loss = chain(torch, repeat, steps, mixing)

    def call() -> Any:
        state = first.clone().requires_grad_()
        return torch.autograd.grad(loss(state), state)[0]

    return call


_TOOLS = {"difflab": _difflab, "jax": _jax, "torch": _torch}


def held(tool: str, strategy: str, steps: int) -> tuple[int, float]:
    """Return the peak of resident memory in a call, after one on a small state, and a sum of it."""
    prepare = _TOOLS[tool]
    prepare(strategy == "checkpoints", 4, 2)()
    peak, found = resident_peak(prepare(strategy == "checkpoints", steps, ROWS))
    return peak, float(np.asarray(found, dtype=np.float64).sum())


def handlers(report: ReportProgress) -> Handlers:
    """Return the handlers of the process of one row."""
    return {"held": held}
