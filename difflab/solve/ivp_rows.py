"""An initial value problem as a row of a graph, and its derivatives of every order.

The derivatives are rows of the same kind, of systems that hold the tangents as well, or a row that
goes back over the steps; the tangent and the cotangents of the latter are those of wider systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from difflab.autodiff.control.loop import append_loop
from difflab.autodiff.engine.argnums import tangents_of
from difflab.autodiff.engine.batching import Arg, batched
from difflab.autodiff.recording import Contents, computed
from difflab.core.primitive import Primitive, custom
from difflab.graph.composition import composed, inlined
from difflab.graph.control import Loop
from difflab.graph.custom.rows import host_row
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.values import first_carrier
from difflab.solve.ivp_runs import Integrator, Outcome
from difflab.solve.ivp_steps import System, joined

__all__ = ["STATISTICS", "integrated"]

STATISTICS = len(Outcome._fields) - 1
"""How many numbers follow the state in the value of a row."""


def integrated(system: System, y: Any, theta: Any, h: Any) -> Any:
    """Return the state at the end and the statistics of an `Outcome`, as one vector.

    y has the shape (n,), θ (p,); the first step has the length h, or a chosen one where it is 0.
    """
    row = _row(Contents(system.rate), replace(system, rate=_ANY))
    if first_carrier((y, theta, h)) is None:
        return row(y, theta, h)
    return computed(_alone(row, system.sizes), [y, theta, h])[0]


_ANY: Any = None
"""In place of the function in the key of a row, which has its contents."""


@lru_cache(maxsize=512)
def _alone(row: Primitive, sizes: tuple[int, int]) -> Function:
    """Return a row as a function, which tensors record as one operation."""
    return composed(lambda nodes: [row(*nodes)], [*((size,) for size in sizes), ()])


@lru_cache(maxsize=512)
def _row(rate: Contents, settings: System) -> Primitive:
    system = replace(settings, rate=rate.function)
    n, p = system.sizes
    integrator = _integrator(rate, settings)

    def run(y: Any, theta: Any, h: Any) -> Any:
        state, *statistics = integrator.run(np.array(y), np.array(theta), float(h))
        return joined(state, statistics)

    rule = custom(partial(_jvp, system), partial(_vjp, system))
    return _with_examples("ivp", run, [(n,), (p,), ()], n + STATISTICS, rule)


@lru_cache(maxsize=512)
def _sweep(rate: Contents, settings: System) -> Primitive:
    """Return the row that gives the cotangents of y and θ, from y, θ, h and that of y(1)."""
    system = replace(settings, rate=rate.function)
    n, p = system.sizes
    integrator = _integrator(rate, settings)

    def run(y: Any, theta: Any, h: Any, bar: Any) -> Any:
        found = integrator.back(np.array(y), np.array(theta), float(h), np.array(bar))
        return np.concatenate(found)

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
    found: Node = integrated(_with_tangents(system), wide[0], wide[1], h)[n : 2 * n]
    return found


def _jvp(system: System, dots: Sequence[Node], y: Node, *args: Node) -> Node:
    """Return the tangent of the value; statistics are constants."""
    found = _tangent(system, args, dots)
    rest = 0.0 * y[system.sizes[0] :]
    whole: Node = joined(found, rest)
    return whole


def _vjp(system: System, y_bar: Node, y: Node, *args: Node) -> list[Node | None]:
    """Return the cotangents of the arguments."""
    n, _ = system.sizes
    if system.derivative == "forward":
        return [*_by_sensitivities(system, y_bar[:n], *args), None]
    return [*_swept(system, *args, y_bar[:n]), None]


def _by_sensitivities(system: System, bar: Node, y: Node, theta: Node, h: Node) -> list[Node]:
    """Return the cotangents from the derivatives of the state by every element of y and θ."""
    n, p = system.sizes
    rate, count = system.rate, n + p
    push = batched(tangents_of(rate, [1, 2]), [False] * 3 + [True] * 2, count)
    seeds: Any = np.eye(count)

    def wide(nodes: list[Node]) -> list[Node]:
        s, whole, theta = nodes
        own = whole[:n]
        rows: Any = np.reshape(whole[n:], (count, n))
        theta_dot = 0.0 * theta + seeds[:, n:]
        (slope,), (dots,) = (
            inlined(rate, [s, own, theta]),
            inlined(push, [s, own, theta, rows, theta_dot]),
        )
        return [joined(slope, np.reshape(dots, (-1,)))]

    size = n + count * n
    whole = composed(wide, [(), (size,), (p,)])
    forward = replace(system, rate=whole, controlled=size)
    first = joined(y, 0.0 * y[0] + seeds[:, :n].reshape(-1))
    found = integrated(forward, first, theta, h)
    bars: Any = np.reshape(found[n:size], (count, n)) @ bar
    return [bars[:n], bars[n:]]


def _sweep_jvp(system: System, dots: Sequence[Node], y: Node, *args: Node) -> Node:
    r"""Return the tangent of the cotangents x̄ = Jᵀȳ.

    The sweep of the system with tangents, for the cotangents (ȳ̇, ȳ), gives Jᵀȳ̇ + ∂(Jẋ)ᵀȳ/∂x.
    """
    n, p = system.sizes
    state, theta, h, bar = args
    wide = [joined(state, dots[0]), joined(theta, dots[1])]
    found = _swept(_with_tangents(system), *wide, h, joined(dots[3], bar))
    whole: Node = joined(found[0][:n], found[1][:p])
    return whole


def _sweep_vjp(system: System, w: Node, y: Node, *args: Node) -> list[Node | None]:
    """Return the cotangents of the sweep's arguments: those of ⟨w, Jᵀȳ⟩ = ⟨ȳ, Jw⟩."""
    n, p = system.sizes
    *values, bar = args
    state, theta, h = values
    pushed = _tangent(system, values, [w[:n], w[n:]])
    wide = [joined(state, w[:n]), joined(theta, w[n:])]
    found = _swept(_with_tangents(system), *wide, h, joined(0.0 * bar, bar))
    return [found[0][:n], found[1][:p], None, pushed]
