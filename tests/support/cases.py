"""What difflab computes in the comparison with PyTorch and JAX: every array function, every row.

A case is a function of arrays and the arrays. Its result is weighted and summed, so that one
gradient holds a whole Jacobian product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import difflab as dl
from difflab import arrays, primitives
from difflab.arrays import trigonometric
from tests.support.draws import generator

RNG = np.random.default_rng(11)


A, B, C = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=(3, 5))
V, U = RNG.normal(size=3), RNG.normal(size=4)
SQUARE = RNG.normal(size=(4, 4)) + 3 * np.eye(4)
SYMMETRIC = SQUARE @ SQUARE.T
IMAGE, FILTER, BIAS = (
    RNG.normal(size=(2, 3, 7, 6)),
    RNG.normal(size=(4, 3, 3, 2)),
    RNG.normal(size=4),
)
CLASSES = [2, 0, 1, 1]
SHARES = np.exp(RNG.normal(size=(4, 3)))
SHARES = SHARES / SHARES.sum(axis=1, keepdims=True)
FLAGS = A > 0
WAVES = np.sin(np.arange(9.0)).reshape(3, 3)
SIGNAL, PLACES = RNG.normal(size=7), np.array([[2, 0, 3], [1, 1, 0]])


MATRIX_ORDERS = ("fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2)
VECTOR_ORDERS = (np.inf, -np.inf, 1, 2, 1.5, 4)


def joined(xp: Any, parts: Any) -> Any:
    """Return the parts of a factorisation as one vector, with vectors free of their signs."""
    even = [part if part.ndim < 2 else part * part for part in parts]
    return xp.concatenate([xp.reshape(part, (-1,)) for part in even])


def recurrence(xp: Any, a: Any, b: Any) -> Any:
    """Return y of y₀ = b₀, yᵢ = aᵢ₋₁ yᵢ₋₁ + bᵢ along the first axis, by its definition."""
    found = [b[0]]
    for factor, term in zip(a, b[1:], strict=True):
        found.append(factor * found[-1] + term)
    return xp.stack(found)


@dataclass(frozen=True)
class Case:
    """A function of arrays, in difflab's words."""

    ours: Callable[..., Any]
    values: tuple[np.ndarray, ...]


