"""`interop.jax.wrap` and `interop.torch.wrap` on random functions under the libraries' transforms.

A program is a function and one of the transforms that JAX and ``torch.func`` share. The wrapped
function, which difflab computes and differentiates, is held to the same Function called on their
arrays, which they compute and differentiate by their own rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.core.optional import load
from tests.differential.nearness import assert_close
from tests.differential.search import Family
from tests.differential.steps import Steps, computed, drawn

JAX, TORCH = load("jax").module, load("torch").module
if JAX is not None:
    JAX.config.update("jax_enable_x64", True)
TOLERANCE = 1e-10
"""Of the largest number of a result, and of 1."""
SHAPES = ((3,), (), (2, 3))
"""Of the inputs x, s and W."""
TARGETS = ("numpy", "auto")


@dataclass(frozen=True)
class Program:
    """Operations on earlier vectors, a transform, which inputs it concerns, and the point."""

    steps: Steps
    several: bool
    transform: str
    chosen: int
    target: str
    seed: int


OPERATIONS: dict[str, Callable[..., Any]] = {
    "sine": lambda a, b, s, W: np.sin(a) * b,
    "line": lambda a, b, s, W: a * s + b,
    "layer": lambda a, b, s, W: np.tanh(W @ a) @ W,
    "where": lambda a, b, s, W: np.where(a > b, a * b, b * s),
    "running": lambda a, b, s, W: np.cumsum(a) - b,
    "turned": lambda a, b, s, W: a[::-1] * b,
    "bell": lambda a, b, s, W: np.exp(-a * a) + s,
    "total": lambda a, b, s, W: np.sum(a) * b + np.prod(b),
    "quotient": lambda a, b, s, W: a / (1.5 + b * b),
    "extremes": lambda a, b, s, W: np.maximum(a, b) * np.max(W),
    "joined": lambda a, b, s, W: np.concatenate([a[1:], b[:1] * s]),
    "root": lambda a, b, s, W: np.sqrt(1 + a * a) * np.sum(W * b, axis=1)[0],
    "softmax": lambda a, b, s, W: dl.arrays.softmax(a) * b,
    "constant": lambda a, b, s, W: 0.5 * np.ones(3) + 0 * a,
}


def function_of(program: Program) -> dl.Function:
    """Return the function of x, s and W."""

    def fun(x: Any, s: Any, W: Any) -> Any:
        def operation(name: str, a: Any, b: Any) -> Any:
            return np.tanh(OPERATIONS[name](a, b, s, W))

        values = computed(program.steps, (x, W[0] - x), operation)
        return (values[-1], np.sum(values[-2]) * s) if program.several else values[-1]

    return dl.trace(fun, *map(np.ones, SHAPES))


@dataclass(frozen=True)
class Library:
    """JAX or PyTorch: its transforms, its functions on arrays, and its arrays."""

    transforms: Any
    sin: Callable[[Any], Any]
    array: Callable[[Any], Any]


def total(lib: Library, f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a number of all results, with weights that tell them apart."""

    def summed(*args: Any) -> Any:
        found = f(*args)
        outputs = found if isinstance(found, tuple) else (found,)
        return sum((k + 1.5) * lib.sin(one).sum() for k, one in enumerate(outputs))

    return summed


def _vjp(lib: Library, f: Any, args: Any, dots: Any, chosen: Any) -> Any:
    value, pull = lib.transforms.vjp(f, *args)
    outputs = value if isinstance(value, tuple) else (value,)
    bars = tuple(lib.sin(1.0 + one) for one in outputs)
    return pull(bars if isinstance(value, tuple) else bars[0])


def _hvp(lib: Library, f: Any, args: Any, dots: Any, chosen: Any) -> Any:
    return lib.transforms.jvp(lib.transforms.grad(total(lib, f), chosen), args, dots)


def _reverse_twice(lib: Library, f: Any, args: Any, dots: Any, chosen: Any) -> Any:
    slope = lib.transforms.grad(total(lib, f), chosen[:1])
    return lib.transforms.grad(lambda *a: lib.sin(slope(*a)[0]).sum(), chosen)(*args)


