"""Array programs at one point, against NumPy written by hand and the evaluator of the graph."""

from __future__ import annotations

import itertools
import math
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import difflab as dl
from difflab.errors import PointError
from difflab.execute.lower.arrays import source
from difflab.execute.lower.arrays.lowering import lowered
from difflab.execute.lower.ops import OpForm
from difflab.execute.lower.schedule import Schedule
from difflab.execute.targets.numpy.target import ArrayTarget
from difflab.graph.pytree import flatten

Array = NDArray[np.float64]
SIZES = ((1, 4, 8, 1), (16, 10, 32, 1), (64, 30, 20, 10))


def perceptron(size: tuple[int, ...]) -> tuple[dl.Function, Array, Array, list[Array]]:
    """Return loss and gradient of a network with one hidden layer, its data and parameters."""
    samples, inputs, hidden, outputs = size
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(samples, inputs)), rng.normal(size=(samples, outputs))
    shapes = [(inputs, hidden), (hidden,), (hidden, outputs), (outputs,)]
    p = [rng.normal(size=shape) for shape in shapes]

    def loss(W1: Any, b1: Any, W2: Any, b2: Any) -> Any:
        return np.mean((np.maximum(X @ W1 + b1, 0) @ W2 + b2 - Y) ** 2)

    return dl.value_and_grad(dl.trace(loss, *p), argnums=(0, 1, 2, 3)), X, Y, p


def by_hand(X: Array, Y: Array, W1: Array, b1: Array, W2: Array, b2: Array) -> list[Any]:
    z = X @ W1 + b1
    a = np.maximum(z, 0)
    e = a @ W2 + b2 - Y
    de = e * (2 / e.size)
    dz = (de @ W2.T) * (z > 0)
    return [np.mean(e * e), X.T @ dz, dz.sum(0), a.T @ de, de.sum(0)]