CASES: dict[str, Case] = {
    "sum": Case(lambda x: arrays.sum(x, 0), (A,)),
    "prod": Case(lambda x: arrays.prod(x, 1), (A,)),
    "mean": Case(lambda x: arrays.mean(x, -1), (A,)),
    "max": Case(lambda x: arrays.max(x, 1), (A,)),
    "min": Case(lambda x: arrays.min(x), (A,)),
    "norm": Case(arrays.norm, (A,)),
    "norm along an axis": Case(lambda x: arrays.norm(x, 1), (A,)),
    "logsumexp": Case(lambda x: arrays.logsumexp(x, 1), (300 * A,)),
    "softmax": Case(arrays.softmax, (A,)),
    "softmax along the first axis": Case(lambda x: arrays.softmax(x, 0), (3 * A,)),
    "log_softmax": Case(arrays.log_softmax, (300 * A,)),
    "cumsum": Case(lambda x: arrays.cumsum(x, 0), (A,)),
    "cumprod": Case(lambda x: arrays.cumprod(x, 0), (A,)),
    "linear_recurrence": Case(lambda a, b: arrays.linear_recurrence(a, b, 0), (A[1:], A)),
    "sort": Case(lambda x: arrays.sort(x, 0), (A,)),
    "take_along_axis": Case(lambda x: arrays.take_along_axis(x, PLACES, 0), (A,)),
    "convolve": Case(arrays.convolve, (V, A[0])),
    "correlate": Case(arrays.correlate, (SIGNAL, V)),
    "dot": Case(arrays.dot, (V, A[0])),
    "matmul": Case(arrays.matmul, (A, C)),
    "matmul of stacks": Case(
        arrays.matmul, (RNG.normal(size=(2, 1, 4, 3)), RNG.normal(size=(5, 3, 2)))
    ),
    "matmul with a vector": Case(arrays.matmul, (A, V)),
    "outer": Case(arrays.outer, (U, V)),
    "einsum": Case(lambda *x: arrays.einsum("ij,jk,k->i", *x), (A, C, RNG.normal(size=5))),
    "einsum of stacks": Case(
        lambda *x: arrays.einsum("bij,bkj->bik", *x),
        (RNG.normal(size=(2, 4, 3)), RNG.normal(size=(2, 5, 3))),
    ),
    "transpose": Case(lambda x: arrays.transpose(x, (2, 0, 1)), (RNG.normal(size=(2, 3, 4)),)),
    "reshape": Case(lambda x: arrays.reshape(x, (2, 6)), (A,)),
    "ravel": Case(lambda x: arrays.ravel(x), (A,)),
    "broadcast_to": Case(lambda x: arrays.broadcast_to(x, (4, 3)), (V,)),
    "concatenate": Case(lambda *x: arrays.concatenate(x, 1), (A, RNG.normal(size=(4, 2)))),
    "stack": Case(lambda *x: arrays.stack(x, 1), (A, B)),
    "index": Case(lambda x: x[1], (A,)),
    "slice": Case(lambda x: x[1:4:2, ::-1], (A,)),
    "take": Case(lambda x: arrays.take(x, [2, 0, 2], 0), (A,)),
    "pad": Case(lambda x: arrays.pad(x, [(1, 2), (0, 3)]), (A,)),
    "squeeze": Case(lambda x: arrays.squeeze(x, 1), (RNG.normal(size=(4, 1, 3)),)),
    "broadcasting": Case(lambda x, y, z: x * y + z, (A, V, RNG.normal(size=(4, 1)))),
    "where": Case(lambda x, y: np.where(FLAGS, x * y, x - y), (A, B)),
    "solve": Case(arrays.solve, (SQUARE, A)),
    "solve for a vector": Case(arrays.solve, (SQUARE, U)),
    "inv": Case(arrays.inv, (SQUARE,)),
    "det": Case(arrays.det, (SQUARE,)),
    "cofactor": Case(arrays.cofactor, (SQUARE,)),
    "logdet": Case(arrays.logdet, (SYMMETRIC,)),
    "cholesky": Case(arrays.cholesky, (SYMMETRIC,)),
    "expm": Case(arrays.expm, (np.stack([WAVES, 2.0 * WAVES.T]),)),
    "expm_frechet": Case(arrays.expm_frechet, (WAVES, np.cos(WAVES))),
    "eigh": Case(lambda x: joined(np, arrays.eigh(x)), (SYMMETRIC,)),
    "eigvalsh": Case(arrays.eigvalsh, (SYMMETRIC,)),
    "svd": Case(lambda x: joined(np, arrays.svd(x)), (A,)),
    "svd of a wide matrix": Case(lambda x: joined(np, arrays.svd(x)), (C,)),
    "svdvals": Case(arrays.svdvals, (C,)),
    "qr": Case(lambda x: joined(np, arrays.qr(x)), (A,)),
    "qr of a wide matrix": Case(lambda x: joined(np, arrays.qr(x)), (C,)),
    "qr of a stack": Case(lambda x: joined(np, arrays.qr(x)), (RNG.normal(size=(2, 4, 3)),)),
    "slogdet": Case(lambda x: arrays.slogdet(x)[1], (SQUARE[[1, 0, 2, 3]],)),
    "pinv": Case(arrays.pinv, (A,)),
    "lstsq": Case(lambda a, b: arrays.lstsq(a, b)[0], (A, B)),
    "matrix_power": Case(lambda x: arrays.matrix_power(x, 5), (SQUARE,)),
    "matrix_power of an inverse": Case(lambda x: arrays.matrix_power(x, -3), (SQUARE,)),
    "multi_dot": Case(lambda *x: arrays.multi_dot(x), (U, A, C, RNG.normal(size=(5, 2)))),
    "norm_of_order": Case(lambda x: arrays.norm_of_order(x, 3, 1), (A,)),
    **{
        f"norm of order {order}": Case(lambda x, order=order: arrays.norm_of_order(x, order), (A,))
        for order in MATRIX_ORDERS
    },
    **{
        f"norm of order {order} along an axis": Case(
            lambda x, order=order: arrays.norm_of_order(x, order, 0, keepdims=True), (A,)
        )
        for order in VECTOR_ORDERS
    },
    "trace": Case(arrays.trace, (SQUARE,)),
    "diag": Case(arrays.diag, (V,)),
    "diagonal": Case(arrays.diagonal, (SQUARE,)),
    "conv2d": Case(arrays.conv2d, (IMAGE, FILTER, BIAS)),
    "conv2d in strides": Case(
        lambda x, w: arrays.conv2d(x, w, stride=2, padding=1), (IMAGE, FILTER)
    ),
    "conv2d dilated and padded unevenly": Case(
        lambda x, w: arrays.conv2d(x, w, None, (2, 1), (1, 2), (2, 3)), (IMAGE, FILTER)
    ),
    "conv2d in groups": Case(
        lambda x, w, b: arrays.conv2d(x, w, b, groups=3, dilation=2, padding=1),
        (IMAGE, RNG.normal(size=(6, 1, 2, 2)), RNG.normal(size=6)),
    ),
    "conv1d": Case(
        lambda x, w, b: arrays.conv1d(x, w, b, 2, 3, 2, 2),
        (RNG.normal(size=(2, 4, 9)), RNG.normal(size=(6, 2, 3)), RNG.normal(size=6)),
    ),
    "avg_pool": Case(lambda x: arrays.avg_pool(x, (3, 2), 2), (IMAGE,)),
    "batch_norm in use": Case(
        lambda x, w, b, m, v: arrays.batch_norm(x, w, b, 1e-3, m, v),
        (IMAGE, V, RNG.normal(size=3), RNG.normal(size=3), RNG.normal(size=3) ** 2),
    ),
    "running_statistics": Case(
        lambda x, m, v: arrays.stack(arrays.running_statistics(x, m, v, 0.3)),
        (IMAGE, RNG.normal(size=3), RNG.normal(size=3) ** 2),
    ),
    "max_pool": Case(lambda x: arrays.max_pool(x, 2), (IMAGE,)),
    "max_pool in strides": Case(lambda x: arrays.max_pool(x, 3, 2), (IMAGE,)),
    "batch_norm": Case(arrays.batch_norm, (IMAGE, V, RNG.normal(size=3))),
    "layer_norm": Case(arrays.layer_norm, (A, V, RNG.normal(size=3))),
    "leaky_relu": Case(arrays.leaky_relu, (A,)),
    "gelu": Case(arrays.gelu, (3 * A,)),
    "mse": Case(arrays.mse, (A, B)),
    "cross_entropy": Case(lambda x: arrays.cross_entropy(x, CLASSES), (300 * A,)),
    "cross_entropy of shares": Case(lambda x: arrays.cross_entropy(x, SHARES), (3 * A,)),
}

