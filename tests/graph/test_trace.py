"""Tracing: NumPy code becomes a graph; what cannot be recorded says what to write."""

from __future__ import annotations

import math

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, ShapeError, TraceError


def test_numpy_code_gives_its_own_values() -> None:
    def code(x, scale):
        total = 0.0
        for i in range(3):
            total = total + np.sin(x[i]) ** 2 * scale
        return np.sum(np.where(x > 0, np.sqrt(abs(x)), np.maximum(x, -1))) + total / np.hypot(
            2, x[0]
        )

    x, scale = np.array([0.3, -2.0, 1.5]), 0.7
    f = dl.trace(code, x, scale)
    assert f.inputs == ("x", "scale")
    assert f(x, scale) == pytest.approx(code(x, scale), rel=1e-15)
    shifted = x + 0.1
    assert f(shifted, 2.0) == pytest.approx(code(shifted, 2.0), rel=1e-15)


def test_several_results_are_several_outputs() -> None:
    f = dl.trace(lambda x: (x * 2, x[::-1], 3.0), np.ones(3))
    doubled, turned, three = f(np.array([1.0, 2.0, 3.0]))
    assert doubled.tolist() == [2, 4, 6]
    assert turned.tolist() == [3, 2, 1]
    assert three == 3


def test_unbroadcasting_is_the_engines_work() -> None:
    f = dl.trace(lambda a, b: np.sum(a * b + a), np.ones((2, 1)), np.ones(3))
    a, b = np.array([[2.0], [5.0]]), np.array([1.0, 2.0, 4.0])
    expected = [b.sum() + 3, b.sum() + 3, *[a.sum()] * 3]
    assert np.allclose(dl.gradient(f)(a, b), expected, rtol=1e-15)
    assert np.allclose(dl.gradient(f, "forward")(a, b), expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (lambda x: x if x > 0 else -x, "branch on a traced value"),
        (lambda x: math.sin(x), "use NumPy's functions"),
        (lambda x: np.unique(x), "numpy.unique"),
        (lambda x: np.array([x, x]), "cannot be turned into a NumPy array"),
        (lambda x: "text", "returned str"),
        (lambda x: np.spacing(x), "no primitive for numpy.spacing"),
    ],
)
def test_what_cannot_be_recorded_says_so(code, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        dl.trace(code, 1.0)


def test_values_of_two_traces_do_not_mix() -> None:
    kept = []
    dl.trace(lambda x: kept.append(x) or x, 1.0)
    with pytest.raises(TraceError, match="another"):
        dl.trace(lambda x: x + kept[0], 1.0)
    with pytest.raises(TraceError, match="another"):
        dl.trace(lambda x: kept[0], 1.0)


def test_elements_of_truths_count() -> None:
    counted = dl.trace(lambda x: (x > 0)[0] + (x > 0)[-1] + x[1], np.zeros(3))
    assert counted([2.0, 5.0, 3.0]) == 7.0


@pytest.mark.parametrize(
    "code",
    [
        lambda x: np.take(x, np.array([1, 0, 1])),
        lambda x: np.take(x, np.array([[1, 0], [1, 2]]), axis=1),
        lambda x: np.take(x, indices=np.array([1]), axis=0),
        lambda x: np.reshape(x, np.array([3, 2])),
        lambda x: np.transpose(x, np.array([1, 0])),
        lambda x: np.broadcast_to(x, np.array([4, 2, 3])),
        lambda x: np.pad(x, np.array([[1, 1], [0, 2]])),
    ],
)
def test_places_shapes_and_axes_may_be_arrays(code) -> None:
    x = np.array([[2.0, 3.0, 5.0], [7.0, 11.0, 13.0]])
    found = dl.trace(code, x)(x)
    assert np.array_equal(found, code(x)), found


def test_arrays_of_numbers_are_operands() -> None:
    x, weights = np.array([[2.0, 3.0], [5.0, 7.0]]), np.array([[1, 2], [3, 4], [5, 6]])

    def code(x):
        joined = np.concatenate([weights @ x, np.ones((1, 2))])
        return np.dot(joined, x) + np.outer(weights[0], x[0])[1] + [1, 2] @ x

    assert np.array_equal(dl.trace(code, x)(x), code(x))


@pytest.mark.parametrize("example", ["a", None, {"w": "a"}, [[1.0], [1.0, 2.0]], 1j])
def test_examples_are_numbers(example) -> None:
    with pytest.raises(InputError, match=r"an (element of an )?example is "):
        dl.trace(lambda x: x, example)


@pytest.mark.parametrize("example", [1, True, [1, 2], (1.0, 2.0), np.float32(1), np.ones((2, 0))])
def test_examples_may_be_any_numbers(example) -> None:
    assert dl.trace(lambda x: x, example).input_shapes == (np.shape(example),)


KEYS = [
    [1, 0, 1],
    np.array([[0, 1], [1, 0]]),
    None,
    (slice(None), None, 0),
    (Ellipsis, 1),
    np.array([True, False]),
    np.array([[True, False, True], [False, True, True]]),
    np.zeros(2, dtype=bool),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys_pick_what_they_pick_in_numpy(key) -> None:
    x = np.array([[2.0, 3.0, 5.0], [7.0, 11.0, 13.0]])
    assert np.array_equal(dl.trace(lambda x: x[key], x)(x), x[key])
    tensor = dl.tensor(x, requires_grad=True)
    assert np.array_equal(tensor[key].detach().numpy(), x[key])
    np.sum(tensor[key]).backward()
    counted = np.zeros(x.shape)
    np.add.at(counted, key, 1.0)
    assert np.array_equal(tensor.grad.numpy(), counted)


def test_a_tensor_of_truths_picks_from_a_tensor() -> None:
    x = dl.tensor([1.0, -2.0, 3.0], requires_grad=True)
    assert x[x > 0].detach().numpy().tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("pick", "message"),
    [
        (lambda x: x[np.array([True, False, True])], "does not fit the shape"),
        (lambda x: x[[0.5]], "whole numbers"),
        (lambda x: np.take(x, [True, False]), "whole numbers"),
        (lambda x: x[[7]], "outside an axis of size 2"),
    ],
)
def test_keys_that_fit_nothing_say_so(pick, message: str) -> None:
    x = np.zeros((2, 3))
    with pytest.raises(ShapeError, match=message):
        dl.trace(pick, x)
    with pytest.raises(ShapeError, match=message):
        pick(dl.tensor(x, requires_grad=True))
