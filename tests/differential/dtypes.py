"""Random programs of float32 and float64: dtypes as NumPy's, gradients in the dtype of their leaf.

A program runs on NumPy's arrays, on tensors and traced, whose values must have NumPy's dtypes. Its
gradients are held to PyTorch's on tensors, and to JAX's under transforms and `jit`, in dtype and,
within the rounding of float32, in value. With its casts it is printed, parsed and compiled; without
them it is compiled for float32, and held to NumPy in float32 and to itself in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.core.optional import installed
from tests.differential.nearness import assert_close
from tests.differential.peer_tapes import torch
from tests.differential.search import Family
from tests.differential.steps import Steps, computed, drawn

ROUNDED = 2e-5
"""Of the largest number of an answer, and of 1: some roundings of 6e-8 in each of seven steps of
bounded slopes."""
EXACT = 1e-9
"""Roundings of float64, far below one of float32."""
SIZES = (3, 70)
KINDS = (np.float32, np.float64)
JAX = find_spec("jax") is not None
TARGETS = ("numpy", "native", "auto") if installed("llvmlite") else ("numpy", "auto")

CASTS = {"to float32": np.float32, "to float64": np.float64}
OPERATIONS = {
    "sin": lambda xp, x, y: xp.sin(x),
    "tanh": lambda xp, x, y: xp.tanh(x),
    "bell": lambda xp, x, y: xp.exp(-x * x),
    "root": lambda xp, x, y: xp.sqrt(1.5 + x * x),
    "line": lambda xp, x, y: 0.75 * x - 0.25,
    "power": lambda xp, x, y: xp.tanh(x) ** 3,
    "add": lambda xp, x, y: x + y,
    "subtract": lambda xp, x, y: x - 0.5 * y,
    "multiply": lambda xp, x, y: xp.sin(x) * y,
    "divide": lambda xp, x, y: x / (2 + y * y),
    "maximum": lambda xp, x, y: xp.maximum(x, y - 0.1234),
    "reverse": lambda xp, x, y: xp.flip(x, (0,)) if xp is torch else x[::-1],
    "mean": lambda xp, x, y: xp.mean(x) * y,
}


@dataclass(frozen=True)
class Program:
    """Leaves of some dtypes, and steps on values before them."""

    kinds: tuple[int, ...]
    steps: Steps
    size: int
    seed: int
    target: str
    jax: bool = False

    def leaves(self) -> list[np.ndarray[Any, Any]]:
        draw = np.random.default_rng(self.seed)
        return [draw.uniform(-1.5, 1.5, self.size).astype(KINDS[kind]) for kind in self.kinds]

    def values(self, xp: Any, leaves: list[Any], *, casts: bool = True) -> list[Any]:
        def operation(name: str, x: Any, y: Any) -> Any:
            if name in OPERATIONS:
                return OPERATIONS[name](xp, x, y)
            if xp is torch:
                return x.to(torch.from_numpy(np.zeros(0, CASTS[name])).dtype)
            return x.astype(CASTS[name]) if casts else x

        return computed(self.steps, leaves, operation)

    def rounded(self, double: list[Any]) -> Any:
        """Return the result in float64, rounded where a cast of float64 to float32 is."""
        pairs = [(x, value.dtype) for x, value in zip(double, self.leaves(), strict=True)]

        def operation(name: str, x: Any, y: Any) -> Any:
            if name in OPERATIONS:
                operands = [np.zeros(2, dtype) for _, dtype in (x, y)]
                return OPERATIONS[name](np, x[0], y[0]), OPERATIONS[name](np, *operands).dtype
            narrow = x[1] == np.float64
            found = x[0].astype(CASTS[name]) if narrow else x[0]
            return found.astype(np.float64), np.dtype(CASTS[name])

        return computed(self.steps, pairs, operation)[-1][0]

    def total(self, xp: Any, *given: Any) -> Any:
        return xp.sum(self.values(xp, list(given))[-1])


def near(found: Any, wanted: Any, what: str, share: float = ROUNDED) -> None:
    assert_close(found, wanted, share, what)


def check_tensors(program: Program) -> None:
    """Hold the dtype of every value to NumPy's, and gradients to the leaves'."""
    leaves = [dl.tensor(leaf, requires_grad=True) for leaf in program.leaves()]
    found = program.values(np, leaves)
    expected = program.values(np, program.leaves())
    for value, wanted in zip(found, expected, strict=True):
        assert value.dtype == wanted.dtype, f"{value.dtype} for {wanted.dtype}"
        near(value.detach().numpy(), wanted, "a value")
    assert np.result_type(*found) == np.result_type(*expected)
    np.sum(found[-1]).backward()
    if torch is None:
        return
    theirs = [torch.from_numpy(leaf).requires_grad_() for leaf in program.leaves()]
    program.values(torch, theirs)[-1].sum().backward()
    for leaf, other in zip(leaves, theirs, strict=True):
        assert (leaf.grad is None) == (other.grad is None)
        if leaf.grad is not None:
            assert leaf.grad.dtype == leaf.dtype
            near(leaf.grad.numpy(), other.grad.numpy(), "a gradient")


def check_compiled(program: Program) -> None:
    """Hold code that computes in float32 to NumPy's float32, and its gradient to float64."""
    single = [leaf.astype(np.float32) for leaf in program.leaves()]
    double = [leaf.astype(np.float64) for leaf in single]

    def last(*leaves: Any) -> Any:
        return program.values(np, list(leaves), casts=False)[-1]

    function = dl.trace(last, *double)
    total = dl.gradient(dl.trace(lambda *leaves: np.sum(last(*leaves)), *double), mode="reverse")
    for made, wanted in ((function, last(*single)), (total, total(*double))):
        fast = dl.compile(made, program.target, dtype=np.float32)
        found = fast(*single)
        assert found.dtype == np.float32
        near(found, wanted, f"{program.target} in float32: {fast.reason}")
        stacks = [np.stack([leaf, -leaf, leaf]) for leaf in single]
        batch = fast(*stacks)
        assert batch.dtype == np.float32
        near(batch[2], wanted, f"a batch of {program.target} in float32: {fast.reason}")


