"""Tapes of one structure: swept, recorded, replayed, with the same numbers to the last bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.core.primitive import Primitive
from difflab.eager.recording.plan import BackwardPlan
from difflab.eager.sweep import replay
from difflab.eager.sweep.backward import pull_back
from difflab.eager.tensors import tensor as tensors
from difflab.errors import TapeError
from difflab.primitives import negative
from tests.eager.test_agreement import CASES, ROWS, eager
from tests.support.orders import orders


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "RECORDED_SWEEPS", {})


@pytest.fixture
def sweeps(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect the sweeps that are not replayed."""
    seen: list[Any] = []

    def counting(*args: Any, **kwargs: Any) -> Any:
        seen.append(args[0])
        return plain(*args, **kwargs)

    plain = tensors.pull_back
    monkeypatch.setattr(tensors, "pull_back", counting)
    return seen


@pytest.mark.parametrize("name", CASES)
def test_replayed_numbers_are_those_of_the_sweep(name: str, sweeps: list[Any]) -> None:
    function, values = CASES[name]
    swept, recorded, replayed = (eager(function, *values) for _ in range(3))
    assert len(sweeps) == 1
    for value, gradient in (recorded, replayed):
        assert value == swept[0]
        assert np.array_equal(gradient, swept[1])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_is_replayed_to_the_same_bits(row: Primitive) -> None:
    if row.boolean or row.name == "as_number" or orders(row):
        pytest.skip("its result has no derivative, or its order is a plain number")
    rng = np.random.default_rng(8)
    values = [rng.uniform(low, high, (2, 3)) for low, high in row.samples]
    swept, _, replayed = (eager(lambda *args: np.sum(row(*args) ** 2), *values) for _ in range(3))
    assert np.array_equal(swept[1], replayed[1])


def test_new_numbers_go_through_the_recorded_sweep(sweeps: list[Any]) -> None:
    for start in (0.5, 1.5, -2.0, 3.0):
        x = dl.tensor([start, start + 1], requires_grad=True)
        np.sum(np.where(x > 0, np.sin(x) * x, np.exp(x))).backward()
        data = x.detach().numpy()
        expected = np.where(data > 0, np.cos(data) * data + np.sin(data), np.exp(data))
        assert np.allclose(x.grad.numpy(), expected, rtol=1e-15)
    assert len(sweeps) == 1


def test_a_recorded_sweep_turns_other_tapes_away() -> None:
    """The last step is the same; shared values, leaves, numbers or order differ."""

    def ordered(x: Any, y: Any, first: int) -> Any:
        parts = {}
        for place in (first, 1 - first):
            parts[place] = np.sin((x, y)[place])
        return parts[0] * parts[1]

    forms: list[Callable[..., Any]] = [
        lambda x, y: x * y,
        lambda x, y: x * x,
        lambda x, y: np.sin(x) * y,
        lambda x, y: x * np.sin(y),
        lambda x, y: x * np.sin(x),
        lambda x, y: np.sin(x) * np.sin(x),
        lambda x, y: x**2 * y,
        lambda x, y: x**3 * y,
        lambda x, y: ordered(x, y, 0),
        lambda x, y: ordered(x, y, 1),
    ]

    def last(form: Callable[..., Any]) -> Any:
        leaves = (dl.tensor(value, requires_grad=True) for value in (0.7, 0.3))
        return form(*leaves)

    seed = np.float64(1.0)
    for form in forms:
        roots = [last(form) for _ in range(3)]
        for root in roots[:2]:
            root.backward()
        sweep = replay.RECORDED_SWEEPS[roots[0].grad_fn.plan, np]
        accepted = [sweep(last(other).grad_fn, seed, True) is not None for other in forms]
        assert accepted == [other is form for other in forms]
        assert sweep(roots[2].grad_fn, seed, False) is not None
        with pytest.raises(TapeError, match="freed"):
            roots[2].backward()
        hooked = last(form)
        hooked.register_hook(lambda bar: bar * 2)
        assert sweep(hooked.grad_fn, seed, True) is None


