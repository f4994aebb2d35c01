"""Random Python functions under random nests of transforms, against the same programs in JAX.

A program is a body of operations on trees of small arrays, some of them derivatives of inner
functions that close over outer values, and the transforms around it, up to order 4. It is run with
difflab, directly and traced, and with JAX in float64; structures, shapes and values must agree.
Without JAX it is held to what is equal by algebra: forward for reverse mode, Jacobians times
vectors for products, loops for `vmap`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from tests.differential.bodies import INNER, OPERATIONS, Instruction, run_body
from tests.differential.nests import LAYERS, OURS, THEIRS, leaves, mapped, rebuilt, signs
from tests.differential.search import Family

if find_spec("jax"):
    from tests.differential.jaxprs import computed
else:  # the algebraic identities take its place
    computed = None

TOLERANCE = 1e-9
"""Of the largest number of the result, and of 1.

Every operation is bounded and smooth with slopes of a few units on the sampled values, so rounding
grows by some factor of ten with each of four orders; a wrong rule differs in the first digits.
"""

LARGEST_GRAPH = 150
"""Nodes of a Function whose derivatives are taken once more by every mode."""


class Pair(NamedTuple):
    """A container with names."""

    left: Any
    right: Any


@dataclass(frozen=True)
class Program:
    """A function and the transforms around it.

    Attributes
    ----------
    args : tuple
        A form for each argument: a shape such as "2x3", or a container of forms.
    body : tuple
        The operations.
    result : form
        How results are grouped; shapes stand for any result.
    layers : tuple
        The transforms, the innermost first, with a number that chooses their details.
    seed : int
        Of the point.
    traced : bool
        Whether the whole is traced as a Function first.
    """

    args: tuple[Any, ...]
    body: tuple[Instruction, ...]
    result: Any
    layers: tuple[tuple[str, int], ...]
    seed: int
    traced: bool


SHAPES = st.sampled_from(["", "2", "3", "2x3", "1"])
FORMS = st.one_of(
    SHAPES,
    st.recursive(
        st.one_of(SHAPES, st.none()),
        lambda inner: st.one_of(
            st.tuples(inner, inner),
            st.lists(inner, max_size=2),
            st.fixed_dictionaries({"b": inner, "a": inner}),
            st.builds(Pair, inner, inner),
        ),
        max_leaves=3,
    ),
)
NUMBER = st.integers(0, 30)
PLAIN = st.tuples(st.sampled_from(OPERATIONS), NUMBER, NUMBER, st.just(()))
BODIES = st.lists(
    st.one_of(
        PLAIN,
        PLAIN,
        PLAIN,
        st.tuples(
            st.sampled_from(INNER),
            NUMBER,
            NUMBER,
            st.lists(PLAIN, min_size=1, max_size=3).map(tuple),
        ),
    ),
    min_size=1,
    max_size=5,
).map(tuple)
LAYER = st.tuples(st.sampled_from(list(LAYERS)), NUMBER)
NESTS = st.sampled_from([1, 1, 1, 1, 2, 2, 2, 3, 4]).flatmap(
    lambda most: st.lists(LAYER, max_size=most).map(lambda layers: tuple(_up_to_order(layers, 4)))
)


def _up_to_order(layers: list[tuple[str, int]], limit: int) -> list[tuple[str, int]]:
    kept, order = [], 0
    for name, detail in layers:
        order += LAYERS[name][0]
        if order <= limit:
            kept.append((name, detail))
    return kept


PROGRAMS = st.builds(
    Program,
    args=st.lists(FORMS, min_size=1, max_size=3)
    .map(tuple)
    .filter(lambda forms: all(leaves(form) for form in forms)),
    body=BODIES,
    result=FORMS.filter(leaves),
    layers=NESTS,
    seed=st.integers(0, 1000),
    traced=st.booleans(),
)


def function_of(program: Program, lib: Any) -> Callable[..., Any]:
    """Return the program in the words of one library."""

    def plain(*args: Any) -> Any:
        count = len(leaves(program.result))
        return rebuilt(program.result, iter(run_body(lib, leaves(args), program.body, count)))

    fun: Callable[..., Any] = plain
    for name, detail in program.layers:
        fun = LAYERS[name][1](lib, fun, detail)
    return fun


def point_of(program: Program) -> tuple[Any, ...]:
    generator = np.random.default_rng(program.seed)

    def drawn(form: str) -> Any:
        shape = tuple(map(int, form.split("x"))) if form else ()
        return np.asarray(generator.uniform(-1.2, 1.2, shape))[()]

    return tuple(mapped(drawn, arg) for arg in program.args)


def traced(program: Program, point: tuple[Any, ...]) -> Any:
    """Return the result by way of a Function of all leaves."""
    trees: list[Any] = []

    def flat(*values: Any) -> Any:
        trees.append(function_of(program, OURS)(*rebuilt(point, iter(values))))
        return tuple(leaves(trees[0]))

    function = dl.trace(flat, *leaves(point))
    if program.seed % 3 == 0 and len(function.graph) < LARGEST_GRAPH:
        same_in_every_mode(function, leaves(point))
    found = function(*leaves(point))
    return rebuilt(trees[0], iter(found if isinstance(found, tuple) else (found,)))


def same_in_every_mode(function: dl.Function, values: list[Any]) -> None:
    """Hold the Jacobians of a Function to each other, and its second derivatives."""
    expected = dl.jacobian(function, "forward")(*values)
    scale = float(np.max(np.abs(expected), initial=1.0))
    count = sum(np.size(value) for value in values)
    columns = [
        np.concatenate(
            [np.ravel(dot) for dot in dl.jvp(function)(*values, *unit)[-len(function.outputs) :]]
        )
        for unit in (rebuilt(values, iter(_unit(values, k))) for k in range(min(count, 3)))
    ]
    for found in (
        dl.jacobian(function, "reverse")(*values),
        dl.jacobian(function, "auto")(*values),
        dl.sparse_jacobian(function)(*values).toarray(),
    ):
        same(found, expected, scale, "a Jacobian")
    same(np.stack(columns, 1), expected[:, : len(columns)], scale, "products")
    along_a_curve(function, values)
    if function.m == 1:
        second = dl.hessian(function)(*values)
        scale = float(np.max(np.abs(second), initial=1.0))
        same(dl.jacobian(dl.gradient(function), "reverse")(*values), second, scale, "a Hessian")
        same(dl.sparse_hessian(function)(*values).toarray(), second, scale, "a sparse Hessian")


def along_a_curve(function: dl.Function, values: list[Any]) -> None:
    """Hold Taylor mode to forward mode over forward mode, along one direction."""
    alone = function.input_shapes == ((),)  # then the direction is 1
    dots = [np.cos(0 * value if alone else value) for value in values]
    zeros = [np.zeros(np.shape(value)) for value in values]
    count = len(function.outputs)
    second = dl.jvp(dl.jvp(function))(*values, *dots, *dots, *zeros)[-count:]
    found = dl.taylor(function, order=2)(*values, *([] if alone else dots))
    for series, expected in zip(found if count > 1 else [found], second, strict=True):
        scale = float(np.max(np.abs(expected), initial=1.0))
        same(2 * np.asarray(series)[2], expected, scale, "Taylor mode")


def _unit(values: list[Any], place: int) -> list[Any]:
    """Return the unit direction of one of all numbers, in the values' shapes."""
    flat = np.zeros(sum(np.size(value) for value in values))
    flat[place] = 1.0
    ends = np.cumsum([np.size(value) for value in values])[:-1]
    return [
        part.reshape(np.shape(value))[()]
        for part, value in zip(np.split(flat, ends), values, strict=True)
    ]


