"""Each tool's objective and Jacobian of an instance, prepared for timing.

Every tool runs the same code with its own array module, in its usual way: difflab traces and
compiles, JAX uses ``jit``, PyTorch and autograd run eagerly. Jacobians of many outputs by few
inputs use forward mode; observations are computed in one batch by every tool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.adbench.problems import AdbenchProblem, JacobianKind
from benchmarks.objectives.maths import Maths, difflab_maths
from difflab.autodiff.transforms.grad import grad
from difflab.autodiff.transforms.jacobian import jacfwd, jacrev
from difflab.core.optional import absence
from difflab.execute import compile
from difflab.graph.trace import trace
from difflab.methods.peers.jax import JAX
from difflab.methods.peers.torch import TORCH
from difflab.methods.registry import peers

__all__ = ["TOOLS", "Ready", "Tool"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ready:
    """The two calls to time, without arguments, which return when their results are computed."""

    objective: Callable[[], Any]
    jacobian: Callable[[], Any]


@dataclass(frozen=True)
class Tool:
    """A package that computes objectives and Jacobians.

    Attributes
    ----------
    name : str
        The package.
    prepare : callable
        Returns the calls to time for a problem.
    """

    name: str
    prepare: Callable[[AdbenchProblem], Ready]

    @property
    def packages(self) -> tuple[str, ...]:
        """The distributions on which its results depend."""
        peer = peers().get(self.name)
        return getattr(peer, "packages", (self.name,))

    def missing(self) -> str | None:
        """Return how to install the package, or None if it is installed."""
        return absence(self.name)


def _summed(call: Callable[..., Any], parts: Sequence[Sequence[Any]]) -> Callable[[], Any]:
    """Return a call that sums the results of `call` over the parts."""
    if len(parts) == 1:
        return partial(call, *parts[0])

    def run() -> Any:
        total = call(*parts[0])
        for part in parts[1:]:
            more = call(*part)
            many = isinstance(total, list | tuple)
            total = [a + b for a, b in zip(total, more, strict=True)] if many else total + more
        return total

    return run


def _observed(problem: AdbenchProblem, maths: Maths) -> Callable[..., Any]:
    """Return the function of the errors of one observation or a batch."""
    count, each = len(problem.parameters), problem.each
    if each is None:
        return partial(problem.objective, maths)

    def errors(*values: Any) -> tuple[Any, Any]:
        return problem.objective(maths, *values), each(maths, values[count - 1])

    return errors


def _differentiated(
    problem: AdbenchProblem,
    maths: Maths,
    grad: Callable[..., Any],
    jacfwd: Callable[..., Any],
    jacrev: Callable[..., Any],
) -> Callable[..., Any]:
    """Return the Jacobian by transforms that JAX, PyTorch and difflab share."""
    text, argnums = partial(problem.objective, maths), tuple(range(len(problem.parameters)))
    if problem.kind is JacobianKind.GRADIENT:
        gradient: Callable[..., Any] = grad(text, argnums)
        return gradient
    if problem.each is None:
        columns: Callable[..., Any] = jacfwd(text, 0)
        return columns
    blocks, slope = jacrev(text, argnums), grad(partial(problem.each, maths), 0)
    return lambda *values: (*blocks(*values), slope(values[argnums[-1]]))


# --- difflab ----------------------------------------------------------------------------------


def _difflab(problem: AdbenchProblem) -> Ready:
    maths = difflab_maths()
    single = problem.kind is JacobianKind.BLOCKS
    parts = [
        [value if value.ndim else float(value) for value in (*problem.parameters, *data)]
        for data in problem.parts
    ]
    inputs = (*problem.parameters, *problem.parts[0])
    examples = [value[0] if single else value for value in inputs]
    # Explicit, since an objective is called many times; `auto` considers a single call.
    target = "native" if find_spec("llvmlite") is not None else "auto"
    objective = compile(trace(_observed(problem, maths), *examples), target)
    transformed = _differentiated(problem, maths, grad, jacfwd, jacrev)
    jacobian = compile(trace(transformed, *examples), target)
    return Ready(_summed(objective, parts), _summed(jacobian, parts))


# --- JAX --------------------------------------------------------------------------------------


def _jax_maths() -> Maths:
    """Return JAX's functions; its loop is the one that it compiles as a loop."""
    import jax

    def loop(step: Callable[..., Any], carry: Any, *sequences: Any) -> Any:
        return jax.lax.scan(lambda kept, now: (step(kept, *now), None), carry, sequences)[0]

    return Maths(jax.numpy, jax.numpy.asarray, jax.nn.sigmoid, jax.scipy.special.logsumexp, loop)


