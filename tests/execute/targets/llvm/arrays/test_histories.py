"""Recurrences that read several steps back are loops of machine code, forward and backward."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.execute.lower.schedule import Schedule
from difflab.graph.function import Function
from tests.support.rows import for_each

pytest.importorskip("llvmlite")

from difflab.execute.dispatch import TargetDispatch
from difflab.execute.targets.llvm.arrays import NativeArrays
from difflab.execute.targets.llvm.arrays.expansion import instructions
from difflab.execute.targets.llvm.arrays.groups import arranged
from difflab.execute.targets.llvm.arrays.loop_detection import MOST_BEFORE, segmented

RNG = np.random.default_rng(3)


def recurrence(order: int, steps: int, own: bool = False) -> Callable[..., Any]:
    """Return y(n) = Σ a(i) y(n-i), or of the sines where it has a function of its `own`."""

    def last(a: Any, first: Any) -> Any:
        ys = [first[i] for i in range(order)]
        for _ in range(steps):
            ys.append(sum(a[i] * (np.sin(ys[-1 - i]) if own else ys[-1 - i]) for i in range(order)))
        return ys[-1]

    return last


def slopes(a: Any, first: Any, steps: int) -> tuple[float, Any, Any]:
    """Return the value, and its derivatives by a and by the first values, by companion matrices."""
    order = len(a)
    companion = np.eye(order, k=-1)
    companion[0] = a
    state, by_a, by_first = first[::-1].copy(), np.zeros((order, order)), np.eye(order)[:, ::-1]
    for _ in range(steps):
        by_a = companion @ by_a
        by_a[0] += state
        state, by_first = companion @ state, companion @ by_first
    return state[0], by_a[0], by_first[0]


@for_each("steps", [1, 4, 5, 6, 7, 8, 9, 50])
@pytest.mark.parametrize("order", range(1, MOST_BEFORE + 2))
def test_values_and_gradients_of_every_order(
    order: int, steps: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    a, first = rng.uniform(0.2, 1.0, order) / order, rng.uniform(0.5, 1.5, order)
    f = dl.trace(recurrence(order, steps), a, first)
    code = NativeArrays(Schedule.of(dl.value_and_grad(f, argnums=(0, 1))))
    for found, right in zip(code([a, first]), slopes(a, first, steps), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("order", range(1, MOST_BEFORE + 1))
def test_code_does_not_grow_with_the_steps(order: int) -> None:
    def sizes(steps: int) -> tuple[int, int]:
        f = dl.trace(recurrence(order, steps, own=True), np.full(order, 0.5), np.ones(order))
        both = (f, dl.gradient(f))
        value, gradient = (arranged(instructions(Schedule.of(g))).operations for g in both)
        return value, gradient

    assert sizes(400) == sizes(800)


def test_as_many_pieces_stand_before_a_loop_as_steps_are_read_back() -> None:
    for order in range(1, MOST_BEFORE + 1):
        f = dl.trace(recurrence(order, 50, own=True), np.full(order, 0.5), np.ones(order))
        long = max(segmented(instructions(Schedule.of(f))).segments, key=lambda s: s.count)
        assert long.count > 40
        assert long.before <= order


def chebyshev(degree: int) -> Function:
    """Return T(n) by its recurrence of three terms."""

    def polynomial(x: Any) -> Any:
        older, old = 1.0, x
        for _ in range(degree - 1):
            older, old = old, 2.0 * x * old - older
        return old

    return dl.value_and_gradient(dl.trace(polynomial, 0.5))


def test_chebyshev_polynomials() -> None:
    """T(cos t) = cos nt, and its slope is n sin nt / sin t."""
    sources = []
    for degree in (1000, 2000):
        fast = dl.compile(chebyshev(degree), target="native")
        value, slope = fast(math.cos(1.1))
        np.testing.assert_allclose(value, math.cos(1.1 * degree), atol=1e-10)
        right = degree * math.sin(1.1 * degree) / math.sin(1.1)
        np.testing.assert_allclose(slope, [right], atol=1e-7)
        sources.append(fast.source.count("\n"))
    assert sources[0] == sources[1] < 500


def test_a_hundred_thousand_operations_that_repeat_are_a_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def root(a: Any) -> Any:
        x = a
        for _ in range(40_000):
            x = 0.5 * (x + a / x)
        return x

    def planned(self: Any) -> Any:
        raise AssertionError("NumPy's plan is made for a batch only")

    monkeypatch.setattr(TargetDispatch, "_numpy", property(planned))
    fast = dl.compile(dl.trace(root, 2.0), target="native")
    assert fast(2.0) == pytest.approx(math.sqrt(2), rel=1e-15)
    assert fast.source.count("\n") < 200


def test_a_turn_may_read_what_it_writes_itself_where_pieces_before_the_loop_do_not(
    rng: np.random.Generator,
) -> None:
    """From the third step on each reads the middle of its own waves, so they share no nest."""

    def steps(s: Any) -> Any:
        waves: list[Any] = []
        first = s = np.tanh(s)
        for k in range(30):
            waves.append(np.concatenate([np.sin(s), np.cos(s)]))
            seen = first if k < 2 else waves[k][19:59]
            s = (0.5 * s + seen) * waves[k][0]
        return s

    s = rng.normal(size=40)
    f = dl.trace(steps, s)
    cut = segmented(instructions(Schedule.of(f)))
    assert any(segment.before == 2 for segment in cut.segments)
    np.testing.assert_allclose(NativeArrays(Schedule.of(f))([s])[0], steps(s), rtol=1e-13)
