"""Parts of arrays replaced in new ones: values are those of NumPy's assignment, slopes JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.cli.derive import _written
from difflab.errors import DifflabError, IndexingError, InputError, ShapeError
from tests.support.rows import for_each

X, Y = np.random.default_rng(4).normal(size=(2, 3, 4))
KEYS: dict[str, Any] = {
    "an index": 1,
    "an index from the end": (-1, 2),
    "a slice": (slice(1, None), slice(None, None, 2)),
    "a slice backwards": slice(None, None, -1),
    "a list": [2, 0],
    "a mask": X > 0.3,
    "a mask of rows": np.array([True, False, True]),
    "lists": ([0, 2, 1], [1, 1, 3]),
    "a list and a slice": (slice(1, 3), [3, 0]),
    "an ellipsis": (..., 0),
    "nothing": np.array([], dtype=int),
}
METHODS = ("set", "add", "multiply", "divide", "power", "min", "max")


def assigned(name: str, x: Any, key: Any, new: Any) -> Any:
    """Return what NumPy's assignment makes of a copy."""
    found = x.copy()
    old = found[key]
    found[key] = {
        "set": lambda: new,
        "add": lambda: old + new,
        "multiply": lambda: old * new,
        "divide": lambda: old / new,
        "power": lambda: old**new,
        "min": lambda: np.minimum(old, new),
        "max": lambda: np.maximum(old, new),
    }[name]()
    return found


@pytest.mark.parametrize("name", METHODS)
@for_each("key", KEYS)
def test_a_part_becomes_what_numpys_assignment_gives(key: str, name: str) -> None:
    at = KEYS[key]
    x = np.abs(X) + 0.5 if name == "power" else X
    for new in (1.7, Y[at]):
        expected = assigned(name, x, at, new)

        def update(x: Any, new: Any) -> Any:
            return getattr(x.at[at], name)(new)

        np.testing.assert_array_equal(dl.trace(update, x, new)(x, new), expected)
        np.testing.assert_array_equal(update(dl.tensor(x), new), expected)
        np.testing.assert_array_equal(update(dl.tensor(x), dl.tensor(new)), expected)


# JAX differentiates no products of parts.
@pytest.mark.parametrize("name", ["set", "add", "min", "max"])
@pytest.mark.parametrize("key", ["an index", "a slice", "a mask of rows", "lists"])
def test_first_and_second_derivatives_are_jaxs(key: str, name: str) -> None:
    jax = pytest.importorskip("jax", reason="needs JAX: pip install 'difflab[peers]'")
    at = tuple(map(np.array, KEYS[key])) if key == "lists" else KEYS[key]
    x, new = np.abs(X) + 0.5, Y[at]
    weights = np.cos(np.arange(12.0)).reshape(3, 4)

    def code(xp: Any) -> Callable[..., Any]:
        return lambda x, new: xp.sum(xp.sin(getattr(x.at[at], name)(new)) * weights)

    given, along = (x, new), (np.sin(x), np.cos(new))
    found = dl.jvp(lambda *a: dl.grad(code(np), (0, 1))(*a), given, along)
    with jax.enable_x64(True):
        given = tuple(map(jax.numpy.asarray, given))
        slopes = jax.grad(code(jax.numpy), (0, 1))
        pushed = jax.jit(lambda given, along: jax.jvp(slopes, given, along))
        expected = pushed(given, tuple(map(jax.numpy.asarray, along)))
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    leaves = [dl.tensor(v, requires_grad=True) for v in (x, new)]
    code(np)(*leaves).backward()
    for leaf, slope in zip(leaves, found[0], strict=True):
        np.testing.assert_allclose(leaf.grad, slope, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("key", [slice(0, 2), [2, 0], np.array([True, False, True])])
def test_a_list_of_carriers_is_a_new_value_as_its_stack_is(name: str, key: Any) -> None:
    def listed(x: Any) -> Any:
        return getattr(x.at[key], name)([x[1] * x[2], 3.0])

    def stacked(x: Any) -> Any:
        return getattr(x.at[key], name)(np.stack([x[1] * x[2], x[0] * 0 + 3.0]))

    x = np.array([1.5, 0.7, 2.0])
    expected = assigned(name, x, key, np.array([x[1] * x[2], 3.0]))
    np.testing.assert_allclose(listed(dl.tensor(x)).numpy(), expected, rtol=1e-15)
    np.testing.assert_allclose(dl.trace(listed, x)(x), expected, rtol=1e-15)
    np.testing.assert_array_equal(dl.jacrev(listed)(x), dl.jacrev(stacked)(x))
    rows = dl.jacfwd(lambda x: np.stack([x, x]).at[0, key].set([x[0], x[0]])[0])(x)
    assert np.array_equal(rows, assigned("set", np.eye(3), key, [[1.0, 0.0, 0.0]] * 2))


def test_repeated_elements_are_set_by_the_last_and_added_to_each_time() -> None:
    for x in (dl.tensor(np.zeros(3)), None):
        for name, expected in (("set", [2.0, 0.0, 3.0]), ("add", [3.0, 0.0, 3.0])):

            def update(x: Any, name: str = name) -> Any:
                return getattr(x.at[[0, 0, 2]], name)([1.0, 2.0, 3.0])

            found = dl.trace(update, np.zeros(3))(np.zeros(3)) if x is None else update(x)
            assert np.array_equal(found, expected)
    with pytest.raises(InputError, match="several times"):
        dl.trace(lambda x: x.at[[0, 0]].multiply(2.0), np.ones(3))


def test_computed_masks_and_indices_select() -> None:
    def largest(x: Any) -> Any:
        return x.at[x > 0.0].set(7.0).at[np.argmax(x[:, 0])].add(0.5).at[-np.argmin(x[0])].max(1.0)

    expected = np.where(X > 0.0, 7.0, X)
    expected[np.argmax(X[:, 0])] += 0.5
    place = -int(np.argmin(X[0])) if np.argmin(X[0]) < 3 else 0
    expected[place] = np.maximum(expected[place], 1.0)
    if np.argmin(X[0]) < 3:
        np.testing.assert_array_equal(dl.trace(largest, X)(X), expected)
        np.testing.assert_array_equal(largest(dl.tensor(X)), expected)
        slopes = dl.grad(lambda x: np.sum(largest(x)))(X)
        np.testing.assert_array_equal(slopes, (expected == X) | (expected == X + 0.5))


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (lambda x: x.at[5].set(1.0), IndexingError, "no part of the shape"),
        (lambda x: x.at[0].set(np.ones(3)), ShapeError, "broadcast_to cannot turn"),
        (lambda x: x.at[x > 0.0].set(x), ShapeError, r"np\.where"),
        (lambda x: x.at[np.argsort(x[0])].set(x), ShapeError, "computed indices"),
    ],
)
def test_what_is_no_part_is_refused(code: Any, error: type[DifflabError], message: str) -> None:
    with pytest.raises(error) as caught:
        dl.trace(code, X)
    assert message.replace("\\", "") in caught.value.render()


