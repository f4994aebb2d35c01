"""Array programs against their elements: the functions of numbers that the page of explore follows.

Values and Jacobians of both are computed by the same engine; what differs is that reductions,
transforms, orders, small matrices and loops with a condition, and the reverse sweeps of these, are
written out, element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.explore.scalars import SPARE_TURNS, scalar_function, unrolled
from difflab.graph.function import Function
from difflab.language import parse
from tests.differential.search import Family

__all__ = ["FAMILY"]

REDUCTIONS = ("max", "min", "norm", "logsumexp", "softmax", "log_softmax", "prod", "mean")
TRANSFORMS = ("rfft(x, [{axis}])", "irfft(x, [0, {size}])", "fft(x, [0])", "fft(x, [0, 1])")
ORDERS = (
    *("sort(x, [{axis}])", "argsort(x, [{axis}])", "argmax(x, [{axis}])"),
    *("is_maximum(x, [{axis}])*x", "take_along(x, argsort(cos(x), [{axis}]), [{axis}])"),
    *("put_along(x, argsort(x, [{axis}]) - 1, [{axis}, {size}])", "sum(sort(x, [{axis}])*cos(x))"),
)
MATRICES = ("det(A)", "logdet(A)", "cofactor(A)", "inv(A)", "solve(A, A[0])", "solve(A, 2*A - 1)")
FACTORS = ("slogdet(A)", "cholesky(A)", "qr(A)", "qr(A[:, :1])")
LOOPS = (
    "iterate(y = x; while sum(y*y) > 1; y*cos(y)/2)",
    "iterate(y = x, k = 0; while k < abs(x[0]); y + a*sin(y), k + 1)",
    "iterate(y = x; while max(y) < 20; iterate(z = y; while norm(z) > 2; z/2) + 2*abs(y) + 1)",
    "iterate(y = x; 3 times; iterate(z = y + a; while max(z) > 1; z/2 - 0.1))",
)
RELATIVE = 1e-12


@dataclass(frozen=True)
class _Program:
    """A program and its point, which the seed draws."""

    text: str
    seed: int
    magnitude: float
    rounded: bool
    derived: bool = False

    def function(self) -> Function:
        """Return the function, or its gradient."""
        function = parse(self.text)
        return dl.gradient(function) if self.derived else function

    def point(self, count: int, shift: Any) -> Any:
        """Return a packed point; rounded elements are often equal."""
        x = np.random.default_rng(self.seed).normal(size=count) * self.magnitude
        return (np.round(x) if self.rounded else x) + shift


@st.composite
def _programs(draw: Any) -> _Program:
    kind = draw(st.sampled_from(("reduction", "transform", "order", "matrix", "factor", "loop")))
    seed, rounded = draw(st.integers(0, 2**32)), draw(st.booleans())
    if kind in ("matrix", "factor"):
        size, stacked = draw(st.integers(1, 4)), draw(st.booleans())
        body = draw(st.sampled_from(MATRICES if kind == "matrix" else FACTORS))
        lead = "2, " * (stacked and "A[" not in body)
        return _Program(f"A: [{lead}{size}, {size}]; {body}", seed, 1.0, rounded)
    if kind == "loop":
        body, size = draw(st.sampled_from(LOOPS)), draw(st.integers(1, 3))
        magnitude = draw(st.sampled_from((0.1, 1.0, 5.0)))
        derived = draw(st.booleans())
        body = f"sum({body})" if derived else body
        return _Program(f"x: [{size}]; a: [{size}]; {body}", seed, magnitude, rounded, derived)
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    if kind == "order":
        axis, size = draw(st.integers(0, len(shape) - 1)), draw(st.integers(5, 6))
        text = draw(st.sampled_from(ORDERS)).format(axis=axis, size=size)
        return _Program(f"x: {shape}; {text}", seed, 1.0, rounded)
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
    function = program.function()
    shift: Any = 0.0
    if program.text.startswith("A"):  # diagonally dominant, so that no digits are lost
        eye = np.eye(function.graph.shape(function.input_nodes[0])[-1])
        shift = np.resize(8.0 * eye.ravel(), function.n)
    point = program.point(function.n, shift)
    with np.errstate(all="ignore"):
        opened = unrolled(function, _named(function, point))
        _assert_equal(function, opened.function, point, program)
        other = point * 1.5
        if opened.turns and not _needs_more(function, other, opened.turns):
            _assert_equal(function, opened.function, other, program)


def _named(function: Function, point: Any) -> dict[str, Any]:
    return dict(zip(function.inputs, function.split(point), strict=True))


def _needs_more(function: Function, point: Any, turns: list[int]) -> bool:
    """Whether a loop takes more turns at a point than were written out."""
    needed = unrolled(function, _named(function, point)).turns
    return any(one - SPARE_TURNS > two for one, two in zip(needed, turns, strict=False))


def _assert_equal(function: Function, opened: Function, point: Any, program: _Program) -> None:
    """Compare values and Jacobians at a point."""
    scalars = scalar_function(opened)
    largest = np.abs(point).max(initial=1.0)
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
