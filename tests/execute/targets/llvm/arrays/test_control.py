"""Loops and choices as machine code: results, size of the code, signals, and memory."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import difflab as dl

pytest.importorskip("llvmlite")

from difflab.execute.lower.schedule import Schedule
from difflab.execute.targets.llvm.arrays import NativeArrays


def native(f: dl.Function, threads: int | None = None) -> Any:
    fast = dl.compile(f, "native", threads=threads)
    assert fast.reason == "native: as requested"
    return fast


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("reverse", [False, True])
def test_values_that_change_places_are_not_overwritten(steps: int, reverse: bool) -> None:
    def swapped(a: Any, b: Any, xs: Any) -> Any:
        (a, b), ys = dl.scan(lambda c, x: ((c[1], c[0] + x), c[0] - x), (a, b), xs, reverse=reverse)
        return a, b, ys

    point = (np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.arange(2.0 * steps).reshape(steps, 2))
    a, b, ys = *point[:2], []
    for x in point[2][:: -1 if reverse else 1]:
        ys.append(a - x)
        a, b = b, a + x
    found = dl.compile(dl.trace(swapped, *point), "native")(*point)
    np.testing.assert_array_equal(found[0], a)
    np.testing.assert_array_equal(found[1], b)
    stacked = np.array(ys[::-1] if reverse else ys).reshape(steps, 2)
    np.testing.assert_array_equal(found[2], stacked)


def test_constants_inputs_and_truth_values_are_results_of_a_step() -> None:
    def mixed(x: Any, w: Any) -> Any:
        def step(c: Any, _: None) -> Any:
            return (w, 2.0, np.where(c[0] > c[1], 1.0, 0.0)), (c[2], w, 3.0)

        last, stacked = dl.scan(step, (x, 0.0, 0.0), length=3)
        return *last, *stacked

    *last, flags, read, constant = dl.compile(dl.trace(mixed, 1.0, 7.0), "native")(1.0, 7.0)
    assert last == [7.0, 2.0, 1.0]
    assert (flags.tolist(), read.tolist(), constant.tolist()) == ([0, 1, 1], [7] * 3, [3] * 3)


def test_views_are_copied_before_a_routine_reads_them() -> None:
    def columns(A: Any, v: Any) -> Any:
        return dl.scan(lambda c, row: (c + A.T @ row, None), v, A.T[::-1])[0]

    A, v = np.arange(9.0).reshape(3, 3), np.ones(3)
    wanted = v + sum(A.T @ row for row in A.T[::-1])
    np.testing.assert_array_equal(native(dl.trace(columns, A, v))(A, v), wanted)


def test_the_predicate_nan_holds_as_in_python() -> None:
    f = dl.trace(lambda x: dl.cond(x, lambda x: 1.0 + 0 * x, lambda x: 2.0 + 0 * x, x), 1.0)
    fast = native(f)
    assert [fast(x) for x in (1.0, 0.0, -0.0)] == [1.0, 2.0, 2.0]
    assert np.isnan(fast(np.nan))  # the first branch: 1 + 0·nan


def test_a_million_steps_of_the_logistic_map_are_one_loop() -> None:
    deep = dl.trace(lambda x: dl.fori_loop(0, 1_000_000, lambda i, y: 4 * y * (1 - y), x), 0.3)
    y = 0.3
    for _ in range(1_000_000):
        y = 4 * y * (1 - y)
    assert dl.compile(deep)(0.3) == y
    assert dl.compile(deep).reason == "native: it has loops or branches"


def test_code_and_graph_do_not_grow_with_the_steps() -> None:
    def cell(W: Any, h: Any, xs: Any) -> Any:
        return np.sum(dl.scan(lambda h, x: (np.tanh(W @ h + x), None), h, xs)[0])

    sizes = []
    for steps in (10, 8192):
        xs = np.zeros((steps, 4))
        f = dl.gradient(dl.trace(cell, np.eye(4), np.zeros(4), xs))
        target = NativeArrays(Schedule.of(f))
        sizes.append((len(f.graph), target.source.count("\n")))
    assert sizes[0] == sizes[1]


ENDLESS = """
    import os, signal, threading, time
    import difflab as dl
    import numpy as np
    endless = dl.trace(lambda x: dl.while_loop(lambda v: v > 0, lambda v: v * 1.0, x), 1.0)
    fast = dl.compile(endless, "native", threads=2)
    class Stop(Exception):
        pass
    def stop(*_):
        raise Stop("from a handler")
    {handler}
    try:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        fast({point})
    except {wanted} as error:
        print("ended by", repr(error))
    print(fast(-1.0))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("point", ["1.0", "np.ones(8)", "np.append(-np.ones(7), 1.0)"])
