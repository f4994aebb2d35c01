"""The memory of a compiled gradient, in a process of its own: ``python -m … TOOL STRATEGY STEPS``.

Prints the bytes by which the resident memory grew at most during a call, and a sum of the gradient.
A call on a small state came before it, and the kernel's mark of the peak is reset in between.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graphs.programs import chain

__all__ = ["ENVIRONMENT", "SIZE", "main"]

ROWS, COLUMNS = 2048, 64
SIZE = ROWS * COLUMNS
"""Elements of a state: 1 MiB."""
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536"}
"""Under which glibc returns freed arrays to the system: resident memory is what is held."""


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


def _status(field: str) -> int:
    """Return a size of this process in bytes."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])


def main() -> None:
    """Measure what the command line names."""
    tool, strategy, steps = sys.argv[1:4]
    prepare = _TOOLS[tool]
    prepare(strategy == "checkpoints", 4, 2)()
    call = prepare(strategy == "checkpoints", int(steps), ROWS)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM is VmRSS again
    before = _status("VmRSS")
    found = call()
    peak = _status("VmHWM") - before
    sys.stdout.write(f"{peak} {float(np.asarray(found, dtype=np.float64).sum())!r}\n")


if __name__ == "__main__":
    main()
