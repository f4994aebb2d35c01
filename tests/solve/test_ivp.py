"""`ivp` against closed forms, matrix exponentials and mpmath, in every mode, order and method."""

from __future__ import annotations

import tracemalloc
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import linalg

import difflab as dl
from difflab.errors import (
    ConvergenceError,
    DifflabError,
    InputError,
    ShapeError,
    TraceError,
    UnsupportedError,
)
from difflab.execute.targets.llvm.libraries import available
from difflab.language.printers.python import python
from difflab.solve import ivp

METHODS = ("rk45", "dopri8", "taylor")
DERIVATIVES = ("unrolled", "forward", "adjoint")
LIMITLESS = {"rate": 1.0, "most": np.inf}
TIGHT = {"rtol": 1e-10, "atol": 1e-12}
NEAR = {"rtol": 3e-8, "atol": 3e-9}
"""What tests allow: a hundred times the tolerance, and more of second derivatives."""


def logistic(t: Any, y: Any, p: Any) -> Any:
    return p["rate"] * y * (1.0 - y / p["most"])


def logistic_truth(y0: Any, rate: Any, most: Any, time: Any) -> Any:
    """The solution, for mpmath's numbers."""
    grown = mpmath.exp(rate * time)
    return most * y0 * grown / (most + y0 * (grown - 1))


