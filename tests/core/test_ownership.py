"""No result of a public call shares memory with an argument, another result or a later call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.core.ownership import is_constant, owned
from difflab.errors import UnsupportedError
from difflab.graph.pytree import flatten

TARGETS = ("python", "numpy", "native")
PROGRAMS = {
    "identity": "x: [3]; x",
    "twice the same": "x: [3]; [x, x]",
    "both inputs": "x: [3]; y: [3]; [y, x]",
    "a part": "x: [4]; x[1:]",
    "constants": "x: [3]; [1.0, x]",
    "sum": "x: [3]; sum(x)",
    "product": "x: [3]; [x*2, sum(x)]",
}


def arrays(tree: Any) -> Iterator[np.ndarray]:
    """Yield the arrays in a tree of results."""
    for leaf in flatten(tree)[0]:
        value = getattr(leaf, "_data", leaf)
        if isinstance(value, np.ndarray):
            yield value


def check(call: Callable[..., Any], *args: Any) -> None:
    """Look for memory that two of arguments, results and the results of a second call share."""
    first, second = call(*args), call(*args)
    found = [*arrays(first), *arrays(second)]
    for place, one in enumerate(found):
        for other in [*arrays(list(args)), *found[:place]]:
            shared = np.shares_memory(one, other)
            assert not shared or (is_constant(one) and is_constant(other)), (one, other)


def values(function: dl.Function, batch: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.uniform(1.0, 2.0, batch + shape) for shape in function.input_shapes]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("batch", [(), (1,), (5,)])
def test_functions_and_compiled_ones(name: str, batch: tuple[int, ...]) -> None:
    function = dl.parse(PROGRAMS[name])
    derived = [function, dl.jacobian(function), dl.jvp(function), dl.vjp(function)]
    if len(function.outputs) == 1 and function.output_shapes[0] == ():
        derived += [dl.gradient(function), dl.value_and_gradient(function), dl.hessian(function)]
    for each in derived:
        args = values(each, batch)
        points = np.concatenate([arg.reshape(*batch, -1) for arg in args], axis=-1)
        check(each, *args)
        check(each.values, points)
        for target in TARGETS if each is function else TARGETS[:2]:
            with suppress(UnsupportedError):  # "python" has no arrays
                check(dl.compile(each, target=target), *args)
                check(dl.compile(each, target=target, packed=True), points)


def test_transforms_of_python_functions() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    held = np.array([5.0, 6.0])
    for fun in (lambda a: a, lambda a: (a, a), lambda a: {"p": a, "q": held}, lambda a: np.exp(a)):
        check(lambda a, fun=fun: fun_vjp(fun, a), x)
        check(lambda a, b, fun=fun: dl.jvp(fun, (a,), (b,)), x, y)
        check(lambda a, b, fun=fun: [dl.linearize(fun, a)[0], dl.linearize(fun, a)[1](b)], x, y)
        check(dl.jacfwd(fun), x)
        check(dl.jacrev(fun), x)
        check(dl.vmap(fun), x)
        assert not any(np.shares_memory(part, held) for part in arrays(dl.jvp(fun, (x,), (y,))))
    check(dl.trace(lambda a: (a, a), x), x)
    check(dl.grad(lambda a, b: np.sum(a + b), argnums=(0, 1)), x, y)
    check(dl.value_and_grad(lambda p: np.sum(p["a"] + p["b"])), {"a": x, "b": x})


def fun_vjp(fun: Callable[[Any], Any], x: Any) -> Any:
    result, pull = dl.vjp(fun, x)
    return result, pull(result)


def test_what_vjp_keeps_is_its_own() -> None:
    """The slope of exp is its value, which the caller may write to."""
    value, pull = dl.vjp(np.exp, np.zeros(2))
    value[:] = 100.0
    assert pull(np.ones(2))[0].tolist() == [1.0, 1.0]


def test_tensors_and_arrays() -> None:
    x = np.array([1.0, 2.0])
    t = dl.tensor(x, requires_grad=True)
    check(lambda a: dl.tensor(a), x)
    check(lambda a: dl.tensor(a).numpy(), x)
    check(lambda a: a.detach().array(), t)
    check(lambda a: a.copy(), t)
    check(lambda a: a.flatten(), t)
    for create_graph in (False, True):
        check(lambda seed, again=create_graph: gradients(seed, again), x)
        check(lambda seed, again=create_graph: gradients(seed, again), dl.tensor(x))
    shown = np.asarray(t.detach())
    assert not shown.flags.writeable


def gradients(seed: Any, create_graph: bool) -> list[Any]:
    x, y = (dl.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    z = x + y
    z.retain_grad()
    z.reshape(2).backward(seed, create_graph=create_graph)
    return [x.grad, y.grad, z.grad]


def test_owned_copies_what_is_shared_only() -> None:
    x = np.ones((2, 3))
    fresh = np.zeros(3)
    found = owned([x.T, fresh, fresh[1:], 2.0, np.broadcast_to(x, (2, 2, 3))], [x])
    assert found[1] is fresh
    assert [np.shares_memory(part, x) for part in (found[0], found[4])] == [False, False]
    assert not np.shares_memory(found[2], fresh)
