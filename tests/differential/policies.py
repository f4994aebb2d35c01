"""Random checkpointed functions under every policy, against the same functions without one.

A program is a list of operations on vectors of three numbers, some of them named, random or a
matrix product. The gradient of the checkpointed function is that of the plain one bit for bit, on
traced values and on tensors; its Hessian and batches agree. What `front` states is held to every
choice of kept values there is, tried one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.autodiff.policies.policy import is_kept, values_read
from difflab.graph.counts import node_arithmetic
from tests.differential.search import Family

W = np.random.default_rng(5).normal(size=(3, 3))
KEY = dl.random.key(3)
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sin": lambda a, b: np.sin(a),
    "exp": lambda a, b: np.exp(np.tanh(a)),
    "square": lambda a, b: a * a,
    "times": lambda a, b: a * b,
    "plus": lambda a, b: a + b,
    "divided": lambda a, b: a / (2 + b * b),
    "product": lambda a, b: W @ a,
    "chosen": lambda a, b: np.where(a > b, a, np.cos(b)),
    "reversed": lambda a, b: a[::-1],
    "mean": lambda a, b: np.mean(a) * b,
    "noise": lambda a, b: a * dl.random.normal(KEY, (3,)),
    "replaced": lambda a, b: a.at[1].set(b[0]) if hasattr(a, "at") else a,
    "again": lambda a, b: dl.checkpoint(lambda u: np.sin(u) * np.exp(np.sin(u)), a),
}
POLICIES = {
    "nothing": dl.policies.nothing,
    "everything": dl.policies.everything,
    "dots": dl.policies.dots,
    "save_only": dl.policies.save_only("h"),
    "save_any_except": dl.policies.save_any_except("h"),
    "optimal": dl.policies.optimal(bytes=60),
}
FEW = 9
"""Values of which every choice is tried."""


@dataclass(frozen=True)
class Program:
    """Operations on two earlier values each, whether their results are named, and a policy."""

    steps: tuple[tuple[str, int, int, bool], ...]
    policy: str
    seed: int


STEP = st.tuples(
    st.sampled_from(sorted(OPERATIONS)), st.integers(0, 9), st.integers(0, 9), st.booleans()
)
PROGRAMS = st.builds(
    Program,
    steps=st.lists(STEP, min_size=1, max_size=7).map(tuple),
    policy=st.sampled_from(sorted(POLICIES)),
    seed=st.integers(0, 2**16),
)


def run(program: Program, x: Any) -> Any:
    """Return the sum of the last value and its product with the first."""
    values = [x]
    for name, a, b, named in program.steps:
        found = OPERATIONS[name](values[a % len(values)], values[b % len(values)])
        values.append(dl.name(found, "h") if named else found)
    return np.sum(values[-1] * values[len(values) // 2])


def check(program: Program) -> None:
    """Fail where the policy changes a derivative, or a choice is not the best."""
    x = np.random.default_rng(program.seed).normal(size=3)
    plain = lambda x: run(program, x)  # noqa: E731
    kept = dl.checkpoint_with(POLICIES[program.policy])(plain)
    expected = dl.grad(plain)(x)
    assert dl.grad(kept)(x).tobytes() == expected.tobytes()
    assert kept(dl.tensor(x)).numpy().tobytes() == np.asarray(plain(dl.tensor(x))).tobytes()
    leaf = dl.tensor(x, requires_grad=True)
    value = kept(leaf)
    if value.requires_grad:
        value.backward()
        if program.policy == "nothing":  # the tape's own order
            expected = gradient_of_tape(plain, x)
        assert (0.0 + leaf.grad.numpy()).tobytes() == (0.0 + expected).tobytes()
    for transform in (lambda f: dl.hessian(f)(x), lambda f: dl.vmap(dl.grad(f))(np.stack([x, -x]))):
        np.testing.assert_allclose(transform(kept), transform(plain), rtol=1e-9, atol=1e-9)
    check_front(dl.trace(plain, x))


def gradient_of_tape(function: Callable[..., Any], x: Any) -> Any:
    """Return the gradient by a plain tape."""
    leaf = dl.tensor(x, requires_grad=True)
    function(leaf).backward()
    assert leaf.grad is not None
    return leaf.grad.numpy()


def check_front(function: Any) -> None:
    """Fail unless the front has, for every number of bytes, the fewest operations."""
    graph = function.graph
    read = values_read(function)
    candidates = [node for node in range(len(graph)) if is_kept(graph, node)]
    if len(candidates) > FEW:
        return
    found = dl.policies.front(function)
    for count in range(len(candidates) + 1):
        for kept in combinations(candidates, count):
            size = sum(8 * int(np.prod(graph.shape(node))) for node in kept)
            operations = sum(node_arithmetic(graph, node) for node in again(graph, read, kept))
            best = min(choice.operations for choice in found if choice.bytes <= size)
            assert best <= operations, (kept, size, operations)
    for choice in found:
        assert choice.bytes == sum(8 * int(np.prod(graph.shape(n))) for n in choice.nodes)
        needed = again(graph, read, choice.nodes)
        assert choice.operations == sum(node_arithmetic(graph, node) for node in needed)


def again(graph: Any, read: list[int], kept: tuple[int, ...]) -> set[int]:
    """Return the operations that give what is read, from the inputs and what is kept."""
    needed: set[int] = set()
    waiting = list(read)
    while waiting:
        node = waiting.pop()
        if node not in needed and node not in kept and graph.primitive(node) is not None:
            needed.add(node)
            waiting += graph.arguments(node)
    return needed


FAMILY = Family("policies", PROGRAMS, check, fixed=60, fresh=20)
