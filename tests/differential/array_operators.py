"""Laplacians of random programs on arrays, in every way, against the trace of the Hessian.

Half of the programs are those of the family `arrays`, which holds Hessians to JAX; the others are
products of matrices and elementwise functions in turn, as in a network. The coordinates are all
inputs, or one of them: a vector, a matrix or a stack that the others multiply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, product
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.errors import UnsupportedError
from tests.differential.arrays import FEW, Program, programs
from tests.differential.search import Family

WAYS = ("collapsed", "jets", "forward-reverse", "reverse")
TOLERANCE = 1e-9
"""Of the largest second derivative, and of 1, for each element of the inputs."""
LARGEST = 1e6
"""A second derivative beyond which rounding decides."""
SHAPES = ((2,), (3,), (2, 3), (3, 2), (2, 2), (2, 2, 2))
PRODUCTS = {
    "a @ b": lambda a, b: a @ b,
    "b @ a": lambda a, b: b @ a,
    "a @ b.T": lambda a, b: a @ b.T,
    "a.T @ b": lambda a, b: a.T @ b,
    "a @ a.T": lambda a, b: a @ a.T,
    "a * b": lambda a, b: a * b,
    "mean over rows": lambda a, b: np.mean(a, 0),
}
ELEMENTWISE = {
    "tanh": np.tanh,
    "bell": lambda a: a * np.exp(-(a**2)),
    "sin": np.sin,
    "quotient": lambda a: a / (2.0 + a**2),
}


@dataclass(frozen=True)
class Chain:
    """Products with inputs, each followed by an elementwise function."""

    shapes: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[str, int, str], ...]
    seed: int

    def point(self) -> list[Any]:
        """Return the inputs of a call."""
        rng = np.random.default_rng(self.seed)
        return [rng.normal(size=shape) for shape in self.shapes]

    def total(self, inputs: Sequence[Any]) -> Any:
        """Return the sum of the last value."""
        value = inputs[0]
        for name, other, function in self.steps:
            value = ELEMENTWISE[function](PRODUCTS[name](value, inputs[other]))
        return np.sum(value)

    def possible(self) -> Chain:
        """Return the chain of the steps that NumPy can compute."""
        found = replace(self, steps=())
        for step in self.steps:
            longer = replace(found, steps=(*found.steps, step))
            try:
                longer.total(self.point())
            except (TypeError, ValueError):  # as a.T of a scalar
                continue
            found = longer
        return found


@st.composite
def _chains(draw: st.DrawFn) -> Chain:
    shapes = tuple(draw(st.lists(st.sampled_from(SHAPES), min_size=2, max_size=3)))
    step = st.tuples(
        st.sampled_from(sorted(PRODUCTS)),
        st.integers(0, len(shapes) - 1),
        st.sampled_from(sorted(ELEMENTWISE)),
    )
    steps = tuple(draw(st.lists(step, min_size=1, max_size=4)))
    return Chain(shapes, steps, draw(st.integers(0, 2**16))).possible()


def check(drawn: Chain | Program) -> None:
    """Hold the Laplacian in every way to the trace of the Hessian, as a Function and as code."""
    if isinstance(drawn, Chain):
        total, point = drawn.total, drawn.point()
    else:
        program = replace(drawn, points="normal", setting=replace(drawn.setting, still=0))
        total, point = (lambda inputs: program.total(inputs, np)), program.point(1)
    sizes = [part.size for part in point]
    if 0 in sizes or sum(sizes) > FEW:
        return
    function = dl.trace(lambda *inputs: total(inputs), *point)
    hessian = dl.hessian(function)(*point)
    if not np.isfinite(hessian).all() or np.max(np.abs(hessian)) > LARGEST:
        return
    allowed = TOLERANCE * len(hessian) * max(1.0, float(np.max(np.abs(hessian))))
    ends = [0, *accumulate(sizes)]
    choices = {(k,): slice(ends[k], ends[k + 1]) for k in range(len(sizes))}
    choices[tuple(range(len(sizes)))] = slice(None)
    for (chosen, part), way in product(choices.items(), WAYS):
        expected = np.sum(np.diag(hessian)[part])
        try:
            found = dl.laplacian(function, chosen, way)(*point)
        except UnsupportedError:  # a rule without Taylor coefficients
            continue
        code = dl.laplacian(lambda *inputs: total(inputs), chosen, way)(*point)
        for value in (found, code):
            message = f"{value} by {way} for {expected} by {chosen} of {drawn!r}"
            assert abs(value - expected) <= allowed, message


FAMILY = Family("array_operators", st.one_of(_chains(), programs()), check, fixed=120, fresh=30)