def _forward_twice(lib: Library, f: Any, args: Any, dots: Any, chosen: Any) -> Any:
    return lib.transforms.jvp(lambda *a: lib.transforms.jvp(f, a, dots)[1], args, dots)


def _stacked(lib: Library, args: Any, chosen: Any) -> tuple[Any, ...]:
    """Return arguments of which those chosen are two examples."""
    pairs = ((value, 0.5 * value) for value in args)
    return tuple(
        lib.array(np.stack([np.asarray(part) for part in pair])) if k in chosen else pair[0]
        for k, pair in enumerate(pairs)
    )


def _mapped(wrap: Callable[[Library, Any], Any]) -> Callable[..., Any]:
    """Return a transform of a function over examples."""

    def run(lib: Library, f: Any, args: Any, dots: Any, chosen: Any) -> Any:
        axes = tuple(0 if k in chosen else None for k in range(len(args)))
        return lib.transforms.vmap(wrap(lib, f), axes)(*_stacked(lib, args, chosen))

    return run


def _batch(lib: Library, f: Any, args: Any, dots: Any, chosen: Any) -> Any:
    stacked = _stacked(lib, args, chosen)
    return f(*stacked), lib.transforms.grad(total(lib, f), chosen)(*stacked)


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "value": lambda lib, f, args, dots, chosen: f(*args),
    "jvp": lambda lib, f, args, dots, chosen: lib.transforms.jvp(f, args, dots),
    "vjp": _vjp,
    "grad": lambda lib, f, args, dots, chosen: lib.transforms.grad(total(lib, f), chosen)(*args),
    "hvp": _hvp,
    "reverse twice": _reverse_twice,
    "forward twice": _forward_twice,
    "batch": _batch,
    "vmap": _mapped(lambda lib, f: f),
    "vmap of grad": _mapped(lambda lib, f: lib.transforms.grad(total(lib, f), (0, 1, 2))),
    "jacobian": lambda lib, f, args, dots, chosen: lib.transforms.jacrev(f, chosen)(*args),
    "tangents": lambda lib, f, args, dots, chosen: lib.transforms.jacfwd(f, chosen)(*args),
}
CHOICES = ((0,), (1,), (2,), (0, 1), (0, 2), (0, 1, 2))

PROGRAMS = st.builds(
    Program,
    steps=drawn(OPERATIONS, 4),
    several=st.booleans(),
    transform=st.sampled_from(list(TRANSFORMS)),
    chosen=st.integers(0, len(CHOICES) - 1),
    target=st.sampled_from(TARGETS),
    seed=st.integers(0, 1000),
)


def libraries() -> list[tuple[Library, Callable[..., Any]]]:
    """Return the libraries that are installed, and what wraps functions for them."""
    found: list[tuple[Library, Callable[..., Any]]] = []
    if JAX is not None:
        from difflab.interop.jax import wrap as for_jax

        found.append((Library(JAX, JAX.numpy.sin, JAX.numpy.asarray), for_jax))
    if TORCH is not None:
        from difflab.interop.torch import wrap as for_torch

        found.append((Library(TORCH.func, TORCH.sin, TORCH.as_tensor), for_torch))
    return found


def check(program: Program) -> None:
    """Hold the wrapped function to the Function on the library's own arrays."""
    function = function_of(program)
    rng = np.random.default_rng(program.seed)
    numbers = [[rng.uniform(-1.2, 1.2, shape) for shape in SHAPES] for _ in range(2)]
    chosen, transform = CHOICES[program.chosen], TRANSFORMS[program.transform]
    for lib, wrap in libraries():
        args, dots = (tuple(map(lib.array, part)) for part in numbers)
        compiled = wrap(dl.compile(function, target=program.target))
        found = flat(transform(lib, compiled, args, dots, chosen))
        wanted = flat(transform(lib, lambda *a: function(*a), args, dots, chosen))
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, TOLERANCE)


def flat(found: Any) -> list[Any]:
    """Return the arrays of nested tuples."""
    if isinstance(found, tuple | list):
        return [array for part in found for array in flat(part)]
    return [np.asarray(found.detach() if hasattr(found, "detach") else found)]


FAMILY = Family("wrapped", PROGRAMS, check, fixed=24, fresh=6)
