"""Worked examples of textbooks, in each way of building a graph, against algebra and outsiders.

The same code runs on arrays, on difflab's tensors and traced values, on PyTorch and on JAX: what
they spell differently is asked of `ops`. The pages of `docs/examples/` tell these examples to
readers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import difflab as dl

RNG = np.random.default_rng(7)
W, X, B, T = RNG.normal(size=(4, 3)), RNG.normal(size=3), RNG.normal(size=4), RNG.normal(size=4)
IMAGE, FILTERS = RNG.normal(size=(2, 5, 6)), RNG.normal(size=(3, 2, 2, 3))


class Swish(dl.CustomFunction):
    @staticmethod
    def forward(ctx, x):
        s = 1 / (1 + np.exp(-x))
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, y_bar):
        x, s = ctx.saved_tensors
        return y_bar * s * (1 + x * (1 - s))


def looped(step: Callable[[int, Any], Any], state: Any, steps: int, snapshots: int) -> Any:
    for k in range(steps):
        state = step(k, state)
    return state


OURS = SimpleNamespace(
    relu=lambda x: np.maximum(x, 0.0),
    tanh=np.tanh,
    sum=np.sum,
    norm=np.linalg.norm,
    conv2d=dl.arrays.conv2d,
    swish=Swish.apply,
    chain=dl.checkpoint_chain,
    nll=lambda logits, k: -dl.arrays.log_softmax(logits)[k],
)


@dataclass(frozen=True)
class Example:
    """Code, the same as text where the language can say it, and its derivatives by algebra."""

    code: Callable[..., Any]
    values: tuple[Any, ...]
    program: str | None = None
    value: float | None = None
    slopes: tuple[Any, ...] = ()


def used_twice(ops: Any, x: Any, y: Any) -> Any:
    u = x + y
    z, w = u * y, u**2
    return z + w


def squared_residual(ops: Any, W: Any, x: Any, b: Any, t: Any) -> Any:
    r = W @ x + b - t
    return r @ r / 2


def cubed(ops: Any, u: Any) -> Any:
    v, w = u**2, 3 * u
    return v * w


def recurrent(ops: Any, U: Any, w: Any, b: Any, v: Any, heard: Any) -> Any:
    h, total = 0 * b, 0.0
    for k in range(50):
        h = ops.tanh(U @ h + w * heard[k] + b)
        total = total + (v @ h - heard[k + 1]) ** 2
    return total / 50


def deep(ops: Any, w: Any, x: Any) -> Any:
    return ops.sum(ops.chain(lambda k, x: x + 0.1 * ops.tanh(w * x), x, steps=200, snapshots=5))


def settled(ops: Any, a: Any, x: Any) -> Any:
    while ops.norm(x) > 1:
        x = a @ x
    return x[0]


RESIDUAL = W @ X + B - T
ON = (W @ X + B > 0).astype(float)
HUGE = np.array([1000.0, -1000.0, 999.0])
SHARES = np.array([1.0, 0.0, np.exp(-1.0)]) / (1.0 + np.exp(-1.0))

EXAMPLES = {
    "a product with a sum": Example(
        lambda ops, x, y: (x + y) * y, (2.0, 3.0), "z = (x + y)*y; z", 15.0, (3.0, 8.0)
    ),
    # dL/dx = 2u + y, dL/dy = 2u + y + u, with u = 5
    "a value used twice": Example(
        used_twice, (2.0, 3.0), "u = x + y; z = u*y; w = u^2; L = z + w; L", 40.0, (13.0, 18.0)
    ),
    # 2y²(x + 1), 2y(x + 1)²
    "an input used twice": Example(
        lambda ops, x, y: (x * y + y) ** 2,
        (2.0, 3.0),
        "a = x*y; b = a + y; L = b^2; L",
        81.0,
        (54.0, 54.0),
    ),
    # 9u²
    "both factors of one input": Example(cubed, (2.0,), "v = u^2; w = 3*u; v*w", 24.0, (36.0,)),
    "a squared sum": Example(
        lambda ops, x, y: (x + y) ** 2, (2.0, 3.0), "(x + y)^2", 25.0, (10.0, 10.0)
    ),
    # 2(xw + b - y) times w, x, 1, -1
    "a squared error": Example(
        lambda ops, x, w, b, y: (x * w + b - y) ** 2,
        (2.0, 3.0, 1.0, 5.0),
        "(x*w + b - y)^2",
        4.0,
        (12.0, 8.0, 4.0, -4.0),
    ),
    "a linear layer": Example(
        squared_residual,
        (W, X, B, T),
        "W: [4, 3]; x: [3]; b: [4]; t: [4]; r = W @ x + b - t; r @ r/2",
        float(RESIDUAL @ RESIDUAL) / 2,
        (np.outer(RESIDUAL, X), W.T @ RESIDUAL, RESIDUAL, -RESIDUAL),
    ),
    "a layer of relu": Example(
        lambda ops, W, x, b: ops.sum(ops.relu(W @ x + b)),
        (W, X, B),
        "W: [4, 3]; x: [3]; b: [4]; sum(max(W @ x + b, 0))",
        float(np.sum(ON * (W @ X + B))),
        (np.outer(ON, X), W.T @ ON, ON),
    ),
    "a likelihood of huge scores": Example(
        lambda ops, s: ops.nll(s, 1),
        (HUGE,),
        "s: [3]; -log_softmax(s)[1]",
        2000.0 + float(np.log1p(np.exp(-1.0))),
        (SHARES - [0.0, 1.0, 0.0],),
    ),
    "a convolution": Example(
        lambda ops, x, w, b: ops.sum(ops.relu(ops.conv2d(x, w, b)) ** 2),
        (IMAGE, FILTERS, X),
        "x: [2, 5, 6]; w: [3, 2, 2, 3]; b: [3]; sum(max(conv2d(x, w, b), 0)^2)",
    ),
    "a recurrent cell": Example(
        recurrent,
        (RNG.normal(size=(4, 4)) / 2, *RNG.normal(size=(3, 4)), np.sin(0.3 * np.arange(51))),
    ),
    "swish, a custom function": Example(lambda ops, x: ops.sum(ops.swish(x)), (T,)),
    "a deep chain in checkpoints": Example(deep, (np.array([0.5, -0.7]), np.array([0.3, 1.2]))),
}
A_LOOP = Example(settled, (np.array([[0.6, -0.3], [0.3, 0.6]]), np.array([3.0, 4.0])))


each = pytest.mark.parametrize("name", EXAMPLES)
each_with_the_loop = pytest.mark.parametrize("name", [*EXAMPLES, "a loop"])


def example(name: str) -> Example:
    return EXAMPLES.get(name, A_LOOP)


def packed(parts: Iterable[Any]) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts])


def eager(case: Example) -> tuple[float, np.ndarray]:
    """Return the value, and the derivatives by all arguments in one row."""
    leaves = [dl.tensor(value, requires_grad=True) for value in case.values]
    result = case.code(OURS, *leaves)
    result.backward()
    return result.item(), packed(leaf.grad.numpy() for leaf in leaves)


def traced(case: Example, mode: str = "reverse") -> tuple[float, np.ndarray]:
    function = dl.trace(partial(case.code, OURS), *case.values)
    return float(function(*case.values)), dl.gradient(function, mode)(*case.values)


def parsed(case: Example, mode: str = "reverse") -> tuple[float, np.ndarray]:
    function = dl.parse(case.program)
    names = [*inspect.signature(case.code).parameters][1:]
    given = dict(zip(names, case.values, strict=True))
    parts = function.split(dl.gradient(function, mode)(**given))
    slopes = dict(zip(function.inputs, parts, strict=True))
    return float(function(**given)), packed(slopes[name] for name in names)


@pytest.mark.parametrize("name", [name for name, case in EXAMPLES.items() if case.slopes])
def test_the_algebra_holds(name: str) -> None:
    case = EXAMPLES[name]
    for build in (eager, traced, parsed, partial(traced, mode="forward")):
        value, slopes = build(case)
        assert value == pytest.approx(case.value, rel=1e-15)
        np.testing.assert_allclose(slopes, packed(case.slopes), rtol=1e-14, atol=1e-15)


@each
def test_three_ways_give_the_same_bits(name: str) -> None:
    case = EXAMPLES[name]
    value, slopes = eager(case)
    for build in (traced, parsed) if case.program else (traced,):
        other, others = build(case)
        assert value == other
        # A segment of a checkpointed chain adds its own cotangents first: another order of a sum.
        # Where a tape multiplies by 1/50, which is rounded, a graph divides by 50.
        differs = (case.code is deep and build is traced) or case.code is recurrent
        rounding = 1e-15 if differs else 0.0
        np.testing.assert_allclose(slopes, others, rtol=rounding, atol=0.0)


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("build", ["traced", "parsed"])
def test_stabilisation_alone_makes_the_softmax_finite(build: str, k: int) -> None:
    if build == "parsed":
        plain = dl.parse(f"s: [3]; p = exp(s)/sum(exp(s)); -log(p[{k}])")
    else:
        plain = dl.trace(lambda s: -np.log((np.exp(s) / np.sum(np.exp(s)))[k]), HUGE)
    assert not np.isfinite(dl.gradient(plain)(HUGE)).any()
    stable = dl.stabilise(plain).function
    assert float(stable(HUGE)) == pytest.approx(1000 - HUGE[k] + np.log1p(np.exp(-1)), rel=1e-15)
    for mode in ("forward", "reverse"):
        slopes = dl.gradient(stable, mode)(HUGE)
        np.testing.assert_allclose(slopes, SHARES - np.eye(3)[k], rtol=1e-15, atol=2e-16)


@each_with_the_loop
def test_differences_of_values_agree(name: str) -> None:
    case = example(name)
    shapes = [np.shape(value) for value in case.values]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def of_one_array(x: np.ndarray) -> Any:
        parts = np.split(x, ends)
        return case.code(OURS, *map(np.reshape, parts, shapes))

    found = dl.differentiate(of_one_array, packed(case.values), method="richardson")
    _, slopes = eager(case)
    assert np.all(np.abs(found.value - slopes) <= found.error + 1e-14)
    np.testing.assert_allclose(slopes, found.value, rtol=1e-8, atol=1e-9)


@each_with_the_loop
def test_pytorch_agrees(name: str) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")
    nn = torch.nn.functional
    ops = SimpleNamespace(
        relu=torch.relu,
        tanh=torch.tanh,
        sum=torch.sum,
        norm=torch.linalg.norm,
        swish=nn.silu,
        chain=looped,
        conv2d=lambda x, w, b: nn.conv2d(x[None], w, b)[0],
        nll=lambda s, k: -nn.log_softmax(s, 0)[k],
    )
    case = example(name)
    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in case.values]
    result = case.code(ops, *leaves)
    result.backward()
    value, slopes = eager(case)
    assert value == pytest.approx(result.item(), rel=1e-14)
    theirs = packed(leaf.grad.numpy() for leaf in leaves)
    np.testing.assert_allclose(slopes, theirs, rtol=1e-12, atol=1e-14)


@each_with_the_loop
def test_jax_agrees(name: str) -> None:
    jax = pytest.importorskip("jax", reason="needs JAX: pip install 'difflab[peers]'")
    jax.config.update("jax_enable_x64", True)
    ops = SimpleNamespace(
        relu=jax.nn.relu,
        tanh=jax.numpy.tanh,
        sum=jax.numpy.sum,
        norm=jax.numpy.linalg.norm,
        swish=jax.nn.silu,
        chain=looped,
        conv2d=lambda x, w, b: jax.lax.conv(x[None], w, (1, 1), "VALID")[0] + b[:, None, None],
        nll=lambda s, k: -jax.nn.log_softmax(s)[k],
    )
    case = example(name)
    if case is A_LOOP:
        # JAX cannot trace it either; the number of rounds is told to it.
        case = replace(case, code=lambda ops, a, x: (a @ (a @ (a @ (a @ (a @ x)))))[0])
    leaves = [jax.numpy.asarray(x, dtype=float) for x in case.values]
    places = tuple(range(len(leaves)))
    result, theirs = jax.jit(jax.value_and_grad(partial(case.code, ops), places))(*leaves)
    value, slopes = eager(example(name))
    assert value == pytest.approx(float(result), rel=1e-14)
    np.testing.assert_allclose(slopes, packed(theirs), rtol=1e-12, atol=1e-14)
