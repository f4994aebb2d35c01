"""What traced code may not do: errors of difflab's that name the line and what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import IndexingError, ShapeError, TraceError, UnsizedError
from tests.support.rows import for_each


def filled(x: Any) -> Any:
    z = np.zeros(3)
    for i in range(3):
        z[i] = np.sin(x[i])
    return np.sum(z)


def summed(x: Any) -> Any:
    z = np.zeros(3)
    z += x
    return np.sum(z)


def copied(x: Any) -> Any:
    z = np.zeros(3)
    z[:] = x
    return np.sum(z)


@pytest.mark.parametrize("code", [filled, summed, copied])
@pytest.mark.parametrize(
    "run",
    [
        lambda code: dl.trace(code, np.ones(3)),
        lambda code: dl.grad(code)(np.ones(3)),
        lambda code: dl.jvp(code, (np.ones(3),), (np.ones(3),)),
        lambda code: dl.vmap(code)(np.ones((2, 3))),
        lambda code: dl.grad(lambda x: dl.grad(code)(x)[0])(np.ones(3)),
    ],
)
def test_writing_into_an_array_of_numpys_says_what_to_write(
    code: Callable[[Any], Any], run: Callable[..., Any]
) -> None:
    with pytest.raises(TraceError) as caught:
        run(code)
    error = caught.value
    assert "NumPy array" in error.message
    assert "test_traced_refusals.py, line" in error.message
    assert error.text is not None
    assert error.text.startswith("z")
    for way in ("np.stack", "np.concatenate", "np.where"):
        assert way in (error.hint or "")


def test_a_number_is_still_refused_by_math() -> None:
    import math

    with pytest.raises(TraceError, match="has no number yet"):
        dl.trace(lambda x: math.sin(x), 1.0)
    with pytest.raises(TraceError, match="has no number yet"):
        dl.trace(lambda x: f"{x:.3f}", 1.0)


@pytest.mark.parametrize(
    "code",
    [
        lambda x: x[::0],
        lambda x: x[1.5:],
        lambda x: x[[[1], [2, 3]]],
        lambda x: x[["a"]],
        lambda x: x["a"],
        lambda x: x[..., ...],
        lambda x: x[3],
        lambda x: x[0, 0, 0],
    ],
)
def test_wrong_keys_are_indexing_errors_with_the_line(code: Callable[[Any], Any]) -> None:
    with pytest.raises((IndexingError, ShapeError), match="test_traced_refusals"):
        dl.trace(code, np.ones((3, 3)))


@for_each(
    "code",
    [
        lambda x: x.reshape("a"),
        lambda x: x.reshape(1.5),
        lambda x: x.reshape(None),
        lambda x: x.reshape(4),
        lambda x: np.swapaxes(x, 0, 5),
        lambda x: np.moveaxis(x, 0, 5),
        lambda x: np.expand_dims(x, 7),
        lambda x: np.expand_dims(x, (0, 0)),
        lambda x: np.sum(x, axis="a"),
        lambda x: np.sum(x, axis=1.0),
        lambda x: np.pad(x, "a"),
        lambda x: np.pad(x, [1, 2, 3]),
    ],
)
def test_wrong_shapes_and_axes_are_shape_errors_with_the_line(code: Callable[[Any], Any]) -> None:
    with pytest.raises(ShapeError, match="test_traced_refusals"):
        dl.trace(code, np.ones((3, 3)))


def test_moved_and_new_axes_are_numpys() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for code in (
        lambda x: np.moveaxis(x, 0, 1),
        lambda x: np.moveaxis(x, -1, 0),
        lambda x: np.expand_dims(x, (0, -1)),
        lambda x: np.expand_dims(x, -2),
        lambda x: np.swapaxes(x, -1, 0),
    ):
        np.testing.assert_array_equal(dl.trace(code, x)(x), code(x))


def test_a_number_has_no_length() -> None:
    for code in (len, lambda x: list(x), lambda x: sum(x)):
        with pytest.raises(UnsizedError, match="a number has no length"):
            dl.trace(code, 1.0)


def test_round_is_numpys() -> None:
    assert float(dl.trace(lambda x: round(x, 1), 1.0)(2.26)) == 2.3
    assert float(dl.trace(round, 1.0)(2.5)) == 2.0


def test_only_what_was_parsed_has_its_text() -> None:
    f = dl.parse("x^2 * y")
    assert f.text == "x^2 * y"
    for derived in (
        dl.gradient(f),
        dl.jacobian(f),
        dl.hessian(f),
        dl.value_and_gradient(f),
        dl.grad(f),
        dl.jvp(f),
        dl.vjp(f),
        dl.trace(lambda x: f(x, x), 1.0),
    ):
        assert derived.text is None
    places = [dl.gradient(f).graph.place(node).part for node in range(len(dl.gradient(f).graph))]
    assert "x^2" in places
