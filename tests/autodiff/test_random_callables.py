"""Random expressions as Python functions: the transforms give a Function's own numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

import difflab as dl
from difflab.testing.strategies import cases

Case = tuple[str, dict[str, float]]


def posed(case: Case):
    text, at = case
    function = dl.parse(text)
    point = [at[name] for name in function.inputs]
    return function, point, lambda *args: function(*args)


@settings(max_examples=60)
@given(cases())
def test_reverse_mode_is_the_same_bit_for_bit(case: Case) -> None:
    function, point, code = posed(case)
    expected = dl.gradient(function).values(np.array(point))
    every = tuple(range(len(point)))
    value, slopes = dl.value_and_grad(code, every)(*point)
    np.testing.assert_array_equal(slopes, expected)
    assert value == function(*point)
    np.testing.assert_array_equal(dl.grad(function, every)(*point), expected)
    np.testing.assert_array_equal(dl.jacrev(code, every)(*point), expected)
    np.testing.assert_array_equal(dl.jacrev(function, every)(*point), expected)
    traced = dl.trace(lambda *args: dl.grad(code, every)(*args), *point)
    np.testing.assert_array_equal(traced.values(np.array(point)), expected)
    np.testing.assert_array_equal(dl.vjp(code, *point)[1](1.0), expected)
    stacks = [np.array([number, number]) for number in point]
    mapped = dl.vmap(dl.grad(code, every))(*stacks)
    np.testing.assert_array_equal(np.transpose(mapped), [expected] * 2)


@settings(max_examples=60)
@given(cases())
def test_forward_mode_is_the_same_bit_for_bit(case: Case) -> None:
    function, point, code = posed(case)
    expected = dl.jacobian(function, "forward").values(np.array(point))
    every = tuple(range(len(point)))
    np.testing.assert_array_equal(dl.jacfwd(code, every)(*point), expected)
    np.testing.assert_array_equal(dl.jacfwd(function, every)(*point), expected)
    _, push = dl.linearize(code, *point)
    for place in every:
        direction = [float(place == other) for other in every]
        _, slope = dl.jvp(code, point, direction)
        assert slope == push(*direction)
        np.testing.assert_allclose(slope, expected[place], rtol=1e-12, atol=1e-300)


@settings(max_examples=25)
@given(cases(max_leaves=6))
def test_second_derivatives_agree_in_every_composition(case: Case) -> None:
    function, point, code = posed(case)
    expected = dl.hessian(function)(*point)
    scale = max(1.0, float(np.max(np.abs(expected))))
    every = tuple(range(len(point)))
    for second in (
        dl.hessian(code, every)(*point),
        dl.jacrev(dl.jacfwd(code, every), every)(*point),
        dl.jacfwd(dl.grad(code, every), every)(*point),
        dl.hessian(function, every)(*point),
    ):
        np.testing.assert_allclose(second, expected, rtol=0, atol=1e-10 * scale)
    direction = tuple(np.linspace(-1.0, 2.0, len(point)))
    product = dl.hvp(code, point, direction)
    np.testing.assert_allclose(
        np.ravel(product), expected @ direction, rtol=0, atol=1e-10 * scale * len(point) * 4
    )
