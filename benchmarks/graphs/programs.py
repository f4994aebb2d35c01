"""The programs that are measured, in the words of each tool.

Every tool computes in float64 on one point. JAX compiles with ``jit``, except where its eager
forward mode is measured; PyTorch runs eagerly, since ``torch.compile`` would unroll a scan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MEASURES", "Ready", "chain"]

HIDDEN = 8
"""The size of the recurrent cell."""
TURNS = 32
"""Turns of the eager loop."""


@dataclass(frozen=True)
class Ready:
    """A call to time, without arguments, and its result as an array."""

    call: Callable[[], Any]
    result: Callable[[Any], Any]


Prepare = Callable[[int], Ready]
Repeat = Callable[[Callable[[Any], Any], Any, int], Any]


def _leaves(result: Any) -> Any:
    """Return results of difflab or JAX as one vector."""
    parts = result if isinstance(result, tuple | list) else [result]
    return np.concatenate([np.ravel(np.asarray(part)) for part in parts])


def _torch_leaves(result: Any) -> Any:
    parts = result if isinstance(result, tuple | list) else [result]
    return np.concatenate([part.detach().numpy().ravel() for part in parts])


# --- a call of jit on a tree of six arrays ----------------------------------------------------


def _tree(convert: Callable[[Any], Any]) -> dict[str, Any]:
    draw = np.random.default_rng(0)
    layers = [(draw.normal(size=(4, 4)) / 2, draw.normal(size=4)) for _ in range(3)]
    return {"layers": [(convert(w), convert(b)) for w, b in layers]}


def _network(xp: Any) -> Callable[[Any], Any]:
    def network(tree: Any) -> Any:
        x = tree["layers"][0][1]
        for weights, offset in tree["layers"]:
            x = xp.tanh(weights @ x + offset)
        return xp.sum(x)

    return network


def _jit_difflab(_: int) -> Ready:
    from difflab.execute.jit.jit import jit

    tree, fast = _tree(np.asarray), jit(_network(np))
    fast(tree)
    return Ready(lambda: fast(tree), _leaves)


def _jit_compiled(_: int) -> Ready:
    """Call the compiled function itself, on the six arrays."""
    from difflab.execute.compiled import compile
    from difflab.graph.trace import trace

    tree = _tree(np.asarray)
    values = [array for layer in tree["layers"] for array in layer]
    fast = compile(trace(_network(np), tree))
    return Ready(lambda: fast(*values), _leaves)


def _jit_jax(_: int) -> Ready:
    import jax

    tree, fast = _tree(jax.numpy.asarray), jax.jit(_network(jax.numpy))
    return Ready(lambda: fast(tree).block_until_ready(), _leaves)


def _jit_torch(_: int) -> Ready:
    import torch

    tree, plain = _tree(torch.as_tensor), _network(torch)

    def call() -> Any:
        with torch.no_grad():
            return plain(tree)

    return Ready(call, _torch_leaves)


# --- a scan of a recurrent cell -----------------------------------------------------------------


def _cell(steps: int) -> tuple[Any, Any]:
    draw = np.random.default_rng(1)
    return draw.normal(size=(HIDDEN, HIDDEN)) / 4, draw.normal(size=(steps, HIDDEN))


def _scanned(xp: Any, scan: Callable[..., Any], zeros: Any) -> Callable[..., Any]:
    def loss(weights: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            return xp.tanh(weights @ h + x), None

        return xp.sum(scan(step, zeros, xs)[0])

    return loss


def _scan_difflab(steps: int, *, slope: bool) -> Ready:
    from difflab.autodiff.control.loops import scan
    from difflab.autodiff.transforms.grad import value_and_grad
    from difflab.execute.jit.jit import jit

    values, loss = _cell(steps), _scanned(np, scan, np.zeros(HIDDEN))
    fast = jit(value_and_grad(loss) if slope else loss)
    fast(*values)
    return Ready(lambda: fast(*values), _leaves)


def _scan_jax(steps: int, *, slope: bool) -> Ready:
    import jax

    values = [jax.numpy.asarray(value) for value in _cell(steps)]
    loss = _scanned(jax.numpy, jax.lax.scan, jax.numpy.zeros(HIDDEN))
    fast = jax.jit(jax.value_and_grad(loss) if slope else loss)
    return Ready(lambda: jax.block_until_ready(fast(*values)), _leaves)


def _scan_torch(steps: int, *, slope: bool) -> Ready:
    import torch

    weights, xs = map(torch.as_tensor, _cell(steps))

    def call() -> Any:
        w = weights.clone().requires_grad_(slope)
        h = torch.zeros(HIDDEN, dtype=torch.float64)
        with torch.set_grad_enabled(slope):
            for x in xs:
                h = torch.tanh(w @ h + x)
            loss = torch.sum(h)
        return (loss, *torch.autograd.grad(loss, w)) if slope else loss

    return Ready(call, _torch_leaves)


# --- forward mode of code that runs line by line -------------------------------------------------


def _loop(xp: Any) -> Callable[[Any], Any]:
    def loop(x: Any) -> Any:
        for _ in range(TURNS):
            x = xp.sin(x) * x + 0.5
        return xp.sum(x)

    return loop


def _direction() -> tuple[Any, Any]:
    return np.linspace(0.1, 1.0, 16), np.linspace(1.0, -1.0, 16)


def _forward_difflab(_: int) -> Ready:
    from difflab.autodiff.transforms.products import jvp

    x, v = _direction()
    return Ready(lambda: jvp(_loop(np), (x,), (v,)), _leaves)


def _forward_jax(_: int) -> Ready:
    import jax

    x, v = (jax.numpy.asarray(value) for value in _direction())
    loop = _loop(jax.numpy)
    return Ready(lambda: jax.block_until_ready(jax.jvp(loop, (x,), (v,))), _leaves)


def _forward_torch(_: int) -> Ready:
    import torch

    x, v = (torch.as_tensor(value) for value in _direction())
    return Ready(lambda: torch.func.jvp(_loop(torch), (x,), (v,)), _torch_leaves)


MEASURES: Mapping[str, Mapping[str, Prepare]] = {
    "jit call": {
        "difflab": _jit_difflab,
        "compiled": _jit_compiled,
        "jax": _jit_jax,
        "torch": _jit_torch,
    },
    "scan": {
        "difflab": lambda steps: _scan_difflab(steps, slope=False),
        "jax": lambda steps: _scan_jax(steps, slope=False),
        "torch": lambda steps: _scan_torch(steps, slope=False),
    },
    "scan gradient": {
        "difflab": lambda steps: _scan_difflab(steps, slope=True),
        "jax": lambda steps: _scan_jax(steps, slope=True),
        "torch": lambda steps: _scan_torch(steps, slope=True),
    },
    "eager jvp": {
        "difflab": _forward_difflab,
        "jax": _forward_jax,
        "torch": _forward_torch,
    },
}
"""The calls that are timed, by tool; each is prepared for a number of steps."""


# --- the memory of a chain ----------------------------------------------------------------------


def chain(xp: Any, repeat: Repeat, steps: int, mixing: Any) -> Callable[[Any], Any]:
    """Return a loss after `steps` steps, in √steps segments of √steps.

    ``repeat(segment, state, count)`` applies a segment `count` times. A step multiplies by the
    matrix `mixing`: XLA would fuse steps that are elementwise, and compute all of them again for
    each element.
    """
    count = max(int(steps**0.5), 1)

    def segment(state: Any) -> Any:
        for _ in range(steps // count):
            state = state + 0.1 * xp.sin(state @ mixing)
        return state

    return lambda state: xp.sum(repeat(segment, state, count))
