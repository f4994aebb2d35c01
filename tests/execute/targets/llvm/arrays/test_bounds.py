"""No access outside of an array: checked when code is written, and by the code where asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import ConsistencyError

pytest.importorskip("llvmlite")

from difflab.execute.lower.schedule import ScalarProgram, Schedule
from difflab.execute.targets.llvm.arrays import NativeArrays
from difflab.execute.targets.llvm.arrays.groups import NestLayout
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.lower import nests
from difflab.lower.nests import View

STEPS = dl.trace(lambda x: 2.0 * np.sum(x[1:] * x[:-1]) + x[1], np.ones(5))


def test_a_number_is_added_at_its_place() -> None:
    point = np.array([1.0, 2.0, 3.0])
    gradient = dl.gradient(dl.parse("x: [3]; sum(x*x) + sin(x[1])"))
    wanted = 2 * point + [0.0, np.cos(2.0), 0.0]
    np.testing.assert_allclose(dl.compile(gradient, target="native")(point), wanted, rtol=1e-15)


@pytest.mark.parametrize("checked", [False, True])
def test_forward_mode_in_three_dimensions(checked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if checked:
        monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    point = np.linspace(-1.0, 1.0, 12).reshape(2, 2, 3)
    gradient = dl.gradient(dl.trace(lambda x: np.sum(x * x), point), mode="forward")
    found = dl.compile(gradient, target="native")(point)
    np.testing.assert_allclose(found, 2 * point.ravel(), rtol=1e-15)


def wrong_places(monkeypatch: pytest.MonkeyPatch) -> None:
    indexed = View.indexed

    def shifted(self: View, key: Any) -> View:
        ref, shape = indexed(self, key)
        return View(ref._replace(offset=ref.offset + 7), shape)

    monkeypatch.setattr(View, "indexed", shifted)


def test_places_outside_are_found_when_code_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_places(monkeypatch)
    with pytest.raises(ConsistencyError, match="indices 8 to 11 of 5 elements"):
        NativeArrays(Schedule.of(STEPS))
    monkeypatch.setattr(nests, "require_inside", lambda *args: None)
    with pytest.raises(ConsistencyError, match="comes to 8 to 11 of Address"):
        NativeArrays(Schedule.of(STEPS))


def test_places_outside_are_found_by_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_places(monkeypatch)
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    monkeypatch.setattr(nests, "require_inside", lambda *args: None)
    monkeypatch.setattr(NestLayout, "check", lambda *args: None)
    target = NativeArrays(Schedule.of(STEPS))
    with pytest.raises(ConsistencyError, match=r"would leave its arrays: multiply over \(4,\)"):
        target([np.ones(5)])


def test_loops_of_a_recurrence_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(x: Any) -> Any:
        for k in range(20):
            x = np.sin(x) * 0.5 + x[k % 3]
        return np.sum(x)

    monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    gradient = dl.gradient(dl.trace(steps, np.ones(3)))
    point = np.array([0.1, 0.2, 0.3])
    target = NativeArrays(Schedule.of(gradient))
    np.testing.assert_allclose(target([point])[0], gradient(point), rtol=1e-14)


@pytest.mark.parametrize("points", [1, 3, 100, 70_001])
def test_batches_are_checked(points: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    f = dl.parse("x*y + y")
    target = NativeTarget(ScalarProgram.of(f), f.input_shapes, threads=1)
    x = np.arange(2.0 * points)[::2]
    np.testing.assert_array_equal(target([x, np.float64(3.0)], (points,))[0], 3 * x + 3)