@pytest.mark.parametrize("method", METHODS)
def test_values_are_those_of_a_closed_form(method: Any) -> None:
    at = [0.0, 0.7, 2.0]
    found = ivp(
        logistic, (0, 2), 0.1, {"rate": 1.5, "most": 2.0}, method=method, t_eval=at, **TIGHT
    )
    truth = [float(logistic_truth(0.1, 1.5, 2.0, time)) for time in at]
    np.testing.assert_allclose(found.y, truth, rtol=1e-8)
    assert (found.success, found.status, found.t.tolist()) == (True, 0, at)
    assert found.message == "the solver reached the end of the interval"
    assert found.nfev > 0
    assert found.steps > 0


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("method", METHODS)
def test_derivatives_by_everything_and_of_order_two(method: Any, derivative: Any) -> None:
    """By y0, two parameters, t0 and t1; Hessians in both nestings; mpmath's differences."""

    def end(x: Any) -> Any:
        p = {"rate": x[1], "most": x[2]}
        span = (x[3], x[4])
        return ivp(logistic, span, x[0], p, method=method, derivative=derivative, **TIGHT).y[-1]

    def truth(y0: Any, rate: Any, most: Any, first: Any, last: Any) -> Any:
        return logistic_truth(y0, rate, most, last - first)

    x = np.array([0.3, 1.5, 2.0, 0.25, 1.5])
    slopes = [float(mpmath.diff(truth, x.tolist(), np.eye(5, dtype=int)[k])) for k in range(5)]
    np.testing.assert_allclose(dl.grad(end)(x), slopes, **NEAR)
    np.testing.assert_allclose(dl.jacfwd(end)(x), slopes, **NEAR)
    second = [
        [float(mpmath.diff(truth, x.tolist(), orders)) for orders in row]
        for row in (np.eye(5, dtype=int)[:, None] + np.eye(5, dtype=int)[None]).tolist()
    ]
    loose = {"rtol": 2e-6, "atol": 2e-7}
    np.testing.assert_allclose(dl.jacfwd(dl.grad(end))(x), second, **loose)
    if method == "rk45":
        np.testing.assert_allclose(dl.jacrev(dl.grad(end))(x), second, **loose)


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_a_linear_system_is_its_matrix_exponential(rng: Any, derivative: Any) -> None:
    a, direction = rng.normal(size=(2, 3, 3))

    def end(a: Any) -> Any:
        start = np.eye(3)
        found = ivp(lambda t, y, a: a @ y, (0.0, 1.0), start, a, derivative=derivative, **TIGHT)
        return found.y[..., -1]

    value, along = linalg.expm_frechet(a, direction)
    np.testing.assert_allclose(end(a), value, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(dl.jvp(end, (a,), (direction,))[1], along, **NEAR)
    (bar,) = dl.vjp(end, a)[1](direction)
    np.testing.assert_allclose(np.sum(bar * direction), np.sum(along * direction), **NEAR)


def rotation(t: Any, y: Any, k: Any) -> Any:
    return {"x": y["v"], "v": -k * k * y["x"]}


def test_trees_times_and_results() -> None:
    start = {"x": np.array([1.0, 2.0]), "v": np.zeros(2)}
    at = np.linspace(0.0, 1.0, 7)
    found = ivp(rotation, (0.0, 1.0), start, 3.0, t_eval=at, method="taylor", **TIGHT)
    assert found.y["x"].shape == (2, 7)
    np.testing.assert_allclose(found.y["x"], [np.cos(3 * at), 2 * np.cos(3 * at)], atol=1e-9)


def test_lists_are_arrays_and_f_may_return_one() -> None:
    found = ivp(lambda t, y: [y[1], -y[0]], (0, np.pi), [1.0, 0.0], **TIGHT)
    assert found.y.shape == (2, 2)
    np.testing.assert_allclose(found.y[:, -1], [-1.0, 0.0], atol=1e-8)
    square = ivp(lambda t, y: -y, (0, 1), [[1.0, 2.0], [3.0, 4.0]])
    assert square.y.shape == (2, 2, 2)


@pytest.mark.parametrize("method", METHODS)
def test_backward_in_time_and_no_time(method: Any) -> None:
    at = [1.0, 0.5, 0.0]
    found = ivp(lambda t, y: 2 * t * y, (1.0, 0.0), np.e, t_eval=at, method=method, **TIGHT)
    np.testing.assert_allclose(found.y, np.exp(np.square(at)), rtol=1e-8)
    still = ivp(lambda t, y: y, (1.0, 1.0), np.ones(2), method=method)
    assert still.y.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    twice = ivp(lambda t, y: y, (0.0, 1.0), 1.0, t_eval=[0.0, 0.0, 1.0, 1.0], method=method)
    np.testing.assert_allclose(twice.y, [1, 1, np.e, np.e], rtol=1e-5)


def test_dtypes() -> None:
    single = ivp(lambda t, y: -y, (0.0, 1.0), np.ones(2, np.float32))
    assert single.y.dtype == np.float32
    assert ivp(lambda t, y: -y, (0, 1), np.array([1, 2])).y.dtype == np.float64


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_jit_vmap_and_tensors_agree(derivative: Any) -> None:
    """y′ = −k·y²: y(1) = y0/(1 + k·y0)."""

    def end(y: Any, k: Any) -> Any:
        span = (0.0, 1.0)
        return ivp(lambda t, y: -k * y * y, span, y, derivative=derivative, **TIGHT).y[-1]

    starts = np.array([0.5, 1.0, 3.0])
    by_y, by_k = 1 / (1 + 2 * starts) ** 2, -(starts**2) / (1 + 2 * starts) ** 2
    both = dl.grad(end, argnums=(0, 1))
    for mapped in (dl.vmap(both, in_axes=(0, None)), dl.jit(dl.vmap(both, in_axes=(0, None)))):
        np.testing.assert_allclose(mapped(starts, 2.0), [by_y, by_k], **NEAR)
    np.testing.assert_allclose(dl.jit(both)(3.0, 2.0), [by_y[2], by_k[2]], **NEAR)
    y, k = dl.tensor(3.0, requires_grad=True), dl.tensor(2.0, requires_grad=True)
    end(y, k).backward()
    np.testing.assert_allclose([float(y.grad), float(k.grad)], [by_y[2], by_k[2]], **NEAR)


def test_values_that_f_closes_over_and_times_are_differentiated() -> None:
    def end(x: Any) -> Any:
        return ivp(lambda t, y: x["a"] * y, (0.0, 2.0), 1.0, t_eval=x["t"], **TIGHT).y

    found = dl.jacrev(end)({"a": 0.5, "t": np.array([0.5, 1.0, 2.0])})
    times = np.array([0.5, 1.0, 2.0])
    np.testing.assert_allclose(found["a"], times * np.exp(times / 2), **NEAR)
    np.testing.assert_allclose(found["t"], np.diag(0.5 * np.exp(times / 2)), **NEAR)


def test_a_problem_inside_a_problem() -> None:
    """z(1) = e^{−y} inside y′ = −a·z(1): e^y = e − a·t for y(0) = 1."""

    def end(a: Any) -> Any:
        def rate(t: Any, y: Any) -> Any:
            return -a * ivp(lambda s, z: -z * y, (0.0, 1.0), 1.0, **TIGHT).y[-1]

        return ivp(rate, (0.0, 0.5), 1.0, **TIGHT).y[-1]

    assert float(end(1.0)) == pytest.approx(np.log(np.e - 0.5), abs=1e-8)
    assert float(dl.grad(end)(1.0)) == pytest.approx(-0.5 / (np.e - 0.5), abs=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_a_jump_of_the_right_side_is_seen(method: Any) -> None:
    """y′ = −y before t = 1/2 and y after; Taylor's coefficients do not know of the jump."""
    found = ivp(
        lambda t, y: np.where(t > 0.5, y, -y), (0.0, 1.0), 1.0, method=method, rtol=1e-9, atol=0.0
    )
    assert float(found.y[-1]) == pytest.approx(1.0, abs=1e-6)
    assert found.rejected > 3


@pytest.mark.parametrize("method", METHODS)
def test_what_does_not_end_is_an_error_or_nan(method: Any) -> None:
    """y′ = y² blows up at t = 1."""

    def end(y: Any) -> Any:
        return ivp(lambda t, y: y * y, (0.0, 2.0), y, method=method)

    with pytest.raises(ConvergenceError, match="does not reach t = 2: the step became shorter"):
        end(1.0)
    traced = dl.jit(end)(1.0)
    assert np.isnan(traced.y[-1])
    assert traced.status == -1
    assert not traced.success


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_the_derivative_of_what_does_not_end_is_nan(derivative: Any) -> None:
    def end(y: Any) -> Any:
        return ivp(lambda t, y: y * y, (0.0, 2.0), y, derivative=derivative).y[-1]

    assert np.isnan(dl.jit(dl.grad(end))(1.0))
    assert np.isnan(dl.jit(dl.jacfwd(end))(1.0))


def test_reasons() -> None:
    with pytest.raises(ConvergenceError, match="max_steps steps do not reach the end"):
        ivp(lambda t, y: -1e4 * y, (0.0, 1.0), 1.0, max_steps=50)
    with pytest.raises(ConvergenceError, match="f is not finite at the start"):
        ivp(lambda t, y: np.sqrt(-y), (0.0, 1.0), 1.0)


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (InputError, "is not real", lambda: ivp(lambda t, y: y, (0, 1), np.array([1j]))),
        (InputError, "is complex", lambda: ivp(lambda t, y: 1j * y, (0, 1), np.ones(1))),
        (ShapeError, "which looks like y", lambda: ivp(lambda t, y: y[0], (0, 1), np.ones(2))),
        (InputError, "method of ivp", lambda: ivp(lambda t, y: y, (0, 1), 1.0, method="RK45")),
        (InputError, "derivative of ivp", lambda: ivp(abs, (0, 1), 1.0, derivative="implicit")),
        (InputError, "pair", lambda: ivp(lambda t, y: y, (0, 1, 2), 1.0)),
        (InputError, "finite", lambda: ivp(lambda t, y: y, (0, np.inf), 1.0)),
        (InputError, "outside", lambda: ivp(lambda t, y: y, (0, 1), 1.0, t_eval=[0.5, 2.0])),
        (InputError, "out of order", lambda: ivp(lambda t, y: y, (0, 1), 1.0, t_eval=[1.0, 0.5])),
        (InputError, "at least 1", lambda: ivp(lambda t, y: y, (0, 1), 1.0, t_eval=[])),
        (InputError, "rtol", lambda: ivp(lambda t, y: y, (0, 1), 1.0, rtol=-1e-3)),
        (InputError, "both 0", lambda: ivp(lambda t, y: y, (0, 1), 1.0, rtol=0.0, atol=0.0)),
        (InputError, "max_steps", lambda: ivp(lambda t, y: y, (0, 1), 1.0, max_steps=0)),
        (InputError, "no numbers", lambda: ivp(lambda t, y: y, (0, 1), {})),
        (TraceError, "branch", lambda: ivp(lambda t, y: y if t > 0 else -y, (0, 1), 1.0)),
    ],
)
def test_errors(error: type[DifflabError], match: str, call: Any) -> None:
    with pytest.raises(error, match=match):
        call()