def test_every_recipe_computes_on_something_that_came() -> None:
    """Python divides numbers of its own by zero with an error, where NumPy's give infinity."""
    for row in ROWS:
        varied = (1 << row.arity) - (1 << orders(row))  # by an order there is no derivative
        plan = BackwardPlan(row, varied, {}, ((),) * row.arity, ())
        for found in plan.recipes:
            constant = range(found.inputs, found.inputs + len(found.constants)) if found else ()
            for step_row, operands, _ in found.steps if found else ():
                assert set(operands) - set(constant), (row.name, step_row.name)


def test_what_is_alike_but_not_the_same_is_told_apart() -> None:
    """One intermediate twice or two, constants of other values, shapes, what requires grad."""

    def shared(x: Any, y: Any) -> Any:
        u = np.sin(x)
        return u * u + y

    def apart(x: Any, y: Any) -> Any:
        return np.sin(x) * np.sin(y) + y

    def crossed(x: Any, y: Any) -> Any:
        return np.sin(y) * np.sin(x) + x

    def squared_first(x: Any, y: Any) -> Any:
        a, b = np.sin(x), np.sin(y)
        return a * a + b

    def squared_last(x: Any, y: Any) -> Any:
        a, b = np.sin(x), np.sin(y)
        return b * b + a

    def mixed(x: Any, y: Any) -> Any:
        a, b = np.sin(x), np.sin(y)
        return a * b + a

    forms: list[Callable[..., Any]] = [shared, apart, crossed]
    forms += [squared_first, squared_last, mixed]
    forms += [lambda x, y, p=p: x**p * y for p in (2, 3, 0.5, 1)]
    expected = [dl.grad(form, argnums=(0, 1))(0.7, 0.3) for form in forms]
    for _ in range(4):
        for form, wanted in zip(forms, expected, strict=True):
            x, y = dl.tensor(0.7, requires_grad=True), dl.tensor(0.3, requires_grad=True)
            form(x, y).backward()
            assert np.allclose([x.grad.item(), y.grad.item()], wanted, rtol=1e-14)
            z = dl.tensor(0.7, requires_grad=True)
            form(z, 0.3).backward()
            assert np.isclose(z.grad.item(), wanted[0], rtol=1e-14)


def test_the_order_in_which_steps_were_made_is_part_of_the_structure() -> None:
    """Terms are added in the order of the sweep, the reverse creation order of the steps."""

    def gradient(order: tuple[int, ...]) -> float:
        x = dl.tensor(0.1, requires_grad=True)
        parts: list[Any] = [None, None, None]
        for place in order:
            parts[place] = np.sin(x * np.float64((0.1, 7.3, 1e3)[place]))
        (parts[0] + parts[1] + parts[2]).backward()
        found: float = x.grad.item()
        return found

    orders = list(itertools.permutations(range(3)))
    first = [gradient(order) for order in orders]
    assert [[gradient(order) for order in orders] for _ in range(3)] == [first] * 3


def test_derivatives_that_are_constants_keep_their_shape() -> None:
    """x mod y has the slopes 1 and -floor(x / y), whose own slopes are constants."""
    for _ in range(4):
        x = dl.tensor([4.0, 7.5, 1.0], requires_grad=True)
        y = dl.tensor([3.0, 2.0, 5.0], requires_grad=True)
        np.sum(x % y).backward(create_graph=True)
        slopes = x.grad, y.grad
        x.zero_grad()
        y.zero_grad()
        sum(np.sum(slope * slope) for slope in slopes).backward()
        assert y.grad.numpy().tolist() == [0.0, 0.0, 0.0]


def test_nothing_is_computed_where_no_branch_is_taken() -> None:
    for _ in range(4):
        x = dl.tensor(np.zeros((2, 2)), requires_grad=True)
        w = dl.tensor(np.ones((2, 2)), requires_grad=True)
        root = np.sqrt(x)
        np.sum(np.where(root > 0, np.sqrt(root @ w), 0.0)).backward()
        assert x.grad.numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert w.grad.numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_replayed_tape_is_freed_and_keeps_values_like_any_other() -> None:
    for _ in range(4):
        x = dl.tensor([1.0, 2.0], requires_grad=True)
        y = np.exp(x)
        total = np.sum(y)
        total.backward(retain_graph=True)
        y += 1
        total.backward(retain_graph=True)
        z = np.sum(np.exp(x))
        z.backward()
        with pytest.raises(TapeError, match="freed"):
            z.backward()
        assert z.grad_fn.saved == ()
        assert np.allclose(x.grad.numpy(), 3 * np.exp([1.0, 2.0]), rtol=1e-15)


