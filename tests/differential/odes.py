"""Random ODEs: values and derivatives of `ivp` against SciPy's solver and matrix exponentials.

A right side is linear, y′ = A·y with a matrix that depends on the parameters, and its solution the
matrix exponential; or it mixes tanh, sine and time, and SciPy's DOP853 solves it to 1e-13, whose
differences are the derivatives. The first and second derivative along a direction in the first
state, the parameters and the last time are compared for each method, way of differentiating, mode
and kind of call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from tests.differential.search import Family

WIDTH = 1e-3
"""Of differences, of the fourth order; the solutions are right to 1e-13."""
NEAR = 1e-6
"""Of the largest number; second differences keep that much."""


@dataclass(frozen=True)
class Program:
    """A right side, drawn by a seed, and how its solution is differentiated."""

    seed: int
    size: int
    linear: bool
    method: str
    derivative: str
    call: str
    backward: bool


@st.composite
def programs(draw: st.DrawFn) -> Program:
    return Program(
        draw(st.integers(0, 10**6)),
        draw(st.integers(1, 3)),
        draw(st.booleans()),
        draw(st.sampled_from(("rk45", "dopri8", "taylor"))),
        draw(st.sampled_from(("unrolled", "forward", "adjoint"))),
        draw(st.sampled_from(("grad", "jit", "vmap", "tensor", "second"))),
        draw(st.booleans()),
    )


class _Problem:
    """The right side, and a packed point (y0, p, t1) with a direction."""

    def __init__(self, program: Program) -> None:
        rng = np.random.default_rng(program.seed)
        n = self.n = program.size
        self.linear = program.linear
        self.a, self.b = rng.normal(size=(2, n, n)) * 0.7
        self.c = rng.normal(size=n)
        last = rng.uniform(0.5, 1.5) * (-1 if program.backward else 1)
        self.point = np.concatenate([rng.normal(size=n + 2) * 0.7, [last]])
        self.along = rng.normal(size=n + 3) * 0.5
        self.weights = rng.normal(size=n)

    def rate(self, t: Any, y: Any, p: Any) -> Any:
        if self.linear:
            return (p[0] * self.a + p[1] * self.b) @ y
        return np.tanh(self.a @ y + p[0] * self.c) - p[1] * np.sin(t) * (self.b @ y)

    def truth(self, x: Any) -> float:
        """Return the weighted state at the end, by SciPy."""
        from scipy.integrate import solve_ivp
        from scipy.linalg import expm

        y0, p, last = x[: self.n], x[self.n : self.n + 2], x[-1]
        if self.linear:
            end = expm(last * (p[0] * self.a + p[1] * self.b)) @ y0
        else:
            end = solve_ivp(
                self.rate, (0.0, last), y0, "DOP853", args=(p,), rtol=1e-13, atol=1e-13
            ).y[:, -1]
        return float(self.weights @ end)

    def slopes(self) -> tuple[float, float, float]:
        """Return the value, and two derivatives along the direction, by differences."""
        at = [self.truth(self.point + k * 2 * WIDTH * self.along) for k in (-2, -1, 0, 1, 2)]
        h = 2 * WIDTH
        first = (at[0] - 8 * at[1] + 8 * at[3] - at[4]) / (12 * h)
        second = (-at[0] + 16 * at[1] - 30 * at[2] + 16 * at[3] - at[4]) / (12 * h * h)
        return at[2], first, second


def check(program: Program) -> None:
    """Compare values and derivatives."""
    problem = _Problem(program)
    options: Any = {"method": program.method, "derivative": program.derivative}
    n, x, along = problem.n, problem.point, problem.along

    def end(x: Any) -> Any:
        found = dl.solve.ivp(
            problem.rate, (0.0, x[n + 2]), x[:n], x[n : n + 2], rtol=1e-10, atol=1e-11, **options
        )
        return np.sum(found.y[:, -1] * problem.weights)

    value, first, second = problem.slopes()
    room = NEAR * (1 + abs(value) + abs(first) + abs(second))
    assert abs(float(end(x)) - value) < room, program
    pushed = dl.jvp(end, (x,), (along,))[1]
    assert abs(float(pushed) - first) < room, f"{program}: forward {pushed}, not {first}"
    if program.call == "second":
        curve = dl.jvp(lambda x: dl.grad(end)(x), (x,), (along,))[1] @ along
        assert abs(float(curve) - second) < 100 * room, f"{program}: {curve}, not {second}"
        return
    pulled = _gradient(program.call, end, x)
    slope = float(pulled @ along)
    assert abs(slope - first) < room, f"{program}: reverse {slope}, not {first}"


def _gradient(call: str, end: Any, x: Any) -> Any:
    if call == "tensor":
        leaf = dl.tensor(x, requires_grad=True)
        end(leaf).backward()
        return np.array(leaf.grad)
    if call == "vmap":
        return dl.vmap(dl.grad(end))(np.stack([x, x + 0.1]))[0]
    return (dl.jit(dl.grad(end)) if call == "jit" else dl.grad(end))(x)


FAMILY = Family("odes", programs(), check, fixed=8, fresh=2)
