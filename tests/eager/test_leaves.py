"""Leaves are copied and pickled, formulas are layers, and errors point at the line."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import IndexingError, InputError, ShapeError, TapeError, TraceError


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda leaf: pickle.loads(pickle.dumps(leaf))]
)
def test_leaves_are_copied_with_their_gradients(copied: Callable[[Any], Any]) -> None:
    leaf = dl.tensor([1.0, 2.0], requires_grad=True)
    np.sum(leaf * leaf).backward()
    twin = copied({"w": leaf})["w"] if copied is copy.deepcopy else copied(leaf)
    assert twin.requires_grad
    assert twin.is_leaf
    assert twin.grad.numpy().tolist() == [2.0, 4.0]
    with dl.no_grad():
        twin += 10.0
    twin.zero_grad()
    np.sum(twin).backward()
    assert leaf.detach().numpy().tolist() == [1.0, 2.0]
    assert leaf.grad.numpy().tolist() == [2.0, 4.0]
    constant = copied(dl.tensor(3.0))
    assert (constant.requires_grad, constant.grad, constant.item()) == (False, None, 3.0)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_was_computed_is_not_copied(copied: Callable[[Any], Any]) -> None:
    y = dl.tensor([1.0, 2.0], requires_grad=True) * 2.0
    with pytest.raises(TapeError, match="detach"):
        copied(y)
    copied(y.detach())


def test_a_formula_is_a_layer() -> None:
    layer = dl.parse("W: [2, 3]; x: [3]; b: [2]; relu(W @ x + b) * 2")
    values = {
        "W": np.array([[1.0, -2.0, 0.5], [0.3, 0.2, -1.0]]),
        "x": np.array([1.0, 0.1, -0.4]),
        "b": np.array([0.1, 0.2]),
    }
    tensors = {name: dl.tensor(value, requires_grad=True) for name, value in values.items()}
    loss = np.sum(np.sin(layer(**tensors)) * 3.0)
    loss.backward()
    whole = dl.parse("W: [2, 3]; x: [3]; b: [2]; sum(sin(relu(W @ x + b) * 2) * 3)")
    assert loss.item() == float(whole(**values))
    expected = dl.gradient(whole)(**values)
    found = {name: tensor.grad.numpy().ravel() for name, tensor in tensors.items()}
    assert np.array_equal(np.concatenate([found[name] for name in whole.inputs]), expected)
    # Derivatives are functions, so they are layers, too.
    x = dl.tensor(2.0, requires_grad=True)
    dl.gradient(dl.parse("x^3 / 3"))(x)[0].backward()
    assert x.grad.item() == 4.0


def test_a_formula_takes_tensors_beside_numbers() -> None:
    f = dl.parse("a * sin(x) + 2")
    x = dl.tensor(0.5, requires_grad=True)
    f(3.0, x).backward()
    assert x.grad.item() == 3.0 * np.cos(0.5)
    for layer in (f, dl.compile(f)):
        batch = dl.tensor([0.5, 0.6], requires_grad=True)
        np.sum(layer(3.0, batch)).backward()
        assert batch.grad.numpy() == pytest.approx(3.0 * np.cos([0.5, 0.6]), rel=1e-15)


@pytest.mark.parametrize("make", ["trace", "tensor"])
def test_indices_out_of_bounds_name_themselves_the_shape_and_the_line(make: str) -> None:
    def second(x: Any) -> Any:
        return x[1, 3] * 2.0

    zeros = np.zeros((2, 3))
    with pytest.raises(ShapeError, match=r"index 3 is outside axis 1 of the shape \(2, 3\)") as hit:
        dl.trace(second, zeros) if make == "trace" else second(dl.tensor(zeros))
    assert isinstance(hit.value, IndexError)
    assert isinstance(hit.value, IndexingError)
    assert "x[1, 3]" in hit.value.render()
    assert "test_leaves.py" in hit.value.render()
    with pytest.raises(IndexingError, match="3 indices"):
        dl.tensor(zeros)[0, 0, 0]


def test_iteration_ends() -> None:
    def total(x: Any) -> Any:
        found = 0.0
        for row in x:
            first, second, third = row
            found = found + first * second * third
        return found + sum(value * 2.0 for value in reversed(x[0]))

    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert float(dl.trace(total, x)(x)) == 6.0 + 120.0 + 12.0
    assert total(dl.tensor(x)).item() == 138.0


@pytest.mark.parametrize(
    ("function", "way_out"),
    [
        (lambda x: np.choose([0, 1, 0], [x, 2 * x]), r"np\.where"),
        (lambda x: np.apply_along_axis(np.sum, 0, x), r"dl\.vmap"),
        (lambda x: np.add.reduce(x), "numpy.add is supported as a function"),
        (lambda x: np.unique(x), "select by"),
    ],
)
def test_functions_that_difflab_lacks_point_a_way_out(
    function: Callable[[Any], Any], way_out: str
) -> None:
    with pytest.raises(TraceError, match="has no primitive for numpy") as caught:
        dl.trace(function, np.ones(3))
    with pytest.raises(InputError, match="has no derivative for numpy") as eager:
        function(dl.tensor(np.ones(3), requires_grad=True) * 2.0)
    for error in (caught, eager):
        text = error.value.render()
        assert "test_leaves.py" in text
        assert "lambda x" in text
        assert re.search(way_out, text)