def test_hooks_and_retained_gradients_are_served(sweeps: list[Any]) -> None:
    for _ in range(4):
        x = dl.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3.0
        y.retain_grad()
        np.sum(y * y).backward()
        assert y.grad.numpy().tolist() == [6.0, 12.0]
        z = x * 3.0
        z.register_hook(lambda bar: bar * 10)
        x.zero_grad()
        np.sum(z * z).backward()
        assert x.grad.numpy().tolist() == [180.0, 360.0]
    assert len(sweeps) == 8


def test_gradients_have_memory_of_their_own() -> None:
    for _ in range(4):
        x, y = (dl.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        np.sum(x + y).backward()
        with dl.no_grad():
            x.grad[0] = 50.0
        assert y.grad.numpy().tolist() == [1.0, 1.0]


def test_large_and_long_tapes_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "LARGEST", 10)
    monkeypatch.setattr(replay, "LONGEST", 5)
    for _ in range(4):
        x = dl.tensor(np.ones(100), requires_grad=True)
        np.sum(x * x).backward()
        assert np.array_equal(x.grad.numpy(), np.full(100, 2.0))
        y = x
        for _ in range(10):
            y = y * 0.5
        x.zero_grad()
        np.sum(y).backward()
        assert np.array_equal(x.grad.numpy(), np.full(100, 2.0**-10))
    assert list(replay.RECORDED_SWEEPS.values()) == [replay.NEVER]


def gradients(form: Callable[..., Any], *values: Any) -> list[list[Any]]:
    """Return the leaves' gradients of three runs."""
    found = []
    for _ in range(3):
        leaves = [dl.tensor(value, requires_grad=True) for value in values]
        form(*leaves).backward()
        found.append([leaf.grad.numpy().tolist() for leaf in leaves])
    return found


COEFFICIENTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[Any]]] = {
    # By hand, as PyTorch 2.13 computes them.
    "zero of a singular slope": (lambda w: np.sum(np.sqrt(w) * 0), ([0.0, 1.0],), [[np.nan, 0.0]]),
    "zero of a square": (lambda b: 0.0 * b**2, (0.5,), [0.0]),
    "zero and another": (lambda x, y: 0.0 * x * y, (2.0, 3.0), [0.0, 0.0]),
    "zero over": (lambda x: 0 / x, (0.0,), [np.nan]),
    "sign of a number": (lambda x, y: np.sign(x) * y, (2.0, 3.0), [0.0, 1.0]),
    "sign alone": (lambda x: np.sign(x), (2.0,), [0.0]),
    "power of zero": (lambda x: x**0, (0.0,), [0.0]),
    "power of one": (lambda x: np.sum(x**1), ([0.0, -2.0],), [[1.0, 1.0]]),
    "infinite": (lambda x: np.sum(x * np.inf * 0), ([0.0, 1.0],), [[np.nan, np.nan]]),
    "product of rows of one": (
        lambda x: np.sum(np.prod(x, axis=-2) * x),
        ([[1.0, 2.0, 3.0]],),
        [[[2.0, 4.0, 6.0]]],
    ),
    "sums over axes of one": (
        lambda x, y: np.sum((x + y) * -0.0),
        ([[1.0]], [[[2.0], [3.0]]]),
        [[[-0.0]], [[[-0.0], [-0.0]]]],
    ),
}


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_every_backward_computes_what_the_first_did(name: str) -> None:
    form, values, expected = COEFFICIENTS[name]
    with np.errstate(all="ignore"):
        runs = gradients(form, *values)
    for found in runs:
        for one, other in zip(found, expected, strict=True):
            assert np.array_equal(one, other, equal_nan=True)
    assert repr(runs[0]) == repr(runs[1]) == repr(runs[2])  # with the signs of zeros


