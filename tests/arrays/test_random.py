"""Random numbers of a key: JAX's numbers, their distribution, and the same ones everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import DifflabError, InputError, ShapeError, TraceError, UnsupportedError
from difflab.graph.interpreters import MpmathInterpreter
from difflab.primitives.random import hashed
from tests.support import standin
from tests.support.rows import for_each

KEY = dl.random.key(42)
DRAWS: dict[str, Callable[[Any], Any]] = {
    "split": lambda key: dl.random.split(key, 3),
    "uniform": lambda key: dl.random.uniform(key, (2, 3), -1.0, 2.0),
    "normal": lambda key: dl.random.normal(key, (4,), 1.0, 0.5),
    "one normal": dl.random.normal,
    "bernoulli": lambda key: dl.random.bernoulli(key, 0.3, (5,)) * 1.0,
    "dropout": lambda key: dl.random.dropout(key, np.arange(1.0, 7.0), 0.4),
    "of split keys": lambda key: sum(dl.random.normal(each, (2,)) for each in dl.random.split(key)),
}
NAMES = pytest.mark.parametrize("name", DRAWS)


# --- the numbers ------------------------------------------------------------------------------


def test_the_hash_is_that_of_random123() -> None:
    """The first vector of the authors' file kat_vectors, for threefry2x32 with 20 rounds."""
    words = hashed(np, np.zeros(2), 1)
    assert [f"{int(word[0]):08x}" for word in words] == ["6b200159", "99ba4efe"]


@pytest.mark.parametrize("seed", [0, 42, 2**32 + 5, 2**63 - 1, -3])
def test_the_numbers_are_jaxs(seed: int) -> None:
    jax = pytest.importorskip("jax", reason="needs JAX: pip install 'difflab[peers]'")
    jax.config.update("jax_enable_x64", True)
    theirs, ours = jax.random.key(seed), dl.random.key(seed)
    assert ours.tolist() == jax.random.key_data(theirs).tolist()
    with jax.threefry_partitionable(True):
        split = jax.random.key_data(jax.random.split(theirs, 5))
        assert dl.random.split(ours, 5).tolist() == split.tolist()
        for shape in ((), (3,), (2, 0), (7, 11)):
            found = dl.random.uniform(ours, shape)
            assert np.array_equal(found, jax.random.uniform(theirs, shape, float))
            # XLA multiplies and adds with one rounding.
            between = jax.random.uniform(theirs, shape, float, -2.0, 3.0)
            shifted = dl.random.uniform(ours, shape, -2.0, 3.0)
            np.testing.assert_allclose(shifted, between, rtol=0, atol=1e-15)
            theirs_normal = jax.random.normal(theirs, shape, float)
            np.testing.assert_allclose(dl.random.normal(ours, shape), theirs_normal, rtol=3e-14)
            flips = dl.random.bernoulli(ours, 0.3, shape)
            assert np.array_equal(flips, jax.random.bernoulli(theirs, 0.3, shape))


def p_value(sample: Any, distribution: str, *parameters: float) -> float:
    """Return the p-value of Kolmogorov and Smirnov's test."""
    from scipy import stats  # takes longer to import than these tests to run

    return float(stats.kstest(sample, getattr(stats, distribution)(*parameters).cdf).pvalue)


def test_distributions() -> None:
    uniform, normal = dl.random.split(dl.random.key(1))
    u, z = dl.random.uniform(uniform, 20_000), dl.random.normal(normal, 20_000, 3.0, 2.0)
    assert 0 <= u.min() < u.max() < 1
    assert p_value(u, "uniform") > 0.01
    assert p_value(z, "norm", 3.0, 2.0) > 0.01
    # The last bits too, which no test of the distribution sees.
    bits = (u * 2.0**52).astype(np.uint64)[:, None] >> np.arange(52, dtype=np.uint64) & np.uint64(1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(20_000)
    share = dl.random.bernoulli(dl.random.key(2), 0.2, 20_000).mean()
    assert abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 20_000)


