r"""Steps of methods for y′ = g(s, y, θ), and the loop of accepted and rejected steps, as functions.

Every method is a function of traced values, so that its steps are differentiated as any code is,
and the loop is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from difflab.autodiff.control.while_loops import append_while_loop
from difflab.autodiff.engine.sweep import Sweep, spread
from difflab.autodiff.engine.taylor import solution_terms
from difflab.graph.control import WhileLoop
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined
from difflab.primitives import where
from difflab.solve.ivp_tableaux import TABLEAUX, Tableau

__all__ = ["METHODS", "System", "advance", "first_step", "joined", "step"]

METHODS = (*TABLEAUX, "taylor")
SAFETY, LEAST, MOST = 0.9, 0.2, 10.0
"""Of the change of a step's length, as SciPy's."""
SPACING = float(np.finfo(float).eps)
UNLIMITED = 1e300
DEFECT = 2.0
"""The error of the slope after a step of Taylor's method, relative to its order and tolerance."""


@dataclass(frozen=True)
class System:
    """An initial value problem over the unit interval, and how its steps are chosen.

    Attributes
    ----------
    rate : Function
        g: from s, the state (n,) and the parameters (p,) to the derivative (n,).
    method : str
        One of `METHODS`.
    rtol, atol : float
        The error of a step in an element y is at most atol + rtol·|y|.
    controlled : int
        How many elements of the state, its first ones, determine the steps.
    max_steps : int
        The number of steps, rejected ones among them, at which the integration fails.
    derivative : str
        ``"unrolled"``, ``"forward"`` or ``"adjoint"``.
    """

    rate: Function
    method: str
    rtol: float
    atol: float
    controlled: int
    max_steps: int
    derivative: str

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of elements of the state and of the parameters."""
        _, (n,), (p,) = self.rate.input_shapes
        return n, p

    @property
    def order(self) -> int:
        """The order of the method.

        For Taylor's it follows from the tolerance (Jorba & Zou, *A software package for the
        numerical integration of ODEs by means of high-order Taylor methods*, 2005, eq. 3-11).
        """
        if self.method in TABLEAUX:
            return TABLEAUX[self.method].order
        return max(2, math.ceil(-math.log(self.tolerance) / 2 + 1))

    @property
    def tolerance(self) -> float:
        """The relative tolerance, the absolute one without it."""
        return min(max(self.rtol or self.atol, SPACING / 2), 0.1)

    @property
    def evaluations(self) -> int:
        """Evaluations of f in a step; Taylor's computes one series of f."""
        return TABLEAUX[self.method].evaluations if self.method in TABLEAUX else 1


class Try(NamedTuple):
    """Result of one step: the state after it, its length, the next length, and acceptance."""

    state: Any
    length: Any
    following: Any
    accepted: Any


def step(system: System) -> Function:
    """Return the state after a step of a given length: of s, the length, the state and θ."""
    n, p = system.sizes
    return composed(lambda nodes: [_state_after(system, *nodes)], [(), (), (n,), (p,)])


def _state_after(system: System, s: Node, h: Node, y: Node, theta: Node) -> Any:
    if system.method == "taylor":
        return _polynomial(_derivatives(system, s, y, theta), y, h)
    tableau = TABLEAUX[system.method]
    slopes = _slopes(tableau, partial(_rate, system, theta), s, h, y, _rate(system, theta, s, y))
    return y + h * _combined(tableau.weights, slopes)


def advance(system: System) -> Function:
    """Return the loop over steps.

    Its inputs are s and the s at which it ends, the length of the first step, the state, θ, and
    the number of accepted steps at which it ends; its outputs s, the length of the next step, the
    state, and the counts of accepted and of rejected steps.
    """
    n, p = system.sizes
    shapes: list[Shape] = [(), (), (n,), (), (), (n,), (), (), (p,)]
    loop = WhileLoop(
        composed(lambda nodes: [_goes_on(system, *nodes)], shapes),
        composed(lambda nodes: _tried(system, *nodes), shapes),
    )

    def run(nodes: list[Node]) -> list[Node]:
        start, end, h, y, theta, limit = nodes
        zero = 0.0 * limit
        slope = 0.0 * y if system.method == "taylor" else _rate(system, theta, start, y)
        carry = append_while_loop(loop, [start, h, y, zero, zero, slope, end, limit, theta])
        return carry[:5]

    return composed(run, [(), (), (), (n,), (p,), ()])


