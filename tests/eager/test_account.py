"""The memory of the reverse sweep: known cases, and the bytes that the tape really holds."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError

N = 1000
BYTES = 8 * N


@pytest.mark.parametrize(
    ("text", "keeps", "total"),
    [
        ("x + y", (), 0),
        ("x - y", (), 0),
        ("exp(x)", ("output",), BYTES),
        ("sin(x)", ("input",), BYTES),
        ("sqrt(x)", ("output",), BYTES),
        ("x*y", ("input 1", "input 2"), 2 * BYTES),
        ("3*x", (), 0),
        ("x^2", ("input 1",), BYTES),
        ("relu(x)", ("input",), BYTES),
        ("x[1:]", (), 0),
        ("sum(x)", (), 0),
        ("logsumexp(x)", ("input",), BYTES),
    ],
)
def test_an_operation_keeps_what_its_derivative_reads(
    text: str, keeps: tuple[str, ...], total: int
) -> None:
    account = dl.memory(dl.parse(f"x: [{N}]; y: [{N}]; {text}"))
    last = account.rows[-1]
    assert set(last.keeps) == set(keeps)
    assert account.total == last.nbytes == total


def test_a_product_keeps_its_factors_and_a_constant_factor_the_constant() -> None:
    f = dl.parse("W: [20, 30]; x: [30]; W @ x")
    (row,) = dl.memory(f).rows
    assert row.keeps == ("input 1", "input 2")
    assert row.nbytes == 8 * (20 * 30 + 30)
    X = np.ones((50, 20))
    account = dl.memory(dl.trace(lambda W: X @ W, np.ones((20, 30))))
    assert account.rows[0].keeps == ("input 1",)
    assert (account.constants, account.inputs, account.computed) == (X.nbytes, 0, 0)


def test_an_array_counts_once_and_a_view_as_what_it_is_a_view_of() -> None:
    account = dl.memory(dl.parse(f"x: [{N}]; sum(sin(x)*cos(x)) + sum(sin(x[1:]))"))
    slopes = [row for row in account.rows if row.operation in ("sin", "cos")]
    assert sorted(row.nbytes for row in slopes) == [0, 0, BYTES]
    assert account.inputs == BYTES
    assert account.computed == 2 * BYTES
    assert account.total == sum(row.nbytes for row in account.rows)


def test_a_batch_is_as_many_times_as_large() -> None:
    f = dl.parse("exp(x)*y")
    one, many = dl.memory(f), dl.memory(f, points=N)
    assert many.total == N * one.total == 2 * BYTES


def test_only_what_a_derivative_flows_through_keeps_anything() -> None:
    assert dl.memory(dl.parse(f"x: [{N}]; where(x > 0, x, 0) + sin(2)")).total == N
    assert dl.memory(dl.parse("x > 0")).rows == ()


def network(X: Any, W: Any, b: Any, V: Any) -> Any:
    hidden = np.maximum(X @ W + b, 0)
    return np.mean(np.tanh(hidden @ V) ** 2)


def chain(x: Any) -> Any:
    for _ in range(10):
        x = np.sin(np.exp(x) * 0.1) + x
    return np.sum(x)


def moves(x: Any) -> Any:
    return np.sum(np.sin(np.reshape(np.exp(x).T, -1)[::2]) * 2)


CASES: list[tuple[Callable[..., Any], list[tuple[int, ...]]]] = [
    (network, [(200, 60), (60, 80), (80,), (80, 30)]),
    (chain, [(20_000,)]),
    (moves, [(100, 100)]),
]


@pytest.mark.parametrize(("program", "shapes"), CASES)
def test_the_account_of_a_tape_is_what_it_holds(
    program: Callable[..., Any], shapes: list[tuple[int, ...]]
) -> None:
    rng = np.random.default_rng(0)
    tensors = [dl.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]
    program(*tensors)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        loss = program(*tensors)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    account = dl.memory(loss)
    assert account.computed + account.constants == pytest.approx(held, rel=0.1)
    loss.backward()
    with pytest.raises(InputError, match="freed"):
        dl.memory(loss)


@pytest.mark.parametrize(("program", "shapes"), CASES)
def test_the_account_of_a_graph_is_that_of_the_tape(
    program: Callable[..., Any], shapes: list[tuple[int, ...]]
) -> None:
    values = [np.ones(shape) for shape in shapes]
    graph = dl.memory(dl.trace(program, *values))
    tape = dl.memory(program(*[dl.tensor(value, requires_grad=True) for value in values]))
    assert graph.inputs == tape.inputs
    assert graph.computed == pytest.approx(tape.computed, rel=0.01)


def test_a_checkpoint_keeps_its_argument_alone() -> None:
    x = dl.tensor(np.ones(N), requires_grad=True)
    account = dl.memory(np.sum(dl.checkpoint(lambda x: np.sin(np.exp(x)) * x, x)))
    assert account.total == BYTES
    assert account.rows[0].keeps == ("its own",)


def test_the_table_shows_the_largest() -> None:
    text = dl.memory(dl.parse(f"x: [{N}]; sum(exp(x)) + 1")).table(2)
    lines = text.splitlines()
    assert lines[0].split() == ["node", "operation", "shape", "keeps", "bytes"]
    assert lines[1].split() == ["1", "exp", "1000", "output", "8,000"]
    assert "1 more operation" in lines[-3]
    assert lines[-2].startswith("total 8,000 bytes: 8,000 computed")


@pytest.mark.parametrize("subject", [3, dl.tensor([1.0]), dl.tensor([1.0], requires_grad=True)])
def test_what_has_no_backward_pass_is_refused(subject: Any) -> None:
    with pytest.raises(InputError, match="no reverse sweep"):
        dl.memory(subject)


def test_a_long_chain_is_walked_without_recursion() -> None:
    x = dl.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = np.sin(y)
    assert len(dl.memory(y).rows) == 20_000
