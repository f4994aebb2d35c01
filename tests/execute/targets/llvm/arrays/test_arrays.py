"""Machine code for one point of arrays: the evaluator's values, and loops that stay loops."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.execute.lower.schedule import Schedule
from difflab.graph.function import Function
from difflab.graph.repetition import rolled

pytest.importorskip("llvmlite")

from difflab.execute.targets.llvm.arrays import NativeArrays
from difflab.execute.targets.llvm.arrays.expansion import instructions
from difflab.execute.targets.llvm.arrays.groups import NestLayout, arranged
from difflab.execute.targets.llvm.arrays.loop_detection import segmented
from difflab.execute.targets.llvm.arrays.routine import Module, Routine
from difflab.execute.targets.llvm.libraries import Host, host
from tests.support.rows import for_each

RNG = np.random.default_rng(7)
A, B = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 5))
S, T = RNG.normal(size=(6, 3, 4)), RNG.normal(size=(6, 4, 2))
V, W = RNG.normal(size=4), RNG.normal(size=3)
ODD = np.array([2, 0, 1, 1, 0])

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "matrices": (lambda a, b: a @ b, (A, B)),
    "matrix and vector": (lambda a, v: a @ v, (A, V)),
    "vector and matrix": (lambda w, a: w @ a, (W, A)),
    "vectors": (lambda v, a: np.sum(v * a[1]) + v @ a[2], (V, A)),
    "stacks": (lambda s, t: s @ t, (S, T)),
    "stack and matrix": (lambda s, b: s @ b, (S, B)),
    "matrix and stack": (lambda a, t: a @ t, (A, T)),
    "transposed": (lambda a, b: b.T @ a.T, (A, B)),
    "both steps": (lambda a: a[::2, ::-1] @ a[:2, 1:].T if a.shape[1] == 3 else a[::2, ::-1], (A,)),
    "sums": (lambda s: [np.sum(s, axis=k) for k in (0, 1, 2, (0, 2), None)], (S,)),
    "kept sums": (lambda s: s - np.sum(s, axis=1, keepdims=True), (S,)),
    "extremes": (lambda s: [np.max(s, axis=0), np.min(s, axis=2), np.max(s)], (S,)),
    "softmax": (lambda s: dl.arrays.softmax(s, axis=1), (S,)),
    "logsumexp": (lambda s: dl.arrays.logsumexp(s, axis=2), (S,)),
    "reshaped": (lambda a: np.sin(np.reshape(a.T, (2, 6))) * np.reshape(a, (6, 2)).T, (A,)),
    "joined": (lambda a, v: np.concatenate([a, 2.0 * a[1:], v[None]], axis=0), (A, V)),
    "stacked": (lambda v, w: np.stack([v[:3], w, w * v[1]], axis=1), (V, W)),
    "taken": (lambda a: a[ODD] * 2.0, (A,)),
    "where": (lambda a: np.where(a > 0.1, np.sqrt(np.abs(a)), -a), (A,)),
    "truths": (lambda a, v: [a > v, v[0] > v[1]], (A, V)),
    "numbers": (lambda a, x: [a * np.sin(x) + 1.0 / x, x * a[1, 2], np.log(x)], (A, 1.3)),
    "as they came": (lambda a, v: [a, a.T, v[2], 0.0 * v + 3.0], (A, V)),
    "functions": (lambda a: np.tanh(a) + np.exp(a) * np.hypot(a, 1.0) + np.cbrt(a), (A,)),
    "nothing": (lambda a: [a[:0] + 1.0, a[:, 2:2] * 2.0], (A,)),
}


def held(f: Function, values: tuple[Any, ...], tolerance: float = 1e-14) -> None:
    """Hold machine code to the evaluator."""
    compiled = NativeArrays(Schedule.of(f))
    given = [np.asarray(value) for value in values]
    wanted = f(*values)
    listed = list(wanted) if len(f.outputs) > 1 else [wanted]
    for _ in range(2):  # the second call finds memory that is written already
        for found, right in zip(compiled(given), listed, strict=True):
            assert np.shape(found) == np.shape(right)
            assert np.asarray(found).dtype == np.asarray(right).dtype
            np.testing.assert_allclose(found, right, rtol=tolerance, atol=1e-15)


def held_sums(f: Function, values: tuple[Any, ...], terms: np.ndarray) -> None:
    """Hold sums along the first axis of `terms` to the bound that `compile` states."""
    compiled, wanted = NativeArrays(Schedule.of(f)), f(*values)
    bound = len(terms) * 2.0**-52 * np.sum(np.abs(terms), axis=0)
    for _ in range(2):
        [found] = compiled([np.asarray(value) for value in values])
        assert np.shape(found) == np.shape(wanted) == np.shape(bound)
        assert np.all(np.abs(found - wanted) <= bound)


@for_each("name", PROGRAMS)
def test_programs(name: str) -> None:
    held(dl.trace(PROGRAMS[name][0], *PROGRAMS[name][1]), PROGRAMS[name][1])


@pytest.mark.parametrize("name", ["matrices", "stacks", "softmax", "reshaped", "taken", "where"])
def test_their_derivatives(name: str) -> None:
    text, values = PROGRAMS[name]

    def total(*given: Any) -> Any:
        return np.sum(np.sin(text(*given)))

    held(dl.gradient(dl.trace(total, *values)), values)
    held(dl.jacobian(dl.trace(text, *values), mode="forward"), values)


@for_each("size", [1, 2, 3, 5, 7, 8, 9, 14, 31, 33, 40, 47, 130])
def test_every_length_of_vectors_and_of_what_is_left(size: int, rng: np.random.Generator) -> None:
    x = rng.normal(size=size)
    held(dl.trace(lambda x: [np.exp(x) * x, np.sum(x * x), x[::-1] + x], x), (x,))
    a = rng.normal(size=(3, size))
    held(dl.trace(lambda a: [np.sum(a, axis=0), np.sum(a, axis=1), a @ a.T, a.T @ a], a), (a,))


@pytest.mark.parametrize("size", [3, 14, 40])
def test_what_is_written_backward_is_not_wiped_out(size: int, rng: np.random.Generator) -> None:
    """The gradient fills with zeros and then writes from the end: not in one nest."""
    x = rng.normal(size=size)
    held(dl.gradient(dl.trace(lambda x: np.sum(np.exp(x[::-1])), x)), (x,))
    held(dl.gradient(dl.trace(lambda x: np.sum(np.exp(x[::-1]) * x), x)), (x,))


@pytest.mark.parametrize("rows", [1, 4, 5, 11])
@for_each("columns", [2, 7, 48, 50, 101, 200])
def test_blocks_of_results(rows: int, columns: int, rng: np.random.Generator) -> None:
    """Products and reductions whose rows and columns do and do not fill blocks of registers."""
    a, b, s = rng.normal(size=(rows, 9)), rng.normal(size=(9, columns)), rng.normal(size=(2, 9, 3))
    f = dl.trace(lambda a, b: [a @ b, b.T @ a.T, np.max(b, axis=0), np.min(-b, axis=0)], a, b)
    held(f, (a, b), tolerance=1e-13)
    held(dl.trace(lambda b, s: [np.sum(b * 2.0, axis=0), s @ b[:3]], b, s), (b, s), tolerance=1e-13)


def test_an_extreme_of_nan_is_nan_and_infinities_stay() -> None:
    f = dl.trace(lambda x: [np.max(x), np.min(x), np.sum(x[2:])], np.ones(5))
    for x in ([1, np.nan, 2, 3, 4], [np.nan, 1, np.inf, 0, 1], [1, 2, -np.inf, 5, np.inf]):
        given = np.array(x, dtype=np.float64)
        np.testing.assert_array_equal(NativeArrays(Schedule.of(f))([given]), list(f(given)))


def test_arrays_that_do_not_lie_side_by_side() -> None:
    f = dl.trace(lambda a: a @ a.T, A)
    wide = np.zeros((3, 8))
    wide[:, ::2] = A
    found = NativeArrays(Schedule.of(f))([wide[:, ::2]])
    np.testing.assert_allclose(found[0], A @ A.T, rtol=1e-14)


def test_results_are_the_callers_own() -> None:
    compiled = dl.compile(dl.trace(lambda a: [a, a * 2.0], A), "native")
    given = A.copy()
    first = compiled(given)
    first[0][:] = 0.0
    again = compiled(given)
    first[1][:] = 0.0
    np.testing.assert_array_equal(again[0], A)
    np.testing.assert_array_equal(again[1], 2.0 * A)


# --- recurrences ------------------------------------------------------------------------------


def recurrent(steps: int, rng: np.random.Generator) -> tuple[Function, tuple[Any, ...]]:
    """Return the loss of a small network that runs along a sequence."""
    weights, sequence = rng.normal(size=(3, 5)) / 2, rng.normal(size=(steps, 5))

    def loss(weights: Any, sequence: Any) -> Any:
        state, total = 0.1 * weights[2], 0.0
        for k in range(steps - 1):
            state = np.tanh(sequence[k] * weights[0] + state * weights[1])
            guess = np.exp(state)
            total = total + np.sum(sequence[k + 1] * state) - np.log(np.sum(guess))
        return total

    return dl.trace(loss, weights, sequence), (weights, sequence)


@pytest.mark.parametrize("steps", [2, 3, 5, 6, 7, 40])
def test_recurrences_and_their_gradients(steps: int, rng: np.random.Generator) -> None:
    f, values = recurrent(steps, rng)
    held(f, values)
    held(dl.gradient(f), values)


def test_steps_are_turns_of_loops_forward_and_backward(rng: np.random.Generator) -> None:
    """The code does not grow with the steps; memory grows by what is kept of each."""

    def size(steps: int) -> tuple[int, int, int]:
        program = instructions(Schedule.of(dl.gradient(recurrent(steps, rng)[0])))
        cut = segmented(program)
        layout = NestLayout(program, cut)
        turns = sum(segment.count * segment.period for segment in cut.segments)
        assert turns == len(program.code)
        return sum(segment.period for segment in cut.segments), turns, layout.room

    (short, few, _), (long, many, room), (_, _, more) = size(50), size(200), size(350)
    assert many > 3.5 * few
    assert long < 1.2 * short
    assert long < many / 20
    assert more - room < 150 * 5 * 20


def test_a_sum_of_a_long_chain_is_one_nest_without_memory(rng: np.random.Generator) -> None:
    """Horner's scheme on a thousand points: a number for each coefficient's derivative."""

    def loss(x: Any, t: Any) -> Any:
        y = x[-1]
        for j in range(len(x) - 2, -1, -1):
            y = y * t + x[j]
        return np.sum(y**2)

    x, t = rng.normal(size=30), np.linspace(-1, 1, 1000)
    f = dl.trace(loss, x, t)
    assert arranged(instructions(Schedule.of(f))).room < 10
    slope = dl.trace(dl.grad(loss), x, t)
    layout = arranged(instructions(Schedule.of(slope)))
    assert layout.room < 4 * 30
    nests = [group for group in layout.groups[0] if len(group.steps) > 20]
    assert len(nests) == 1
    y = np.polynomial.polynomial.polyval(t, x)
    held_sums(f, (x, t), y**2)
    held_sums(slope, (x, t), 2 * y[:, None] * np.vander(t, len(x), increasing=True))


def test_a_constant_part_stays_after_what_fills_the_gaps(rng: np.random.Generator) -> None:
    def squares_first(x: Any) -> Any:
        return 0.5 * np.sum(x[3:5] ** 2) + np.sum(x[:2])

    def squares_last(x: Any) -> Any:
        return np.sum(x[:2]) + 0.5 * np.sum(x[3:5] ** 2)

    x = rng.normal(size=8)
    for f in (squares_first, squares_last):
        held(dl.trace(dl.grad(f), x), (x,))
    ones = dl.trace(lambda x: np.concatenate([np.ones(4), np.sin(x), np.full(2, 3.0)]), x)
    held(ones, (x,))


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), None])
def test_the_derivative_of_an_extreme_picks_the_last_one(
    axis: Any, rng: np.random.Generator
) -> None:
    x = np.round(rng.normal(size=(3, 5, 4)), 0)  # ties
    for extreme in (np.max, np.min):
        f = dl.trace(
            lambda x, extreme=extreme: dl.grad(lambda x: np.sum(extreme(x, axis) ** 2))(x), x
        )
        instructions(Schedule.of(f))  # has machine code
        held(f, (x,))
        lost = x.copy()
        lost[1, 2, 3] = lost[1, 0, 3] = np.nan
        held(f, (lost,))


def test_a_turn_that_reads_two_steps_back_and_a_fixed_value(rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 6))

    def fibonacci(x: Any) -> Any:
        older, old, fixed = x[0], x[1], np.sin(x[2])
        for _ in range(30):
            older, old = old, 0.5 * np.cos(older) + 0.3 * old * fixed
        return old

    f = dl.trace(fibonacci, x)
    held(f, (x,))
    held(dl.jacobian(f), (x,))
    assert any(segment.count > 20 for segment in segmented(instructions(Schedule.of(f))).segments)


def test_steps_that_differ_in_a_number_are_loops_and_in_kind_are_not() -> None:
    # Always the same: 24 sines on top of each other amplify what one rounding differs by.
    x = np.random.default_rng(0).normal(size=4)

    def waves(x: Any) -> Any:
        for k in range(24):
            x = np.sin(x * (1.0 + 0.1 * k))
        return x

    def mixed(x: Any) -> Any:
        for k in range(24):
            x = np.sin(x) if k % 7 == k * k % 5 else np.cos(2.0 * x)
        return x

    for text in (waves, mixed):
        held(dl.trace(text, x), (x,), tolerance=1e-12)


# --- what is refused --------------------------------------------------------------------------


def test_what_has_no_machine_code_is_refused() -> None:
    for text in (np.sort, np.linalg.pinv, lambda a: np.argmax(a)):
        with pytest.raises(UnsupportedError, match="no machine code"):
            NativeArrays(Schedule.of(dl.trace(text, np.eye(3))))


def test_too_much_that_is_different_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflab.execute.targets.llvm.arrays.LARGEST", 3)
    with pytest.raises(UnsupportedError, match="more than 3 different operations"):
        NativeArrays(Schedule.of(dl.trace(lambda a: np.sin(np.cos(a * 2.0) + a * a), A)))


def test_every_row_that_has_nests_has_machine_code(rng: np.random.Generator) -> None:
    square = rng.normal(size=(2, 4, 4))
    parts = [rng.normal(size=(2, 2)) for _ in range(101)]  # more than are placed one by one

    def moved(x: Any) -> Any:
        diagonal = np.diagonal(x * 2.0, axis1=-2, axis2=-1)
        matrices = dl.arrays.diag(diagonal[0] + 1.0)
        return matrices @ x[1], np.concatenate([matrices, matrices.T * 0.5], axis=1)

    for f in (dl.trace(moved, square), dl.jacobian(dl.trace(lambda x: moved(x)[0], square))):
        instructions(Schedule.of(f))  # has machine code
        held(f, (square,))
    many = dl.gradient(
        dl.trace(lambda *parts: sum(np.sum(part * part.T) for part in parts), *parts)
    )
    held(many, tuple(parts))
    wide = dl.trace(lambda x: np.sum(x[:, :0] * 2.0, axis=1) + x[:, 0], square[0])
    instructions(Schedule.of(wide))
    held(wide, (square[0],))


def test_the_gradient_of_nothing() -> None:
    empty = np.empty((0, 3))
    gradient = dl.gradient(dl.trace(lambda x: np.sum(np.sin(x)), empty))
    assert dl.compile(gradient, target="native")(empty).shape == (0,)


@pytest.mark.parametrize("shape", [(1500,), (3, 700)])
def test_a_sum_in_order_is_a_chain_of_additions(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, *shape)) * 10.0 ** rng.integers(-9, 9, (2, *shape))
    declared = list(shape)
    text = f"x: {declared}; y: {declared}; sum_in_order(x*x at [::2], -y*y at [1::2])"
    fast = dl.compile(dl.parse(text), "native")
    terms = np.stack([x * x, -y * y], axis=-1).reshape(*shape[:-1], -1)
    expected = terms[..., 0]
    for k in range(1, terms.shape[-1]):
        expected = expected + terms[..., k]
    assert fast.reason == "native: as requested"
    np.testing.assert_array_equal(fast(x, y), expected)
    np.testing.assert_array_equal(fast(np.stack([x, y]), y)[0], expected)


PLACES = {
    "one after the other": lambda n: [range(n), range(n, n + 5)],
    "three that alternate": lambda n: [range(k, n, 3) for k in (1, 0, 2)],
    "a first term, and two that alternate": lambda n: [range(2, n, 2), range(1), range(1, n, 2)],
    "from the last one on": lambda n: [range(0, n, 2), range(1, n, 2)[::-1]],
}
"""The indices of each part's terms in a sum of at least n."""


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("lead", [(), (3,), (2, 2)], ids=str)
@pytest.mark.parametrize("name", PLACES)
def test_parts_of_a_sum_are_added_in_its_order(
    name: str, lead: tuple[int, ...], checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums share a nest with the operations that compute their terms, whatever its rest."""
    if checked:
        monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    rng = np.random.default_rng(5)
    for size in (3, 8, 17, 40, 101):
        indices = PLACES[name](size)
        length = sum(map(len, indices))
        parts = [rng.normal(size=(*lead, len(each))) * 10.0 ** rng.integers(9) for each in indices]
        terms = np.empty((*lead, length))
        for part, each in zip(parts, indices, strict=True):
            terms[..., list(each)] = part * part * -0.1
        expected = terms[..., 0]
        for k in range(1, length):
            expected = expected + terms[..., k]
        declared = "; ".join(f"p{k}: {[*part.shape]}" for k, part in enumerate(parts))
        keys = [
            f"{each.start}:{each.stop if each.stop >= 0 else ''}:{each.step}" for each in indices
        ]
        added = ", ".join(f"p{k}*p{k}*-0.1 at [{key}]" for k, key in enumerate(keys))
        text = f"{declared}; total = sum_in_order({added}); [total, p0*2, p1*3]"
        total, *others = dl.compile(dl.parse(text), "native")(*parts)
        np.testing.assert_array_equal(total, expected)
        for factor, part, found in zip((2, 3), parts, others, strict=False):
            np.testing.assert_array_equal(found, factor * part)


def test_a_sum_of_negative_zeros_is_negative() -> None:
    zeros = np.full(20, -0.0)
    assert np.signbit(dl.compile(dl.parse("x: [20]; sum_in_order(x at [::1])"), "native")(zeros))


def test_the_terms_of_a_sum_in_order_have_no_memory() -> None:
    terms = " + ".join(f"3*(x[{i + 1}] - x[{i}]^2)^2 + (1 - x[{i}])^2" for i in range(999))
    vectors = rolled(dl.parse(f"x: [1000]; {terms}"))
    layout = NativeArrays(Schedule.of(dl.value_and_gradient(vectors))).layout
    assert layout.room == 1 + 1000  # the results
    assert [len(group.steps) for group in layout.groups[0]][:2] == [1, 1]  # where they begin
    assert len(layout.groups[0]) == 3


MACHINES = {
    "this one": lambda: host(),
    "vectors of four": lambda: replace(host(), width=min(host().width, 4)),
    "vectors of two": lambda: Host("", "", 2, ""),
}


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
def test_stretches_that_overlap_are_added_in_their_order(
    machine: str, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts that a scatter adds to elements that it has stored at the same or at other points."""
    if checked:
        monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    rng = np.random.default_rng(6)
    for size, offsets in itertools.product((31, 40, 47), itertools.product(range(4), repeat=3)):
        if size != 47 and max(offsets) > 1:
            continue
        x = rng.normal(size=size) * 10.0 ** rng.integers(-3, 3, size)
        keys = [f"({k + 2}*x + 0.1) at [{o}:{o + size}]" for k, o in enumerate(offsets)]
        f = dl.parse(f"x: [{size}]; scatter({', '.join(keys)}, [{size + 3}])")
        expected = dl.compile(f, "numpy")(x)
        target = NativeArrays(Schedule.of(f), machine=MACHINES[machine]())
        np.testing.assert_array_equal(target([x])[0], expected, err_msg=f"{size} {offsets}")
        near = size > 31 and max(offsets) - min(offsets) < 3
        stored = [group for group in target.layout.groups[0] if len(group.steps) > 1]
        assert (len(stored) == 1 and len(stored[0].steps) == 9) or not near


def test_threads_that_prepare_a_batch_together_have_its_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Writing a module changes it, and `cached_property` has no lock since Python 3.12."""
    terms = " + ".join(f"sin({i + 1}*x)*exp(-y/{i + 1})" for i in range(400))
    fast = dl.compile(dl.parse(terms), "native", threads=1)
    x, y = np.random.default_rng(1).uniform(0.5, 2.0, (2, 50))
    k = np.arange(1, 401)[:, None]
    expected = np.sum(np.sin(k * x) * np.exp(-y / k), axis=0)
    write, text = Routine.write, Module.batch_text
    begun, other_is_done = threading.Event(), threading.Event()

    def writing(routine: Routine) -> None:
        if not begun.is_set():
            begun.set()
            other_is_done.wait(timeout=1.0)  # in vain where the other waits for this one
        write(routine)

    def of_module(module: Module) -> str:
        found = text(module)
        other_is_done.set()
        return found

    monkeypatch.setattr(Routine, "write", writing)
    monkeypatch.setattr(Module, "batch_text", of_module)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(fast, x, y)
        assert begun.wait(timeout=60)
        np.testing.assert_allclose(fast(x, y), expected, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(first.result(), expected, rtol=1e-11, atol=1e-12)
