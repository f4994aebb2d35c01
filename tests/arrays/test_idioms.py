"""NumPy's idioms on traced values and on tensors: the values are NumPy's own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import difflab as dl
from difflab.arrays.idioms import LACKING
from difflab.errors import DifflabError, InputError, MissingAttributeError, TraceError
from tests.support import standin
from tests.support.rows import for_each

A = np.array([[0.3, 0.7, 1.2], [2.1, 0.4, 0.9], [1.5, 0.2, 0.8]])
B = np.array([[1.1, 0.6, 0.1], [0.5, 1.7, 0.95], [1.3, 2.2, 0.35]])
ROW = np.array([True, False, True])

SMOOTH = {
    "and": lambda x: np.where((x > 0.5) & (x < 1), x**2, 0),
    "or": lambda x: np.where((x > 1) | (x < 0.35), x**2, -x),
    "not": lambda x: np.where(~(x > 0.5), x**2, -x),
    "xor": lambda x: np.where((x > 0.5) ^ (x < 1), x**2, -x),
    "an array of truths": lambda x: np.where(ROW & (x < 1), x**2, -x),
    "a truth": lambda x: np.where(True & (x < 1), x**2, -x),
    "parts of masks": lambda x: np.where((x < 1)[0] & (x > 0.5)[1], x**2, -x),
    "masks as numbers": lambda x: x * (x > 1).astype(float) + x * (x < 0.5),
    "max": lambda x: x.max() * x.max(axis=0) + x.max(1, keepdims=True),
    "min": lambda x: x.min() * x.min(axis=0) + x.min(1, keepdims=True),
    "prod": lambda x: x.prod() * x.prod(0),
    "mean": lambda x: x.mean(0) * x.sum(1),
    "ravel": lambda x: x.ravel() ** 2 * x.flatten(),
    "transpose": lambda x: x.transpose() * x.transpose(1, 0) + x.transpose((0, 1)),
    "astype": lambda x: x.astype(float) * x.astype(x.dtype),
    "copy": lambda x: x.copy() ** 2,
    "clip": lambda x: x.clip(0.35, 1) * x.clip(min=0.5) * x.clip(max=0.95) * x.clip(0.35),
    "squeeze": lambda x: x[:1].squeeze() * x[:1].squeeze(axis=0),
    "cumsum": lambda x: x.cumsum()[:3] * x.cumsum(0),
    "size": lambda x: x * x.size + x.ndim * len(x),
    "trace": lambda x: x.trace() * x.diagonal(),
    "swapaxes": lambda x: x.swapaxes(0, 1) * x,
    "take": lambda x: x.take([0, 4, 4]) * x.take([2, 0], axis=0)[0],
    "dot": lambda x: x.dot([1.0, 2.0, 3.0]),
    "zeros_like": lambda x: np.zeros_like(x) + x * np.ones_like(x) + np.full_like(x, 2.5),
    "full_like": lambda x: np.full_like(x, x[0, 1]) * x,
    "np.clip": lambda x: np.clip(x, 0.35, 1) * np.clip(x, 0.5, None) * np.clip(x, None, 0.95),
    "np.clip by name": lambda x: np.clip(x, a_min=0.35, a_max=1),
    "square": lambda x: np.square(x) * np.abs(x) * np.reciprocal(np.positive(x)) * np.square(x),
    "angles": lambda x: np.deg2rad(x) + np.radians(x) + np.rad2deg(x) + np.degrees(x),
    "amax": lambda x: np.amax(x, axis=1) * np.amin(x),
    "moveaxis": lambda x: np.moveaxis(x[None], 0, -1) * np.moveaxis(x[None], -1, 0),
    "atleast": lambda x: np.atleast_1d(x[0, 0]) * np.atleast_2d(x[0]) * np.copy(x),
    "matrix_transpose": lambda x: np.matrix_transpose(x) * x,
    "sizes": lambda x: x * np.size(x) + np.ndim(x) * np.shape(x)[0],
}
"""Where derivatives flow."""

FLAT = {
    "argmax": lambda x: x.argmax() + x.argmax(1) + x.argmin() + x.argmin(0) + np.argmin(x),
    "all": lambda x: 1 * (x > 0.1).all() + 2 * (x > 0.5).all(0) + 4 * np.all(x, axis=1),
    "any": lambda x: 1 * (x > 3).any() + 2 * (x > 1).any(0) + 4 * np.any(x > 2, axis=1),
    "count": lambda x: np.count_nonzero(x > 0.5) + np.count_nonzero(x > 1, axis=0),
    "round": lambda x: x.round() + x.round(1) + np.round(x, -1) + np.around(x, 1),
    "rounded down": lambda x: x // 0.65 + 5.13 // x + np.floor_divide(x, 0.65),
    "divmod": lambda x: divmod(x, 0.65)[0] + np.divmod(x, 0.65)[0] + divmod(5.13, x)[0],
    "logic": lambda x: (
        1 * np.logical_and(x > 0.5, x < 1)
        + 2 * np.logical_or(x, 0)
        + 4 * np.logical_not(x > 1)
        + 8 * np.logical_xor(x, x > 1)
    ),
    "bits": lambda x: 1 * np.invert(x > 1) + 2 * np.bitwise_or(x > 1, x < 0.5),
    "finite": lambda x: (
        1 * np.isfinite(np.where(x > 1, np.inf, x))
        + 2 * np.isnan(np.where(x > 1, np.nan, x))
        + 4 * np.isinf(np.where(x > 1, -np.inf, x))
    ),
    "truths of numbers": lambda x: 1 * (x - 0.3).astype(bool),
}
"""Where derivatives are 0."""


@for_each("name", [*SMOOTH, *FLAT])
def test_idioms_are_numpys_own_on_both_carriers(name: str) -> None:
    idiom: Callable[[Any], Any] = {**SMOOTH, **FLAT}[name]
    traced = dl.trace(idiom, A)
    for point in (A, B):
        with np.errstate(all="ignore"):
            expected = idiom(point)
        for found in (
            traced(point),
            idiom(dl.tensor(point)).numpy(),
            idiom(dl.tensor(point, requires_grad=True)).detach().numpy(),
        ):
            assert np.shape(found) == np.shape(expected)
            assert np.allclose(found, expected, rtol=1e-14, atol=0)


def richardson(f: Callable[[Any], Any], point: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the gradient of a sum by central differences, extrapolated once."""

    def difference(step: float) -> np.ndarray[Any, Any]:
        found = np.empty(point.size)
        for place in range(point.size):
            moved = np.zeros(point.size)
            moved[place] = step
            move = moved.reshape(point.shape)
            found[place] = (np.sum(f(point + move)) - np.sum(f(point - move))) / (2 * step)
        return found.reshape(point.shape)

    return (4 * difference(5e-4) - difference(1e-3)) / 3