def _goes_on(system: System, s: Node, h: Node, *rest: Node) -> Any:
    """Whether the loop goes on; rest is as in `_tried`."""
    _, accepted, rejected, _, end, limit, _ = rest
    smallest = np.maximum(2 * SPACING * np.abs(s), 1e-100)
    within = np.logical_and(accepted < limit, accepted + rejected < system.max_steps)
    return np.logical_and(np.logical_and(s < end, h > smallest), within)


def _tried(system: System, s: Node, h: Node, y: Node, *rest: Node) -> list[Any]:
    """Take a step, or reject it."""
    accepted, rejected, slope, end, _, theta = rest
    attempt = _taylor_try if system.method == "taylor" else _runge_kutta_try
    one, after = attempt(system, s, end, h, y, theta, slope)
    ok, last = one.accepted, s + one.length >= end
    return [
        where(ok, where(last, end, s + one.length), s),
        one.following,
        where(ok, one.state, y),
        accepted + where(ok, 1.0, 0.0),
        rejected + where(ok, 0.0, 1.0),
        where(ok, after, slope),
    ]


def _runge_kutta_try(
    system: System, s: Node, end: Node, h: Node, y: Node, theta: Node, slope: Node
) -> tuple[Try, Node]:
    """Take a step of an embedded pair; its length follows from the error (Hairer et al., II.4)."""
    tableau, rate = TABLEAUX[system.method], partial(_rate, system, theta)
    length = np.minimum(h, end - s)
    slopes = _slopes(tableau, rate, s, length, y, slope)
    state = y + length * _combined(tableau.weights, slopes)
    after = rate(s + length, state)
    m = system.controlled
    scale = system.atol + system.rtol * np.maximum(np.abs(y[:m]), np.abs(state[:m]))
    errors = [
        length * _combined(weights, [*slopes, after])[:m] / scale for weights in tableau.errors
    ]
    norm = tableau.norm([np.sum(error * error) / m for error in errors])
    # A norm that is nan is no error below 1: the step is rejected, and the next one is shorter.
    ok = norm <= 1.0
    growth = SAFETY * np.maximum(norm, 1e-30) ** (-1.0 / (tableau.error_order + 1))
    longer = length * np.minimum(MOST, np.maximum(LEAST, growth))
    shorter = length * where(norm < np.inf, np.maximum(LEAST, np.minimum(growth, SAFETY)), LEAST)
    following = where(ok, where(length < h, np.maximum(h, longer), longer), shorter)
    return Try(state, length, following, ok), after


def _taylor_try(
    system: System, s: Node, end: Node, h: Node, y: Node, theta: Node, slope: Node
) -> tuple[Try, Node]:
    r"""Take a step of Taylor's method; its length follows from the coefficients.

    ρ is the smaller one of :math:`(‖y‖ / ‖c_k‖)^{1/k}` for the last two coefficients, and the
    length ρ·exp(−0.7/(p − 1))/e² (Jorba & Zou, 2005, eqs. 3-8 and 3-12). That does not see a kink
    or a jump of f ahead, so the step is rejected where the derivative of the polynomial at its end
    is not f there.
    """
    terms = _derivatives(system, s, y, theta)
    p, m = system.order, system.controlled
    least = system.atol / system.rtol if system.rtol else 1.0
    size = np.maximum(np.max(np.abs(y[:m])), least) if least else np.max(np.abs(y[:m]))
    radius: Any = UNLIMITED
    for k in (p - 1, p):
        norm = np.max(np.abs(terms[k - 1][:m])) / math.factorial(k)
        ratio = where(norm > 0.0, size / where(norm > 0.0, norm, 1.0), UNLIMITED)
        radius = np.minimum(radius, ratio ** (1.0 / k))
    natural = radius * (math.exp(-0.7 / (p - 1)) / math.e**2)
    length = np.minimum(np.minimum(natural, h), end - s)
    state = _polynomial(terms, y, length)
    rate = _rate(system, theta, s + length, state)[:m]
    defect = length * np.max(np.abs(rate - _polynomial(terms[1:], terms[0], length)[:m]))
    largest = np.maximum(size, length * np.max(np.abs(rate)))
    ok = defect <= DEFECT * p * max(system.tolerance, 8 * SPACING) * largest
    return Try(state, length, where(ok, MOST * natural, 0.5 * length), ok), slope