def _stored(most: float, steps: int) -> int:
    """Return the bytes at most alive in the adjoint of so many steps of 64 oscillators."""
    rates = np.linspace(1.0, 2.0, 64)

    def end(rates: Any) -> Any:
        found = ivp(
            lambda t, y, w: np.stack([y[1], -w * w * y[0]]),
            (0.0, most),
            np.stack([np.ones(64), np.zeros(64)]),
            rates,
            derivative="adjoint",
            rtol=1e-6,
        )
        return np.sum(found.y[0, :, -1])

    gradient = dl.grad(end)
    gradient(rates)
    tracemalloc.start()
    gradient(rates)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_the_memory_of_the_adjoint_grows_as_the_square_root_of_the_steps() -> None:
    """Sixteen times the steps, each of a kilobyte: four times the states, not sixteen."""
    few, many = _stored(100.0, 1_000), _stored(1_600.0, 16_000)
    assert many < 6 * few
    assert many < 16_000 * 1024 / 4


def test_unrolled_differentiates_the_steps_and_forward_controls_the_error() -> None:
    """On the slow manifold y = p the steps are as long as the interval, and ẏ needs short ones."""

    def end(derivative: Any) -> Any:
        def value(p: Any) -> Any:
            return ivp(lambda t, y: -30.0 * (y - p), (0.0, 1.0), 1.0, derivative=derivative).y[-1]

        return float(dl.jvp(value, (1.0,), (1.0,))[1])

    truth = 1.0 - np.exp(-30.0)
    assert abs(end("unrolled") - truth) > 1e-2
    assert end("forward") == pytest.approx(truth, abs=1e-5)


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_a_parameter_that_is_infinite_and_still(derivative: Any) -> None:
    """Growth without a limit: y' = y(1 - y/most) with most = inf is y' = y."""

    def end(y: Any) -> Any:
        return ivp(logistic, (0, 1), y, LIMITLESS, derivative=derivative, **TIGHT).y[-1]

    assert dl.jvp(end, (2.0,), (1.0,))[1] == pytest.approx(np.e, rel=1e-8)
    assert dl.grad(end)(2.0) == pytest.approx(np.e, rel=1e-8)


