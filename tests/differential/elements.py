"""Array programs against their elements: the functions of numbers that the page of explore follows.

Values and Jacobians of both are computed by the same engine; what differs is that reductions,
transforms and small matrices are written out, element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.explore.scalars import scalar_function
from difflab.language import parse
from tests.differential.search import Family

__all__ = ["FAMILY"]

REDUCTIONS = ("max", "min", "norm", "logsumexp", "softmax", "log_softmax", "prod", "mean")
TRANSFORMS = ("rfft(x, [{axis}])", "irfft(x, [0, {size}])", "fft(x, [0])", "fft(x, [0, 1])")
MATRICES = ("det(A)", "logdet(A)", "cofactor(A)", "inv(A)", "solve(A, A[0])", "solve(A, 2*A - 1)")
RELATIVE = 1e-12


@dataclass(frozen=True)
class _Program:
    """A program and its point, which the seed draws."""

    text: str
    seed: int
    magnitude: float
    rounded: bool

    def point(self, count: int, shift: Any) -> Any:
        """Return a packed point; rounded elements are often equal."""
        x = np.random.default_rng(self.seed).normal(size=count) * self.magnitude
        return (np.round(x) if self.rounded else x) + shift


@st.composite
def _programs(draw: Any) -> _Program:
    kind = draw(st.sampled_from(("reduction", "transform", "matrix")))
    seed, rounded = draw(st.integers(0, 2**32)), draw(st.booleans())
    if kind == "matrix":
        size, stacked = draw(st.integers(1, 4)), draw(st.booleans())
        body = draw(st.sampled_from(MATRICES))
        lead = "2, " * (stacked and "A[0]" not in body)
        return _Program(f"A: [{lead}{size}, {size}]; {body}", seed, 1.0, rounded)
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    if kind == "transform":
        text = draw(st.sampled_from(TRANSFORMS))
        axis, size = draw(st.integers(0, len(shape) - 1)), draw(st.integers(1, 6))
        if "rfft(x, [{" not in text:
            shape = [size // 2 + 1 if text.startswith("i") else size, 2]
        text = text.format(axis=axis, size=size)
        return _Program(f"x: {shape}; {text}", seed, 1.0, rounded)
    axes = draw(st.lists(st.integers(0, len(shape) - 1), unique=True, max_size=len(shape)))
    name = draw(st.sampled_from(REDUCTIONS))
    magnitude = draw(st.sampled_from((1e-3, 1.0, 30.0, 1000.0)))
    text = f"{name}(x, {sorted(axes)})" if axes else f"{name}(x)"
    return _Program(f"x: {shape}; {text}", seed, magnitude, rounded)


def _check(program: _Program) -> None:
    function = parse(program.text)
    scalars = scalar_function(function)
    shift: Any = 0.0
    if program.text.startswith("A"):  # diagonally dominant, so that no digits are lost
        eye = np.eye(function.graph.shape(function.input_nodes[0])[-1])
        shift = np.resize(8.0 * eye.ravel(), function.n)
    point = program.point(function.n, shift)
    largest = np.abs(point).max(initial=1.0)
    with np.errstate(all="ignore"):
        _assert_near(scalars.values(point), function.values(point), largest, program)
        found, expected = (dl.jacobian(each).values(point) for each in (scalars, function))
        _assert_near(found, expected, 1.0, program)


def _assert_near(found: Any, expected: Any, scale: float, program: _Program) -> None:
    expected = np.ravel(expected)
    floor = RELATIVE * max(scale, np.abs(expected).max(initial=0.0)) * 1e-2
    np.testing.assert_allclose(
        np.ravel(found), expected, rtol=RELATIVE, atol=floor, err_msg=repr(program)
    )


FAMILY = Family("elements", _programs(), _check, fixed=150, fresh=40)
