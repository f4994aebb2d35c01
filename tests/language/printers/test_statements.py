"""Loops, branches and checkpoints in printed C and Python, held to the same code run as it is."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.graph.function import Function
from difflab.language import parse
from difflab.language.printers import c, python
from tests.language.printers.test_code import COMPILER, compiled, in_c, in_python, point_of

SMALL = np.array([0.3, 0.8])


def cell(h: Any, x: Any) -> Any:
    return np.tanh(0.5 * h * x) + x, np.sum(h * x)


def scan(h: Any, x: Any) -> Any:
    return dl.scan(cell, h, x)


def backwards(h: Any, x: Any) -> Any:
    return dl.scan(lambda c, e: (e * c + 1, [c, c * e]), h[0], x[:, 0], reverse=True)


def swapped(h: Any, x: Any) -> Any:
    return dl.fori_loop(0, 5, lambda i, s: (s[1] * 0.5, s[0] + i, s[3], s[2]), (h, x[0], h[0], 2.0))


def newton(h: Any, x: Any) -> Any:
    step = lambda s: (s[0] - (s[0] * s[0] - x[0]) / (2 * s[0]), s[1] + 1)  # noqa: E731
    return dl.while_loop(lambda s: np.sum(abs(s[0] * s[0] - x[0])) > 1e-6, step, (h, h[0]))


def branch(h: Any, x: Any) -> Any:
    turn = lambda i, y: dl.cond(y[0] > 0.6, lambda y: y * 0.5, lambda y: y + x[0] * i, y)  # noqa: E731
    return dl.fori_loop(0, 6, turn, h)


def nested(h: Any, x: Any) -> Any:
    def inner(c: Any, e: Any) -> Any:
        grown = dl.while_loop(lambda y: np.sum(y) < 4, lambda y: y * 1.5 + e, c)
        return grown / 3, e[0]

    return dl.scan(inner, h, x)


def kept(h: Any, x: Any) -> Any:
    return dl.checkpoint(lambda h, x: np.sum(np.sin(h * x[0])) * x[1, 0], h, x)


CALLS: list[Callable[..., Any]] = [scan, backwards, swapped, newton, branch, nested, kept]
XS = np.array([[0.4, 0.7], [0.9, 0.2], [0.3, 0.8]])


def traced(call: Callable[..., Any]) -> Function:
    return dl.trace(call, SMALL, XS)


@cache
def derived() -> list[Function]:
    """Return functions with loops, their reverse and forward modes, and second derivatives."""
    plain = [traced(call) for call in CALLS]
    plain += [parse("iterate(y = x; 2000 times; 3.9*y*(1 - y))")]
    plain += [parse("iterate(y = x; while y < 100; y*y + a)")]
    found = plain + [dl.jacobian(f, mode="reverse") for f in plain]
    found += [dl.hessian(traced(kept)), dl.hessian(plain[-1])]
    return found + [dl.jvp(f) for f in plain[:7]]


def start(function: Function) -> list[float]:
    if function.n == 8:
        return [*SMALL.tolist(), *XS.ravel().tolist()]
    if function.n == 16:
        return [*SMALL.tolist(), *XS.ravel().tolist(), *np.linspace(-1.0, 1.0, 8).tolist()]
    return [float(v) for v in 1.2 * point_of(function)] if function.n == 2 else [0.3]


def flat(values: Sequence[Any]) -> list[float]:
    return np.concatenate([np.ravel(v) for v in values]).tolist()


@pytest.mark.parametrize("call", CALLS)
def test_python_repeats_what_the_code_computes(call: Callable[..., Any]) -> None:
    leaves: list[Any] = []

    def collect(tree: Any) -> None:
        if isinstance(tree, tuple | list):
            for part in tree:
                collect(part)
        else:
            leaves.append(tree)

    collect(call(SMALL, XS))
    function = traced(call)
    np.testing.assert_allclose(in_python(function, start(function)), flat(leaves), rtol=1e-13)


def logistic(x: float, turns: int) -> tuple[float, float]:
    slope = 1.0
    for _ in range(turns):
        x, slope = 4 * x * (1 - x), slope * (4 - 8 * x)
    return x, slope


def test_a_long_loop_is_a_loop_whose_code_does_not_grow() -> None:
    short, long = (parse(f"iterate(y = x; {n} times; 4*y*(1 - y))") for n in (20, 20000))
    for printer in (c, python):
        sizes = [len(printer(dl.value_and_gradient(f))) for f in (short, long)]
        assert sizes[1] - sizes[0] < 400
    value, slope = in_python(dl.value_and_gradient(short), [0.3])
    expected = logistic(0.3, 20)
    assert math.isclose(value, expected[0], rel_tol=1e-9)
    assert math.isclose(slope, expected[1], rel_tol=1e-9)
    assert in_python(long, [0.3])[0] == pytest.approx(float(long(0.3)), rel=1e-12)


def test_derivatives_agree_in_python() -> None:
    for number, function in enumerate(derived()):
        point = start(function)
        expected = function.values(np.array(point))
        message = f"{number}: {python(function)}"
        np.testing.assert_allclose(
            in_python(function, point), expected, 1e-11, 1e-13, err_msg=message
        )


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler called cc")
def test_derivatives_agree_in_c(tmp_path: Path) -> None:
    every = derived()
    library = compiled(every, tmp_path)
    for number, function in enumerate(every):
        point = start(function)
        result = (ctypes.c_double * function.m)()
        for _ in range(2):  # nothing is left of the first call
            getattr(library, f"f{number}")((ctypes.c_double * function.n)(*point), result)
        expected = function.values(np.array(point))
        message = f"{number}: {c(function)}"
        np.testing.assert_allclose(list(result), expected, 1e-11, 1e-13, err_msg=message)


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler called cc")
def test_large_arrays_in_a_loop_are_cleared_at_each_turn(tmp_path: Path) -> None:
    turn = lambda i, y: np.concatenate([y[1:], np.sum(y.reshape(30, 300), axis=0)[:1]]) * 0.01  # noqa: E731
    function = dl.trace(lambda x: dl.fori_loop(0, 4, turn, x), np.ones(9000))
    assert "calloc" in c(function)
    point = np.linspace(0.0, 1.0, 9000)
    expected = point
    for number in range(4):
        expected = turn(number, expected)
    np.testing.assert_allclose(in_c(tmp_path, function, point.tolist()), expected, rtol=1e-12)