def end_of_decay(rate: Any) -> Any:
    return ivp(lambda t, y, k: -k * y, (0.0, 2.0), 1.0, rate, **TIGHT).y[-1]


def test_the_steps_are_code_in_text_and_in_languages() -> None:
    function, truth = dl.trace(end_of_decay, 0.5), np.exp(-2 * 0.7)
    assert dl.parse(str(function))(0.7) == pytest.approx(truth, rel=1e-9)
    printed: dict[str, Any] = {}
    exec(python(function), printed)
    assert printed["f"](0.7) == function(0.7) == pytest.approx(truth, rel=1e-9)


def test_what_computes_with_other_values_refuses() -> None:
    """The steps enclose nothing, and SymPy's symbols are no floats."""
    function = dl.trace(end_of_decay, 0.5)
    tries: list[Any] = [
        lambda: dl.enclose(function, {"rate": 0.5}),
        lambda: dl.prove(function, {"rate": (0.4, 0.5)}),
        lambda: dl.compile(function, target="exact")(0.5),
        lambda: function.to_sympy(),
    ]
    for one in tries:
        with pytest.raises(UnsupportedError, match="float64 alone"):
            one()


@pytest.mark.skipif(not available(), reason="needs llvmlite: pip install 'difflab[native]'")
def test_compiled_steps_are_machine_code() -> None:
    fast = dl.compile(dl.trace(end_of_decay, 0.5))
    assert fast.reason.startswith("native")
    assert fast(0.7) == pytest.approx(np.exp(-2 * 0.7), rel=1e-9)