def _jax(problem: AdbenchProblem) -> Ready:
    import jax

    maths = _jax_maths()
    objective = _observed(problem, maths)
    jacobian = _differentiated(problem, maths, jax.grad, jax.jacfwd, jax.jacrev)
    if problem.kind is JacobianKind.BLOCKS:
        objective, jacobian = jax.vmap(objective), jax.vmap(jacobian)
    parts = [JAX.converted((*problem.parameters, *data)) for data in problem.parts]
    calls = [JAX.waiting(_summed(jax.jit(call), parts)) for call in (objective, jacobian)]
    for call in calls:
        call()  # compiles now
    return Ready(*calls)


# --- PyTorch ----------------------------------------------------------------------------------


def _torch_maths() -> Maths:
    """Return PyTorch's functions."""
    import torch

    return Maths(torch, torch.as_tensor, torch.sigmoid, torch.logsumexp)


def _torch(problem: AdbenchProblem) -> Ready:
    import torch

    maths = _torch_maths()
    parts = [TORCH.converted((*problem.parameters, *data)) for data in problem.parts]
    count = len(problem.parameters)
    objective = _observed(problem, maths)
    plain = _summed(objective, parts)

    def value() -> Any:
        with torch.no_grad():
            return plain()

    if problem.kind is not JacobianKind.GRADIENT:
        func = torch.func
        jacobian = _differentiated(problem, maths, func.grad, func.jacfwd, func.jacrev)
        if problem.kind is JacobianKind.BLOCKS:
            jacobian = torch.vmap(jacobian)
        return Ready(value, _summed(jacobian, parts))

    def backward(*values: Any) -> Any:
        leaves = [leaf.detach().requires_grad_() for leaf in values[:count]]
        return torch.autograd.grad(objective(*leaves, *values[count:]), leaves)

    return Ready(value, _summed(backward, parts))


# --- autograd ---------------------------------------------------------------------------------


def _autograd_maths() -> Maths:
    """Return autograd's functions."""
    import autograd.numpy as xp
    from autograd.scipy.special import expit, logsumexp

    return Maths(xp, xp.asarray, expit, logsumexp)


def _autograd(problem: AdbenchProblem) -> Ready:
    import autograd
    from autograd.differential_operators import make_jvp

    maths = _autograd_maths()
    parts = [(*problem.parameters, *data) for data in problem.parts]
    objective = _observed(problem, maths)
    argnums = tuple(range(len(problem.parameters)))
    if problem.kind is JacobianKind.GRADIENT:
        return Ready(_summed(objective, parts), _summed(autograd.grad(objective, argnums), parts))
    if problem.kind is JacobianKind.COLUMNS:
        pushed = make_jvp(objective, 0)

        def columns(x: Any, *rest: Any) -> Any:
            push = pushed(x, *rest)
            return np.stack([push(seed)[1] for seed in np.eye(len(x))], axis=-1)

        return Ready(_summed(objective, parts), _summed(columns, parts))

    return Ready(_summed(objective, parts), _summed(_autograd_blocks(problem, maths), parts))


def _autograd_blocks(problem: AdbenchProblem, maths: Maths) -> Callable[..., Any]:
    """Return all blocks: observations share no parameters, so a sum's gradient has every row."""
    import autograd

    count, each = len(problem.parameters), problem.each

    def total(row: int, *values: Any) -> Any:
        return maths.xp.sum(problem.objective(maths, *values)[..., row])

    gradient = autograd.grad(total, tuple(range(1, count + 1)))
    slope = autograd.elementwise_grad(lambda weight: each and each(maths, weight))

    def blocks(*values: Any) -> Any:
        rows = zip(gradient(0, *values), gradient(1, *values), strict=True)
        return *(np.stack(pair, axis=1) for pair in rows), slope(values[count - 1])

    return blocks


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("difflab", _difflab),
        Tool("torch", _torch),
        Tool("jax", _jax),
        Tool("autograd", _autograd),
    )
}
"""difflab first, then its peers."""
