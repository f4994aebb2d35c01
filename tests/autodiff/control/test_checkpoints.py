"""Checkpoints in traces: gradients are the plain ones, and memory is what the plan says."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.autodiff.control.checkpoints import MOST_NESTED
from difflab.eager.chains import forward_steps
from difflab.errors import InputError
from difflab.language.printers import text
from tests.support.rows import for_each

X = np.array([0.3, -0.4, 0.7])
LARGE = np.linspace(0.0, 1.0, 50_000)
Run = Callable[..., Any]


def plain_chain(step: Run, state: Any, steps: int) -> Any:
    for k in range(steps):
        state = step(k, state)
    return state


def model(checkpoint: Run) -> Run:
    """Return a function of two arguments whose inner parts close over both."""

    def f(x: Any, w: Any) -> Any:
        h = checkpoint(lambda a: {"h": np.sin(w * a) * a, "n": 2.0}, x)
        return np.sum(checkpoint(lambda h, scale: np.tanh(h["h"] * x) * scale, h, w) ** 2)

    return f


def plain(function: Run, *args: Any) -> Any:
    return function(*args)


NESTS: dict[str, Run] = {
    "grad": lambda f: dl.grad(f, (0, 1)),
    "jacfwd": lambda f: dl.jacfwd(f, (0, 1)),
    "jvp": lambda f: lambda x, w: dl.jvp(f, (x, w), (np.cos(x), 0.5)),
    "vjp": lambda f: lambda x, w: dl.vjp(f, x, w)[1](2.0),
    "hessian": lambda f: dl.hessian(f, (0, 1)),
    "reverse over reverse": lambda f: dl.jacrev(dl.grad(f, 0), (0, 1)),
    "reverse over forward": lambda f: dl.jacrev(dl.jacfwd(f, 0), (0, 1)),
    "third": lambda f: dl.jacfwd(dl.jacrev(dl.grad(f, 0), 0), 1),
    "vmap": lambda f: lambda x, w: dl.vmap(dl.grad(f, (0, 1)), (0, None))(np.stack([x, -x]), w),
    "jit": lambda f: dl.jit(dl.grad(f, (0, 1))),
    "under jit": lambda f: dl.grad(dl.jit(f), (0, 1)),
    "compile": lambda f: lambda x, w: dl.compile(dl.grad(dl.trace(f, x, w), (0, 1)))(x, w),
    "auto": lambda f: lambda x, w: dl.jacobian(dl.trace(f, x, w), "auto")(x, w),
    "sparse": lambda f: lambda x, w: dl.sparse_hessian(dl.trace(f, x, w))(x, w).toarray(),
}


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    return [np.asarray(tree)]


@for_each("name", NESTS)
def test_derivatives_are_those_without_checkpoints(name: str) -> None:
    ours = leaves(NESTS[name](model(dl.checkpoint))(X, 0.8))
    expected = leaves(NESTS[name](model(plain))(X, 0.8))
    for one, other in zip(ours, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["grad", "hessian", "reverse over reverse", "third"])
def test_jax_gives_the_same(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def f(x: Any, w: Any) -> Any:
        h = jax.checkpoint(lambda a: jnp.sin(w * a) * a)(x)
        return jnp.sum(jax.checkpoint(lambda h, s: jnp.tanh(h * x) * s)(h, w) ** 2)

    theirs = {
        "grad": lambda: jax.grad(f, (0, 1)),
        "hessian": lambda: jax.hessian(f, (0, 1)),
        "reverse over reverse": lambda: jax.jacrev(jax.grad(f, 0), (0, 1)),
        "third": lambda: jax.jacfwd(jax.jacrev(jax.grad(f, 0), 0), 1),
    }
    ours = leaves(NESTS[name](model(dl.checkpoint))(X, 0.8))
    for one, other in zip(ours, leaves(jax.jit(theirs[name]())(X, 0.8)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_a_checkpoint_is_one_node_that_hides_its_values() -> None:
    f = dl.trace(lambda x: dl.checkpoint(lambda a: np.sin(np.cos(a)), x), X)
    assert [row.name for row in f.graph.primitives] == ["checkpoint"]
    assert text(f) == "x: [3]\nsin(cos(x))"
    pair = dl.trace(lambda x: dl.checkpoint(lambda a: (np.sin(a), np.sum(a)), x), X)
    assert [row.name for row in pair.graph.primitives] == ["checkpoint", "index"]


def test_equal_checkpoints_are_one_node_and_truth_values_stay_truth_values() -> None:
    def f(x: Any) -> Any:
        positive = lambda a: a > 0  # noqa: E731
        mask = dl.checkpoint(positive, x) & dl.checkpoint(positive, x)
        return np.sum(np.where(mask, x, 0.0))

    function = dl.trace(f, X)
    assert [row.name for row in function.graph.primitives].count("checkpoint") == 1
    assert dl.grad(f)(X).tolist() == [1.0, 0.0, 1.0]


def test_the_reverse_sweep_calls_what_is_inside_once_more() -> None:
    calls: list[int] = []

    class Counted(dl.CustomFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            if isinstance(x, np.ndarray):
                calls.append(1)
            return 2.0 * x

        @staticmethod
        def backward(ctx: Any, bar: Any) -> Any:
            return 2.0 * bar

    def f(run: Run) -> Run:
        return lambda x: np.sum(run(lambda a: np.sin(Counted.apply(a)), x))

    for run, expected in ((plain, 1), (dl.checkpoint, 2)):
        slope = dl.compile(dl.value_and_grad(dl.trace(f(run), X)), target="numpy")
        calls.clear()
        assert slope(X)[1] == pytest.approx(2 * np.cos(2 * X), rel=1e-14)
        assert len(calls) == expected


def test_arguments_without_derivative_cost_none() -> None:
    matrix = np.ones((40, 30))
    loss = lambda w: np.sum(dl.checkpoint(lambda w: np.tanh(matrix @ w), w))  # noqa: E731
    slope = dl.gradient(dl.trace(loss, np.ones(30)))
    shapes = {slope.graph.shape(node) for node in range(len(slope.graph))}
    assert [shape for shape in shapes if len(shape) == 2] == [(40, 30)]
    products = [opcode for opcode, _ in slope.graph.rows() if opcode >= 2]
    names = [slope.graph.primitives[opcode - 2].name for opcode in products]
    assert names.count("matmul") == 2  # again forward, and the transposed product


def test_results_other_than_values_pass_through() -> None:
    def f(x: Any) -> Any:
        y, name, nothing = dl.checkpoint(lambda a, *, power: (a**power, "kept", None), x, power=3)
        assert (name, nothing) == ("kept", None)
        return np.sum(y)

    assert dl.grad(f)(X) == pytest.approx(3 * X**2, rel=1e-15)


def test_a_function_that_only_reads_traced_values_is_checkpointed_too() -> None:
    f = lambda x: np.sum(dl.checkpoint(lambda k: x**k, 3))  # noqa: E731
    assert dl.grad(f)(X) == pytest.approx(3 * X**2, rel=1e-15)
    assert "checkpoint" in [row.name for row in dl.trace(f, X).graph.primitives]


# --- chains ---------------------------------------------------------------------------------------


def chained(run: Run) -> Run:
    def f(x: Any, w: Any) -> Any:
        step = lambda k, s: (np.tanh(w * s[0]) + 0.01 * (k + 1) * s[1], s[0])  # noqa: E731
        last = run(step, (x, x), 12)
        return np.sum(last[0] * last[1])

    return f


@pytest.mark.parametrize("snapshots", [1, 2, 5, 50, "sqrt"])
@pytest.mark.parametrize("name", ["grad", "hessian", "jit"])
def test_chains_give_the_plain_derivatives(snapshots: Any, name: str) -> None:
    run = lambda step, state, steps: dl.checkpoint_chain(step, state, steps, snapshots)  # noqa: E731
    ours = leaves(NESTS[name](chained(run))(X, 0.8))
    for one, other in zip(ours, leaves(NESTS[name](chained(plain_chain))(X, 0.8)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_a_chain_whose_steps_alone_read_traced_values() -> None:
    f = lambda w: dl.checkpoint_chain(lambda k, s: np.sin(w * s), 0.4, 9, 2)  # noqa: E731
    plain = lambda w: plain_chain(lambda k, s: np.sin(w * s), 0.4, 9)  # noqa: E731
    assert float(dl.grad(f)(0.9)) == pytest.approx(float(dl.grad(plain)(0.9)), rel=1e-14)
    assert "checkpoint" in [row.name for row in dl.trace(f, 0.9).graph.primitives]


@pytest.mark.parametrize(("steps", "snapshots"), [(10, 3), (20, 2), (6, 1)])
def test_a_chain_runs_the_fewest_steps(steps: int, snapshots: int) -> None:
    counts: list[int] = []

    class Step(dl.CustomFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if isinstance(x, np.ndarray):
                counts.append(1)
            return 1.01 * x

        @staticmethod
        def backward(ctx: Any, bar: Any) -> Any:
            return 1.01 * bar

    step = lambda k, s: np.sin(Step.apply(s))  # noqa: E731
    f = lambda x: np.sum(dl.checkpoint_chain(step, x, steps, snapshots))  # noqa: E731
    slope = dl.value_and_grad(dl.trace(f, X))
    counts.clear()
    slope(X)
    # Revolve's optimum, and the recorded runs of every step.
    assert len(counts) == forward_steps(steps, snapshots) + steps


def test_a_chain_that_nests_too_deep_is_refused() -> None:
    f = lambda x: dl.checkpoint_chain(lambda k, s: np.sin(s), x, 200, 1)  # noqa: E731
    with pytest.raises(InputError, match="199 checkpoints inside each other") as caught:
        dl.grad(f)(0.5)
    assert "more snapshots" in str(caught.value)


def sines(depth: int) -> Callable[[Any], Any]:
    """Return the sine of the sine …, with every sine but the last inside one checkpoint more."""

    def f(x: Any, level: int = depth) -> Any:
        return np.sin(dl.checkpoint(f, x, level - 1)) if level else np.sin(x)

    return f


def slope(x: float, count: int) -> float:
    """Return the derivative of `count` sines inside each other, by the chain rule."""
    product = 1.0
    for _ in range(count):
        product, x = product * float(np.cos(x)), float(np.sin(x))
    return product


@pytest.mark.parametrize("transform", [dl.grad, dl.jacfwd, lambda f: dl.jit(dl.grad(f))])
def test_checkpoints_nest_as_deep_as_stated(transform: Any) -> None:
    assert float(transform(sines(MOST_NESTED))(0.5)) == pytest.approx(
        slope(0.5, MOST_NESTED + 1), rel=1e-13
    )


@pytest.mark.parametrize("transform", [dl.grad, dl.jit, dl.jacfwd])
@pytest.mark.parametrize("depth", [MOST_NESTED + 1, 300])
def test_checkpoints_that_nest_deeper_are_refused(transform: Any, depth: int) -> None:
    with pytest.raises(InputError, match=f"more than {MOST_NESTED} inside each other") as caught:
        transform(sines(depth))(0.5)
    assert "difflab.tensor" in str(caught.value)
    assert dl.grad(sines(2))(0.5) == pytest.approx(slope(0.5, 3))  # nothing is left counted


def test_functions_composed_of_checkpoints_nest_as_deep_and_no_deeper() -> None:
    f = dl.trace(np.sin, 0.5)
    for _ in range(MOST_NESTED):
        f = dl.trace(lambda x, inner=f: np.sin(dl.checkpoint(inner, x)), 0.5)
    exact = slope(0.5, MOST_NESTED + 1)
    assert float(dl.gradient(f)(0.5)[0]) == pytest.approx(exact, rel=1e-13)
    with pytest.raises(InputError, match=f"more than {MOST_NESTED} inside each other"):
        dl.trace(lambda x: np.sin(dl.checkpoint(f, x)), 0.5)


def test_tensors_have_no_limit_of_nesting() -> None:
    x = dl.tensor(0.5, requires_grad=True)
    sines(150)(x).backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(slope(0.5, 151), rel=1e-13)


def test_functions_inside_each_other_are_counted_once() -> None:
    # Counted anew at every level, this would take 2⁶⁰ steps.
    assert dl.count(dl.trace(sines(60), 0.5)).operations == 61


# --- memory ---------------------------------------------------------------------------------------


def peak_states(call: Callable[[], Any]) -> float:
    """Return the most that a call holds, in arrays of the state's size."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return (tracemalloc.get_traced_memory()[1] - before) / LARGE.nbytes
    finally:
        tracemalloc.stop()


