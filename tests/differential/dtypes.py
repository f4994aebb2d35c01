"""Random programs of float32 and float64: dtypes as NumPy's, gradients in the dtype of their leaf.

A program runs on NumPy's arrays and on tensors, whose values must have NumPy's dtypes; its
gradients are held to PyTorch's, in dtype and, within the rounding of float32, in value. Without its
casts it is traced and compiled for float32, and held to NumPy in float32 and to itself in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.core.optional import installed
from tests.differential.peer_tapes import torch
from tests.differential.search import Family

Step = tuple[str, int, int]
ROUNDED = 2e-5
"""Of the largest number of an answer, and of 1: some roundings of 6e-8 in each of seven steps of
bounded slopes."""
SIZES = (3, 70)
KINDS = (np.float32, np.float64)
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
    steps: tuple[Step, ...]
    size: int
    seed: int
    target: str

    def leaves(self) -> list[np.ndarray[Any, Any]]:
        draw = np.random.default_rng(self.seed)
        return [draw.uniform(-1.5, 1.5, self.size).astype(KINDS[kind]) for kind in self.kinds]

    def values(self, xp: Any, leaves: list[Any], *, casts: bool = True) -> list[Any]:
        values = list(leaves)
        for name, i, j in self.steps:
            x, y = values[-1 - i % len(values)], values[-1 - j % len(values)]
            if name in OPERATIONS:
                values.append(OPERATIONS[name](xp, x, y))
            elif xp is torch:
                values.append(x.to(torch.from_numpy(np.zeros(0, CASTS[name])).dtype))
            else:
                values.append(x.astype(CASTS[name]) if casts else x)
        return values


def near(found: Any, wanted: Any, what: str) -> None:
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=ROUNDED * scale, err_msg=what)


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


def check(program: Program) -> None:
    """Check a program on tensors and compiled."""
    check_tensors(program)
    check_compiled(program)


NUMBER = st.integers(0, 20)
STEPS = st.tuples(st.sampled_from((*OPERATIONS, *CASTS, *CASTS)), NUMBER, NUMBER)
PROGRAMS = st.builds(
    Program,
    kinds=st.lists(st.integers(0, 1), min_size=1, max_size=3).map(tuple),
    steps=st.lists(STEPS, min_size=1, max_size=7).map(tuple),
    size=st.sampled_from(SIZES[:1] * 4 + SIZES[1:]),
    seed=st.integers(0, 1000),
    target=st.sampled_from(TARGETS),
)

FAMILY = Family("dtypes", PROGRAMS, check, fixed=40, fresh=10)