# Positions have no derivative: values alone are compared.
WITHOUT_DERIVATIVE = {"argmax", "argsort", "matrix_rank"}

SMALL, BIG = np.linspace(0.15, 0.95, 9), np.linspace(1.1, 3.0, 9)
CASES |= {
    name: Case(getattr(arrays, name), (BIG if name in ("asec", "acsc", "acoth") else SMALL,))
    for name in trigonometric.__all__
}


def reciprocal(xp: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions of `arrays.trigonometric` by their definitions over an array module."""
    return {
        "sec": lambda x: 1 / xp.cos(x),
        "csc": lambda x: 1 / xp.sin(x),
        "cot": lambda x: 1 / xp.tan(x),
        "csch": lambda x: 1 / xp.sinh(x),
        "coth": lambda x: 1 / xp.tanh(x),
        "asec": lambda x: xp.arccos(1 / x),
        "acsc": lambda x: xp.arcsin(1 / x),
        "acot": lambda x: xp.arctan(1 / x),
        "asech": lambda x: xp.arccosh(1 / x),
        "acsch": lambda x: xp.arcsinh(1 / x),
        "acoth": lambda x: xp.arctanh(1 / x),
    }


def _row(name: str) -> Case:
    row, draw = primitives.TABLE[name], generator(name)
    return Case(row, tuple(draw.uniform(low, high, 9) for low, high in row.samples))


# Rows on numbers, on the domains that the table gives, by the name that they have in the table.
ROWS = {
    name: _row(name)
    for name, row in primitives.TABLE.items()
    if row.samples and len(row.samples) == row.arity and not row.boolean
}


def by_name(module: Any, names: str) -> dict[str, Callable[..., Any]]:
    """Return a peer's functions that are named as difflab's rows."""
    return {name: getattr(module, name) for name in names.split()}


def weights_like(result: Any) -> np.ndarray:
    return np.random.default_rng(13).normal(size=np.shape(result))


def ours(case: Case) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the value and the derivatives of its weighted sum; eager and traced must agree."""
    value = np.asarray(case.ours(*case.values))
    weights = weights_like(value)

    def weighted(*values: Any) -> Any:
        return np.sum(case.ours(*values) * weights)

    traced = dl.grad(weighted, tuple(range(len(case.values))))(*case.values)
    leaves = [dl.tensor(each, requires_grad=True) for each in case.values]
    weighted(*leaves).backward()
    for leaf, slope in zip(leaves, traced, strict=True):
        np.testing.assert_allclose(leaf.grad.numpy(), slope, rtol=1e-14, atol=1e-15)
    return value, [np.asarray(slope) for slope in traced]


Found = tuple[np.ndarray, list[np.ndarray]]


def agree(found: Found, theirs: Found, rtol: float = 1e-12) -> None:
    """Hold the value and every derivative to a peer's."""
    assert found[0].shape == theirs[0].shape
    for one, other in zip((found[0], *found[1]), (theirs[0], *theirs[1]), strict=True):
        assert one.shape == other.shape
        assert_close(one, other, rtol)


def assert_close(found: Any, expected: Any, rtol: float = 1e-12) -> None:
    """Hold every number to `rtol` of itself, and sums of many to that of the largest beside it."""
    expected = np.asarray(expected)
    largest = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-14 * largest)


