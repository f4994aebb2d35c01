"""First and second derivatives are JAX's, and where the two choose differently it is said."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import arrays
from tests.support.cases import (
    CASES,
    CHOICES,
    CLASSES,
    FLAGS,
    MATRIX_ORDERS,
    PLACES,
    ROWS,
    SHARES,
    VECTOR_ORDERS,
    Case,
    agree,
    by_name,
    choice,
    joined,
    ours,
    reciprocal,
    recurrence,
    weights_like,
)
from tests.support.rows import for_each

jax = pytest.importorskip("jax", reason="needs JAX: pip install 'difflab[peers]'")
jax.config.update("jax_enable_x64", True)
jnp, nn, lax, special = jax.numpy, jax.nn, jax.lax, jax.scipy.special


def conv(x: Any, w: Any, stride: int = 1, padding: int = 0) -> Any:
    return lax.conv(jnp.pad(x, [(0, 0)] * 2 + [(padding, padding)] * 2), w, (stride,) * 2, "VALID")


def pool(x: Any, size: int, stride: int) -> Any:
    window, steps = (1, 1, size, size), (1, 1, stride, stride)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, steps, "VALID")


def normalised(x: Any, axes: Any) -> Any:
    return nn.standardize(x, axis=axes, epsilon=1e-5)


THEIRS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(0),
    "prod": lambda x: x.prod(1),
    "mean": lambda x: x.mean(-1),
    "max": lambda x: x.max(1),
    "min": lambda x: x.min(),
    "norm": jnp.linalg.norm,
    "norm along an axis": lambda x: jnp.linalg.norm(x, axis=1),
    "logsumexp": lambda x: nn.logsumexp(x, 1),
    "softmax": nn.softmax,
    "softmax along the first axis": lambda x: nn.softmax(x, 0),
    "log_softmax": nn.log_softmax,
    "cumsum": lambda x: jnp.cumsum(x, 0),
    "cumprod": lambda x: jnp.cumprod(x, 0),
    "linear_recurrence": lambda a, b: recurrence(jnp, a, b),
    "sort": lambda x: jnp.sort(x, 0),
    "take_along_axis": lambda x: jnp.take_along_axis(x, PLACES, 0),
    "convolve": jnp.convolve,
    "correlate": jnp.correlate,
    "dot": jnp.dot,
    "matmul": jnp.matmul,
    "matmul of stacks": jnp.matmul,
    "matmul with a vector": jnp.matmul,
    "outer": jnp.outer,
    "einsum": lambda *x: jnp.einsum("ij,jk,k->i", *x),
    "einsum of stacks": lambda *x: jnp.einsum("bij,bkj->bik", *x),
    "transpose": lambda x: x.transpose(2, 0, 1),
    "reshape": lambda x: x.reshape(2, 6),
    "ravel": jnp.ravel,
    "broadcast_to": lambda x: jnp.broadcast_to(x, (4, 3)),
    "concatenate": lambda *x: jnp.concatenate(x, 1),
    "stack": lambda *x: jnp.stack(x, 1),
    "index": lambda x: x[1],
    "slice": lambda x: x[1:4:2, ::-1],
    "take": lambda x: x[jnp.array([2, 0, 2])],
    "pad": lambda x: jnp.pad(x, [(1, 2), (0, 3)]),
    "squeeze": lambda x: x.squeeze(1),
    "broadcasting": lambda x, y, z: x * y + z,
    "where": lambda x, y: jnp.where(FLAGS, x * y, x - y),
    "solve": jnp.linalg.solve,
    "solve for a vector": jnp.linalg.solve,
    "inv": jnp.linalg.inv,
    "det": jnp.linalg.det,
    "cofactor": lambda x: jnp.linalg.det(x) * jnp.linalg.inv(x).T,
    "logdet": lambda x: jnp.linalg.slogdet(x)[1],
    "cholesky": jnp.linalg.cholesky,
    "expm": jax.scipy.linalg.expm,
    "expm_frechet": lambda a, e: jax.jvp(jax.scipy.linalg.expm, (a,), (e,))[1],
    "eigh": lambda x: joined(jnp, jnp.linalg.eigh(x)),
    "eigvalsh": jnp.linalg.eigvalsh,
    "svd": lambda x: joined(jnp, jnp.linalg.svd(x, full_matrices=False)),
    "svd of a wide matrix": lambda x: joined(jnp, jnp.linalg.svd(x, full_matrices=False)),
    "svdvals": jnp.linalg.svdvals,
    "qr": lambda x: joined(jnp, jnp.linalg.qr(x)),
    "qr of a wide matrix": lambda x: joined(jnp, jnp.linalg.qr(x)),
    "qr of a stack": lambda x: joined(jnp, jnp.linalg.qr(x)),
    "slogdet": lambda x: jnp.linalg.slogdet(x)[1],
    "pinv": jnp.linalg.pinv,
    "lstsq": lambda a, b: jnp.linalg.lstsq(a, b)[0],
    "matrix_power": lambda x: jnp.linalg.matrix_power(x, 5),
    "matrix_power of an inverse": lambda x: jnp.linalg.matrix_power(x, -3),
    "multi_dot": lambda *x: jnp.linalg.multi_dot(x),
    "norm_of_order": lambda x: jnp.linalg.norm(x, 3, 1),
    **{
        f"norm of order {order}": lambda x, order=order: jnp.linalg.norm(x, order)
        for order in MATRIX_ORDERS
    },
    **{
        f"norm of order {order} along an axis": lambda x, order=order: jnp.linalg.norm(
            x, order, 0, keepdims=True
        )
        for order in VECTOR_ORDERS
    },
    "trace": jnp.trace,
    "diag": jnp.diag,
    "diagonal": jnp.diagonal,
    "conv2d": lambda x, w, b: conv(x, w) + b[:, None, None],
    "conv2d in strides": lambda x, w: conv(x, w, 2, 1),
    "conv2d dilated and padded unevenly": lambda x, w: lax.conv_general_dilated(
        x, w, (2, 1), [(1, 1), (2, 2)], rhs_dilation=(2, 3)
    ),
    "conv2d in groups": lambda x, w, b: (
        lax.conv_general_dilated(
            x, w, (1, 1), [(1, 1)] * 2, rhs_dilation=(2, 2), feature_group_count=3
        )
        + b[:, None, None]
    ),
    "conv1d": lambda x, w, b: (
        lax.conv_general_dilated(x, w, (2,), [(3, 3)], rhs_dilation=(2,), feature_group_count=2)
        + b[:, None]
    ),
    "avg_pool": lambda x: (
        lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 2), (1, 1, 2, 2), "VALID") / 6
    ),
    "batch_norm in use": lambda x, w, b, m, v: (
        (x - m[:, None, None]) / jnp.sqrt(v + 1e-3)[:, None, None] * w[:, None, None]
        + b[:, None, None]
    ),
    "running_statistics": lambda x, m, v: jnp.stack(
        [0.7 * m + 0.3 * x.mean((0, 2, 3)), 0.7 * v + 0.3 * x.var((0, 2, 3), ddof=1)]
    ),
    "max_pool": lambda x: pool(x, 2, 2),
    "max_pool in strides": lambda x: pool(x, 3, 2),
    "batch_norm": lambda x, w, b: normalised(x, (0, 2, 3)) * w[:, None, None] + b[:, None, None],
    "layer_norm": lambda x, w, b: normalised(x, -1) * w + b,
    "leaky_relu": nn.leaky_relu,
    "gelu": lambda x: nn.gelu(x, approximate=False),
    **reciprocal(jnp),
    "mse": lambda x, y: jnp.mean((x - y) ** 2),
    "cross_entropy": lambda x: -jnp.mean(nn.log_softmax(x)[jnp.arange(4), jnp.array(CLASSES)]),
    "cross_entropy of shares": lambda x: -jnp.sum(SHARES * nn.log_softmax(x)) / 4,
}

ON_NUMBERS: dict[str, Callable[..., Any]] = {
    "absolute": jnp.abs,
    "cbrt": jnp.cbrt,
    "clip": jnp.clip,
    "digamma": special.digamma,
    "erf": special.erf,
    "erfc": special.erfc,
    "gamma": special.gamma,
    "loggamma": special.gammaln,
    "mod": jnp.mod,
    "power": jnp.power,
    "relu": nn.relu,
    "sigmoid": nn.sigmoid,
    "softplus": nn.softplus,
    **by_name(
        jnp,
        "acos acosh add asin asinh atan atan2 atanh ceil cos cosh divide exp exp2 expm1 floor hypot"
        " log log10 log1p log2 logaddexp maximum minimum multiply negative round sign sin sinh sqrt"
        " subtract tan tanh",
    ),
}


def theirs(function: Callable[..., Any], case: Case) -> tuple[np.ndarray, list[np.ndarray]]:
    def pulled(*values: Any) -> Any:
        result, back = jax.vjp(function, *values)
        return result, back(jnp.asarray(weights_like(result)))

    # Compiled as a whole: one operation after the other costs half as much again.
    result, slopes = jax.jit(pulled)(*map(jnp.asarray, case.values))
    return np.asarray(result), [np.asarray(slope) for slope in slopes]


@for_each("name", CASES)
def test_array_functions_agree(name: str) -> None:
    agree(ours(CASES[name]), theirs(THEIRS[name], CASES[name]))


@for_each("name", ON_NUMBERS)
def test_rows_agree(name: str) -> None:
    agree(ours(ROWS[name]), theirs(ON_NUMBERS[name], ROWS[name]))


@for_each("name", CASES)
def test_hessian_vector_products_agree(name: str) -> None:
    case = CASES[name]
    rng = np.random.default_rng(17)
    directions = tuple(rng.normal(size=value.shape) for value in case.values)
    weights = weights_like(case.ours(*case.values))
    places = tuple(range(len(case.values)))

    def weighted(*values: Any) -> Any:
        # Squared, so that what is linear has a second derivative too.
        return np.sum(case.ours(*values) ** 2 * weights) / 2

    def weighted_jax(*values: Any) -> Any:
        return jnp.sum(THEIRS[name](*values) ** 2 * weights) / 2

    _, found = dl.jvp(dl.grad(weighted, places), case.values, directions)
    values = tuple(map(jnp.asarray, case.values))
    gradient = jax.grad(weighted_jax, places)
    _, expected = jax.jit(partial(jax.jvp, gradient))(values, directions)
    largest = max(float(jnp.abs(each).max()) for each in expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12 * largest)


# At ties JAX shares the derivative out, also at the bounds of clip, and in hypot at the origin;
# there norm gives nan, and so does a branch that is not taken with an infinite slope. At 0 it goes
# on from the right in abs and leaky_relu. It differentiates the logarithm where there is none.
OTHERWISE: dict[str, list[Any]] = {
    "abs at 0": [1.0],
    "leaky_relu at 0": [1.0],
    "clip at a bound": [0.5],
    "maximum of equals": [0.5, 0.5],
    "minimum of equals": [0.5, 0.5],
    "max of equals": [[0.0, 0.5, 0.5]],
    "max_pool of equals": [[[[[1.0, 0.0], [0.0, 0.0]]]]],
    "norm at 0": [[np.nan, np.nan]],
    "hypot at 0": [0.5, 0.5],
    "a branch not taken": [np.nan],
    "log below 0": [-1.0],
}
CHOOSING: dict[str, Callable[..., Any]] = {
    "relu at 0": nn.relu,
    "abs at 0": jnp.abs,
    "leaky_relu at 0": nn.leaky_relu,
    "clip at a bound": lambda x: jnp.clip(x, 0.0, 1.0),
    "maximum of equals": jnp.maximum,
    "minimum of equals": jnp.minimum,
    "max of equals": jnp.max,
    "max_pool of equals": lambda x: pool(x, 2, 2).sum(),
    "norm at 0": jnp.linalg.norm,
    "hypot at 0": jnp.hypot,
    "a branch not taken": lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0),
    "log below 0": jnp.log,
    "det of a singular matrix": jnp.linalg.det,
    "a product of zeros": jnp.prod,
    "0 to the power 2": jnp.power,
}


@for_each("name", CHOICES)
def test_choices_are_jaxs_or_named(name: str) -> None:
    values = CHOICES[name][0].values
    slopes = jax.grad(CHOOSING[name], tuple(range(len(values))))(*map(jnp.asarray, values))
    found = choice(name)
    np.testing.assert_equal([slope.tolist() for slope in slopes], OTHERWISE.get(name, found))
    assert name not in OTHERWISE or OTHERWISE[name] != found


def test_argmax_agrees() -> None:
    x = np.array([[1.0, 3.0, 2.0], [5.0, 4.0, 0.0]])
    assert arrays.argmax(x, 1).tolist() == jnp.argmax(x, 1).tolist()
