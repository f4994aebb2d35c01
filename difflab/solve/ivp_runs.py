"""Integration on arrays by compiled loops, forward, and back over the steps from checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.control.loops import append_loop
from difflab.autodiff.engine.argnums import cotangents_of
from difflab.errors import UnsupportedError
from difflab.execute.compiled import compile
from difflab.execute.targets.llvm.libraries import available
from difflab.graph.control import Loop
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined
from difflab.primitives import where
from difflab.solve.ivp_steps import System, advance, first_step, joined, step

__all__ = ["STATISTICS", "Integrator", "integration"]

Array = NDArray[np.float64]
BLOCK = 32
"""Steps that one call of compiled code takes back."""
Checkpoint = tuple[float, float, Array]
"""s, the length of the next step, and the state."""
STATISTICS = 5
"""How many numbers follow the state in the value of `integration`."""
ENDED, STALLED, TOO_MANY, NOT_FINITE = 0, -1, -2, -3
"""The status of an integration; that of SciPy is 0 or -1."""


class Block(NamedTuple):
    """Some consecutive steps; missing ones at the end of a block have no length.

    Attributes
    ----------
    before, after : array of shape (BLOCK,)
        s before and after each step.
    states, next_states : array of shape (BLOCK, n)
        The states there.
    """

    before: Array
    after: Array
    states: Array
    next_states: Array


class Integrator:
    """The integration of a system, with its compiled loops."""

    def __init__(self, system: System) -> None:
        self.system = system

    def run(self, y: Array, theta: Array, h: float) -> Any:
        """Return the integration of arrays, as `integration` defines it."""
        return self._whole(y, theta, h)

    def back(self, y: Array, theta: Array, h: float, bar: Array) -> tuple[Array, Array]:
        """Return the cotangents of the first state and of θ, given that of the last state.

        About √N states of N steps are kept on the way forward, and all of them between two of
        these while the sweep goes back.
        """
        theta_bar, length = np.zeros_like(theta), 0.0
        marks = self._checkpoints(y, theta, self._first(y, theta, h))
        if not marks:
            return np.full_like(y, np.nan), np.full_like(theta, np.nan)
        for first, last in zip(marks[-2::-1], marks[:0:-1], strict=True):
            for block in reversed(list(self._between(first, last, theta))):
                length, bar, theta_bar = self._back(*block, length, bar, theta_bar, theta)
        return bar, theta_bar

    def _first(self, y: Array, theta: Array, h: float) -> float:
        if h or self.system.method == "taylor":  # whose steps follow from the coefficients alone
            return float(h) or 1.0
        return float(self._guess(y, theta))

    def _checkpoints(self, y: Array, theta: Array, h: float) -> list[Checkpoint]:
        """Return about √N of N states, evenly; none if the end is not reached."""
        marks, spacing, steps = [(0.0, h, y)], BLOCK, 0.0
        while marks[-1][0] < 1.0:
            *mark, accepted, rejected = self._advance(
                marks[-1][0], 1.0, *marks[-1][1:], theta, float(spacing)
            )
            steps += accepted + rejected
            if not accepted or steps > self.system.max_steps or not np.isfinite(mark[2]).all():
                return []
            marks.append((mark[0], mark[1], mark[2]))
            if len(marks) > 2 * spacing:  # an odd number, so that both ends stay
                marks, spacing = marks[::2], 2 * spacing
        return marks

    def _between(self, first: Checkpoint, last: Checkpoint, theta: Array) -> Iterator[Block]:
        """Return the steps from one checkpoint to the next one, in their order."""
        s, h, y = first
        while s < last[0]:
            block, (s, h, y) = self._steps(s, last[0], h, y, theta)
            yield block

    def _steps(
        self, s: float, end: float, h: float, y: Array, theta: Array
    ) -> tuple[Block, tuple[float, float, Array]]:
        s, h, y, before, states = self._taken(s, end, h, y, theta)
        after, next_states = np.append(before[1:], s), joined(states[1:], [y])
        return Block(before, after, states, next_states), (s, h, y)

    @cached_property
    def _whole(self) -> Any:
        return _compiled(integration(self.system))

    @cached_property
    def _guess(self) -> Any:
        return _compiled(first_step(self.system))

    @cached_property
    def _advance(self) -> Any:
        return _compiled(advance(self.system))

    @cached_property
    def _taken(self) -> Any:
        """The next steps: s, the length, the state; s and the states before each step."""
        n, p = self.system.sizes
        one = advance(self.system)

        def taken(nodes: list[Node]) -> list[Node]:
            s, h, y, end, theta = nodes
            after = inlined(one, [s, end, h, y, theta, 1.0 + 0.0 * s])
            return [*after[:3], s, y]

        body = composed(taken, [(), (), (n,), (), (p,)])
        loop = Loop(body, 3, 0, BLOCK, reverse=False)

        def run(nodes: list[Node]) -> list[Node]:
            start, end, h, y, theta = nodes
            return append_loop(loop, [start, h, y, end, theta])

        return _compiled(composed(run, [(), (), (), (n,), (p,)]))

    @cached_property
    def _back(self) -> Any:
        """The sweep back over a block, from the cotangents after it to those before it."""
        n, p = self.system.sizes
        earlier = _of_steps(self.system) if self._unrolled else _continuous(self.system)

        loop = Loop(earlier, 3, 4, BLOCK, reverse=True)

        def run(nodes: list[Node]) -> list[Node]:
            return append_loop(loop, [*nodes[4:7], *nodes[:4], nodes[7]])

        stacks: list[Shape] = [(BLOCK,), (BLOCK,), (BLOCK, n), (BLOCK, n)]
        return _compiled(composed(run, [*stacks, (), (n,), (p,), (p,)]))

    @property
    def _unrolled(self) -> bool:
        return self.system.derivative == "unrolled"


def integration(system: System) -> Function:
    """Return the state at s = 1, nan where it is not reached, and statistics as one vector.

    The function takes the state at 0, θ, and the length of the first step, which is chosen where
    it is 0. The statistics are the length of the next step, the counts of evaluations, of accepted
    and of rejected steps, and the status.
    """
    n, p = system.sizes
    start, go = first_step(system), advance(system)

    def run(nodes: list[Node]) -> list[Node]:
        y, theta, h = nodes
        zero = 0.0 * h
        # Taylor's steps follow from the coefficients alone.
        guess = 1.0 if system.method == "taylor" else inlined(start, [y, theta])[0]
        first = where(h == 0.0, guess, h)
        most = zero + float(system.max_steps)
        s, length, state, accepted, rejected = inlined(
            go, [zero, zero + 1.0, first, y, theta, most]
        )
        taken = accepted + rejected
        ended = np.logical_and(s >= 1.0, np.sum(0.0 * state) == 0.0)  # nan if not finite
        begun = np.logical_and(np.isfinite(first), accepted > 0.0)
        late = where(taken >= system.max_steps, TOO_MANY, STALLED)
        status = where(ended, ENDED, where(begun, late, NOT_FINITE))
        statistics = [length, system.evaluations * taken + 1.0, accepted, rejected, status]
        return [joined(where(ended, state, np.nan), np.stack(statistics))]

    return composed(run, [(n,), (p,), ()])


def _of_steps(system: System) -> Function:
    """Return the adjoint of a step of given length."""
    n, p = system.sizes
    pull = cotangents_of(step(system), [2, 3])

    def back(nodes: list[Node]) -> list[Node]:
        length, bar, total, before, after, y, _, theta = nodes
        y_bar, theta_bar = inlined(pull, [before, after - before, y, theta, bar])
        return [length, y_bar, total + theta_bar]

    return composed(back, _shapes(n, p))


def _continuous(system: System) -> Function:
    r"""Return the adjoint equations over a step, integrated with steps of their own.

    .. math:: \dot λ = -g_y^T λ, \qquad \dot{\bar θ} = -g_θ^T λ

    The state is integrated back as well, from the known one after the step.
    """
    n, p = system.sizes
    rate, pull = system.rate, cotangents_of(system.rate, [1, 2])

    def backward(nodes: list[Node]) -> list[Node]:
        time, whole, theta = nodes  # time is −s
        s, y = -time, whole[:n]
        (slope,) = inlined(rate, [s, y, theta])
        y_bar, theta_bar = inlined(pull, [s, y, theta, whole[n : 2 * n]])
        return [joined(-slope, y_bar, theta_bar)]

    wide = composed(backward, [(), (2 * n + p,), (p,)])
    adjoint = System(
        wide, system.method, system.rtol, system.atol, 2 * n + p, system.max_steps, "adjoint"
    )
    go = advance(adjoint)

    def back(nodes: list[Node]) -> list[Node]:
        length, bar, total, before, after, _, y, theta = nodes
        first = where(length > 0.0, length, after - before)
        whole = joined(y, bar, total)
        most = float(system.max_steps) + 0.0 * before
        s, last, solution, *_ = inlined(go, [-after, -before, first, whole, theta, most])
        reached = where(s >= -before, 1.0, np.nan)
        return [
            where(after > before, last, length),
            reached * solution[n : 2 * n],
            reached * solution[2 * n :],
        ]

    return composed(back, _shapes(n, p))


def _shapes(n: int, p: int) -> list[Shape]:
    """The carry, s before and after the step, the states there, and θ."""
    return [(), (n,), (p,), (), (), (n,), (n,), (p,)]


def _compiled(function: Function) -> Any:
    """Return the machine code of a function, or an evaluator where there is none."""
    try:
        call = compile(function, target="native" if available() else "auto").unchecked()
    except UnsupportedError:
        call = compile(function).unchecked()
    return lambda *values: call(values)