@for_each("name", [*SMOOTH, *FLAT])
def test_derivatives_of_idioms(name: str) -> None:
    idiom: Callable[[Any], Any] = {**SMOOTH, **FLAT}[name]
    if name in SMOOTH:
        expected = richardson(idiom, A)
        assert np.any(expected)
    else:
        expected = np.zeros_like(A)
    x = dl.tensor(A, requires_grad=True)
    np.sum(idiom(x) + 0.0 * x[0, 0]).backward()
    assert np.allclose(x.grad, expected, rtol=1e-8, atol=1e-8)
    assert np.allclose(dl.grad(lambda v: np.sum(idiom(v)))(A), expected, rtol=1e-8, atol=1e-8)


LOST = [
    (lambda x: x & 3, "`&` takes truth values", r"\(a > 3\) & \(b < 9\)"),
    (lambda x: np.where(x > 0.5 & x < 1, x, 0), "`&` takes truth values", "parentheses"),
    (lambda x: (x * 2.0) | (x > 1), r"`\|` takes truth values", "np.logical_or"),
    (lambda x: ~(x * 2.0), "`~` takes truth values", "np.logical_not"),
    (lambda x: x.astype(int), "change from float64 to int64", "np.floor"),
    (lambda x: x.partition(1), "no .partition", r"np\.partition\(x, kth\)"),
    (lambda x: np.lexsort((x, x)), "numpy.lexsort", r"np\.argsort"),
    (lambda x: np.sum(x, where=x > 1), "numpy.sum", "without out=, where="),
    (lambda x: np.apply_along_axis(np.sum, 0, x), "numpy.apply_along_axis", r"dl\.vmap"),
    (lambda x: special.ellipk(x), "scipy.special.ellipk", "CustomFunction"),
    (lambda x: special.logsumexp(x), "functions: scipy.special.logsumexp", "arrays.logsumexp"),
    (lambda x: special.spherical_jn(2, x), "of scipy.special computes", "CustomFunction"),
]


