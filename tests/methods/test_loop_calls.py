"""The call that is timed: the fastest one, as a loop contains it, and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.lab.compare import compare
from difflab.lab.measure import MethodCall
from difflab.methods.automatic import FORWARD, REVERSE, Automatic, into_memory
from difflab.methods.protocol import Problem
from difflab.methods.registry import peers
from difflab.methods.timer import LoopCall, elapsed, in_loop

TEXT = "ln(x1) + x1*x2 - sin(x2)"
AT = np.array([2.0, 5.0])
GRADIENT = [0.5 + 5.0, 2.0 - np.cos(5.0)]


def test_a_loop_has_one_context_and_all_its_calls() -> None:
    seen: list[str] = []

    @contextmanager
    def around() -> Iterator[None]:
        seen.append("begin")
        yield
        seen.append("end")

    loop = LoopCall("f(x)", lambda: seen.append("call"), around)
    assert elapsed(loop, 3) >= 0.0
    assert seen == ["begin", "call", "call", "call", "end"]
    loop()
    assert seen[5:] == ["begin", "call", "end"]


def test_what_has_no_faster_call_is_called_itself() -> None:
    loop = in_loop(lambda x: x + 1.0, 2.0)
    assert (loop.form, loop()) == ("", 3.0)


@pytest.mark.parametrize("method", [FORWARD, REVERSE])
def test_machine_code_writes_to_given_memory(method: Automatic) -> None:
    pytest.importorskip("llvmlite")
    f = dl.parse(TEXT)
    prepared = method.prepare(Problem(f.values, f.n, f.m, f))
    call = MethodCall(prepared, AT)
    assert call.form.startswith("fast(x, out=result), machine code after ")
    loop = in_loop(prepared, AT)
    first, second = loop(), loop()
    assert first is second  # the same memory
    np.testing.assert_allclose(first, [GRADIENT], rtol=1e-15)
    assert call.elapsed(3) >= 0.0


@pytest.mark.parametrize("target", ["python", "numpy", "exact"])
def test_python_code_returns_new_results(target: str) -> None:
    fast = dl.compile(dl.gradient(dl.parse(TEXT)), target, packed=True)
    assert fast.go_over() is None
    assert into_memory(fast, AT) is None


def test_tuples_of_results_are_written_to_tuples() -> None:
    pytest.importorskip("llvmlite")
    loop = into_memory(dl.compile(dl.value_and_gradient(dl.parse(TEXT)), packed=True), AT)
    assert loop is not None
    value, gradient = loop()
    assert isinstance(value, np.ndarray)
    np.testing.assert_allclose(value, np.log(2.0) + 10.0 - np.sin(5.0), rtol=1e-15)
    np.testing.assert_allclose(gradient, GRADIENT, rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("casadi", "Function.buffer()"),
        ("jax", "jit(f)(x) under enable_x64"),
    ],
)
def test_peers_are_called_by_their_fastest_call(name: str, form: str) -> None:
    pytest.importorskip(name)
    peer: Any = peers()[name]
    peer.start()
    f = dl.parse(TEXT)
    loop = in_loop(peer.prepare(Problem(f.values, f.n, f.m, f)), AT)
    assert loop.form == form
    found = loop()
    if found is not None:  # a buffer returns nothing
        np.testing.assert_allclose(np.asarray(found).ravel(), GRADIENT, rtol=1e-14)
    for points in (None, 3):
        adapter = peer.adapter(f, points)
        x = AT if points is None else np.tile(AT, (points, 1))
        arguments = adapter.arguments(x)
        value, gradient = adapter.result(adapter.loop(arguments)())
        np.testing.assert_allclose(gradient, x * 0 + GRADIENT, rtol=1e-14)
        assert np.shape(value) == x.shape[:-1]


def test_a_comparison_names_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = {"forward": "f(x)", "reverse": "g(x)"}

    def named(self: Any, x: Any) -> LoopCall:
        return LoopCall(forms[self.mode], lambda: self(x))

    prepare: Callable[..., Any] = Automatic.prepare

    def prepared(self: Automatic, problem: Problem) -> Any:
        found = prepare(self, problem)
        found.mode = self.name
        return found

    monkeypatch.setattr(Automatic, "prepare", prepared)
    monkeypatch.setattr("difflab.methods.automatic.AutomaticDerivative.in_loop", named)
    result = compare(TEXT, {"x1": 2, "x2": 5}, methods=list(forms))
    assert {row.name: row.call_form for row in result.methods} == forms
    from difflab.lab.recommend import recommend

    assert " by g(x)" in recommend(result) or " by f(x)" in recommend(result)
    assert "f(x)" in result.to_json()


def test_a_method_in_a_process_names_its_call() -> None:
    pytest.importorskip("casadi")
    result = compare(TEXT, {"x1": 2, "x2": 5}, methods=["casadi"])
    assert result.methods[0].call_form == "Function.buffer()"
