"""Kernels are launched where the arrays are: geometry, streams, layouts, and what is refused."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import DeviceError, MissingDependencyError, PointError
from difflab.execute.targets.cuda.target import MOST_BLOCKS, THREADS, _CupyCall
from tests.core.test_devices import MATRIX, MOVED
from tests.support import standin, standin_cuda

SEED = "ln(x1) + x1*x2 - sin(x2)"
RNG = np.random.default_rng(8)
X1, X2 = RNG.uniform(0.5, 3.0, (2, 1000))


def seed() -> dl.Function:
    return dl.value_and_gradient(dl.parse(SEED))


def agree(found: Any, expected: Any, xp: Any) -> None:
    """Hold results to the evaluator's, in shape too, within what compositions may differ by."""
    if isinstance(expected, tuple):
        for part, wanted in zip(found, expected, strict=True):
            agree(part, wanted, xp)
        return
    assert isinstance(found, xp.ndarray)
    assert found.shape == np.shape(expected)
    assert found.dtype == np.asarray(expected).dtype
    close = 4e-15 if xp is standin else 1e-12
    np.testing.assert_allclose(found.get(), expected, rtol=close, atol=close)


@pytest.fixture
def launches(pretended: Any, monkeypatch: pytest.MonkeyPatch) -> list[standin_cuda.Launch]:
    """What is launched; the copies to the host that a call makes would raise."""

    def refuse(self: Any) -> Any:
        raise AssertionError("a copy to the host")

    monkeypatch.setattr(standin.ndarray, "get", refuse)
    monkeypatch.setattr(standin.ndarray, "item", refuse)
    return standin_cuda.LAUNCHES