@for_each(("idiom", "message", "hint"), LOST)
def test_what_is_missing_names_the_line_and_a_way_out(
    idiom: Callable[[Any], Any], message: str, hint: str
) -> None:
    for run in (
        lambda: dl.trace(idiom, A),
        lambda: idiom(dl.tensor(A, requires_grad=True) * 1.0),
    ):
        with pytest.raises(DifflabError, match=message) as caught:
            run()
        text = caught.value.render()
        assert "test_idioms.py" in text
        assert re.search(hint, text)


def test_attributes_that_are_missing_are_missing_to_hasattr() -> None:
    tensor = dl.tensor(A)
    for name in LACKING:
        assert hasattr(A, name) or name == "cumprod"
        assert not hasattr(tensor, name)
        with pytest.raises(MissingAttributeError, match=rf"a tensor has no \.{name}") as caught:
            getattr(tensor, name)
        assert "write it with the functions" not in str(caught.value.hint)


def test_places_of_truths_are_known_for_tensors_and_not_for_traced_values() -> None:
    x = dl.tensor(A, requires_grad=True)
    for found, place in zip(np.where(x > 1), np.where(A > 1), strict=True):
        assert np.array_equal(found, place)
    for needs in (np.where, np.nonzero, np.argwhere, np.flatnonzero, lambda c: c.nonzero()):
        with pytest.raises(TraceError, match="needs the elements") as caught:
            dl.trace(lambda v, needs=needs: needs(v > 1), A)
        assert "would depend on the values" in str(caught.value.hint)


def test_a_traced_value_gives_no_number() -> None:
    with pytest.raises(TraceError, match="has no number yet"):
        dl.trace(lambda x: x[0, 0].item(), A)


@pytest.mark.parametrize("target", ["auto", "numpy"])
def test_masks_are_compiled(target: str) -> None:
    def masked(x: Any) -> Any:
        inside = (x > 0.5) & ~(x < 1)[::-1] | (x > 2) ^ (x[0] > 1)
        return np.sum(np.where(inside, x**2, 0.0)) + x.max() * inside.any()

    assert np.isclose(dl.compile(dl.trace(masked, A), target=target)(A), masked(A), rtol=1e-14)


def test_a_filled_tensor_is_written_to_and_a_copy_has_its_own_memory() -> None:
    x = dl.tensor(A, requires_grad=True)
    out = np.zeros_like(x)
    out[0] = x[0] ** 2
    out.sum().backward()
    assert np.allclose(x.grad, np.vstack([2 * A[0], np.zeros((2, 3))]))
    plain = dl.tensor(A)
    for other in (plain.copy(), plain.flatten(), plain.ravel().flatten()):
        other += 1.0
    assert np.array_equal(plain.numpy(), A)


@pytest.mark.parametrize(
    "operate",
    [
        lambda d, x: d + x,
        lambda d, x: d - x,
        lambda d, x: d * x,
        lambda d, x: d / x,
        lambda d, x: d**x,
        lambda d, x: d % (10 * x),
        lambda d, x: x * (d < x),
        lambda d, x: x * ((d > 1) & (x > 1)),
    ],
)
def test_an_array_of_a_device_on_the_left(operate: Callable[[Any, Any], Any]) -> None:
    left, point = np.array([1.5, 0.75, 2.0]), np.array([2.0, 0.5, 3.0])
    device, x = standin.asarray(left), standin.asarray(point)
    expected = richardson(lambda v: operate(left, v), point)
    found = dl.grad(lambda v: np.sum(operate(device, v)))(x)
    assert isinstance(found, standin.ndarray)
    assert np.allclose(found.get(), expected, rtol=1e-8)
    tensor = dl.tensor(x, requires_grad=True)
    made = operate(device, tensor)
    assert isinstance(made, dl.Tensor)
    np.sum(made).backward()
    assert np.allclose(tensor.grad.array().get(), expected, rtol=1e-8)


def test_a_number_among_truths_is_an_input_error() -> None:
    with pytest.raises(InputError, match="takes truth values"):
        dl.tensor(A) & (dl.tensor(A) > 1)
