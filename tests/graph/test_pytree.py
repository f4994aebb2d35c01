"""Trees: leaves in order, structures by value, any depth."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import difflab as dl
from difflab.errors import InputError
from difflab.graph.pytree import expression, flatten, unflatten

TREES = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(TREES)
def test_unflatten_undoes_flatten(tree) -> None:
    leaves, structure = flatten(tree)
    assert structure.leaves == len(leaves)
    assert unflatten(structure, leaves) == tree
    assert flatten(unflatten(structure, range(len(leaves))))[1] == structure


@given(TREES)
def test_an_expression_is_unflatten(tree) -> None:
    """The code of compiled functions that makes their results."""
    leaves, structure = flatten(tree)
    names = [f"v{k}" for k in range(len(leaves))]
    found = expression(structure, names)
    assert found is not None
    code, scope = found
    assert eval(code, scope | dict(zip(names, leaves, strict=True))) == tree


Pair = namedtuple("Pair", "a b")


class Stacked(tuple):
    """A tuple of a type of its own."""


@dataclass
class Bare:
    """Fields in the dict, which nothing checks."""

    a: object
    b: object

    def __post_init__(self) -> None:
        raise AssertionError


@dataclass(frozen=True, slots=True)
class Slotted:
    """Fields in slots, which cannot be assigned to."""

    a: object
    b: object


def test_expressions_of_types_of_their_own() -> None:
    bare = object.__new__(Bare)
    vars(bare).update(a=1.0, b=Slotted(2.0, None))
    tree = [bare, Stacked((3.0, Pair(4.0, 5.0)))]
    leaves, structure = flatten(tree)
    code, scope = expression(structure, [repr(leaf) for leaf in leaves])  # type: ignore[misc]
    for again in (eval(code, scope), unflatten(structure, leaves)):
        assert again == tree
        assert type(again[1]) is Stacked
        assert type(again[1][1]) is Pair
    deep: object = 1.0
    for _ in range(300):
        deep = [deep]
    assert expression(flatten(deep)[1], ["x"]) is None
    assert expression(flatten(OrderedDict(b=1, a=2))[1], ["x", "y"]) is None


def test_order_of_leaves_and_of_keys() -> None:
    tree = {"w": (1, [2, None, {}]), "b": 0}
    leaves, structure = flatten(tree)
    assert leaves == [0, 1, 2]
    assert str(structure) == "{'b': *, 'w': (*, [*, None, {}])}"
    assert structure != flatten({"w": (1, [2, {}, None]), "b": 0})[1]
    assert hash(structure) == hash(flatten({"b": 5, "w": (6, [7, None, {}])})[1])


def test_named_tuples_keep_their_type() -> None:
    Pair = namedtuple("Pair", "a b")
    leaves, structure = flatten([Pair(1, (2, 3))])
    assert unflatten(structure, leaves) == [Pair(1, (2, 3))]
    assert isinstance(unflatten(structure, leaves)[0], Pair)


def test_keys_that_cannot_be_sorted_stay_in_order() -> None:
    assert flatten({"b": 1, 2: 3})[0] == [1, 3]


def test_depth_is_only_length() -> None:
    tree: list = [1.0]
    for _ in range(100_000):
        tree = [tree]
    leaves, structure = flatten(tree)
    assert leaves == [1.0]
    back = unflatten(structure, leaves)
    for _ in range(100_000):
        (back,) = back
    assert back == [1.0]


def test_a_shared_container_is_no_cycle_but_a_cycle_is() -> None:
    shared = [1, 2]
    assert flatten([shared, shared])[0] == [1, 2, 1, 2]
    loop: list = [1]
    loop.append((loop,))
    with pytest.raises(InputError, match="contains itself"):
        flatten(loop)


def test_ordered_and_default_dicts_are_trees() -> None:
    def f(p: Any) -> Any:
        return np.sum(p["b"]) * p["a"] + p["c"][0]

    plain = {"b": np.ones(2), "a": np.array(3.0), "c": [np.array(1.0)]}
    for tree in (OrderedDict(plain), defaultdict(list, plain)):
        found = dl.grad(f)(tree)
        assert type(found) is type(tree)
        assert list(found) == (list(tree) if isinstance(tree, OrderedDict) else sorted(tree))
        assert found["b"].tolist() == [3.0, 3.0]
        assert (float(found["a"]), float(found["c"][0])) == (2.0, 1.0)
        assert dl.jit(dl.grad(f))(tree)["b"].tolist() == [3.0, 3.0]
        assert float(dl.jvp(f, (tree,), (tree,))[1]) == 13.0
        assert dl.hessian(f)(tree)["a"]["b"].tolist() == [1.0, 1.0]
        assert float(dl.trace(f, tree)(tree)) == 7.0
        stacked = tree.copy()
        stacked["a"] = np.array([3.0, 4.0])
        axes = {"a": 0, "b": None, "c": None}
        assert dl.vmap(f, (axes,))(stacked).tolist() == [7.0, 9.0]
    made = unflatten(flatten(defaultdict(list, {"x": 1.0}))[1], [2.0])
    made["new"].append(1)
    assert made == {"x": 2.0, "new": [1]}
    order = OrderedDict(z=1.0, a=2.0)
    assert unflatten(*reversed(flatten(order))) == order
