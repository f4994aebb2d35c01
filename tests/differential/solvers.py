"""Random contractions, roots, minima and integrals: implicit and unrolled derivatives, and others'.

The solution itself is found again by SciPy, and differentiated by central differences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import integrate, optimize

import difflab as dl
from tests.differential.search import Family

WAVES: dict[str, Callable[[Any], Any]] = {
    "sin": np.sin,
    "tanh": np.tanh,
    "softplus": lambda x: np.log1p(np.exp(x)),
    "arctan": np.arctan,
}
KINDS = ("root", "fixed_point", "minimize", "quad")


@dataclass(frozen=True)
class Program:
    """A problem with two parameters; its numbers are drawn with a seed."""

    kind: str
    wave: str
    size: int
    seed: int

    @property
    def matrix(self) -> Any:
        """A matrix whose norm is below one half."""
        found = np.random.default_rng(self.seed).uniform(-1, 1, (self.size, self.size))
        return 0.5 * found / max(np.linalg.norm(found, 2), 1.0)

    @property
    def point(self) -> Any:
        """The parameters."""
        return np.random.default_rng(self.seed + 1).uniform(0.3, 1.2, 2)

    def equations(self, x: Any, p: Any) -> Any:
        """Return what vanishes at the solution: the Jacobian is within ½ of the identity."""
        return x - WAVES[self.wave](self.matrix @ x + p[0]) - p[1] * p[0]

    def objective(self, x: Any, p: Any) -> Any:
        """Return a strictly convex function."""
        return 0.5 * np.sum((x - p[0]) ** 2) + 0.1 * p[1] * np.sum(
            np.log1p(np.exp(self.matrix @ x))
        )

    def integrand(self, x: Any, p: Any) -> Any:
        """Return a smooth integrand."""
        return WAVES[self.wave](p[0] * x + self.matrix[0, 0]) * np.exp(-p[1] * x)

    def solution(self, p: Any, derivative: str = "implicit") -> Any:
        """Return the sum of the solution by difflab."""
        start, how = np.zeros(self.size), {"derivative": derivative}
        if self.kind == "root":
            return np.sum(dl.solve.root(self.equations, start, p, **how).x)
        if self.kind == "fixed_point":
            step = lambda x, p: x - self.equations(x, p)  # noqa: E731
            return np.sum(dl.solve.fixed_point(step, start, p, **how))
        if self.kind == "minimize":
            return np.sum(dl.solve.minimize(self.objective, start, p, **how).x)
        return dl.solve.quad(self.integrand, 0.0, p[0], p, **how)[0]

    def reference(self, p: Any) -> float:
        """Return the same by SciPy."""
        start = np.zeros(self.size)
        if self.kind in ("root", "fixed_point"):
            return float(np.sum(optimize.root(self.equations, start, p, tol=1e-14).x))
        if self.kind == "minimize":
            slope = dl.jacrev(self.objective)
            return float(np.sum(optimize.root(lambda x: slope(x, p), start, tol=1e-14).x))
        return float(integrate.quad(self.integrand, 0.0, p[0], (p,), epsabs=1e-13, epsrel=1e-13)[0])


def check(program: Program) -> None:
    """Compare the orders 1 and 2 by all ways."""
    p, f = program.point, program.solution
    gradient = dl.grad(f)
    found = gradient(p)
    differences = _differences(program.reference, p)
    np.testing.assert_allclose(found, differences, rtol=2e-6, atol=2e-7)
    np.testing.assert_allclose(dl.jacfwd(f)(p), found, rtol=1e-9, atol=1e-12)
    unrolled = dl.grad(lambda p: f(p, "unrolled"))(p)
    np.testing.assert_allclose(unrolled, found, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(dl.jit(gradient)(p), found, rtol=1e-9, atol=1e-12)
    stack = np.stack([p, p + 0.1])
    both = [found, gradient(p + 0.1)]
    np.testing.assert_allclose(dl.vmap(gradient)(stack), both, rtol=1e-7, atol=1e-9)
    tensor = dl.tensor(p, requires_grad=True)
    f(tensor).backward()
    np.testing.assert_allclose(np.asarray(tensor.grad), found, rtol=1e-9, atol=1e-12)
    second = dl.jacfwd(gradient)(p)
    slopes = np.stack([_differences(lambda q, k=k: gradient(q)[k], p) for k in range(2)])
    np.testing.assert_allclose(second, slopes, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dl.jacrev(gradient)(p), second, rtol=1e-8, atol=1e-11)


def _differences(f: Callable[[Any], Any], p: Any, step: float = 2e-5) -> Any:
    units = step * np.eye(len(p))
    return np.array([(f(p + unit) - f(p - unit)) / (2 * step) for unit in units])


programs = st.builds(
    Program,
    kind=st.sampled_from(KINDS),
    wave=st.sampled_from(sorted(WAVES)),
    size=st.integers(1, 3),
    seed=st.integers(0, 10_000),
)

FAMILY = Family("solvers", programs, check, fixed=24, fresh=12)
