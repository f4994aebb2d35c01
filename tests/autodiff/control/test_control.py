"""Loops and branches as nodes, against JAX, the same loop unrolled, and algebra."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, ShapeError, TraceError
from tests.support.rows import for_each

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 3)) / 2
XS = RNG.normal(size=(5, 3))
H0 = np.array([0.1, -0.2, 0.3])


class Jax:
    """The names of `dl` that a case uses, from JAX."""

    def __init__(self) -> None:
        self.jax = pytest.importorskip("jax", reason="JAX is not installed")
        self.jax.config.update("jax_enable_x64", True)
        lax = self.jax.lax
        self.scan, self.cond, self.fori_loop = lax.scan, lax.cond, lax.fori_loop
        self.while_loop = lax.while_loop
        self.np = self.jax.numpy


class Difflab:
    scan, cond, fori_loop, while_loop = dl.scan, dl.cond, dl.fori_loop, dl.while_loop
    np = np


def recurrent(lib: Any) -> Callable[..., Any]:
    def cell(W: Any, h: Any, x: Any) -> Any:
        h = lib.np.tanh(W @ h + x)
        return h, {"square": lib.np.sum(h * h), "state": h}

    def loss(h0: Any, xs: Any, W: Any) -> Any:
        h, ys = lib.scan(lambda h, x: cell(W, h, x), h0, xs)
        return lib.np.sum(h) + lib.np.sum(ys["square"]) + lib.np.sum(ys["state"] * xs)

    return loss


def backward(lib: Any) -> Callable[..., Any]:
    def loss(h0: Any, xs: Any, W: Any) -> Any:
        carry, ys = lib.scan(
            lambda c, x: ((c[0] * x[0] + 1.0, lib.np.sin(c[1]) * x), c[0] * c[1]),
            (h0[0], h0),
            xs,
            reverse=True,
        )
        return carry[0] * lib.np.sum(carry[1]) + lib.np.sum(ys * ys * W[0])

    return loss


def nested(lib: Any) -> Callable[..., Any]:
    def loss(h0: Any, xs: Any, W: Any) -> Any:
        def outer(h: Any, x: Any) -> Any:
            inner = lib.scan(lambda c, w: (lib.np.tanh(c + w * x), None), h, W)[0]
            return inner, lib.np.sum(inner)

        h, ys = lib.scan(outer, h0, xs)
        return lib.np.sum(h) * lib.np.sum(ys)

    return loss


def branching(lib: Any) -> Callable[..., Any]:
    def loss(h0: Any, xs: Any, W: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            after = lib.cond(
                lib.np.sum(x) > 0, lambda h: lib.np.sin(h) * W[0], lambda h: h * h + x, h
            )
            return after, None

        return lib.np.sum(lib.scan(step, h0, xs)[0])

    return loss


def counted(lib: Any) -> Callable[..., Any]:
    def loss(h0: Any, xs: Any, W: Any) -> Any:
        h = lib.fori_loop(1, 6, lambda i, h: lib.np.tanh(W @ h) + i * xs[0], h0)
        return lib.np.sum(h * h)

    return loss


def halving(lib: Any) -> Callable[..., Any]:
    def loss(h0: Any, xs: Any, W: Any) -> Any:
        h = lib.while_loop(
            lambda v: lib.np.sum(v[0] * v[0]) > 0.01,
            lambda v: (0.4 * (v[0] @ W) + 0.1 * v[0], v[1] + lib.np.sum(lib.np.sin(v[0]) * xs[1])),
            (h0, 0.0 * h0[0]),
        )
        return lib.np.sum(h[0]) + h[1] ** 2

    return loss


CASES = [recurrent, backward, nested, branching, counted, halving]
FIXED = CASES[:-1]  # JAX has no reverse mode of while_loop


def close(found: Any, wanted: Any) -> None:
    wanted = np.asarray(wanted)
    assert np.shape(found) == wanted.shape
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12 * scale)


@cache
def jaxs_second(case: Any) -> Any:
    """Return the mixed second derivative that JAX computes."""
    lib = Jax()
    forward = lib.jax.jacfwd
    return lib.jax.jit(forward(forward(case(lib), 2), 0))(H0, XS, W)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
class TestAgainstJax:
    def test_values(self, case: Any) -> None:
        lib = Jax()
        wanted = case(lib)(H0, XS, W)
        close(case(Difflab)(H0, XS, W), wanted)
        close(dl.trace(case(Difflab), H0, XS, W)(H0, XS, W), wanted)

    @pytest.mark.parametrize("argnum", [0, 1, 2])
    def test_first_derivatives_in_both_modes(self, case: Any, argnum: int) -> None:
        lib = Jax()
        wanted = lib.jax.jit(lib.jax.jacfwd(case(lib), argnum))(H0, XS, W)
        close(dl.grad(case(Difflab), argnum)(H0, XS, W), wanted)
        close(dl.jacfwd(case(Difflab), argnum)(H0, XS, W), wanted)

    @pytest.mark.parametrize("nest", ["ff", "fr", "rf", "rr"])
    def test_second_derivatives_in_every_nesting(self, case: Any, nest: str) -> None:
        wanted = jaxs_second(case)
        modes = {"f": dl.jacfwd, "r": dl.jacrev}
        found = modes[nest[0]](modes[nest[1]](case(Difflab), 2), 0)(H0, XS, W)
        close(found, wanted)

    def test_third_derivatives(self, case: Any) -> None:
        lib = Jax()
        forward = lib.jax.jacfwd
        wanted = lib.jax.jit(forward(forward(forward(case(lib)))))(H0, XS, W)
        close(dl.jacfwd(dl.jacrev(dl.grad(case(Difflab))))(H0, XS, W), wanted)

    def test_compiled_and_at_batches_of_points(self, case: Any) -> None:
        function = dl.trace(case(Difflab), H0, XS, W)
        points = [H0 * k for k in (1.0, 2.0, -3.0, 0.5)]
        batch = [np.stack(points), np.stack([XS] * 4), np.stack([W] * 4)]
        for each in (function, dl.gradient(function)):
            wanted = np.stack([each(point, XS, W) for point in points])
            close(each(*batch), wanted)
            for target in ("numpy", "auto", "native"):
                fast = dl.compile(each, target=target)
                close(fast(H0, XS, W), wanted[0])
                close(fast(*batch), wanted)

    def test_vmap(self, case: Any) -> None:
        points = np.stack([H0, 2 * H0, -3 * H0])
        for make in (lambda f: f, dl.grad):
            found = dl.vmap(make(case(Difflab)), in_axes=(0, None, None))(points, XS, W)
            close(found, np.stack([make(case(Difflab))(point, XS, W) for point in points]))

    def test_tensors(self, case: Any) -> None:
        leaves = [dl.tensor(value, requires_grad=True) for value in (H0, XS, W)]
        case(Difflab)(*leaves).backward()
        for argnum, leaf in enumerate(leaves):
            close(leaf.grad.numpy(), dl.grad(case(Difflab), argnum)(H0, XS, W))

    def test_jit(self, case: Any) -> None:
        fast = dl.jit(dl.grad(case(Difflab), 2))
        for scale in (1.0, 2.0):
            close(fast(scale * H0, XS, W), dl.grad(case(Difflab), 2)(scale * H0, XS, W))


class TestSize:
    def test_a_loop_is_one_node_whatever_its_steps(self) -> None:
        def graph(steps: int) -> dl.Function:
            return dl.trace(lambda y: dl.fori_loop(0, steps, lambda i, y: 4 * y * (1 - y), y), 0.3)

        assert len(graph(10).graph) == len(graph(100_000).graph)
        small, large = dl.gradient(graph(10)), dl.gradient(graph(100_000))
        assert len(small.graph) == len(large.graph) < 40

    def test_equal_loops_are_one_node(self) -> None:
        loop = lambda x: dl.scan(lambda c, _: (c * x, None), x, length=4)[0]  # noqa: E731
        function = dl.trace(lambda x: loop(x) + loop(x), 1.0)
        assert [row.name for row in function.graph.primitives].count("scan") == 1
        assert int((function.graph.opcode == function.graph.opcode.max()).sum()) == 1


class TestExactValues:
    def test_a_product_of_a_hundred_factors(self) -> None:
        # ∂/∂xₖ ∏ xᵢ = ∏ / xₖ
        x = np.linspace(0.9, 1.1, 100)
        product = lambda x: dl.scan(lambda p, factor: (p * factor, None), 1.0, x)[0]  # noqa: E731
        np.testing.assert_allclose(dl.grad(product)(x), np.prod(x) / x, rtol=1e-13)

    def test_the_branch_not_taken_is_not_computed(self) -> None:
        root = lambda x: dl.cond(x > 0, np.sqrt, lambda x: 0 * x, x)  # noqa: E731
        function = dl.trace(root, 1.0)
        for derived, wanted in ((function, 0.0), (dl.gradient(function), [0.0])):
            np.testing.assert_array_equal(derived(-1.0), wanted)
            np.testing.assert_array_equal(derived(np.array([-1.0])), [wanted])

    def test_newtons_iteration(self) -> None:
        def root(a: Any) -> Any:
            go = lambda x: abs(x * x - a) > 1e-13  # noqa: E731
            return dl.while_loop(go, lambda x: 0.5 * (x + a / x), a)

        a = 2.0
        assert float(dl.grad(root)(a)) == pytest.approx(0.5 / np.sqrt(a), rel=1e-12)
        assert float(dl.grad(dl.grad(root))(a)) == pytest.approx(-0.25 * a**-1.5, rel=1e-10)

    def test_no_steps(self) -> None:
        step = lambda c, x: (c * x, c + x)  # noqa: E731
        for run in (lambda f: f, dl.jit):
            last, ys = run(lambda c: dl.scan(step, c, np.zeros((0, 2))))(np.ones(2))
            assert last.tolist() == [1.0, 1.0]
            assert ys.shape == (0, 2)
        total = lambda c: np.sum(dl.scan(step, c, np.zeros((0, 2)))[0])  # noqa: E731
        assert dl.grad(total)(np.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("method", ["complex-step", "richardson", "forward", "reverse"])
def test_every_method_differentiates_a_loop(method: str) -> None:
    # y = sin(x)·x³ after three steps; y′ by the product rule.
    function = dl.trace(
        lambda x: dl.scan(lambda c, _: (c * x, None), np.sin(x), length=3)[0] + 0 * x, 0.3
    )
    result = dl.differentiate(function, [0.3], method=method)
    wanted = np.cos(0.3) * 0.3**3 + 3 * np.sin(0.3) * 0.3**2
    np.testing.assert_allclose(np.ravel(result.value), [wanted], rtol=1e-9)


class TestRefusals:
    @for_each(
        ("call", "error", "message"),
        [
            (lambda x: dl.scan(lambda c, _: (c, None), x), InputError, "number of steps: nothing"),
            (
                lambda x: dl.scan(lambda c, _: (c, None), x, (np.ones(2), np.ones(3))),
                InputError,
                "number of steps: 2 and 3",
            ),
            (lambda x: dl.scan(lambda c, _: c, x, length=2), InputError, "returns a pair"),
            (
                lambda x: dl.scan(lambda c, _: ([c], None), x, length=2),
                ShapeError,
                "changes its structure",
            ),
            (
                lambda x: dl.scan(lambda c, v: (c + v, None), x, np.ones((2, 3))),
                ShapeError,
                r"changes its shape from \(\) to \(3,\)",
            ),
            (lambda x: dl.fori_loop(0, 2.5, lambda i, c: c, x), InputError, "bounds of fori_loop"),
            (
                lambda x: dl.while_loop(lambda c: c > 0, lambda c: np.ones(2) * c, x),
                ShapeError,
                "changes its shape",
            ),
            (
                lambda x: dl.cond(x > 0, lambda x: x, lambda x: (x, x), x),
                ShapeError,
                "different trees",
            ),
            (
                lambda x: dl.cond(x > 0, lambda x: x, lambda x: x * np.ones(2), x),
                ShapeError,
                "different shapes",
            ),
            (lambda x: dl.cond(np.ones(2) > x, abs, abs, x), ShapeError, "is a scalar"),
            (lambda x: dl.scan(3, x, length=1), InputError, "scan takes a function, not int"),
        ],
    )
    def test_each_names_what_is_wrong(self, call: Any, error: Any, message: str) -> None:
        with pytest.raises(error, match=message):
            dl.grad(lambda x: flat(call(x)))(1.0)


def flat(tree: Any) -> Any:
    return tree[0] if isinstance(tree, tuple) else tree


def test_the_graph_of_a_stack_does_not_grow_with_the_examples() -> None:
    def root(a: Any, w: Any) -> Any:
        x = dl.while_loop(lambda v: v < a * a, lambda v: v * (1.0 + w) + a, a * w)
        x = dl.cond(x > 2.0, lambda x: x * w, lambda x: x - w, x)
        return dl.scan(lambda c, t: (np.tanh(c * t + w), c), x, np.arange(1.0, 5.0))[0]

    sizes = set()
    for count in (3, 30):
        a, w = np.linspace(1.0, 9.0, count), 0.5
        stack = dl.trace(dl.vmap(dl.grad(root, (0, 1)), (0, None)), a, w)
        sizes.add(len(stack.graph))
        slopes = np.stack(stack(a, w), axis=-1)
        own = [dl.grad(root, (0, 1))(a[k], w) for k in range(count)]
        np.testing.assert_allclose(slopes, own, rtol=1e-12)
    assert len(sizes) == 1


def test_steps_of_numbers_take_no_tree_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from difflab.autodiff.control import while_loops

    calls = {"flatten": 0, "unflatten": 0}

    def counted(name: str) -> Any:
        original = getattr(while_loops, name)

        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return original(*arguments)

        return call

    for name in calls:
        monkeypatch.setattr(while_loops, name, counted(name))
    found = dl.while_loop(lambda s: s[0] < 50, lambda s: (s[0] + 1, s[1] * 0.5), (0, 1.0))
    assert found == (50, 2.0**-50)
    assert calls == {"flatten": 2, "unflatten": 2}


class TestPlainLoopsThatChange:
    """Steps of a loop on plain values that differ from the step before."""

    def test_types(self) -> None:
        def step(s: Any) -> Any:
            return s[0] + 1, np.float64(s[1]) if s[0] % 3 else int(s[1] + 1)

        found = dl.while_loop(lambda s: s[0] < 20, step, (0, 1))
        value = (0, 1)
        while value[0] < 20:
            value = step(value)
        assert found == value
        assert type(found[1]) is type(value[1])

    @pytest.mark.parametrize("late", [0, 5])
    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            (lambda k, x: (k, np.append(x, 1.0)), r"shape from \(2,\) to \(3,\)"),
            (lambda k, x: (np.array([k]), x), r"shape from \(\) to \(1,\)"),
            (lambda k, x: [k, x], "changes its structure"),
            (lambda k, x: (k, (x,)), "changes its structure"),
            (lambda k, x: (k, x, k), "changes its structure"),
        ],
    )
    def test_shapes_and_structures(self, changed: Any, message: str, late: int) -> None:
        def step(s: Any) -> Any:
            return (changed if s[0] == late else lambda *s: s)(s[0] + 1, s[1] * 2)

        with pytest.raises(ShapeError, match=message):
            dl.while_loop(lambda s: s[0] < 10, step, (0, np.ones(2)))

    def test_a_value_that_becomes_traced(self) -> None:
        def loss(x: Any) -> Any:
            step = lambda s: (s[0] + 1, s[1] * (x if s[0] > 3 else 2.0))  # noqa: E731
            return dl.while_loop(lambda s: s[0] < 6, step, (0, 1.0))[1]

        with pytest.raises(TraceError):  # the step branches on what is then traced
            dl.grad(loss)(3.0)

        def power(x: Any) -> Any:
            return dl.while_loop(lambda s: s[0] < 6, lambda s: (s[0] + 1, s[1] * x), (0, 1.0))[1]

        assert dl.grad(power)(3.0) == 6 * 3.0**5
