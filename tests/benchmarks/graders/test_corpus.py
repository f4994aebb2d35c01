"""The corpus: its right gradients agree with JAX's, its wrong ones do not, numbers repeat them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from benchmarks.graders.corpus import DTYPES, PLANTED, RIGHT, case, smallest_error
from benchmarks.graders.faults import FAULTS
from benchmarks.graders.hard import DIFFICULT, ILL_CONDITIONED, KINKED, MATRICES
from benchmarks.graders.smooth import SMOOTH
from difflab.errors import InputError

TABLES = {**SMOOTH, **MATRICES, **KINKED, **ILL_CONDITIONED, **DIFFICULT}
SAMPLE = range(RIGHT.start, PLANTED.stop, 7)


def jax_gradient(value: Any, x: Any) -> Any:
    jax = pytest.importorskip("jax", reason="JAX computes the expected gradients")
    with jax.enable_x64(True):
        import jax.numpy as jnp

        return np.asarray(jax.jit(jax.grad(lambda t: value(jnp, t)))(jnp.asarray(x)))


@pytest.mark.parametrize("name", [name for name in TABLES if name not in DIFFICULT])
@pytest.mark.parametrize("n", [2, 12])
def test_a_gradient_is_that_of_jax(name: str, n: int) -> None:
    model = TABLES[name](np.random.default_rng(n), n)
    expected = jax_gradient(model.value, model.x)
    found = model.gradient(np, model.x)
    assert np.max(np.abs(found - expected)) <= 1e-10 * np.max(np.abs(expected))


@pytest.mark.parametrize("name", [name for name in DIFFICULT if name.endswith("at-kinks")])
def test_a_gradient_at_a_kink_lies_between_the_sides(name: str) -> None:
    model = TABLES[name](np.random.default_rng(3), 12)
    sides = [jax_gradient(model.value, model.x + step) for step in (-1e-9, 1e-9)]
    found = model.gradient(np, model.x)
    assert np.all(np.minimum(*sides) - 1e-8 <= found)
    assert np.all(found <= np.maximum(*sides) + 1e-8)
    assert np.max(np.abs(sides[0] - sides[1])) > 0.5


def test_the_cancelling_polynomial_is_its_factored_form() -> None:
    model = TABLES["expanded"](np.random.default_rng(0), 12)
    # Eight coefficients of up to 35, of which every rounding is a share of the sum.
    factored = np.sum((model.x - 1) ** 7)
    assert float(model.value(np, model.x)) == pytest.approx(factored, abs=12 * 8 * 35 * 2.3e-16 * 4)


@pytest.mark.parametrize("name", TABLES)
def test_every_namespace_computes_the_same(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is one of the namespaces")
    numpy = pytest.importorskip("autograd.numpy", reason="autograd is one of the namespaces")
    model = TABLES[name](np.random.default_rng(1), 6)
    for xp, x in ((torch, torch.asarray(model.x)), (numpy, model.x)):
        assert float(model.value(xp, x)) == pytest.approx(float(model.value(np, model.x)))
        found = np.asarray(model.gradient(xp, x))
        assert found == pytest.approx(model.gradient(np, model.x), rel=1e-9, abs=1e-12)


def test_a_planted_gradient_is_wrong_and_a_right_one_is_right() -> None:
    for number in range(RIGHT.start, PLANTED.stop, 31):
        made = case(number)
        if made.dtype != "float64" or made.kind in ("noisy", "at a kink"):
            continue
        expected = jax_gradient(made.value, made.x)
        error = np.abs(made.g(made.x) - expected)
        relative = np.max(error / np.maximum(np.abs(expected), np.abs(made.g(made.x))))
        if made.fault:
            assert relative >= 0.98 * smallest_error("float64"), number
        else:
            assert np.max(error) <= 1e-8 * max(1.0, np.max(np.abs(expected))), number


def test_a_number_repeats_its_case() -> None:
    for number in SAMPLE:
        first, second = case(number), case(number)
        assert (first.function, first.fault, first.dtype) == (
            second.function,
            second.fault,
            second.dtype,
        )
        assert first.x.dtype == first.dtype
        assert np.array_equal(first.x, second.x)
        assert np.array_equal(first.g(first.x), second.g(second.x))
        assert first.f(first.x) == second.f(second.x)
        assert first.f(first.x).dtype == first.g(first.x).dtype == first.dtype
        assert first.g(first.x).shape == first.x.shape


def test_the_corpus_has_every_class_in_every_precision() -> None:
    made = [case(number) for number in range(PLANTED.start, PLANTED.stop)]
    assert len(FAULTS) >= 10
    classes = Counter(entry.fault for entry in made)
    assert set(classes.values()) == {len(PLANTED) // len(FAULTS)}
    assert list(classes) == list(FAULTS)
    for fault in FAULTS:
        # A kink can't be told from curvature with the four digits of float16.
        expected = set(DTYPES) - ({"float16"} if fault == "wrong branch" else set())
        assert {entry.dtype for entry in made if entry.fault == fault} == expected


def test_no_case_has_another_number() -> None:
    with pytest.raises(InputError, match=f"no case {PLANTED.stop}"):
        case(PLANTED.stop)