def test_the_sign_of_a_plain_zero_is_kept() -> None:
    for _ in range(4):
        for zero in (0.0, -0.0, 0):
            x = dl.tensor(2.0, requires_grad=True)
            (x * zero).backward()
            assert repr(x.grad) == repr(dl.tensor(float(zero)))


def test_a_replay_repeats_the_calls_of_the_traced_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong kernel in the traced sweep stays in the replays: they derive nothing again."""
    emit = replay.GraphCalculator.emit

    def drifting(self: Any, primitive: Any, args: Any, params: Any = ()) -> Any:
        return emit(self, negative if primitive.name == "cos" else primitive, args)

    def slope() -> float:
        x = dl.tensor(0.5, requires_grad=True)
        np.sin(x).backward()
        found: float = x.grad.item()
        return found

    assert slope() == np.cos(0.5)
    with monkeypatch.context() as patched:
        patched.setattr(replay.GraphCalculator, "emit", drifting)
        assert slope() == -0.5
    assert slope() == -0.5


def test_a_gradient_that_is_zero_can_be_gone_through_again() -> None:
    for _ in range(3):
        x, y = dl.tensor(2.0, requires_grad=True), dl.tensor(3.0, requires_grad=True)
        (0.0 * x * y).backward(create_graph=True)
        slope = x.grad + y.grad
        x.zero_grad()
        y.zero_grad()
        slope.backward()
        assert (x.grad.item(), y.grad.item()) == (0.0, 0.0)


def test_types_are_part_of_the_structure() -> None:
    for _ in range(3):
        for kind in (np.float32, np.float64):
            x = dl.tensor([1.0, 2.0], requires_grad=True, dtype=kind)
            np.sum(x * np.array([3.0, 4.0])).backward()
            assert x.grad.dtype == kind


def test_numbers_of_a_rule_take_part_in_the_dtype_of_a_replay() -> None:
    """A number is no float64: it would widen float32, and round otherwise."""
    values = np.linspace(0.1, 1.7, 7, dtype=np.float32)
    runs = []
    for _ in range(3):
        x = dl.tensor(values, requires_grad=True)
        np.sum(np.log10(x) * np.exp2(x)).backward()
        runs.append(x.grad.numpy())
        assert x.grad.dtype == np.float32
    assert np.array_equal(runs[0], runs[2])


def test_the_pull_back_of_a_tape_has_no_broadcasts_that_kernels_make() -> None:
    x, b = dl.tensor(np.ones((2, 3)), requires_grad=True), dl.tensor(np.ones(3), requires_grad=True)
    root = np.sum((x + b) * b).grad_fn
    tape = replay._walk(root)
    seed = np.float64(1.0)
    on = replay.GraphCalculator(tape.steps, seed, np)
    show = lambda step, bar: bar  # noqa: E731
    found = dict(pull_back(root, on.seed, keep=True, calculator=on, show=show))
    rows = [on.builder.primitive(node) for node in range(len(on.builder))]
    # The seed is repeated over (2, 3); the product with x + b, of that shape, repeats it itself.
    assert [row.name for row in rows if row is not None].count("broadcast") == 1
    products = [node for node, row in enumerate(rows) if row is not None and row.name == "multiply"]
    seeds = {on.builder.shape(on.builder.arguments(node)[0]) for node in products}
    assert seeds == {(2, 3), (1, 1)}
    shapes = {on.builder.shape(bar.node) for bar in found.values()}
    assert shapes == {(2, 3), (3,)}


@pytest.mark.parametrize("name", ["cholesky", "cofactor", "det", "inv", "logdet"])
def test_arrays_that_a_rule_writes_are_constants_of_a_replay(name: str) -> None:
    matrix = np.array([[2.0, 0.3], [0.3, 1.5]])
    function: Any = getattr(np.linalg, name, None) or getattr(dl.arrays, name)
    wanted = dl.grad(lambda A: np.sum(function(A)))(matrix)
    runs = gradients(lambda A: np.sum(function(A)), matrix)
    for (found,) in runs:
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
        np.testing.assert_array_equal(found, runs[0][0])