def test_split_keys_are_independent() -> None:
    keys = [dl.random.key(3), *dl.random.split(dl.random.key(3), 4)]
    keys += [*dl.random.split(keys[1], 3), dl.random.key(4)]
    drawn = np.stack([dl.random.normal(key, 5_000) for key in keys])
    correlation = np.corrcoef(drawn) - np.eye(len(keys))
    assert np.abs(correlation).max() < 5 / np.sqrt(5_000)
    assert p_value(drawn[:, 0] - drawn[:, 1], "norm", 0.0, np.sqrt(2)) > 0.01
    assert len(np.unique(drawn)) == drawn.size


# --- the same numbers everywhere --------------------------------------------------------------


@NAMES
def test_the_same_key_gives_the_same_numbers_in_traces_and_targets(name: str) -> None:
    draw = DRAWS[name]
    expected = draw(KEY)
    assert np.array_equal(draw(KEY), expected)
    traced = dl.trace(draw, KEY)
    assert np.array_equal(traced(KEY), expected)
    for target in ("numpy", "native", "auto"):
        assert np.array_equal(dl.compile(traced, target)(KEY), expected)
    np.testing.assert_allclose(dl.compile(traced, "exact")(KEY), expected, rtol=1e-15, atol=0)
    with pytest.raises(UnsupportedError, match="use target 'numpy'"):
        dl.compile(traced, "python")


@NAMES
def test_they_are_the_same_on_a_device(name: str) -> None:
    traced = dl.trace(DRAWS[name], KEY)
    found = traced(standin.asarray(KEY))
    assert isinstance(found, standin.ndarray)
    assert np.array_equal(found.get(), traced(KEY))


@NAMES
def test_the_referee_sees_the_same_numbers(name: str) -> None:
    import mpmath

    traced = dl.trace(DRAWS[name], KEY)
    with mpmath.workdps(30):
        key = np.array([mpmath.mpf(word) for word in KEY], dtype=object)
        exact = np.ravel(dl.evaluate(traced, [key], MpmathInterpreter())[0]).astype(float)
    np.testing.assert_allclose(exact, np.ravel(traced(KEY)), rtol=1e-14, atol=0)


@NAMES
def test_a_stack_of_keys_draws_what_each_key_draws(name: str) -> None:
    draw = DRAWS[name]
    keys = dl.random.split(KEY, 4)
    expected = np.stack([draw(key) for key in keys])
    assert np.array_equal(dl.vmap(draw)(keys), expected)
    assert np.array_equal(dl.trace(draw, KEY)(keys), expected)
    assert np.array_equal(dl.jit(dl.vmap(draw))(keys), expected)


def test_a_key_that_is_not_mapped_draws_the_same_numbers_for_all() -> None:
    found = dl.vmap(lambda key, x: x + dl.random.normal(key), (None, 0))(KEY, np.arange(3.0))
    assert np.array_equal(found, np.arange(3.0) + dl.random.normal(KEY))


def test_a_key_is_an_argument_of_a_compiled_function() -> None:
    @dl.jit
    def step(key: Any, x: Any) -> Any:
        key, now = dl.random.split(key)
        return key, x + dl.random.normal(now, (3,))

    key, x, seen = KEY, np.zeros(3), []
    for _ in range(4):
        key, x = step(key, x)
        seen.append(x)
    assert len(step.traces) == 1
    assert len(np.unique(seen)) == 12
    assert np.array_equal(seen[0], dl.random.normal(dl.random.split(KEY)[1], (3,)))