def test_value_and_gradient_are_one_launch_on_the_current_stream(launches: Any) -> None:
    fast = dl.compile(seed(), "cupy")
    there = [standin.asarray(X1), standin.asarray(X2)]
    with standin_cuda.stream("mine"):
        value, gradient = fast(*there)
    fast(*there)
    assert [launch.stream for launch in launches] == ["mine", "null"]
    assert launches[0].grid == (-(-1000 // THREADS),)
    assert launches[0].block == (THREADS,)
    assert launches[0].device == 1
    assert launches[0].args[-1] == 1000
    assert value.shape == (1000,)
    assert gradient.shape == (1000, 2)
    assert gradient.strides == (8, 8000)


def test_threads_go_on_where_there_are_many_points(launches: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(standin_cuda, "COMPILER", None)
    points = MOST_BLOCKS * THREADS + 1
    x = standin.broadcast_to(standin.zeros(1), (points,))
    dl.compile(dl.parse("x > 1"), "cupy")(x)
    assert launches[0].grid == (MOST_BLOCKS,)
    assert launches[0].args[-1] == points


def test_points_beyond_the_grid_are_computed(xp: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("difflab.execute.targets.cuda.target.MOST_BLOCKS", 2)
    found = dl.compile(seed(), "cupy")(xp.asarray(X1), xp.asarray(X2))
    agree(found, seed()(X1, X2), xp)


def test_numbers_are_parameters_of_the_kernel(launches: Any) -> None:
    fast = dl.compile(seed(), "cupy")
    fast(standin.asarray(X1), 2.5)
    assert type(launches[-1].args[2]) is np.float64
    assert launches[-1].args[2] == 2.5
    value, gradient = fast(2.0, np.float64(5.0))
    assert (value.shape, gradient.shape) == ((), (2,))
    assert not any(isinstance(arg, standin.ndarray) for arg in launches[-1].args[:2])


def test_no_points_are_no_launch(launches: Any) -> None:
    value, gradient = dl.compile(seed(), "cupy")(standin.zeros(0), 1.0)
    assert (value.shape, gradient.shape) == ((0,), (0, 2))
    assert launches == []


LAYOUTS: list[Callable[[Any], tuple[Any, Any]]] = [
    lambda a: (a[:, 1], a[::-1, 0]),
    lambda a: (a, a.T[:, 0][:4]),
    lambda a: (a.T, 2.0),
    lambda a: (a[::2, 1::2], a[:3, :1]),
    lambda a: (a.reshape(2, 3, 4), a[0]),
    lambda a: (a.reshape(2, 3, 4).transpose(2, 0, 1), a[0, 0]),
]


def test_inputs_lie_as_they_like(xp: Any, rng: np.random.Generator) -> None:
    f = seed()
    wide = rng.uniform(0.5, 3.0, (6, 4))
    there = xp.asarray(wide)
    fast = dl.compile(f, "cupy")
    calls = [partial(fast, *place(there)) for place in LAYOUTS]
    calls += [partial(fast, 2.0, 5.0), partial(fast, x2=there[0], x1=there[1])]
    expected = [f(*place(wide)) for place in LAYOUTS] + [f(2.0, 5.0), f(wide[1], wide[0])]
    if xp is standin:
        standin_cuda.warm(calls)
    for call, wanted in zip(calls, expected, strict=True):
        agree(call(), wanted, xp)


def test_packed_points(xp: Any) -> None:
    f, fast = seed(), dl.compile(seed(), "cupy", packed=True)
    points = np.stack([X1, X2], axis=1)
    agree(fast(xp.asarray(points)), f(X1, X2), xp)
    agree(fast(xp.asarray(points[0])), f(X1[0], X2[0]), xp)
    w = dl.gradient(dl.parse("w: [3]; w[0]*sin(w[1]) + w[2]^2"))
    agree(dl.compile(w, "cupy", packed=True)(xp.asarray(MATRIX)), w(MATRIX), xp)
    agree(dl.compile(w, "cupy")(xp.asarray(MATRIX)), w(MATRIX), xp)
    with pytest.raises(PointError, match="2 elements"):
        fast(xp.asarray(np.ones(3)))
    with pytest.raises(DeviceError, match="points is on the host"):
        fast(points)


def test_other_numbers_are_converted_there(xp: Any) -> None:
    f, fast = dl.parse("x*y"), dl.compile(dl.parse("x*y"), "cupy")
    agree(fast(xp.asarray(np.float32([1.5, 2.5])), 2.0), f(np.array([1.5, 2.5]), 2.0), xp)
    product, short = dl.parse("x: [3]; x @ x"), ONE.astype(np.float32)
    agree(dl.compile(product, "cupy")(xp.asarray(short)), product(short.astype(float)), xp)
    with pytest.raises(PointError, match="real numbers, but 'x' is complex128"):
        fast(xp.asarray(np.array([1j])), 2.0)


def test_truth_values_pass_between_kernels_and_come_out(xp: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("difflab.execute.targets.cuda.stages.MOST_OPERATIONS", 1)
    f = dl.parse("[where((x > y) or (x < 1), sin(x), y), x > y, 3, y, (x > y)*x]")
    fast = dl.compile(f, "cupy")
    assert fast._cupy.kernels > 4
    found, expected = fast(xp.asarray(X1), xp.asarray(X2)), f(X1, X2)
    agree(found, expected, xp)
    assert [part.dtype for part in found] == [part.dtype for part in expected]


def test_an_untaken_branch_has_derivative_zero(xp: Any) -> None:
    f = dl.gradient(dl.parse("where(x > 0, sqrt(x), 0)"))
    there = xp.asarray(np.array([-1.0, 0.0, 4.0]))
    assert dl.compile(f, "cupy")(there).get().ravel().tolist() == [0.0, 0.0, 0.25]


NETWORK = "W: [4, 3]; V: [4]; x: [3]; b: [4]; V @ tanh(W@x + b) + sum(x*x)"


ONE, ROWS = RNG.uniform(0.5, 2.0, 3), RNG.uniform(0.5, 2.0, (7, 3))
FUNCTIONS: dict[str, list[tuple[Any, ...]]] = {
    "x: [3]; sum(x*sin(s)) + s": [(2.0, ONE), (2.0, ROWS), (ROWS[:, 0], ONE), (ROWS[:, 0], ROWS)],
    "[2, x, 2*x]": [(3.0,), (ONE,)],
    "x: [3]; [x, exp(digamma(x*x)), x + 1]": [(ROWS,), (ONE,)],
    "x: [3]; y: [3]; where(x > y, x, 0) @ y": [(ROWS, ONE)],
    "x: [3]; y: [3]; [x > y, (x > y)*1, sum((x > y)*x)]": [(ROWS, ONE), (ONE, ROWS)],
    "x: [3]; y: [3]; where((x > y)[0:2], x[0:2], y[1:3])": [(ROWS, ONE)],
    "x: [3]; softmax(x)": [(ROWS,), (np.zeros((0, 3)),)],
    "w: [2, 2]; det(w) + w[0, 1]": [(RNG.normal(size=(5, 2, 2)),)],
    "w: [2, 2]; w[0, 0]*w[1, 1] - w[0, 1]": [(RNG.normal(size=(5, 4, 2, 2)),)],
    "polygamma(2, x)*y": [(ONE, 2.0)],
}


def held(cases: list[tuple[dl.Function, tuple[Any, ...]]], xp: Any) -> None:
    """Hold functions at values to the evaluator; their kernels are compiled together."""
    compiled: dict[int, Any] = {}
    calls = []
    for f, values in cases:
        fast = compiled.setdefault(id(f), dl.compile(f, "cupy"))
        there = [xp.asarray(value) if np.ndim(value) else value for value in values]
        calls.append(partial(fast, *there))
    if xp is standin:
        standin_cuda.warm(calls)
    for call, (f, values) in zip(calls, cases, strict=True):
        agree(call(), f(*values), xp)


def test_functions_and_their_derivatives(xp: Any) -> None:
    cases = []
    for text, points in FUNCTIONS.items():
        f = dl.parse(text)
        for function in (f, dl.jacobian(f, mode="reverse")):
            cases += [(function, values) for values in points]
    held(cases, xp)


def test_programs_of_arrays(xp: Any, rng: np.random.Generator) -> None:
    f = dl.value_and_gradient(dl.parse(NETWORK))
    one = tuple(rng.normal(size=shape) for shape in f.input_shapes)
    rows = tuple(rng.normal(size=(7, *shape)) for shape in f.input_shapes)
    held([(f, one), (f, rows), (f, (*one[:-1], rows[-1])), (f, (rows[0], *one[1:]))], xp)
    stages = dl.compile(f, "cupy")._cupy
    assert stages.kernels < len(stages.stages.steps) / 2


class Positive(dl.CustomFunction):
    """Gives truth values where numbers are expected."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x > 1.0

    @staticmethod
    def backward(ctx: Any, y_bar: Any) -> Any:
        return y_bar * 0.0


def test_functions_of_the_users_run_between_kernels(xp: Any) -> None:
    held([(dl.trace(lambda x: Positive.apply(x) * 2.0 + x, ONE), (ONE,))], xp)


def test_moved_data_and_its_derivatives(xp: Any) -> None:
    batch = np.stack([MATRIX, 2 * MATRIX])
    cases = []
    for moved in MOVED.values():
        recorded = dl.trace(moved, MATRIX)
        for function in (recorded, dl.jacobian(recorded, mode="reverse")):
            cases += [(function, (MATRIX,)), (function, (batch,))]
    held(cases, xp)


def test_results_are_arrays_of_their_own(xp: Any) -> None:
    f = dl.trace(lambda x: (x.T, x, x * 2, x * 2), MATRIX)
    there = xp.asarray(MATRIX)
    results = dl.compile(f, "cupy")(there)
    for result in results:
        result[...] = 0.0
    assert np.array_equal(there.get(), MATRIX)
    *_, third, last = dl.compile(f, "cupy")(there)
    third[...] = 7.0
    assert np.array_equal(last.get(), 2 * MATRIX)


def test_values_are_let_go_after_their_last_use(xp: Any, monkeypatch: Any) -> None:
    held_there: list[int] = []
    fused = _CupyCall._fused

    def counted(self: Any, *args: Any) -> None:
        held_there.append(len(self.values) - len(self.stages.known))
        fused(self, *args)

    monkeypatch.setattr(_CupyCall, "_fused", counted)
    text = "x"
    for _ in range(6):
        text = f"tanh(W@{text})"
    f = dl.parse(f"W: [3, 3]; x: [3]; sum({text})")
    dl.compile(f, "cupy")(xp.asarray(np.eye(3)), xp.asarray(ONE))
    assert held_there == [2, 2, 2, 2, 2, 1]


def test_repetition_is_vectors_there(xp: Any, rng: np.random.Generator) -> None:
    terms = " + ".join(f"100*(x{k + 1} - x{k}^2)^2 + (1 - x{k})^2" for k in range(1, 300))
    f = dl.value_and_gradient(dl.parse(terms))
    for packed in (False, True):
        fast = dl.compile(f, "cupy", packed=packed)
        point = rng.uniform(-1, 1, 300)
        given = [xp.asarray(point)] if packed else [xp.asarray(x) for x in point]
        agree(fast(*given), f(*point), xp)
        assert len(fast.source) < 60_000


def test_auto_computes_where_the_arrays_are(xp: Any) -> None:
    fast = dl.compile(seed())
    agree(fast(xp.asarray(X1), xp.asarray(X2)), seed()(X1, X2), xp)
    assert isinstance(fast(X1, X2)[0], np.ndarray)
    assert isinstance(fast(2.0, 5.0)[0], float)
    assert fast.reason.endswith("; cupy for arrays on a GPU")
    packed = dl.compile(dl.gradient(dl.parse(SEED)), packed=True)
    points = np.stack([X1, X2], axis=1)
    agree(packed(xp.asarray(points)), packed(points), xp)
    network = dl.compile(dl.parse(NETWORK))
    ones = {name: np.ones(shape) for name, shape in zip("VWbx", ((4,), (4, 3), 4, 3), strict=True)}
    there = {name: xp.asarray(value) for name, value in ones.items()}
    agree(network(**there), network(**ones), xp)


def test_what_lies_elsewhere_is_named(xp: Any) -> None:
    fast, there = dl.compile(seed(), "cupy"), xp.asarray(X1)
    with pytest.raises(DeviceError, match=r"(?s)x2 is on the host \(numpy\).*cupy.asarray\(x2\)"):
        fast(there, X2)
    with pytest.raises(DeviceError, match="x1 is on the host"):
        fast(X1, X2)
    with pytest.raises(DeviceError, match="x2 is on the host"):
        fast(2.0, [1.0, 2.0])
    with pytest.raises(DeviceError, match=r"(?s)'numpy' computes on the host.*get\(\)"):
        dl.compile(seed(), "numpy")(there, 2.0)
    with pytest.raises(DeviceError, match=r"x1 is on (stand-in|<CUDA Device)"):
        dl.compile(seed())(there, X2)


def test_devices_are_not_mixed(pretended: Any) -> None:
    class Elsewhere(standin.ndarray):
        device = "stand-in device 1"

    with pytest.raises(DeviceError, match=r"one device, but x1 is on stand-in device 0.*device 1"):
        dl.compile(seed(), "cupy")(standin.asarray(X1), Elsewhere(X2))


def test_without_cupy_there_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr("difflab.core.optional.installed", lambda name: False)
    with pytest.raises(MissingDependencyError, match=r"pip install 'difflab\[gpu\]'"):
        dl.compile(seed(), "cupy")


def test_reason_source_memory_and_pickles(pretended: Any) -> None:
    fast = dl.compile(seed(), "cupy")
    assert fast.reason == "cupy: as requested"
    assert fast.source.startswith("// x0 is #0")
    assert fast.memory_plan(10**8).peak_bytes == 24 * 10**8
    assert pickle.loads(pickle.dumps(fast)).source == fast.source


def test_compare_takes_the_point_there_and_back(xp: Any) -> None:
    result = dl.compare(SEED, at={"x1": 2, "x2": 5}, methods=["reverse"], target="cupy")
    (row,) = result.to_dict()["methods"]
    assert (row["status"], row["verdict"]) == ("ok", "agree")