def deep(run: Run, steps: int) -> Run:
    return lambda x: np.sum(run(lambda k, h: np.tanh(1.01 * h) + 0.5 * h, x, steps))


STEPS, ROOT = 36, 6
AT_WORK = 4
"""The cotangent, the slope 1 - y² of tanh, what it is computed from, and their product."""
CHAINS: dict[str, tuple[Run, float]] = {
    # The derivative reads one value a step, the tanh.
    "plain": (plain_chain, STEPS + AT_WORK),
    # States between segments, but x and the last, whose segment is recorded: a tanh a step.
    "sqrt": (lambda s, x, n: dl.checkpoint_chain(s, x, n), ROOT - 2 + ROOT + AT_WORK),
    # Snapshots beside x, the state before the step and its tanh.
    "5": (lambda s, x, n: dl.checkpoint_chain(s, x, n, 5), 4 + 2 + AT_WORK),
}


@pytest.mark.parametrize("name", CHAINS)
def test_peak_memory_of_a_gradient(name: str) -> None:
    run, states = CHAINS[name]
    f = deep(run, STEPS)
    dl.grad(f)(LARGE)  # derived, and cached
    found = peak_states(lambda: dl.grad(f)(LARGE))
    assert found == pytest.approx(states, rel=0.1)


@pytest.mark.parametrize("name", CHAINS)
def test_peak_memory_of_compiled_code_is_the_planned_one(name: str) -> None:
    fast = dl.compile(dl.gradient(dl.trace(deep(CHAINS[name][0], STEPS), LARGE)), target="numpy")
    plan = fast.memory_plan().peak_bytes / LARGE.nbytes
    # Plans count a result beside the buffers; code and views take little.
    assert 0.9 * plan <= peak_states(lambda: fast(LARGE)) <= plan + 0.2
    assert plan <= CHAINS[name][1] + 2


def test_a_trace_needs_the_memory_of_tensors() -> None:
    f = deep(CHAINS["sqrt"][0], STEPS)
    traced = peak_states(lambda: dl.grad(f)(LARGE))

    def eager() -> None:
        x = dl.tensor(LARGE, requires_grad=True)
        f(x).backward()

    assert traced <= 1.1 * peak_states(eager) + 1
