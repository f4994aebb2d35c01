"""Gathers and scatter-adds by a table of indices, in machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import ConsistencyError, DifflabError
from difflab.execute.lower.schedule import Schedule

pytest.importorskip("llvmlite")

from difflab.execute.targets.llvm.arrays import NativeArrays, expansion

RNG = np.random.default_rng(3)
CASES = [
    ((50,), 0, 333),
    ((50, 3), 0, 100),
    ((3, 50), 1, 70),
    ((4, 50, 9), 1, 70),
    ((4, 50, 17), -2, 40),
    ((5, 2, 30), 2, 31),
    ((1, 40), 0, 20),
]


def names(target: NativeArrays) -> set[str]:
    return {step.name for step in target.program.code}


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(("shape", "axis", "count"), CASES)
def test_values_and_gradients_are_numpys(
    shape: tuple[int, ...],
    axis: int,
    count: int,
    checked: bool,
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
) -> None:
    if checked:
        monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    monkeypatch.setattr(expansion, "MOST_RUNS", 1)
    x = rng.normal(size=shape)
    places = rng.integers(-shape[axis], shape[axis], count)
    weights = rng.normal(size=np.take(x, places, axis=axis).shape)
    f = dl.trace(lambda x: np.sum(np.sin(np.take(2 * x, places, axis=axis)) * weights), x)
    value, gradient = (NativeArrays(Schedule.of(g)) for g in (f, dl.gradient(f)))
    taken = np.take(2 * x, places, axis=axis)
    np.testing.assert_allclose(value([x])[0], np.sum(np.sin(taken) * weights), rtol=1e-12)
    expected = np.zeros(shape)
    key: list[Any] = [slice(None)] * len(shape)
    key[axis] = places
    np.add.at(expected, tuple(key), 2 * np.cos(taken) * weights)
    for _ in range(2):
        found = gradient([x])[0]
        np.testing.assert_allclose(found, expected.ravel(), rtol=1e-11, atol=1e-13)
    looked_up = shape[axis] > 1  # places of an axis of one element are one run
    assert ("gather" in names(value)) == looked_up
    assert ({"gather", "scatter"} <= names(gradient)) == looked_up


def test_one_place_is_not_looked_up(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(expansion, "MOST_RUNS", 1)
    x = rng.normal(size=(3, 5))
    target = NativeArrays(Schedule.of(dl.trace(lambda x: np.sin(np.take(x, [2], axis=0)), x)))
    np.testing.assert_allclose(target([x])[0], np.sin(x[[2]]), rtol=1e-12)


def test_the_code_does_not_grow_with_the_indices(rng: np.random.Generator) -> None:
    x = rng.normal(size=400)
    sizes = []
    for count in (1_000, 50_000):
        places = rng.integers(0, x.size, count)
        gradient = dl.gradient(dl.trace(lambda x, p=places: np.sum(np.take(x, p) ** 2), x))
        target = NativeArrays(Schedule.of(gradient))
        sizes.append(len(target.text))
        expected = 2 * x * np.bincount(places, minlength=x.size)
        np.testing.assert_allclose(target([x])[0], expected, rtol=1e-12)
    assert sizes[1] < 1.1 * sizes[0]


def test_what_is_looked_up_only_to_be_computed_with_takes_no_memory(
    rng: np.random.Generator,
) -> None:
    x = rng.normal(size=(3, 40))
    left, right = rng.integers(0, 40, (2, 5_000))
    f = dl.trace(lambda x: np.sum(np.take(2 * x, left, axis=1) * np.take(x, right, axis=1)), x)
    target = NativeArrays(Schedule.of(f))
    np.testing.assert_allclose(target([x])[0], 2 * np.sum(x[:, left] * x[:, right]), rtol=1e-12)
    assert [step.name for step in target.program.code].count("gather") == 2
    assert target.layout.room == x.size + 1


def test_what_is_made_beside_is_looked_up_when_all_of_it_is_there(rng: np.random.Generator) -> None:
    x, places = rng.normal(size=(2, 30)), rng.permutation(30)
    found = NativeArrays(Schedule.of(dl.trace(lambda x: np.take(x * x, places, axis=1), x)))
    np.testing.assert_array_equal(found([x])[0], (x * x)[:, places])


def test_the_turns_of_a_recurrence_look_up_as_well(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(expansion, "MOST_RUNS", 1)
    x, places = rng.normal(size=11), rng.permutation(11)

    def unrolled(x: Any) -> Any:
        y = x
        for _ in range(20):
            y = np.sin(np.take(y, places)) + x
        return y

    def looped(x: Any) -> Any:
        return dl.fori_loop(0, 20, lambda _, y: np.sin(np.take(y, places)) + x, x)

    for function in (unrolled, looped):
        jacobian = dl.jacobian(dl.trace(function, x), mode="reverse")
        expected, chain = np.eye(11), x
        for _ in range(20):
            expected = np.cos(chain[places])[:, None] * expected[places] + np.eye(11)
            chain = np.sin(chain[places]) + x
        found = NativeArrays(Schedule.of(jacobian))([x])[0]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_an_index_outside_is_found_when_code_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MOST_RUNS", 1)
    lookup = expansion._Expansion._lookup

    def shifted(own: Any, *args: Any) -> None:
        lookup(own, *args[:-1], args[-1] + 1)

    monkeypatch.setattr(expansion._Expansion, "_lookup", shifted)
    f = dl.trace(lambda x: np.take(x, [4, 0, 2]) * 2.0, np.ones(5))
    with pytest.raises(ConsistencyError, match="leaves an axis of 5"):
        NativeArrays(Schedule.of(f))


@pytest.mark.parametrize("wrong", [5.0, -1.0, 1e9])
def test_an_index_outside_is_found_by_checked_code(
    wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    monkeypatch.setattr(expansion, "MOST_RUNS", 1)
    f = dl.trace(lambda x: np.take(x * 2.0, [4, 0, 3]), np.ones(5))
    target = NativeArrays(Schedule.of(f))
    np.testing.assert_array_equal(target([np.ones(5)])[0], 2 * np.ones(3))
    target.constants[target.constants == 3.0] = wrong
    with pytest.raises(DifflabError, match="gather"):
        target([np.ones(5)])
