"""Sparse derivatives against dense ones: random array programs, in every mode and coloring.

The dense Jacobian comes from forward sweeps without any pattern, at several points; the pattern
must have every entry that is not zero at any of them. Arrays are processed as large ones or as
small ones, which are two implementations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.autodiff.sparsity import SparseDerivative, dependence
from tests.differential.nearness import assert_close
from tests.differential.search import Family
from tests.differential.steps import Steps, drawn

POINTS = 20
TOLERANCE = 1e-9
"""Of the largest entry: acyclic colorings subtract entries of the matrix from each other."""

Step = Callable[[Any, Any, int], Any]

STEPS: dict[str, Step] = {
    "product": lambda a, b, k: a * b,
    "sum": lambda a, b, k: a + b,
    "sine": lambda a, b, k: np.sin(a) * 0.5,
    "reversed": lambda a, b, k: a[::-1],
    "shifted": lambda a, b, k: np.concatenate([a[k:], b[:k]]),
    "one element": lambda a, b, k: a * b[k],
    "a dense element": lambda a, b, k: np.concatenate([np.sum(a, keepdims=True), b[1:]]),
    "chosen": lambda a, b, k: np.where(a > 0.2, b, a),
    "differences": lambda a, b, k: np.concatenate([a[1:] - a[:-1], a[:1]]),
    "gathered": lambda a, b, k: a[np.arange(len(a)) // 2] * b,
    "zeros": lambda a, b, k: a * (np.arange(a.shape[0]) % 2),
    "square": lambda a, b, k: a**2,
    "cumulated": lambda a, b, k: np.concatenate([np.cumsum(a[:3]), b[3:]]),
    "mixed": lambda a, b, k: np.eye(a.shape[0])[::-1] @ a + b,
}


@dataclass(frozen=True)
class Program:
    """Steps on vectors of n elements, each with the numbers of its operands, and a seed."""

    n: int
    steps: Steps
    large: bool
    seed: int

    def __call__(self, x: Any) -> Any:
        """Return the last two results in one vector."""
        known = [x, x * 0.5]
        for name, a, b, k in self.steps:
            known.append(STEPS[name](known[a % len(known)], known[b % len(known)], k % self.n))
        return np.concatenate(known[-2:])


@st.composite
def programs(draw: st.DrawFn) -> Program:
    return Program(
        n=draw(st.integers(3, 9)),
        steps=draw(drawn(STEPS, 6, numbers=3)),
        large=draw(st.booleans()),
        seed=draw(st.integers(0, 10**6)),
    )


def check(program: Program) -> None:
    """Compare the sparse Jacobian and Hessian with the dense ones, and the pattern with them."""
    function = dl.trace(program, np.ones(program.n))
    x = np.random.default_rng(program.seed).uniform(-1.5, 1.5, (POINTS, program.n))
    with mock.patch.object(dependence, "LARGE", 1 if program.large else 10**9):
        jacobians = [
            dl.sparse_jacobian(function, mode)
            for mode in ("auto", "forward", "reverse", "bidirectional")
        ]
        total = dl.trace(lambda x: np.sum(np.sin(program(x))), np.ones(program.n))
        hessians = [dl.sparse_hessian(total, way) for way in ("star", "acyclic", "auto")]
    dense = dl.jacobian(function, "forward")(x)
    held(jacobians, dense, x, program)
    held(hessians, dl.jacobian(dl.gradient(total), "forward")(x), x, program)
    assert sum(jacobians[0].sweeps) == min(sum(found.sweeps) for found in jacobians), program
    assert sum(hessians[2].sweeps) == min(sum(found.sweeps) for found in hessians), program


def held(found: list[SparseDerivative], dense: Any, x: Any, program: Program) -> None:
    """Hold sparse derivatives to dense ones at several points."""
    for derivative in found:
        missing = (dense != 0).any(axis=0) & ~derivative.pattern.toarray()
        assert not missing.any(), f"{program}: {derivative} lacks {np.argwhere(missing)}"
        for point, expected in zip(x[:2], dense[:2], strict=True):
            assert_close(
                derivative(point).toarray(), expected, TOLERANCE, f"{program}: {derivative}"
            )


FAMILY = Family("sparsity", programs(), check, fixed=40, fresh=5)
