"""A solved initial value problem in a graph, and its derivatives of every order.

It is a solution whose tangents are those of a system that holds them as well. Its cotangents follow
from the tangents, or are a row that goes back over the steps from checkpoints; the tangent and the
cotangents of that row are those of wider systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from difflab.autodiff.control.loops import append_loop
from difflab.autodiff.control.rows import zeros
from difflab.autodiff.control.solutions import Rule, Solver, solution
from difflab.autodiff.engine.argnums import tangents_of
from difflab.autodiff.engine.batching import Arg, batched
from difflab.autodiff.recording import Contents, computed
from difflab.core.primitive import Primitive, custom
from difflab.errors import UnsupportedError
from difflab.graph.control import Loop
from difflab.graph.custom.rows import host_row
from difflab.graph.evaluate import ArrayInterpreter, Interpreter
from difflab.graph.function import Function
from difflab.graph.interpreters import CarrierInterpreter
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined
from difflab.graph.values import first_carrier
from difflab.solve.ivp_runs import STATISTICS, Integrator, integration
from difflab.solve.ivp_steps import System, joined


def integrated(system: System, y: Any, theta: Any, h: Any) -> Any:
    """Return the state at the end and statistics, as one vector: see `integration`.

    y has the shape (n,), θ (p,); the first step has the length h, or a chosen one where it is 0.
    """
    rate, settings = Contents(system.rate), replace(system, rate=_ANY)
    if first_carrier((y, theta, h)) is None:
        return _integrator(rate, settings).run(np.array(y), np.array(theta), float(h))
    return computed(_alone(rate, settings), [y, theta, h])[0]


_ANY: Any = None
"""In place of the function of a system, which is given by its contents."""


@lru_cache(maxsize=512)
def _alone(rate: Contents, settings: System) -> Function:
    """Return the solution as a function, which tensors record as one operation."""
    function = integration(replace(settings, rate=rate.function))
    rule = _Trajectory(rate, settings)
    return composed(lambda nodes: solution(function, rule, nodes), function.input_shapes)


@dataclass(frozen=True)
class _Trajectory(Rule):
    """The derivative of the state at the end; see `difflab.autodiff.control.solutions.Rule`.

    The arguments are y, θ and the length h of the first step, of which the solution is independent;
    the output is that of `integration`, whose statistics are constants.

    Attributes
    ----------
    rate : Contents
        Of the right side.
    settings : System
        The rest of the system.
    """

    rate: Contents
    settings: System
    name = "ivp"

    @property
    def system(self) -> System:
        """The system."""
        return replace(self.settings, rate=self.rate.function)

    def solved(
        self, on: Interpreter, solve: Solver, values: Sequence[Any], batch: Shape
    ) -> list[Any]:
        """Return the results of the steps in float64, by machine code for a single point."""
        numbers = type(on) is ArrayInterpreter and on.xp is np
        symbolic = numbers and any(np.asarray(value).dtype == object for value in values)
        if symbolic or not isinstance(on, ArrayInterpreter | CarrierInterpreter):
            raise UnsupportedError("ivp takes its steps in float64 alone")
        if numbers and batch == ():
            y, theta, h = values
            return [_integrator(self.rate, self.settings).run(y, theta, float(h))]
        return solve()

    def pushed(self, moving: tuple[int, ...]) -> Function:
        """Return the tangents of the outputs, as `Rule.pushed`."""
        system, (n, p) = self.system, self.system.sizes

        def tangents(nodes: list[Node]) -> list[Node]:
            value, *args = nodes[:4]
            dots = zeros(value.builder, [*shapes, (STATISTICS,)])
            for place, dot in zip(moving, nodes[4:], strict=True):
                dots[place] = dot
            return [joined(_tangent(system, args, dots), dots[-1])]

        shapes: list[Shape] = [(n,), (p,), ()]
        return composed(tangents, [(n + STATISTICS,), *shapes, *(shapes[k] for k in moving)])

    def pulled(self, wanted: tuple[int, ...]) -> Function:
        """Return the cotangents of some arguments, as `Rule.pulled`."""
        system, (n, p) = self.system, self.system.sizes
        sensitivities = system.derivative == "forward"

        def cotangents(nodes: list[Node]) -> list[Node]:
            _, y, theta, h, bar = nodes
            back = _by_sensitivities if sensitivities else _swept
            bars = [*back(system, y, theta, h, bar[:n]), *zeros(h.builder, [()])]
            return [bars[place] for place in wanted]

        whole = (n + STATISTICS,)
        return composed(cotangents, [whole, (n,), (p,), (), whole])


@lru_cache(maxsize=512)
def _sweep(rate: Contents, settings: System) -> Primitive:
    """Return the row that gives the cotangents of y and θ, from y, θ, h and that of y(1)."""
    system = replace(settings, rate=rate.function)
    n, p = system.sizes
    integrator = _integrator(rate, settings)

    def run(y: Any, theta: Any, h: Any, bar: Any) -> Any:
        cotangents = integrator.back(np.array(y), np.array(theta), float(h), np.array(bar))
        return np.concatenate(cotangents)

    rule = custom(partial(_sweep_jvp, system), partial(_sweep_vjp, system))
    return _with_examples("ivp_vjp", run, [(n,), (p,), (), (n,)], n + p, rule)


@lru_cache(maxsize=256)
def _integrator(rate: Contents, settings: System) -> Integrator:
    return Integrator(replace(settings, rate=rate.function))


def _with_examples(name: str, run: Any, shapes: Sequence[Shape], size: int, rule: Any) -> Primitive:
    """Return a row of host code; a stack of examples is a loop over them, each with its steps."""

    def of_stack(size: int, args: list[Arg]) -> Node:
        mapped = [node for node, is_mapped in args if is_mapped]
        fixed = [node for node, is_mapped in args if not is_mapped]
        order = sorted(range(len(args)), key=lambda k: not args[k][1])

        def one(nodes: list[Node]) -> list[Node]:
            values = dict(zip(order, nodes, strict=True))
            return [row(*(values[k] for k in range(len(args))))]

        body = composed(one, [shapes[k] for k in order])
        return append_loop(Loop(body, 0, len(mapped), size, reverse=False), [*mapped, *fixed])[0]

    row = host_row(name, run, shapes, (size,), replace(rule, batched=of_stack), None)
    return row


def _swept(system: System, *args: Any) -> list[Node]:
    """Return the cotangents of y and θ."""
    row = _sweep(Contents(system.rate), replace(system, rate=_ANY))
    n, _ = system.sizes
    both = row(*args)
    return [both[:n], both[n:]]


def _with_tangents(system: System) -> System:
    """Return the system of the state and its tangent, (y, ẏ), with the parameters (θ, θ̇).

    The steps of an unrolled system are those of the state alone: their lengths are constants.
    Those of others control the error of the tangent, too.
    """
    n, p = system.sizes
    rate, push = system.rate, tangents_of(system.rate, [1, 2])

    def wide(nodes: list[Node]) -> list[Node]:
        s, y, theta = nodes
        parts = [y[:n], theta[:p], y[n:], theta[p:]]
        (slope,), (dot,) = inlined(rate, [s, *parts[:2]]), inlined(push, [s, *parts])
        return [joined(slope, dot)]

    whole = composed(wide, [(), (2 * n,), (2 * p,)])
    controlled = system.controlled if system.derivative == "unrolled" else 2 * n
    return replace(system, rate=whole, controlled=controlled)


def _tangent(system: System, args: Sequence[Node], dots: Sequence[Node]) -> Node:
    """Return the tangent of the state at the end."""
    y, theta, h = args
    n, _ = system.sizes
    wide = [joined(y, dots[0]), joined(theta, dots[1])]
    tangent: Node = integrated(_with_tangents(system), wide[0], wide[1], h)[n : 2 * n]
    return tangent


def _by_sensitivities(system: System, y: Node, theta: Node, h: Node, bar: Node) -> list[Node]:
    """Return the cotangents from the derivatives of the state by every element of y and θ."""
    n, p = system.sizes
    rate, count = system.rate, n + p
    push = batched(tangents_of(rate, [1, 2]), [False] * 3 + [True] * 2, count)
    seeds: Any = np.eye(count)

    def wide(nodes: list[Node]) -> list[Node]:
        s, whole, theta = nodes
        own = whole[:n]
        rows: Any = np.reshape(whole[n:], (count, n))
        theta_dot = zeros(theta.builder, [(count, p)])[0] + seeds[:, n:]
        (slope,), (dots,) = (
            inlined(rate, [s, own, theta]),
            inlined(push, [s, own, theta, rows, theta_dot]),
        )
        return [joined(slope, np.reshape(dots, (-1,)))]

    size = n + count * n
    whole = composed(wide, [(), (size,), (p,)])
    forward = replace(system, rate=whole, controlled=size)
    first = joined(y, zeros(y.builder, [(count * n,)])[0] + seeds[:, :n].reshape(-1))
    sensitivities = integrated(forward, first, theta, h)
    bars: Any = np.reshape(sensitivities[n:size], (count, n)) @ bar
    return [bars[:n], bars[n:]]


def _sweep_jvp(system: System, dots: Sequence[Node], y: Node, *args: Node) -> Node:
    r"""Return the tangent of the cotangents x̄ = Jᵀȳ.

    The sweep of the system with tangents, for the cotangents (ȳ̇, ȳ), gives Jᵀȳ̇ + ∂(Jẋ)ᵀȳ/∂x.
    """
    n, p = system.sizes
    state, theta, h, bar = args
    wide = [joined(state, dots[0]), joined(theta, dots[1])]
    cotangents = _swept(_with_tangents(system), *wide, h, joined(dots[3], bar))
    whole: Node = joined(cotangents[0][:n], cotangents[1][:p])
    return whole


def _sweep_vjp(system: System, w: Node, y: Node, *args: Node) -> list[Node | None]:
    """Return the cotangents of the sweep's arguments: those of ⟨w, Jᵀȳ⟩ = ⟨ȳ, Jw⟩."""
    n, p = system.sizes
    *values, bar = args
    state, theta, h = values
    pushed = _tangent(system, values, [w[:n], w[n:]])
    wide = [joined(state, w[:n]), joined(theta, w[n:])]
    cotangents = _swept(_with_tangents(system), *wide, h, joined(0.0 * bar, bar))
    return [cotangents[0][:n], cotangents[1][:p], None, pushed]