@pytest.mark.parametrize("size", SIZES)
def test_a_network_agrees_with_its_gradient_written_by_hand(size: tuple[int, ...]) -> None:
    f, X, Y, p = perceptron(size)
    fast = dl.compile(f)
    for _ in range(2):
        value, gradients = fast(*p)
        expected = by_hand(X, Y, *p)
        assert type(value) is float
        for found, wanted in zip([value, *gradients], expected, strict=True):
            assert np.shape(found) == np.shape(wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
        p = [q * 0.5 for q in p]


def test_a_network_takes_no_more_operations_than_by_hand() -> None:
    # X @ W1, + b1, max, @ W2, + b2, − Y, e·e, Σ, /n, ·2/n, @ W2ᵀ, z > 0, the branch not taken
    # (three operations on bits), Xᵀ @ dz, Σ dz, aᵀ @ de, Σ de.
    f, *_ = perceptron(SIZES[2])
    ops = [op for op in lowered(Schedule.of(f)).ops if op.form != OpForm.VIEW]
    assert len(ops) == 19
    assert sum(op.form == OpForm.PRODUCT for op in ops) == 5
    assert all(op.form != OpForm.KERNEL for op in ops)


def test_results_are_fresh_and_inputs_are_left_alone() -> None:
    f, _, _, p = perceptron(SIZES[1])
    fast = dl.compile(f)
    kept = [q.copy() for q in p]
    first = flatten(fast(*p))[0]
    copies = [np.copy(value) for value in first]
    for other in (f(*p), fast(*[q + 1 for q in p]), fast(*p)):
        for left in first[1:]:
            assert not any(np.shares_memory(left, right) for right in flatten(other)[0][1:])
    for value, copy in zip(first, copies, strict=True):
        np.testing.assert_array_equal(value, copy)
    for array in first[1:]:
        array[...] = math.nan
    for value, copy in zip(flatten(fast(*p))[0], copies, strict=True):
        np.testing.assert_array_equal(value, copy)
    for q, copy in zip(p, kept, strict=True):
        np.testing.assert_array_equal(q, copy)


def outputs_of_all_kinds(x: Any) -> list[Any]:
    y = np.exp(x)
    two = 2 * np.ones(3) + 0 * x
    z = np.cumsum(x, axis=1)  # by a kernel, which allocates its result
    views = [x, x, x.T, y, y, np.reshape(y, -1), two, y[0], y[0, 0]]
    return [*views, np.sum(y, 0), y @ x.T, z, z, np.reshape(z, -1)]


def test_no_two_outputs_share_memory() -> None:
    x = np.arange(6.0).reshape(2, 3)
    fast = dl.compile(dl.trace(outputs_of_all_kinds, x))
    found = fast(x)
    for value, wanted in zip(found, outputs_of_all_kinds(x), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-15)
    held = [x, *(value for value in found if isinstance(value, np.ndarray))]
    for place, left in enumerate(held):
        assert not any(np.shares_memory(left, right) for right in held[place + 1 :])
        assert left.flags.writeable


def test_threads_of_the_user_do_not_share_buffers() -> None:
    f, X, Y, p = perceptron((64, 30, 50, 10))
    fast = dl.compile(f)
    points = [[q * (1 + k) for q in p] for k in range(4)]
    expected = [by_hand(X, Y, *point) for point in points]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(200):
            found = flatten(fast(*points[k]))[0]
            if not all(np.allclose(a, b) for a, b in zip(found, expected[k], strict=True)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_branch_not_taken_is_zero_whatever_is_in_it() -> None:
    x = np.array([[0.0, 4.0], [-1.0, math.nan]])

    def loss(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(x), 0.0))

    def other(x: Any) -> Any:
        return np.sum(np.where(x > 0, 0.0, 1 / x))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dl.compile(dl.grad(dl.trace(loss, x)))(x)
        np.testing.assert_array_equal(found, [[0.0, 0.25], [0.0, 0.0]])
        assert not np.any(np.signbit(found))
        found = dl.compile(dl.grad(dl.trace(other, x)))(x)
        np.testing.assert_array_equal(found, [[-math.inf, 0.0], [-1.0, math.nan]])


def test_undefined_values_pass_as_in_numpy_without_a_warning() -> None:
    x = np.array([-1.0, 0.0, 1e200, math.inf])
    f = dl.trace(lambda x: [np.log(x), x * x, 1 / x, np.sum(x) / np.min(np.abs(x))], x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dl.compile(f)(x)
    with np.errstate(all="ignore"):
        for value, wanted in zip(found, [np.log(x), x * x, 1 / x, math.inf], strict=True):
            np.testing.assert_array_equal(value, wanted)
    assert np.geterr()["divide"] == "warn"


@pytest.mark.parametrize(
    "shapes",
    [((1, 1), (1, 3)), ((3, 1), (1, 1)), ((1,), (1, 3)), ((1,), (1,)), ((1, 1), (1, 1))],
)
def test_products_by_one_element_are_those_of_matmul(shapes: tuple[tuple[int, ...], ...]) -> None:
    """Of every two values at the edges: 0 times inf is nan, and no sum is -0.0."""
    f = dl.trace(
        lambda x, y: [x @ y, np.swapaxes(y, 0, -1) @ np.swapaxes(x, 0, -1)],
        *map(np.ones, shapes),
    )
    fast = dl.compile(f, target="numpy")
    edges = (0.0, -0.0, 1.0, -1.5, 5e-324, -1e308, math.inf, -math.inf, math.nan)
    for one, other in itertools.product(edges, repeat=2):
        left, right = np.full(shapes[0], one), np.full(shapes[1], other)
        with np.errstate(all="ignore"):
            wanted = [left @ right, np.swapaxes(right, 0, -1) @ np.swapaxes(left, 0, -1)]
        for value, exact in zip(fast(left, right), wanted, strict=True):
            np.testing.assert_array_equal(value, exact)
            assert np.all((np.signbit(value) == np.signbit(exact)) | np.isnan(exact))


def test_factors_are_gathered_only_where_no_digit_changes() -> None:
    x = np.concatenate([np.random.default_rng(3).normal(size=100), [1e-310, 1e307]])
    f = dl.trace(lambda x: [0.25 * (2 * x), 0.1 * (3 * x), 0.1 * (2 * x)], x)
    found = dl.compile(f)(x)
    for value, wanted in zip(found, [0.5 * x, 0.1 * (3 * x), 0.2 * x], strict=True):
        np.testing.assert_array_equal(value, wanted)
    assert np.any(found[1] != (0.1 * 3) * x)
    assert sum(op.form == OpForm.UFUNC for op in lowered(Schedule.of(f)).ops) == 4


def test_few_products_are_summed_without_an_array_of_them() -> None:
    x = np.random.default_rng(3).normal(size=(7, 9))
    f = dl.trace(lambda x: [np.sum(x * x), np.sum(x * np.sin(x), axis=1)], x)
    assert [op.form for op in lowered(Schedule.of(f)).ops] == [
        OpForm.INNER,
        OpForm.UFUNC,
        OpForm.ALONG,
    ]
    total, rows = dl.compile(f)(x)
    assert total == pytest.approx(math.fsum((x * x).ravel()), rel=1e-14)
    np.testing.assert_allclose(rows, (x * np.sin(x)).sum(1), rtol=1e-13)


UNARY: list[Callable[[Any], Any]] = [
    np.exp,
    np.tanh,
    np.abs,
    lambda x: np.maximum(x, 0.0),
    lambda x: np.where(x > 0, 0.0, x * x),
    lambda x: np.where(x > 0.1, x, -x),
    lambda x: 0.5 * (2 * x),
    lambda x: x**3,
    lambda x: 1 / (1 + x * x),
]
REDUCED: list[Callable[[Any, Any], Any]] = [
    lambda x, axis: np.sum(x, axis=axis),
    lambda x, axis: np.mean(x * x, axis=axis),
    lambda x, axis: np.max(x, axis=axis),
    lambda x, axis: np.prod(x, axis=axis),
    lambda x, axis: np.log(np.sum(np.exp(x), axis=axis)),
]


def random_program(seed: int) -> Callable[..., list[Any]]:
    def program(*inputs: Any) -> list[Any]:
        rng = np.random.default_rng(seed)
        values = list(inputs)
        while len(values) < 12:
            x, y = values[rng.integers(len(values))], values[rng.integers(len(values))]
            kind = rng.integers(10) if len(x.shape) else rng.integers(4)
            axis = int(rng.integers(len(x.shape))) if len(x.shape) else None
            try:
                values.append(_next(kind, rng, x, y, axis))
            except (dl.errors.DifflabError, ValueError):
                continue
        return [*values[-3:], values[5]]

    return program


def _next(kind: int, rng: np.random.Generator, x: Any, y: Any, axis: int | None) -> Any:
    if kind < 3:
        return UNARY[rng.integers(len(UNARY))](x)
    if kind == 3:
        return x + y if rng.random() < 0.5 else x * y
    if kind == 4:
        return REDUCED[rng.integers(len(REDUCED))](x, None if rng.random() < 0.3 else axis)
    if kind == 5:
        return x.T if rng.random() < 0.5 else x[..., None] * np.ones(2)
    if kind == 6:
        return x[0] if rng.random() < 0.5 else x[..., ::-1]
    if kind == 7:
        return np.reshape(x, -1) if rng.random() < 0.5 else np.reshape(x, x.shape[::-1])
    if kind == 8:
        return np.concatenate([x, 0.5 * x], axis=axis or 0)
    return x @ y


@pytest.mark.parametrize("piece", [source._PIECE, 3])
def test_random_programs_agree_with_the_evaluator(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_PIECE", piece)
    rng = np.random.default_rng(7)
    inputs = [rng.normal(size=shape) for shape in [(3, 4), (4,), (4, 2), (1, 4), ()]]
    for seed in range(25):
        f = dl.trace(random_program(seed), *inputs)
        total = dl.trace(lambda *a, s=seed: sum(np.sum(v) for v in random_program(s)(*a)), *inputs)
        for g in (f, dl.value_and_grad(total, argnums=tuple(range(5)))):
            target = ArrayTarget(Schedule.of(g))
            for scale in (1.0, 0.7):
                values = [scale * value for value in inputs]
                compare(target(values), flatten(g(*values))[0], seed)


def compare(found: Sequence[Any], expected: Sequence[Any], seed: int) -> None:
    for value, wanted in zip(found, expected, strict=True):
        assert np.shape(value) == np.shape(wanted), seed
        size = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1.0)
        np.testing.assert_allclose(value, wanted, rtol=1e-11, atol=1e-13 * size, err_msg=str(seed))


def test_parts_of_arrays_are_placed_and_added_up() -> None:
    def program(x: Any, y: Any) -> Any:
        return np.sum(x[:3] * x[1:]) + np.sum(x[::-1] ** 3) * y + x[2] * np.exp(x[2])

    x, y = np.array([1.0, -2.0, 0.5, 3.0]), 2.0
    f = dl.trace(program, x, y)
    slope = 3 * x**2 * y
    slope[:3] += x[1:]
    slope[1:] += x[:3]
    slope[2] += (1 + x[2]) * math.exp(x[2])
    packed = dl.compile(dl.gradient(f))
    assert not any(op.form == OpForm.KERNEL for op in lowered(Schedule.of(dl.gradient(f))).ops)
    np.testing.assert_allclose(packed(x, y), [*slope, np.sum(x**3)], rtol=1e-14)
    np.testing.assert_allclose(dl.compile(dl.grad(f))(x, y), slope, rtol=1e-14)
    reverse = dl.grad(dl.trace(lambda x: np.sum(np.exp(x[::-1]) * np.arange(4.0)), x))
    np.testing.assert_allclose(dl.compile(reverse)(x), np.exp(x) * np.arange(4.0)[::-1])


def test_large_programs_come_in_pieces() -> None:
    def steps(x: Any) -> Any:
        for _ in range(source._PIECE):
            x = np.sin(x) + 0.1
        return np.sum(x)

    x = np.linspace(0, 1, 5)
    f = dl.trace(steps, x)
    fast = dl.compile(f)
    assert fast.source.count("def piece") == 3
    assert fast(x) == pytest.approx(float(f(x)), rel=1e-14)


def test_arrays_are_checked_before_they_are_taken() -> None:
    f, X, Y, p = perceptron(SIZES[0])
    fast = dl.compile(f)
    expected = by_hand(X, Y, *p)
    names = dict(zip(f.inputs, p, strict=True))
    for given in (fast(**names), fast(*[q.tolist() for q in p]), fast(*[q.T.copy().T for q in p])):
        np.testing.assert_allclose(given[1][0], expected[1], rtol=1e-13)
    for wrong in ([p[0].T, *p[1:]], [p[0][:, :3], *p[1:]], p[:3], [*p, p[0]]):
        with pytest.raises(PointError):
            fast(*wrong)
    batch = fast(*[np.stack([q, 2 * q]) for q in p])
    np.testing.assert_allclose(batch[1][2][1], by_hand(X, Y, *[2 * q for q in p])[3], rtol=1e-12)


def test_results_come_in_the_structure_of_the_function() -> None:
    x = np.ones((2, 2))
    f = dl.trace(lambda x: [x @ x, np.sum(x)], x)
    for tree in ({"a": [0, None], "b": (0,)}, [(0, None), 0], (0, [0])):
        found = dl.compile(replace(f, structure=flatten(tree)[1]))(x)
        leaves, structure = flatten(found)
        assert structure == flatten(tree)[1]
        np.testing.assert_array_equal(leaves[0], 2 * x)
        assert leaves[1] == 4.0


def test_a_call_allocates_its_results_only() -> None:
    f, _, _, p = perceptron((200, 50, 200, 10))
    fast = dl.compile(f)
    size = sum(np.asarray(result).nbytes for result in flatten(fast(*p))[0])
    tracemalloc.start()
    try:
        fast(*p)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size <= peak < size + 10_000