@for_each("key", KEYS)
def test_tensors_are_assigned_to_by_every_kind_of_key(key: str) -> None:
    at = KEYS[key]
    leaf, new = dl.tensor(X, requires_grad=True), dl.tensor(Y[at], requires_grad=True)
    z = leaf * 2.0
    z[at] = new
    z[at] += 1.0
    np.testing.assert_array_equal(z.detach(), assigned("set", 2.0 * X, at, Y[at] + 1.0))
    np.sum(z * z).backward()
    if Y[at].size:
        np.testing.assert_allclose(new.grad, 2.0 * (Y[at] + 1.0), rtol=1e-14)
    np.testing.assert_allclose(leaf.grad, assigned("set", 8.0 * X, at, 0.0), rtol=1e-14)


def replaced_at_zero(x):
    """The logarithm of zeros is replaced: by numbers, by slices, backwards, twice."""
    y = np.log(x).at[0].set(3.0).at[1:3].set(0.0)
    return y.at[3:1:-1].set(2.0 * x[4:]).at[1].set(x[5])


REPLACED = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0])
JACOBIAN = np.zeros((6, 6))
JACOBIAN[1, 5] = 1.0  # x[5]
JACOBIAN[3, 4] = JACOBIAN[2, 5] = 2.0  # 2 * x[4:]
JACOBIAN[4, 4], JACOBIAN[5, 5] = 1.0, 0.5  # the logarithm's slopes


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_is_replaced_is_a_branch_that_is_not_taken():
    for transform in (dl.jacfwd, dl.jacrev):
        np.testing.assert_array_equal(transform(replaced_at_zero)(REPLACED), JACOBIAN)
        traced = transform(dl.trace(replaced_at_zero, REPLACED))
        for target in ("numpy", "native"):
            np.testing.assert_array_equal(dl.compile(traced, target=target)(REPLACED), JACOBIAN)
    mapped = dl.vmap(dl.jacrev(replaced_at_zero))(np.stack([REPLACED, REPLACED]))
    np.testing.assert_array_equal(mapped, [JACOBIAN, JACOBIAN])
    x = dl.tensor(REPLACED, requires_grad=True)
    replaced_at_zero(x).sum().backward()
    np.testing.assert_array_equal(x.grad, JACOBIAN.sum(axis=0))
    hessian = dl.hessian(lambda x: replaced_at_zero(x).sum())(REPLACED)
    np.testing.assert_array_equal(hessian, np.diag([0.0, 0.0, 0.0, 0.0, -1.0, -0.25]))


def test_slopes_that_overflow_under_what_is_replaced_are_not_read():
    found = dl.grad(lambda x: np.exp(x).at[0].set(3.0).sum())(np.array([1000.0, 0.0]))
    np.testing.assert_array_equal(found, [0.0, 1.0])


def test_a_loop_that_replaces_elements_records_one_operation_for_each():
    def loop(x):
        for i in range(1, 20):
            x = x.at[i].set(np.sin(x[i - 1]) * x[i])
        return np.sum(x)

    x = np.linspace(0.5, 1.5, 20)
    recorded = dl.trace(loop, x)
    assert len(recorded.graph) <= 19 * 5 + 3  # two elements, sin, a product, the replacement
    assert len(dl.gradient(recorded).graph) <= 19 * 14 + 10
    slopes = [(loop_of_floats(x + h) - loop_of_floats(x - h)) / 2e-6 for h in 1e-6 * np.eye(20)]
    np.testing.assert_allclose(dl.grad(loop)(x), slopes, rtol=1e-7, atol=1e-9)


def loop_of_floats(x):
    """The same loop on NumPy's array."""
    x = x.copy()
    for i in range(1, 20):
        x[i] = np.sin(x[i - 1]) * x[i]
    return np.sum(x)


@pytest.mark.parametrize("language", ["c", "matlab", "fortran", "rust", "python", "javascript"])
def test_what_is_replaced_is_printed(language: str) -> None:
    """Languages without the row print its selection; `tests/language` runs such programs."""
    function = dl.trace(lambda x: np.sum(x.at[1:3].set(np.sin(x[:2])).at[0].set(x[3]) * x), X[0])
    text = _written(dl.gradient(function), language, "slopes")
    assert "sin" in text
