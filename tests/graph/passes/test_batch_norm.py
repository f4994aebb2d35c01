"""Batch normalisation folded into convolutions: the same values by fewer operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import arrays
from difflab.errors import ConsistencyError
from difflab.graph.passes import batch_norm as folding
from tests.arrays.test_functions import M

RNG = np.random.default_rng(3)
IMAGES, FILTERS = RNG.normal(size=(2, 4, 9, 9)), RNG.normal(size=(6, 2, 3, 3))
B, G, BETA, MEAN = RNG.normal(size=(4, 6))
VARIANCE = RNG.uniform(0.5, 2.0, 6)
VALUES = (IMAGES, FILTERS, B, G, BETA, MEAN, VARIANCE)


def normalised(x: Any, w: Any, b: Any, g: Any, beta: Any, mean: Any, variance: Any) -> Any:
    y = arrays.conv2d(x, w, b, stride=2, padding=1, groups=2)
    return np.tanh(arrays.batch_norm(y, g, beta, 1e-5, mean, variance))


def other_orders(x: Any, w: Any, b: Any, g: Any, beta: Any, mean: Any, variance: Any) -> Any:
    y = arrays.conv1d(x[:, :, 0], w[:, :, 0], groups=2)
    y = (beta[:, None] - 2.0 * y) * g[:, None] / variance[:, None] - mean[0]
    image = arrays.conv2d(x[0, :2], w, b)
    return np.sum(y) + np.sum(np.sin(arrays.batch_norm(image[None], g, None, 1e-3, mean, variance)))


NETWORKS: dict[str, Callable[..., Any]] = {"normalised": normalised, "other orders": other_orders}
NAMES = pytest.mark.parametrize("name", NETWORKS)


@NAMES
def test_folded_networks_compute_the_same_with_fewer_operations(name: str) -> None:
    function = dl.trace(NETWORKS[name], *VALUES)
    folded = dl.fold_batch_norm(function)
    expected = NETWORKS[name](*VALUES)
    np.testing.assert_allclose(folded(*VALUES), expected, rtol=1e-13, atol=1e-14)
    assert dl.count(folded).arithmetic < dl.count(function).arithmetic
    assert folded.inputs == function.inputs


@NAMES
def test_parameters_that_are_constants_are_folded_too(name: str) -> None:
    function = dl.trace(lambda x: NETWORKS[name](x, *VALUES[1:]), IMAGES)
    folded = dl.fold_batch_norm(function)
    expected = NETWORKS[name](*VALUES)
    np.testing.assert_allclose(folded(IMAGES), expected, rtol=1e-13, atol=1e-14)
    assert dl.count(folded).arithmetic < dl.count(function).arithmetic


@NAMES
def test_their_derivatives_are_the_same(name: str) -> None:
    function = dl.trace(lambda *values: np.sum(NETWORKS[name](*values)), *VALUES)
    folded = dl.fold_batch_norm(function)
    expected = dl.gradient(function)(*VALUES)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(dl.gradient(folded)(*VALUES), expected, rtol=0, atol=1e-13 * scale)


def test_what_cannot_be_folded_stays_the_same_function() -> None:
    def by_batch(x: Any, w: Any) -> Any:
        return arrays.batch_norm(arrays.conv2d(x, w, groups=2))

    def used_twice(x: Any, w: Any) -> Any:
        y = arrays.conv2d(x, w, groups=2)
        return y * 2.0 + np.sin(y)

    def inverted(x: Any, w: Any) -> Any:
        return 1.0 / arrays.conv2d(x, w, groups=2)

    for network in (by_batch, used_twice, inverted):
        function = dl.trace(network, IMAGES, FILTERS)
        assert dl.fold_batch_norm(function) is function
    plain = dl.trace(lambda a: a @ a.T, M)
    assert dl.fold_batch_norm(plain) is plain


def test_a_wrong_rule_is_caught_before_the_result_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    combined = folding._combined

    def wrong(*args: Any) -> Any:
        found = combined(*args)
        return found if found.scale is None else replace(found, scale=found.scale * 1.001)

    monkeypatch.setattr(folding, "_combined", wrong)
    with pytest.raises(ConsistencyError, match="fold_batch_norm changed"):
        dl.fold_batch_norm(dl.trace(normalised, *VALUES))