def same(found: Any, expected: Any, scale: float, path: str = "result") -> None:
    """Compare two trees: containers by type, leaves by shape and value."""
    if expected is None or isinstance(expected, tuple | list | dict):
        assert type(found) is type(expected), f"{path}: {found!r} instead of {expected!r}"
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected), f"{path}: {found!r} instead of {expected!r}"
        for key in expected:
            same(found[key], expected[key], scale, f"{path}[{key!r}]")
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected), f"{path}: {found!r} instead of {expected!r}"
        for place, pair in enumerate(zip(found, expected, strict=True)):
            same(*pair, scale, f"{path}[{place}]")
    elif expected is not None:
        ours, theirs = np.asarray(found), np.asarray(expected)
        assert ours.shape == theirs.shape, f"{path}: {ours!r} instead of {theirs!r}"
        assert ours.dtype == np.float64, f"{path}: {ours.dtype}"
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE * scale, err_msg=path)


def on_tensors(program: Program, point: tuple[Any, ...], expected: Any) -> None:
    """Hold the results for tensors to those for arrays, in every third program."""
    if program.seed % 3 != 1:
        return
    fun = function_of(program, OURS)
    tensors = mapped(lambda leaf: dl.tensor(leaf, requires_grad=True), point)
    found = fun(*tensors)
    arrays = mapped(lambda leaf: np.asarray(getattr(leaf, "_data", leaf), float)[()], found)
    sizes = [np.max(np.abs(leaf), initial=1.0) for leaf in leaves(expected)]
    same(arrays, expected, float(max(sizes, default=1.0)), "on tensors")
    total = weighted(found)
    if program.seed % 2 or not getattr(total, "requires_grad", False):
        return
    total.backward()
    slopes = mapped(lambda t: np.zeros(t.shape) if t.grad is None else t.grad.numpy(), tensors)
    numbers = tuple(range(len(point)))
    wanted = dl.jacrev(lambda *a: weighted(fun(*a)), numbers)(*point)
    scale = max((np.max(np.abs(leaf), initial=1.0) for leaf in leaves(wanted)), default=1.0)
    same(slopes, wanted, float(scale), "backward")


def weighted(found: Any) -> Any:
    """Return the sum of all numbers under weights of both signs."""
    return sum((np.sum(leaf * signs(leaf)) for leaf in leaves(found)), 0.0)


def check(program: Program) -> None:
    """Run a program with difflab and with another library, and compare."""
    point = point_of(program)
    with np.errstate(all="ignore"):
        found = traced(program, point) if program.traced else function_of(program, OURS)(*point)
        on_tensors(program, point, found)
        fun = function_of(program, THEIRS)
        expected = fun(*point) if computed is None else computed(fun, point)
    sizes = [np.max(np.abs(leaf), initial=1.0) for leaf in leaves(expected)]
    same(found, expected, float(max(sizes, default=1.0)))


FAMILY = Family("transforms", PROGRAMS, check, fixed=200, fresh=40)