def check_traced(program: Program) -> None:
    """Hold the dtype of every traced value to NumPy's, and the casts of a graph to themselves."""
    leaves = program.leaves()
    found = dl.vmap(lambda *nodes: program.values(np, list(nodes)))(
        *(leaf[None] for leaf in leaves)
    )
    for value, wanted in zip(found, program.values(np, leaves), strict=True):
        assert value.dtype == wanted.dtype, f"{value.dtype} traced for {wanted.dtype}"
        near(value[0], wanted, "a traced value")
    function = dl.trace(lambda *nodes: program.values(np, list(nodes))[-1], *leaves)
    double = [leaf.astype(np.float64) for leaf in leaves]
    wanted = program.rounded(double)
    for made in (function, dl.parse(str(function)), dl.compile(function, program.target)):
        found = made(**dict(zip(function.inputs, double, strict=True)))
        near(found, wanted, f"casts in {made!r}", EXACT)


def check_transforms(program: Program) -> None:
    """Hold derivatives of mixed precision to those of the tape, in dtype and value."""
    leaves, numbers = program.leaves(), tuple(range(len(program.kinds)))
    tensors = [dl.tensor(leaf, requires_grad=True) for leaf in leaves]
    result = program.total(np, *tensors)
    result.backward()
    zeros = [np.zeros_like(leaf) for leaf in leaves]
    slopes = tuple(
        zero if t.grad is None else t.grad.numpy() for t, zero in zip(tensors, zeros, strict=True)
    )
    wanted = result.detach().numpy(), slopes
    pushed = sum(np.vdot(leaf, slope) for leaf, slope in zip(leaves, slopes, strict=True))
    check_all(program, numbers, wanted, (wanted[0], np.asarray(pushed, wanted[0].dtype)))


def check_jax(program: Program) -> None:
    """Hold values and derivatives of mixed precision to JAX's, in dtype and value."""
    import jax
    import jax.numpy as jnp

    numbers = tuple(range(len(program.kinds)))
    total = partial(program.total, jnp)
    with jax.enable_x64(True):
        given = tuple(jnp.asarray(leaf) for leaf in program.leaves())
        wanted = jax.value_and_grad(total, numbers)(*given)
        pushed = jax.jvp(total, given, given)
    check_all(program, numbers, wanted, pushed)


def check_all(program: Program, numbers: tuple[int, ...], wanted: Any, pushed: Any) -> None:
    """Compare the transforms with value and gradient, and with the value and its tangent."""
    leaves, total = program.leaves(), partial(program.total, np)
    slopes = dl.value_and_grad(total, numbers)
    alike(slopes(*leaves), wanted, "value_and_grad")
    alike(dl.jvp(total, leaves, leaves), pushed, "jvp")
    value, pull = dl.vjp(total, *leaves)
    alike((value, pull(np.float32(1.0))), wanted, "vjp")
    value, grads = dl.jit(slopes, target=program.target)(*leaves)
    alike((np.asarray(value, wanted[0].dtype), grads), wanted, "jit")


def alike(found: Any, wanted: Any, what: str) -> None:
    """Compare trees of two levels, in dtype and value."""
    pairs = list(zip(found, wanted, strict=True))
    for one, other in pairs:
        if isinstance(other, tuple):
            alike(one, other, what)
        else:
            assert one.dtype == other.dtype, f"{what}: {one.dtype} for {other.dtype}"
            near(one, other, what)


def check(program: Program) -> None:
    """Check a program on tensors, traced, under transforms and compiled."""
    check_tensors(program)
    check_traced(program)
    check_transforms(program)
    if JAX and program.jax:
        check_jax(program)
    check_compiled(program)


PROGRAMS = st.builds(
    Program,
    kinds=st.lists(st.integers(0, 1), min_size=1, max_size=3).map(tuple),
    steps=drawn((*OPERATIONS, *CASTS, *CASTS), 7),
    size=st.sampled_from(SIZES[:1] * 4 + SIZES[1:]),
    seed=st.integers(0, 1000),
    target=st.sampled_from(TARGETS),
    jax=st.integers(0, 19).map(lambda number: number == 10),
)

FAMILY = Family("dtypes", PROGRAMS, check, fixed=40, fresh=10)
