"""Where two methods diverge: the operation that was changed on purpose is the one that is named."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.diagnose.divergence import Derivative, Differentiate, first_divergence
from difflab.graph.function import Function
from difflab.graph.rewritten import rewritten
from difflab.methods.differentiate import differentiate
from difflab.primitives import cos, maximum, relu, sin


def reverse(function: Function, point: Any) -> Derivative:
    value = np.reshape(differentiate(function, point, method="reverse").value, (function.m, -1))
    return Derivative(value, np.zeros_like(value))


def changed(rule: Callable[..., Any], calls: list[int] | None = None) -> Differentiate:
    """Reverse mode in which an operation is another one."""

    def method(function: Function, point: Any) -> Derivative:
        if calls is not None:
            calls.append(len(function.graph))
        return reverse(rewritten(function, rule), point)

    return method


def cosine(builder: Any, node: int, row: Any, args: Any, params: Any) -> Any:
    return builder.emit(cos, args) if row is sin else None


def tie(builder: Any, node: int, row: Any, args: Any, params: Any) -> Any:
    """max(0, x): relu's value, and the slope 1 at 0, where max takes that of its second operand."""
    return builder.emit(maximum, (builder.constant(0), args[0])) if row is relu else None


def at(*values: float) -> Any:
    return np.array(values)


def test_an_operation_of_another_value_is_named() -> None:
    function = dl.parse("exp(x)*sin(x*y) + log(y)")
    found = first_divergence(function, at(1.0, 2.0), reverse, changed(cosine))
    assert found is not None
    assert (found.kind, found.call, found.site.part) == ("value", "sin(2)", "sin(x*y)")
    assert found.values == pytest.approx((math.sin(2), math.cos(2)))
    assert found.alone
    assert found.render(("a", "b")).splitlines() == [
        "a and b differ at sin(2)",
        "  exp(x)*sin(x*y) + log(y)",
        "         ^~~~~~~~",
        f"its value: a {math.sin(2)!r} and b {math.cos(2)!r}",
    ]


def test_an_operation_of_the_same_value_and_another_derivative_is_named() -> None:
    function = dl.parse("y*relu(x)^1 + tanh(y*relu(x))*exp(y)")
    found = first_divergence(function, at(0.0, 2.0), reverse, changed(tie))
    assert found is not None
    assert (found.kind, found.site.part, found.operand) == ("derivative", "relu(x)", 1)
    assert found.values == (0.0, 1.0)


def test_equal_methods_do_not_part() -> None:
    function = dl.parse("exp(x)*sin(x*y) + log(y)")
    assert first_divergence(function, at(1.0, 2.0), reverse, reverse) is None
    # The difference does not show where relu has a slope.
    smooth = dl.parse("relu(x)*y")
    assert first_divergence(smooth, at(1.0, 2.0), reverse, changed(tie)) is None


@pytest.mark.parametrize("place", [0, 1, 77, 199])
def test_the_first_of_many_is_found_in_few_steps(place: int) -> None:
    lines = [f"a{k + 1} = exp({'relu' if k == place else 'tanh'}(a{k})) - 1" for k in range(200)]
    text = "; ".join(["a0 = x", *lines, "a200"])
    calls: list[int] = []
    found = first_divergence(dl.parse(text), at(0.0), reverse, changed(tie, calls))
    assert found is not None
    assert found.site.part == f"relu(a{place})"
    assert len(calls) <= 2 + 2 * math.log2(600)


def test_a_difference_that_the_error_estimate_explains_is_none() -> None:
    def rough(function: Function, point: Any) -> Derivative:
        exact = reverse(function, point).value
        return Derivative(exact * (1 + 1e-5), np.abs(exact) * 2e-5)

    function = dl.parse("exp(x)*sin(x*y)")
    assert first_divergence(function, at(1.0, 2.0), reverse, rough) is None


def test_arrays_and_python_lines_are_named() -> None:
    def model(w: Any) -> Any:
        hidden = np.tanh(w)
        return np.sum(np.maximum(hidden, 0.0)) + np.sum(np.sin(hidden))

    function = dl.trace(model, np.array([0.3, -0.2, 0.1]))
    found = first_divergence(function, at(0.3, -0.2, 0.1), reverse, changed(cosine))
    assert found is not None
    assert "np.sin(hidden)" in found.render(("a", "b"))
    assert "test_divergence.py, line" in found.render(("a", "b"))
    assert found.values == pytest.approx((math.sin(math.tanh(0.3)), math.cos(math.tanh(0.3))))
