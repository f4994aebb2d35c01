"""`from_jax` on random programs of JAX's primitives: values and tangents against JAX's own.

JAX runs operation by operation, so that it compiles each operation once for every shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.core.optional import load
from tests.differential.nearness import assert_close
from tests.differential.search import Family
from tests.differential.steps import Steps, computed, drawn

JAX = load("jax").module
TOLERANCE = 1e-10
"""Of the largest number of a result, and of 1: all operations are bounded on the values drawn."""

Operation = Callable[[Any, Any, Any, Any], Any]
"""Of JAX, its `lax`, and two arrays of shape (2, 3)."""


@dataclass(frozen=True)
class Program:
    """Operations on earlier results, and the seed of the point."""

    steps: Steps
    seed: int


def _loop(jax: Any, lax: Any, a: Any, b: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, y: jax.numpy.sin(y) + b[i % 2] * a, a)


def _scan(jax: Any, lax: Any, a: Any, b: Any) -> Any:
    last, ys = lax.scan(lambda y, x: (0.5 * y + x, y * x), b[0], a, reverse=True)
    return ys + last


def _while(jax: Any, lax: Any, a: Any, b: Any) -> Any:
    found, _ = lax.while_loop(
        lambda pair: pair[1] < 3, lambda pair: (0.5 * pair[0] + b, pair[1] + 1), (a, 0)
    )
    return found


def _cond(jax: Any, lax: Any, a: Any, b: Any) -> Any:
    return lax.cond(a[0, 0] > b[1, 1], lambda x, y: x * y, lambda x, y: x - y, a, b)


def _switch(jax: Any, lax: Any, a: Any, b: Any) -> Any:
    number = jax.numpy.int32(3 * a[0, 0])
    return lax.switch(number, [jax.numpy.sin, jax.numpy.cos, lambda x: x * b], a)


def _at(jax: Any, lax: Any, a: Any, b: Any) -> Any:
    places = np.array([0, 2, 2])
    return a.at[1, places].add(b[0]).at[0].set(b[1]).at[:, 1].add(0.5)


def _dynamic(jax: Any, lax: Any, a: Any, b: Any) -> Any:
    first = jax.numpy.int64(2 * a[1, 1])
    part = lax.dynamic_slice(b, (0, first), (2, 2))
    return lax.dynamic_update_slice(a, part, (0, first))


def _taken(jax: Any, lax: Any, a: Any, b: Any) -> Any:
    order = jax.numpy.argsort(a[0])
    return jax.numpy.take(b, order, axis=1, mode="clip")


OPERATIONS: dict[str, Operation] = {
    "add": lambda jax, lax, a, b: a + b,
    "sub": lambda jax, lax, a, b: a - b,
    "mul": lambda jax, lax, a, b: a * b,
    "div": lambda jax, lax, a, b: a / (1.5 + b * b),
    "sin": lambda jax, lax, a, b: jax.numpy.sin(a) * b,
    "exp": lambda jax, lax, a, b: jax.numpy.exp(-a * a),
    "log": lambda jax, lax, a, b: jax.numpy.log1p(a * a) + lax.rsqrt(1 + b * b),
    "tanh": lambda jax, lax, a, b: jax.numpy.tanh(a) + lax.logistic(b),
    "erf": lambda jax, lax, a, b: lax.erf(a) - lax.erfc(b),
    "atan2": lambda jax, lax, a, b: jax.numpy.arctan2(a, 2 + b * b),
    "power": lambda jax, lax, a, b: (1.2 + a * a) ** jax.numpy.tanh(b) + a**3,
    "negative_power": lambda jax, lax, a, b: (1.5 + a * a) ** -2,
    "max": lambda jax, lax, a, b: jax.numpy.maximum(a, b) - jax.numpy.minimum(a, 0.5),
    "where": lambda jax, lax, a, b: jax.numpy.where((a > b) | ~(b < 1.0), a, -b),
    "clip": lambda jax, lax, a, b: lax.clamp(-0.7, a, 0.8),
    "round": lambda jax, lax, a, b: jax.numpy.round(3 * a) + lax.round(2 * b) + jax.numpy.floor(a),
    "remainder": lambda jax, lax, a, b: a % 0.7 + lax.rem(b, 0.3 + 0 * b),
    "cast": lambda jax, lax, a, b: a * (5 * b).astype("int32") + (a > b).astype("float64"),
    "sum": lambda jax, lax, a, b: a.sum(0) - b.mean(1, keepdims=True),
    "extremes": lambda jax, lax, a, b: a.max(1, keepdims=True) + b.min(0),
    "prod": lambda jax, lax, a, b: a.prod(0) * jax.numpy.cumsum(b, 1),
    "running": lambda jax, lax, a, b: lax.cumsum(a, 1, reverse=True) + jax.numpy.cumprod(b, 0),
    "softmax": lambda jax, lax, a, b: jax.nn.softmax(a, 0) * jax.nn.softplus(b),
    "logsumexp": lambda jax, lax, a, b: jax.nn.logsumexp(a, 1, keepdims=True) * b,
    "dot": lambda jax, lax, a, b: (a @ b.T) @ jax.numpy.cos(a),
    "einsum": lambda jax, lax, a, b: jax.numpy.einsum("ij,ik->ijk", a, b).sum(2),
    "batched": lambda jax, lax, a, b: jax.vmap(jax.numpy.outer)(a, b)[:, 1],
    "reshape": lambda jax, lax, a, b: a.reshape(3, 2).T + b.ravel()[::-1].reshape(2, 3),
    "concatenate": lambda jax, lax, a, b: jax.numpy.concatenate([a[:, 1:], b[:, :1]], 1),
    "stack": lambda jax, lax, a, b: jax.numpy.stack([a[1], b[0]]) + jax.numpy.roll(a, 1, 1),
    "pad": lambda jax, lax, a, b: (
        lax.pad(a, 0.5, ((0, 0, 0), (-1, 1, 0))) + lax.pad(b[:, :2], -0.5, ((0, 0, 0), (0, 0, 1)))
    ),
    "strided": lambda jax, lax, a, b: a.at[:, ::2].set(b[::-1, ::2]),
    "sort": lambda jax, lax, a, b: jax.numpy.sort(a, 1) * b[np.array([1, 0])],
    "at": _at,
    "taken": _taken,
    "dynamic": _dynamic,
    "custom": lambda jax, lax, a, b: jax.nn.silu(a) + jax.nn.relu6(3 + b),
    "gradient": lambda jax, lax, a, b: jax.grad(lambda x: (jax.numpy.sin(x @ b.T) ** 2).sum())(a),
    "checkpoint": lambda jax, lax, a, b: jax.checkpoint(lambda x: jax.numpy.sin(x) * b)(a),
    "loop": _loop,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "switch": _switch,
}

PROGRAMS = st.builds(
    Program,
    steps=drawn(OPERATIONS, 5),
    seed=st.integers(0, 1000),
)


def function_of(program: Program) -> Callable[..., Any]:
    """Return the program as a function of two arrays, bounded between steps."""

    def operation(name: str, a: Any, b: Any) -> Any:
        return JAX.numpy.tanh(OPERATIONS[name](JAX, JAX.lax, a, b))

    return lambda x, y: computed(program.steps, (x, y), operation)[-1]


def check(program: Program) -> None:
    """Hold what difflab reads to what JAX computes."""
    if JAX is None:
        return
    fun = function_of(program)
    generator = np.random.default_rng(program.seed)
    point = tuple(generator.uniform(-1.3, 1.3, (2, 2, 3)))
    dots = tuple(generator.uniform(-1.0, 1.0, (2, 2, 3)))
    # The comparison of the reader compiles the program, which takes longer than all else.
    read = dl.from_jax(fun, *point, verify=program.seed % 8 == 0)
    with JAX.enable_x64(True), JAX.disable_jit():
        given = [tuple(map(JAX.numpy.asarray, pair)) for pair in (point, dots)]
        value, dot = JAX.jvp(fun, *given)
    assert read.inputs == ("x", "y")
    assert_close(read(*point), np.asarray(value), TOLERANCE, f"value of {program}")
    tangent = dl.jvp(read)(*point, *dots)[-1]
    assert_close(tangent, np.asarray(dot), TOLERANCE, f"tangent of {program}")


FAMILY = Family("jax_reader", PROGRAMS, check, fixed=60, fresh=10)
