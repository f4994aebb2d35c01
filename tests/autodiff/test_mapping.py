"""vmap against loops, alone and inside and around derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, ShapeError, TraceError
from tests.support.rows import for_each

A = np.arange(6.0).reshape(2, 3)
V = np.array([1.0, -2.0, 0.5])


def dot(a, b):
    return np.sum(a * b)


def test_products_of_matrices_from_products_of_vectors() -> None:
    matrix_vector = dl.vmap(dot, in_axes=(0, None))
    assert matrix_vector(A, V).tolist() == (A @ V).tolist()
    matrix_matrix = dl.vmap(matrix_vector, in_axes=(None, 1), out_axes=1)
    B = np.arange(12.0).reshape(3, 4)
    assert matrix_matrix(A, B).tolist() == (A @ B).tolist()


def test_axes_as_jax_documents_them() -> None:
    total, doubled = dl.vmap(lambda x, y: (x + y, y * 2.0), in_axes=(0, None), out_axes=(0, None))(
        np.arange(2.0), 4.0
    )
    assert total.tolist() == [4, 5]
    assert doubled == 8

    def foo(tree):
        x, (y, z) = tree
        return np.sum(x) * np.sum(y) + z

    x, y, z = np.ones((4, 2)), np.arange(12.0).reshape(3, 4), np.arange(4.0)
    expected = [2 * y[:, k].sum() + z[k] for k in range(4)]
    assert dl.vmap(foo, in_axes=((0, (1, 0)),))((x, (y, z))).tolist() == expected
    assert dl.vmap(foo, in_axes=[(0, (-1, 0))])((x, (y, z))).tolist() == expected
    named = dl.vmap(lambda x: {"a": x, "b": 2 * x}, out_axes={"a": 0, "b": 1})(A)
    assert np.array_equal(named["a"], A)
    assert np.array_equal(named["b"], 2 * A.T)
    by_name = dl.vmap(dot, in_axes=0)(A, b=np.stack([V, 2 * V]))
    assert by_name.tolist() == [A[0] @ V, 2 * A[1] @ V]


def test_gradients_of_every_example() -> None:
    def loss(w, x, y):
        return (np.sum(w * x) - y) ** 2

    X = np.random.default_rng(0).normal(size=(5, 3))
    Y = np.arange(5.0)
    slopes = dl.vmap(dl.grad(loss), in_axes=(None, 0, 0))(V, X, Y)
    assert np.allclose(slopes, 2 * (X @ V - Y)[:, None] * X, rtol=1e-13)


@pytest.mark.parametrize("transform", [dl.grad, dl.jacfwd, dl.jacrev])
def test_derivatives_of_a_map(transform) -> None:
    X = np.random.default_rng(0).normal(size=(5, 3))

    def total(w):
        each = dl.vmap(lambda w, x: np.tanh(np.sum(w[1:] * x[:2]) + w[0]), in_axes=(None, 0))
        return np.sum(each(w, X))

    tanh = np.tanh(X[:, :2] @ V[1:] + V[0])
    expected = np.concatenate([[1], [0, 0]]) * np.sum(1 - tanh**2)
    expected[1:] = (1 - tanh**2) @ X[:, :2]
    assert np.allclose(transform(total)(V), expected, rtol=1e-12)


def every_row(a, s):
    """Data moved in every way that a graph knows, and chosen by conditions."""
    turned = np.where(a > 0.5, a[::-1, 1:2] * s, a.reshape(-1)[2:5].sum() - a)
    part = turned[1] + np.maximum(a[0], s)
    slope = dl.jacrev(lambda z: z[0] * z[1:])(part)
    return np.sum(turned, axis=0) * np.sum(slope), dl.gradient(dl.parse("x*y^2"))(a[0, 0], s)


def test_every_row_inside_and_outside_a_trace() -> None:
    stack = np.random.default_rng(4).normal(size=(4, 2, 3))
    scales = np.arange(1.0, 5.0)
    by_loop = [dl.trace(every_row, a, s)(a, s) for a, s in zip(stack, scales, strict=True)]
    expected = [np.stack(parts) for parts in zip(*by_loop, strict=True)]
    computed = dl.vmap(every_row)(stack, scales)
    traced = dl.trace(lambda a, s: dl.vmap(every_row)(a, s), stack, scales)(stack, scales)
    for ours in (computed, traced):
        for part, wanted in zip(ours, expected, strict=True):
            assert np.allclose(part, wanted, rtol=1e-13)


def test_a_tree_with_nothing_and_with_dicts() -> None:
    tree = {"a": A, "n": None}
    mapped = dl.vmap(lambda t: {"out": t["a"] * 2, "none": t["n"]}, in_axes=({"a": 1, "n": 0},))
    assert mapped(tree)["out"].tolist() == (2 * A.T).tolist()
    assert mapped(tree)["none"] is None


def test_functions_are_mapped_as_any_other_code() -> None:
    F = dl.parse("x: [3]; s: []\ns*sum(x)")
    assert dl.vmap(F, in_axes=(None, 0))(2.0, A).tolist() == [6, 24]
    assert dl.vmap(F, in_axes=(0, None))(V, V).tolist() == (V * V.sum()).tolist()


def test_axes_are_moved_inside_a_trace() -> None:
    def rows(a):
        return dl.vmap(lambda x: x * x[0], in_axes=1, out_axes=-1)(a)

    wanted = np.stack([A[:, k] * A[0, k] for k in range(3)], axis=-1)
    assert np.array_equal(rows(A), wanted)
    assert np.array_equal(dl.trace(rows, A)(A), wanted)


def test_rows_without_a_rule_are_applied_one_by_one(monkeypatch) -> None:
    from difflab.autodiff.engine import batching
    from difflab.graph.function import Function
    from difflab.primitives import index, sum_

    f = dl.trace(lambda x, c: c * np.sum(x[1:] * x[0]), A[0], 1.0)
    with_rules = batching.batched(f, (True, False), 2)
    monkeypatch.setattr(batching, "_LEADING", batching._LEADING - {index, sum_})
    without = batching.batched(f, (True, False), 2)
    assert isinstance(without, Function)
    assert len(without.graph) > len(with_rules.graph)
    assert without(A, 2.0).tolist() == with_rules(A, 2.0).tolist() == [0, 2 * 27]


def test_parts_of_every_shape_are_packed() -> None:
    from difflab.autodiff import gradient
    from difflab.autodiff.engine.batching import batched

    f = dl.trace(lambda w, s, c: s * np.sum(w * w) * np.sum(c), A, 1.0, V)
    mapped = batched(gradient(f), (True, False, False), 2)
    stack = np.stack([A, A + 1])
    expected = [gradient(f)(a, 3.0, V).tolist() for a in stack]
    assert mapped.output_shapes == ((2, 10),)
    assert mapped(stack, 3.0, V).tolist() == expected
    constant = batched(dl.trace(lambda x, c: (c, np.sum(c)), 1.0, V), (True, False), 2)
    same, total = constant(np.ones(2), V)
    assert same.tolist() == [V.tolist()] * 2
    assert total.tolist() == [V.sum()] * 2


def test_integers_may_be_mapped_and_are_computed_as_float64() -> None:
    squares = dl.vmap(lambda k: k * k)(np.arange(4))
    assert squares.dtype == np.float64
    assert squares.tolist() == [0, 1, 4, 9]


def test_shared_arguments_stay_python_values() -> None:
    def power(x, n, kind):
        assert kind == "product"
        result = 1.0
        for _ in range(n):
            result = result * x
        return result

    assert dl.vmap(power, in_axes=(0, None, None))(A, 3, "product").tolist() == (A**3).tolist()


def test_what_does_not_depend_on_the_example_is_repeated() -> None:
    same, constant = dl.vmap(lambda x: (V, 3.0))(A)
    assert same.tolist() == [V.tolist()] * 2
    assert constant.tolist() == [3, 3]


@for_each(
    ("call", "error", "message"),
    [
        (lambda: dl.vmap(dot)(A, V), ShapeError, "2 and 3 examples"),
        (lambda: dl.vmap(dot, in_axes=None)(A, V), InputError, "at least one"),
        (lambda: dl.vmap(dot, in_axes=(0,))(A, A), InputError, "structure"),
        (lambda: dl.vmap(np.sin, in_axes=2)(A), InputError, "axis 2 for a value of 2 axes"),
        (lambda: dl.vmap(np.sin)(1.0), InputError, "axis 0 for a value of 0 axes"),
        (lambda: dl.vmap(np.sin, in_axes="x")(A), InputError, "in_axes"),
        (lambda: dl.vmap(np.sin, in_axes=((0,),))(A), InputError, "an axis is required"),
        (lambda: dl.vmap(np.sin, in_axes=(0, 0))(A), InputError, "structure"),
        (lambda: dl.vmap(lambda t: t["a"], in_axes=({"b": 0},))({"a": A}), InputError, "structure"),
        (lambda: dl.vmap(np.sin, out_axes=3)(A), InputError, "out_axes"),
        (lambda: dl.vmap(np.sin, out_axes=None)(A), InputError, "differs between the examples"),
        (lambda: dl.vmap(np.sin)("text"), InputError, "not real"),
        (lambda: dl.vmap(3), InputError, "takes a function, not int"),
        (lambda: dl.vmap(lambda x: x if x > 0 else -x)(V), TraceError, "test_mapping.py"),
    ],
)
def test_errors_say_what_is_wrong(call, error, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
