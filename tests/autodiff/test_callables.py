"""grad, value_and_grad, jacfwd, jacrev and hessian of Python functions."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, TraceError
from difflab.graph.function import Function
from tests.support.rows import for_each

X = np.array([0.3, -1.2, 2.0])


def curve(x):
    return np.sum(np.sin(x) * x[::-1])


def curve_gradient(x):
    return np.cos(x) * x[::-1] + np.sin(x)[::-1]


def spread(x):
    return np.exp(x) * x[0], {"last": x[-1] ** 3}


# Printed in JAX's documentation, in float32.
@pytest.mark.parametrize(
    ("order", "expected"), [(1, 0.070650816), (2, -0.13621868), (3, 0.25265405)]
)
def test_grad_of_tanh_as_jax_prints_it(order: int, expected: float) -> None:
    f = np.tanh
    for _ in range(order):
        f = dl.grad(f)
    assert f(2.0) == pytest.approx(expected, rel=2e-6)


def test_jacobian_as_jax_prints_it() -> None:
    def f(x):
        return x[0], 5 * x[2], 4 * x[1] ** 2 - 2 * x[2], x[2] * np.sin(x[0])

    expected = [[1, 0, 0], [0, 0, 5], [0, 16, -2], [1.6209068, 0, 0.84147096]]
    for jacobian in (dl.jacfwd, dl.jacrev):
        rows = jacobian(f)(np.array([1.0, 2.0, 3.0]))
        assert np.allclose(np.stack(rows), expected, rtol=1e-7, atol=0)


def test_hessian_as_jax_prints_it() -> None:
    def g(x):
        return x[0] ** 3 - 2 * x[0] * x[1] - x[1] ** 6

    assert dl.hessian(g)(np.array([1.0, 2.0])).tolist() == [[6, -2], [-2, -480]]


def test_gradient_against_algebra_and_finite_differences() -> None:
    slope = dl.grad(curve)(X)
    assert np.allclose(slope, curve_gradient(X), rtol=1e-15)
    numeric = dl.differentiate(curve, X, method="richardson")
    assert np.allclose(slope, numeric.value, rtol=0, atol=10 * np.max(numeric.error) + 1e-9)


def test_callable_trace_and_text_agree_bit_for_bit() -> None:
    text = "log(a) + a*b - sin(b)"

    def code(a, b):
        return np.log(a) + a * b - np.sin(b)

    a, b = 2.0, 5.0
    slopes = dl.grad(code, argnums=(0, 1))(a, b)
    assert list(slopes) == dl.gradient(dl.parse(text))(a, b).tolist()
    assert list(slopes) == dl.gradient(dl.trace(code, a, b))(a, b).tolist()
    assert slopes == dl.grad(dl.parse(text), argnums=(0, 1))(a, b)
    assert slopes[0] == 5.5
    pushed = [dl.jvp(code, (a, b), seed)[1] for seed in ((1.0, 0.0), (0.0, 1.0))]
    assert pushed == list(slopes)


@pytest.mark.parametrize("outer", [dl.jacfwd, dl.jacrev])
@pytest.mark.parametrize("inner", [dl.jacfwd, dl.jacrev, dl.grad])
def test_every_composition_is_the_hessian(outer, inner) -> None:
    a, b, c = X
    expected = np.array(
        [
            [-c * np.sin(a), 0, np.cos(a) + np.cos(c)],
            [0, 2 * np.cos(b) - b * np.sin(b), 0],
            [np.cos(a) + np.cos(c), 0, -a * np.sin(c)],
        ]
    )
    assert np.allclose(outer(inner(curve))(X), expected, rtol=1e-14, atol=1e-16)
    traced = dl.trace(lambda x: outer(inner(curve))(x), X)
    assert np.allclose(traced(X), expected, rtol=1e-14, atol=1e-16)


def test_orders_of_a_power() -> None:
    f, expected, x = (lambda x: x**7), 1.0, 1.5
    for order in range(1, 8):
        f = dl.grad(f)
        expected = expected * (8 - order)
        assert f(x) == pytest.approx(expected * x ** (7 - order), rel=1e-14)


# Siskind & Pearlmutter (2005): d/dx (x · d/dy (x + y)) is 1, and 2 where tags are confused.
INNER = {
    "grad": lambda f, y: dl.grad(f)(y),
    "jacfwd": lambda f, y: dl.jacfwd(f)(y),
    "jacrev": lambda f, y: dl.jacrev(f)(y),
    "jvp": lambda f, y: dl.jvp(f, (y,), (1.0,))[1],
    "vjp": lambda f, y: dl.vjp(f, y)[1](1.0)[0],
    "linearize": lambda f, y: dl.linearize(f, y)[1](1.0),
    "value_and_grad": lambda f, y: dl.value_and_grad(f)(y)[1],
}


@pytest.mark.parametrize("inner", INNER)
@for_each("outer", INNER)
def test_perturbations_are_not_confused(outer: str, inner: str) -> None:
    slope = INNER[inner]
    assert INNER[outer](lambda x: x * slope(lambda y: x + y, 1.0), 1.0) == 1
    # d/dx (x · d/dy (x·y²) at y = x) = d/dx (2x³)
    assert INNER[outer](lambda x: x * slope(lambda y: x * y * y, x), 3.0) == 54
    # three deep: d/dx of x · d/dy (y · d/dz (x·y·z)) = x · 2xy = 2x²y
    deep = INNER[outer](
        lambda x: x * slope(lambda y: y * slope(lambda z: x * y * z, x * 1.0), 5.0), 3.0
    )
    assert deep == 60


def test_a_derivative_inside_a_traced_function() -> None:
    f = dl.trace(lambda a, x: np.sum(a * dl.grad(lambda z: np.sum(a * z**3))(x)), X, X)
    assert f(X, 2 * X) == pytest.approx(np.sum(X * X * 3 * (2 * X) ** 2), rel=1e-14)
    # and the derivative of that: ∂/∂a = 2a·3x², ∂/∂x = a²·6x
    slopes = dl.gradient(f)(X, 2 * X)
    expected = [*(6 * X * (2 * X) ** 2), *(X * X * 6 * 2 * X)]
    assert np.allclose(slopes, expected, rtol=1e-14)


def test_a_trace_inside_a_derivative() -> None:
    def outer(x):
        square = dl.trace(lambda z: z * z, x)
        return np.sum(square(x))

    assert dl.grad(outer)(X).tolist() == (2 * X).tolist()


def test_trees_in_and_out() -> None:
    def loss(model, x, scale=1.0):
        layers, (bias, nothing) = model["layers"], model["rest"]
        assert nothing is None
        return np.sum(scale * (layers[0] * x + layers[1] * bias) ** 2)

    w, v, b = X, X + 1, 2.0
    model = {"layers": [w, v], "rest": (b, None)}
    x = np.array([1.0, 2.0, 3.0])
    error = 2 * 10.0 * (w * x + v * b)
    value, slope = dl.value_and_grad(loss)(model, x, scale=10.0)
    assert value == pytest.approx(loss(model, x, scale=10.0), rel=1e-15)
    assert list(slope) == ["layers", "rest"]
    assert np.allclose(slope["layers"][0], error * x, rtol=1e-14)
    assert np.allclose(slope["layers"][1], error * b, rtol=1e-14)
    assert slope["rest"][0] == pytest.approx(np.sum(error * v), rel=1e-13)
    assert slope["rest"][1] is None
    by_x = dl.grad(loss, argnums=-1)(model, x, scale=10.0)
    assert np.allclose(by_x, error * w, rtol=1e-14)
    both = dl.grad(loss, argnums=(1, 0))(model, x, scale=10.0)
    assert np.array_equal(both[0], by_x)
    assert np.array_equal(both[1]["layers"][0], slope["layers"][0])


@pytest.mark.parametrize("jacobian", [dl.jacfwd, dl.jacrev])
def test_jacobians_of_trees(jacobian) -> None:
    def f(p, s):
        return p["a"] * s, [np.sum(p["a"]) * p["b"]]

    p, s = {"a": X, "b": np.ones((2, 2))}, 3.0
    by_p, by_s = jacobian(f, argnums=(0, 1))(p, s)[0]
    assert np.array_equal(by_p["a"], 3 * np.eye(3))
    assert by_p["b"].shape == (3, 2, 2)
    assert not by_p["b"].any()
    assert np.array_equal(by_s, X)
    second = jacobian(f)(p, s)[1][0]
    assert np.array_equal(second["a"], np.ones((2, 2, 3)))
    expected = np.sum(X) * np.einsum("ik,jl->ijkl", np.eye(2), np.eye(2))
    assert np.allclose(second["b"], expected, rtol=1e-15)
    assert jacobian(f, argnums=1)(p, s)[1][0].shape == (2, 2)


@pytest.mark.parametrize("jacobian", [dl.jacfwd, dl.jacrev])
def test_a_jacobian_is_not_its_transpose(jacobian) -> None:
    M = np.arange(24.0).reshape(4, 3, 2)

    def f(x, M):
        return np.sum(M * x**2, axis=1)

    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    # ∂/∂x[j, l] of sum_j M[i, j, k] x[j, k]² is 2 M[i, j, k] x[j, k] where k = l
    expected = np.einsum("ijk,jk,kl->ikjl", 2 * M, x, np.eye(2))
    assert np.allclose(jacobian(f)(x, M), expected, rtol=1e-15)
    traced = dl.trace(lambda x, M: jacobian(f)(x, M), x, M)
    assert traced.output_shapes == ((4, 2, 3, 2),)
    assert np.allclose(traced(x, M), expected, rtol=1e-15)


def test_a_large_jacobian_in_blocks(monkeypatch) -> None:
    from difflab.autodiff import recording

    whole = [j(lambda x: x * x[0])(np.arange(50.0)) for j in (dl.jacfwd, dl.jacrev)]
    monkeypatch.setattr(recording, "STACKED_ELEMENTS", 350)
    monkeypatch.setattr(recording, "FEWEST_STACKED", 1)
    parts = [j(lambda x: x * x[0])(np.arange(50.0)) for j in (dl.jacfwd, dl.jacrev)]
    expected = np.zeros((50, 50))
    expected[:, 0] = np.arange(50.0)
    for matrix in (*whole, *parts):
        assert np.array_equal(matrix, expected)


def test_auxiliary_data_is_computed_and_passed_on() -> None:
    def f(x):
        return np.sum(x * x), {"half": x / 2, "note": "kept", "count": 3, "none": None}

    slope, aux = dl.grad(f, has_aux=True)(X)
    assert np.array_equal(slope, 2 * X)
    assert np.array_equal(aux["half"], X / 2)
    assert (aux["note"], aux["count"], aux["none"]) == ("kept", 3, None)
    (value, again), _ = dl.value_and_grad(f, has_aux=True)(X)
    assert value == np.sum(X * X)
    assert np.array_equal(again["half"], X / 2)
    for jacobian in (dl.jacfwd, dl.jacrev):
        matrix, aux = jacobian(lambda x: (x * x, x[0]), has_aux=True)(X)
        assert np.array_equal(matrix, np.diag(2 * X))
        assert aux == X[0]
    second, aux = dl.hessian(lambda x: (np.sum(x**3), x[1]), has_aux=True)(X)
    assert np.allclose(second, np.diag(6 * X), rtol=1e-15)
    assert aux == X[1]


def test_what_a_function_closes_over_is_read_at_every_call() -> None:
    scale = [2.0]
    seen = []

    def f(x, power=2):
        seen.append(power)
        return scale[0] * x**power

    slope = dl.grad(f)
    assert slope(3.0) == 12
    scale[0] = 5.0
    assert slope(3.0) == 30
    assert slope(3.0, power=3) == 135
    assert len(seen) == 3


def test_arrays_that_are_overwritten_later_keep_their_values() -> None:
    def f(x):
        work = np.ones(3)
        total = 0.0
        for _ in range(3):
            total = total + np.sum(work * x)
            work *= 2
        return total

    assert dl.grad(f)(X).tolist() == [7, 7, 7]


def test_other_arguments_stay_python_values() -> None:
    def f(x, mode, n, data):
        if mode == "cubic":
            return np.sum(x**3) + float(data.sum()) * n
        return np.sum(x) if n > 2 else np.sum(x[:n] * data[:n])

    assert dl.grad(f)(X, "cubic", 3, X).tolist() == pytest.approx((3 * X**2).tolist())
    assert dl.grad(f)(X, "", 2, X).tolist() == [0.3, -1.2, 0]


def test_constant_and_identity_functions() -> None:
    assert dl.grad(lambda x: 4.0)(2.0) == 0
    assert dl.grad(lambda x: np.array(4.0))(2.0) == 0
    assert dl.grad(lambda x: x)(2.0) == 1
    identity = dl.jacfwd(lambda x: x)(X)
    assert np.array_equal(identity, np.eye(3))
    assert dl.jacrev(lambda x: X * 1.0)(X).tolist() == np.zeros((3, 3)).tolist()
    a = X.copy()
    value, _ = dl.jvp(lambda x: x, (a,), (a,))
    value[0] = 9.0
    assert a[0] == 0.3
    assert dl.jacfwd(lambda x: x * 2)(np.zeros((0,))).shape == (0, 0)


def test_untaken_branches_are_exactly_zero() -> None:
    def f(x):
        return np.sum(np.where(x > 0, np.sqrt(x), 0))

    x = np.array([0.0, 4.0, -1.0])
    assert dl.grad(f)(x).tolist() == [0, 0.25, 0]
    assert dl.jacfwd(f)(x).tolist() == [0, 0.25, 0]
    assert dl.jacrev(f)(x).tolist() == [0, 0.25, 0]


def test_a_hundred_thousand_steps_need_no_recursion() -> None:
    def deep(x):
        for _ in range(100_000):
            x = x * 1.00001
        return x

    assert dl.grad(deep)(1.0) == pytest.approx(1.00001**100_000, rel=1e-9)


# ---- given a Function -------------------------------------------------------------------


def test_functions_give_functions() -> None:
    F = dl.trace(lambda w, b, s: np.sum((w * s + b) ** 2), np.ones((2, 3)), np.ones(3), 1.0)
    w, b, s = np.arange(6.0).reshape(2, 3), X, 0.5
    error = 2 * (w * s + b)
    slopes = dl.grad(F, argnums=(0, 1, 2))
    assert isinstance(slopes, dl.Function)
    assert slopes.output_shapes == ((2, 3), (3,), ())
    by_w, by_b, by_s = slopes(w, b, s)
    assert np.allclose(by_w, error * s, rtol=1e-15)
    assert np.allclose(by_b, error.sum(0), rtol=1e-14)
    assert by_s == pytest.approx(np.sum(error * w), rel=1e-14)
    value, grads = dl.value_and_grad(F, argnums=(0, 1, 2))(w, b, s)
    assert value == pytest.approx(np.sum(error**2) / 4, rel=1e-14)
    assert all(np.array_equal(g, h) for g, h in zip(grads, (by_w, by_b, by_s), strict=True))
    assert np.array_equal(dl.grad(F, argnums=1)(w, b, s), by_b)
    (only,) = dl.grad(F, argnums=(-1,))(w, b, s)
    assert only == by_s
    batch = dl.grad(F, argnums=1)(w, np.stack([b, 2 * b]), s)
    assert np.allclose(batch[0], by_b, rtol=1e-15)
    assert batch.shape == (2, 3)
    twice = dl.grad(dl.grad(dl.parse("x^4")))
    assert twice(2.0) == 48


def test_the_form_of_a_functions_outputs_is_part_of_it() -> None:
    F = dl.parse("x^2*y")
    flat, nested = dl.value_and_grad(F), dl.value_and_grad(F, argnums=(0,))
    assert flat(2.0, 5.0) == (20, 20)
    assert nested(2.0, 5.0) == (20, (20,))
    assert flat != nested
    again = pickle.loads(pickle.dumps(nested))
    assert again == nested
    assert again(2.0, 5.0) == (20, (20,))
    assert nested.returned("ab") == ("a", ("b",))


@pytest.mark.parametrize("target", ["auto", "python", "numpy"])
def test_compiled_functions_keep_the_form(target: str) -> None:
    G = dl.value_and_grad(dl.parse("x^2*y"), argnums=(0, 1))
    fast = dl.compile(G, target=target)
    assert fast(2.0, 5.0) == (20, (20, 4))
    value, (by_x, by_y) = fast(np.array([2.0, 3.0]), 5.0)
    assert (value.tolist(), by_x.tolist(), by_y.tolist()) == ([20, 45], [20, 30], [4, 9])
    assert dl.compile(G, target=target, packed=True)(np.array([2.0, 5.0])) == (20, (20, 4))
    (only,) = dl.compile(dl.grad(dl.parse("x^2"), (0,)), target=target)(3.0)
    assert only == 6


@pytest.mark.parametrize("jacobian", [dl.jacfwd, dl.jacrev])
def test_jacobians_of_functions(jacobian) -> None:
    F = dl.parse("x: [3]; s: []\n[s*x, x[0]*x[2]]")
    (xs_by_s, xs_by_x), (p_by_s, p_by_x) = jacobian(F, argnums=(0, 1))(2.0, X)
    assert np.array_equal(xs_by_s, X)
    assert np.array_equal(xs_by_x, 2 * np.eye(3))
    assert p_by_s == 0
    assert p_by_x.tolist() == [X[2], 0, X[0]]
    assert jacobian(F, argnums=1)(np.full(4, 2.0), X)[0].shape == (4, 3, 3)
    second = dl.hessian(dl.trace(curve, X), argnums=0)
    assert np.allclose(second(X), dl.hessian(curve)(X), rtol=1e-14)


def test_auxiliary_outputs_of_functions() -> None:
    F = dl.parse("[x^2, 3*x, 5*x]")
    slope, (three, five) = dl.grad(F, has_aux=True)(2.0)
    assert (slope, three, five) == (4, 6, 10)
    (value, aux), slopes = dl.value_and_grad(F, (0,), has_aux=True)(2.0)
    assert (value, aux, slopes) == (4, (6, 10), (4,))


# ---- errors ---------------------------------------------------------------------------------


def test_a_branch_names_the_line_and_what_to_write() -> None:
    def branching(x):
        if x > 0:
            return x
        return -x

    assert float(dl.grad(branching)(-1.0)) == -1.0  # the point is known
    with pytest.raises(TraceError) as caught:
        dl.vmap(dl.grad(branching))(X)
    line = branching.__code__.co_firstlineno + 1
    text = str(caught.value)
    assert f"(test_callables.py, line {line})" in text
    assert "\n  if x > 0:\n     ^~~~~\n" in text
    assert "dl.cond" in text
    assert "numpy.where" in text
    assert "difflab.tensor" in text


@for_each(
    ("call", "message"),
    [
        (lambda: dl.grad(3.0), "grad takes a function, not float"),
        (lambda: dl.jacrev(None), "jacrev takes a function"),
        (lambda: dl.grad(lambda x: x * 2)(X), r"one number.*shape \(3,\)"),
        (lambda: dl.grad(lambda x: (x, x))(1.0), r"returns \(\*, \*\)"),
        (lambda: dl.grad(lambda x: x)(3), "type int.*(?s:.*)write 3.0"),
        (lambda: dl.grad(np.sum)(np.arange(3)), "int64"),
        (lambda: dl.jacfwd(lambda x: x)(True), "type bool"),
        (lambda: dl.grad(lambda x: x)("a"), "not real: 'a'"),
        (lambda: dl.grad(lambda x: x)(1j), "not real"),
        (
            lambda: dl.grad(lambda x: x, argnums=1)(1.0),
            "but only 1 positional argument exists",
        ),
        (lambda: dl.grad(lambda x: x, argnums=-2)(1.0), "argument -2"),
        (lambda: dl.grad(lambda x, y: x, argnums=(0, -2))(1.0, 2.0), "twice"),
        (lambda: dl.grad(lambda x: x, argnums=())(1.0), "nothing"),
        (lambda: dl.grad(lambda x: x, argnums="x")(1.0), "integer"),
        (lambda: dl.grad(lambda x: x, argnums=1.0)(1.0), "integer"),
        (lambda: dl.grad(lambda x: x, has_aux=True)(1.0), "pair"),
        (lambda: dl.grad(lambda x: "text")(1.0), "returned str"),
        (lambda: dl.grad(dl.parse("[x, y]")), "one output number"),
        (lambda: dl.grad(dl.parse("x"), argnums=1), "argument 1"),
        (lambda: dl.grad(dl.parse("x"), has_aux=True), "further outputs"),
        (lambda: dl.jacrev(dl.parse("x"), has_aux=True), "every output"),
    ],
)
def test_errors_say_what_is_wrong(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_values_that_outlive_their_trace_are_refused() -> None:
    kept = []
    dl.grad(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(TraceError, match="one trace is used in another"):
        dl.grad(lambda x: x * kept[0])(1.0)
    with pytest.raises(TraceError):
        dl.grad(lambda x: kept[0])(1.0)


def test_a_trace_that_fails_leaves_nothing_open() -> None:
    def outer(x):
        with pytest.raises(ZeroDivisionError):
            dl.grad(lambda y: y / (1 // 0))(1.0)
        return x * x

    assert dl.grad(outer)(3.0) == 6


def test_calls_that_record_the_same_share_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    build = Function.build.__func__  # type: ignore[attr-defined]
    counted = classmethod(lambda cls, *args, **more: built.append(1) or build(cls, *args, **more))
    monkeypatch.setattr(Function, "build", counted)
    shift = np.array([1.0, 2.0])
    slope = dl.grad(lambda x: np.sum((x + shift) ** 2))
    assert slope(np.array([1.0, 0.0])).tolist() == [4.0, 4.0]
    before = len(built)
    shift = np.array([0.0, 3.0])
    assert slope(np.array([1.0, 0.0])).tolist() == [2.0, 6.0]
    assert len(built) == before
    shift = np.ones((2, 2))
    assert slope(np.array([1.0, 0.0])).tolist() == [8.0, 4.0]
    assert len(built) > before


@pytest.mark.parametrize(
    ("one", "other"), [(2.0, 3.0), (0.0, -0.0), (1, 2), (np.ones(2), np.ones((2, 2)))]
)
def test_another_recording_is_another_graph(one, other) -> None:
    held = one
    slope = dl.grad(lambda x: np.sum(held * np.sin(x) + x / held))
    for held in (one, other, one):
        with np.errstate(all="ignore"):
            expected = np.sum(held * np.cos(0.5) + np.divide(1.0, held))
        assert slope(0.5) == pytest.approx(expected, rel=1e-15)


def test_a_call_leaves_nothing_to_the_garbage_collector() -> None:
    slope = dl.grad(lambda x: np.sum(x**2) if x[0] > 0 else x[1])
    enabled = gc.isenabled()
    gc.disable()
    try:
        slope(np.array([1.0, 2.0]))  # what is kept for later calls may hold cycles
        gc.collect()
        assert slope(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
        assert gc.collect() == 0
    finally:
        if enabled:
            gc.enable()


def test_recordings_of_one_line_are_told_apart_by_their_arguments() -> None:
    """The operations and the lines are the same; what they are applied to is not."""
    chosen = 0
    slope = dl.grad(lambda x, y: np.sin((x, y)[chosen]) * y, argnums=(0, 1))
    found = []
    for chosen in (0, 1, 0):  # noqa: B007  # read by the function
        found += [slope(0.3, 0.7)]
    s, c = np.sin(0.3), np.cos(0.3)
    other = [0.0, np.cos(0.7) * 0.7 + np.sin(0.7)]
    for one, wanted in zip(found, ([c * 0.7, s], other, [c * 0.7, s]), strict=True):
        assert one == pytest.approx(wanted, rel=1e-14)


def test_recordings_of_one_line_are_told_apart_by_their_parameters() -> None:
    axis = 0

    def product(x):
        return np.sum(np.sum(x, axis=0) * np.sum(x * x, axis=1) * np.sum(x * x * x, axis=axis))

    x = np.array([[0.3, 0.7], [1.1, -0.4]])
    steps = 1e-30j * np.eye(4).reshape(4, 2, 2)  # complex steps of NumPy's own values
    for axis in (0, 1, 0):  # noqa: B007  # read by the function
        wanted = np.array([product(x + step).imag / 1e-30 for step in steps]).reshape(2, 2)
        np.testing.assert_allclose(dl.grad(product)(x), wanted, rtol=1e-13)