@pytest.mark.parametrize(
    ("handler", "wanted", "said"),
    [
        ("pass", "KeyboardInterrupt", "KeyboardInterrupt()"),
        ("signal.signal(signal.SIGINT, stop)", "Stop", "Stop('from a handler')"),
    ],
)
def test_an_endless_loop_ends_by_ctrl_c(handler: str, wanted: str, said: str, point: str) -> None:
    program = textwrap.dedent(ENDLESS).format(handler=handler, wanted=wanted, point=point)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stdout.splitlines() == [f"ended by {said}", "-1.0"], done.stderr


def test_memory_that_is_not_there_is_an_error() -> None:
    pytest.importorskip("resource")
    program = """
        import resource
        import difflab as dl
        from difflab.errors import ResourceError
        endless = dl.trace(lambda x: dl.while_loop(lambda v: v < 2, lambda v: v * 1.0, x), 1.0)
        fast = dl.compile(dl.gradient(endless), "native")
        assert fast(3.0).tolist() == [1.0]
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28),) * 2)
        try:
            fast(1.0)
        except ResourceError as error:
            print(error)
        print(fast(3.0))
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    said, *_, value = done.stdout.splitlines()
    assert "not enough memory for the values of all steps of a while_loop" in said
    assert value == "[1.]"


def test_accesses_of_routines_are_checked_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds")

    def nested(x: Any, w: Any) -> Any:
        def outer(c: Any, a: Any) -> Any:
            d = dl.while_loop(lambda v: np.sum(v * v) > 1e-3, lambda v: 0.5 * v * np.cos(w), c + a)
            return np.tanh(dl.cond(np.sum(d) > 0, inner, lambda d: -d, d)), a

        def inner(d: Any) -> Any:
            return dl.fori_loop(0, 3, lambda i, q: q * w + d, d)

        return np.sum(dl.scan(outer, x, np.arange(8.0).reshape(4, 2))[0])

    point = np.array([0.3, 0.4]), np.array([1.1, 0.7])
    f = dl.value_and_gradient(dl.trace(nested, *point))
    fast = native(f)
    assert "store i64 1, ptr %fault" in fast.source
    for one, other in zip(fast(*point), f(*point), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("bounds", ["", "bounds"])
def test_each_point_of_a_batch_takes_its_own_steps(
    threads: int, bounds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIFFLAB_CHECK", bounds)

    def root(a: Any, w: Any) -> Any:
        step = lambda v: (0.5 * (v[0] + a / v[0]), v[1] * w)  # noqa: E731
        x, weights = dl.while_loop(lambda v: abs(v[0] * v[0] - a) > 1e-12, step, (a, w))
        return x, weights, x > 3.0

    rng = np.random.default_rng(0)
    fast = native(dl.trace(root, 2.0, np.ones(3)), threads)
    a, w = rng.uniform(1, 50, (5, 4)), rng.uniform(0.1, 0.9, (5, 4, 3))
    for points in ((a, w), (a[0, 0], w), (a, w[0, 0]), (a[:0], w[:0]), (a[:1, :1], w[:1, :1])):
        x, weights, large = fast(*points)
        assert np.all(np.abs(x * x - np.broadcast_to(points[0], x.shape)) <= 1e-12)
        assert weights.shape == (*x.shape, 3)
        assert large.dtype == bool
        np.testing.assert_array_equal(large, x > 3.0)
    slope = native(dl.gradient(dl.trace(lambda a: root(a, 1.0)[0], 2.0)), threads)
    # the slope of the last iterate is behind by what the step before it was off: √(1e-12)
    np.testing.assert_allclose(slope(a)[..., 0], 0.5 / np.sqrt(a), rtol=1e-5)
    plan = fast.memory_plan(100)
    assert (plan.spaces, plan.results) == (threads, 8 * 100 * 5)


def test_a_value_without_elements_is_carried() -> None:
    def empty(x: Any, none: Any) -> Any:
        return dl.while_loop(lambda v: v[0] < 3.0, lambda v: (2.0 * v[0], v[1]), (x, none))

    f = dl.jacobian(dl.trace(empty, 1.0, np.zeros(0)), mode="reverse")
    assert native(f)(1.0, np.zeros(0)).tolist() == [[4.0]]
    only = dl.trace(
        lambda none, x: dl.while_loop(lambda v: x < 0, lambda v: v, none), np.zeros(0), 1.0
    )
    assert native(only)(np.zeros(0), 1.0).shape == (0,)