def joined(*vectors: Any) -> Any:
    """Return vectors one after the other."""
    return np.concatenate(vectors)


def _rate(system: System, theta: Node, s: Node, y: Node) -> Node:
    (rate,) = inlined(system.rate, [s, y, theta])
    return rate


def _slopes(
    tableau: Tableau, rate: Callable[..., Node], s: Node, h: Any, y: Node, first: Node
) -> list[Node]:
    slopes = [first]
    for node, row in zip(tableau.nodes, tableau.rows, strict=True):
        slopes.append(rate(s + node * h, y + h * _combined(row, slopes)))
    return slopes


def _combined(weights: Sequence[float], slopes: Sequence[Node]) -> Any:
    """Return the sum of weights and slopes."""
    terms = [w * k for w, k in zip(weights, slopes, strict=False) if w]
    total: Any = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _derivatives(system: System, s: Node, y: Node, theta: Node) -> list[Node]:
    """Return the derivatives of the state along the solution, from order 1."""
    return inlined(_series(system.rate, system.order), [s, y, theta])


def _series(rate: Function, order: int) -> Function:
    """Return the derivatives of y along the solution of y′ = g(s, y, θ), from order 1."""
    sweep = Sweep(rate)
    time, state, _ = rate.input_nodes
    terms = solution_terms(sweep, time, state, rate.outputs[0], order)
    zero = sweep.constant(0)
    outputs = [spread(zero if t is None else t, rate.output_shapes[0]).id for t in terms]
    names = [f"y{k}" for k in range(1, order + 1)]
    return Function.build(sweep.builder, rate.input_nodes, outputs, names)


def _polynomial(derivatives: Sequence[Node], y: Node, h: Node) -> Any:
    """Return y(s + h) by Horner's rule."""
    total: Any = 0.0
    for k in range(len(derivatives), 0, -1):
        total = h * (total + derivatives[k - 1] * (1.0 / math.factorial(k)))
    return y + total


def first_step(system: System) -> Function:
    """Return the length of the first step: of the state and θ (Hairer et al., II.4, p. 169)."""
    n, p = system.sizes

    def guess(nodes: list[Node]) -> list[Any]:
        y, theta = nodes
        m, order = system.controlled, system.order
        zero = 0.0 * y[0]
        slope = _rate(system, theta, zero, y)
        scale = system.atol + system.rtol * np.abs(y[:m])

        def norm(x: Any) -> Any:
            ratio = x[:m] / scale
            return np.sqrt(np.sum(ratio * ratio) / m)

        d0, d1 = norm(y), norm(slope)
        tiny = np.logical_or(d0 < 1e-5, d1 < 1e-5)
        h0 = np.minimum(where(tiny, 1e-6, 0.01 * d0 / where(tiny, 1.0, d1)), 1.0)
        other = _rate(system, theta, zero + h0, y + h0 * slope)
        d2 = norm(other - slope) / h0
        most = np.maximum(d1, d2)
        flat = most <= 1e-15
        steep = (0.01 / where(flat, 1.0, most)) ** (1.0 / (order + 1))
        h1 = where(flat, np.maximum(1e-6, h0 * 1e-3), steep)
        return [np.minimum(np.minimum(100 * h0, h1), 1.0)]

    return composed(guess, [(n,), (p,)])