def test_a_loop_carries_the_key() -> None:
    def walk(key: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            key, x = carry
            key, now = dl.random.split(key)
            return (key, x + dl.random.normal(now)), x

        return dl.scan(body, (key, 0.0), None, length=5)[0][1]

    key, x = KEY, 0.0
    for _ in range(5):
        key, now = dl.random.split(key)
        x += dl.random.normal(now)
    for call in (walk, dl.trace(walk, KEY), dl.jit(walk)):
        assert call(KEY) == x


def test_checkpoints_and_replays_draw_the_same_numbers() -> None:
    def loss(x: Any, key: Any) -> Any:
        return np.sum(dl.random.dropout(key, np.tanh(x), 0.3) ** 2)

    start = dl.random.normal(dl.random.key(5), (6,))
    expected = dl.grad(loss)(start, KEY)
    assert np.count_nonzero(expected) < 6
    assert np.array_equal(dl.grad(lambda x: dl.checkpoint(loss, x, KEY))(start), expected)
    for _ in range(3):  # swept, recorded, replayed
        for call in (loss, lambda *args: dl.checkpoint(loss, *args)):
            x = dl.tensor(start, requires_grad=True)
            call(x, KEY).backward()
            assert np.array_equal(x.grad.numpy(), expected)
    x = dl.tensor(start, requires_grad=True)
    other = dl.random.key(6)
    loss(x, other).backward()  # the same structure, other numbers
    assert np.array_equal(x.grad.numpy(), dl.grad(loss)(start, other))


# --- derivatives ------------------------------------------------------------------------------


def test_derivatives_by_the_parameters_are_those_of_the_reparametrisation() -> None:
    z, u = dl.random.normal(KEY, (3,)), dl.random.uniform(KEY, (3,))

    def sample(p: Any) -> Any:
        return np.concatenate(
            [dl.random.normal(KEY, (3,), p[0], p[1]), dl.random.uniform(KEY, (3,), p[2], p[3])]
        )

    one, zero = np.ones(3), np.zeros(3)
    expected = np.block([[one, z, zero, zero]]).reshape(4, 3).T
    expected = np.concatenate([expected, np.stack([zero, zero, 1 - u, u], axis=1)])
    point = np.array([1.0, 2.0, -1.0, 4.0])
    for jacobian in (dl.jacfwd(sample), dl.jacrev(sample), dl.jit(dl.jacrev(sample))):
        np.testing.assert_allclose(jacobian(point), expected, rtol=1e-15)


@NAMES
def test_the_derivative_by_the_key_is_0(name: str) -> None:
    for jacobian in (dl.jacfwd(DRAWS[name]), dl.jacrev(DRAWS[name])):
        assert not np.any(jacobian(KEY))


def test_what_is_dropped_passes_nothing_on() -> None:
    x = np.array([np.inf, 1.0, np.nan, 2.0])
    key = next(k for k in map(dl.random.key, range(99)) if dropped(k) == [True, False, True, False])
    for value in (dl.random.dropout(key, x), dl.grad(lambda x: np.sum(masked(key, x) ** 2))(x)):
        assert np.isfinite(value).all()
    assert dl.random.dropout(key, x).tolist() == [0.0, 2.0, 0.0, 4.0]
    assert dl.random.dropout(key, x[1::2], 0.0).tolist() == [1.0, 2.0]
    assert dl.random.dropout(key, x, 1.0).tolist() == [0.0] * 4


def dropped(key: Any) -> list[bool]:
    return (dl.random.dropout(key, np.ones(4)) == 0).tolist()


def masked(key: Any, x: Any) -> Any:
    return dl.random.dropout(key, x)


# --- bad input --------------------------------------------------------------------------------


@for_each(
    ("call", "said"),
    [
        (lambda: dl.random.key(1.5), "an integer of 64 bits, not 1.5"),
        (lambda: dl.random.key(2**64), "an integer of 64 bits"),
        (lambda: dl.random.normal(0, (3,)), r"takes a key of shape \(2,\), not \(\)"),
        (lambda: dl.random.normal([0.5, 1.0]), r"\[0.5, 1.0\] is not a key"),
        (lambda: dl.random.uniform(dl.random.split(KEY), 3), r"not \(2, 2\)"),
        (lambda: dl.random.uniform(KEY, -1), "cannot draw an array"),
        (lambda: dl.random.uniform(KEY, (2**40,)), "cannot draw an array"),
        (lambda: dl.random.normal(KEY, (2,), np.ones(3)), "takes no parameter of"),
        (lambda: dl.random.dropout(KEY, np.ones(2), 1.5), "p of dropout is a number from 0 to 1"),
        (lambda: dl.random.split(KEY, 0), "num of split is an integer of at least 1"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises((InputError, ShapeError), match=said):
        call()


HOSTILE = (None, "a", -1, 1.5, float("nan"), object(), 10**30, [], {}, [None], np.ones(0), 1j)


@pytest.mark.parametrize("name", ["bernoulli", "dropout", "key", "normal", "split", "uniform"])
def test_any_other_argument_is_refused_by_difflabs_errors(name: str) -> None:
    function = getattr(dl.random, name)
    for value in (*HOSTILE, dl.parse("x^2"), dl.tensor([1.0, 2.0])):
        for args in ((value,), (KEY, value), (KEY, (2,), value), (KEY, np.ones(2), value)):
            try:
                function(*args)
            except DifflabError:
                pass
            except TypeError as error:
                assert "positional argument" in str(error), args  # noqa: PT017


# --- NumPy's generators in traces -------------------------------------------------------------

RNG = np.random.default_rng(7)


class Layer:
    def __init__(self) -> None:
        self.rng = np.random.RandomState(8)

    def __call__(self, x: Any) -> Any:
        return x * self.rng.normal(size=3)


def of_the_module(x: Any) -> Any:
    y = np.sin(x)
    return y + np.random.normal(size=3)  # noqa: NPY002


def of_a_generator(x: Any) -> Any:
    def helper(y: Any) -> Any:
        return RNG.uniform() * y

    return helper(np.sin(x))


@pytest.mark.parametrize("run", [dl.trace, lambda code, x: dl.jit(code)(x)])
@pytest.mark.parametrize(
    ("code", "line"),
    [
        (of_the_module, "np.random.normal(size=3)"),
        (of_a_generator, "RNG.uniform()"),
        (Layer(), "self.rng.normal(size=3)"),
        (lambda x: of_the_module(x) * 2.0, "np.random.normal(size=3)"),
    ],
)
def test_numpys_random_numbers_in_a_trace_are_an_error(run: Any, code: Any, line: str) -> None:
    states = [np.random.get_state()[1].tolist(), RNG.bit_generator.state]  # noqa: NPY002
    with pytest.raises(TraceError, match=r"test_random\.py, line") as caught:
        run(code, np.ones(3))
    assert line in (caught.value.text or "")
    assert "dl.random.normal(key, shape)" in (caught.value.hint or "")
    after = [np.random.get_state()[1].tolist(), RNG.bit_generator.state]  # noqa: NPY002
    assert after == states


def test_a_seeded_generator_of_the_codes_own_is_a_constant() -> None:
    def code(x: Any) -> Any:
        return x * np.random.default_rng(3).normal(size=3)

    assert np.array_equal(dl.trace(code, np.ones(3))(np.ones(3)), code(np.ones(3)))


def test_keys_of_a_shape_are_those_in_row_major_order() -> None:
    key = dl.random.key(7)
    flat = dl.random.split(key, 6)
    assert np.array_equal(dl.random.split(key, (2, 3)), flat.reshape(2, 3, 2))
    assert np.array_equal(dl.random.split(key, [6]), flat)
    assert dl.trace(lambda k: dl.random.split(k, (2, 3)), key)(key).shape == (2, 3, 2)
    for wrong in ((2, 0), (2, 1.5), "ab"):
        with pytest.raises(ShapeError, match="num of split"):
            dl.random.split(key, wrong)  # type: ignore[arg-type]