# Where derivatives have to be chosen, or where the peers give nan for what has one: the code, the
# point, and what difflab says.
ZERO = np.array(0.0)
CHOICES: dict[str, tuple[Case, list[Any]]] = {
    "relu at 0": (Case(primitives.relu, (ZERO,)), [0.0]),
    "abs at 0": (Case(primitives.absolute, (ZERO,)), [0.0]),
    "leaky_relu at 0": (Case(arrays.leaky_relu, (ZERO,)), [0.01]),
    "clip at a bound": (Case(lambda x: np.clip(x, 0.0, 1.0), (ZERO + 1,)), [1.0]),
    "maximum of equals": (Case(primitives.maximum, (ZERO, ZERO)), [0.0, 1.0]),
    "minimum of equals": (Case(primitives.minimum, (ZERO, ZERO)), [0.0, 1.0]),
    "max of equals": (Case(arrays.max, (np.array([1.0, 3.0, 3.0]),)), [[0.0, 0.0, 1.0]]),
    "max_pool of equals": (
        Case(lambda x: arrays.sum(arrays.max_pool(x, 2)), (np.ones((1, 1, 2, 2)),)),
        [[[[[0.0, 0.0], [0.0, 1.0]]]]],
    ),
    "norm at 0": (Case(arrays.norm, (np.zeros(2),)), [[0.0, 0.0]]),
    "hypot at 0": (Case(primitives.hypot, (ZERO, ZERO)), [0.0, 0.0]),
    "a branch not taken": (
        Case(lambda x: np.where(x > 0, np.sqrt(x), 0.0), (ZERO,)),
        [0.0],
    ),
    "log below 0": (Case(primitives.log, (ZERO - 1,)), [np.nan]),
    "det of a singular matrix": (
        Case(arrays.det, (np.array([[1.0, 2.0], [2.0, 4.0]]),)),
        [[[4.0, -2.0], [-2.0, 1.0]]],
    ),
    "a product of zeros": (Case(arrays.prod, (np.array([0.0, 2.0, 3.0]),)), [[6.0, 0.0, 0.0]]),
    "0 to the power 2": (Case(primitives.power, (ZERO, ZERO + 2)), [0.0, 0.0]),
}


def choice(name: str) -> list[Any]:
    """Return difflab's derivatives where they are chosen; they must be those that are stated."""
    case, stated = CHOICES[name]
    slopes = dl.grad(case.ours, tuple(range(len(case.values))))(*case.values)
    found = [np.asarray(slope).tolist() for slope in slopes]
    for one, other in zip(found, stated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15, atol=1e-15)
    return stated
