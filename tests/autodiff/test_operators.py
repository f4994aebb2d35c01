"""Differential operators: closed forms, SymPy, every way, every carrier, and counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import difflab as dl
from difflab.autodiff.engine import collapsed
from difflab.autodiff.engine.collapsed import Directions, summed
from difflab.autodiff.functions.operators import BIHARMONIC, LAPLACIAN
from difflab.errors import InputError, UnsupportedError
from difflab.graph.node import Node
from difflab.methods.timer import peak_of
from difflab.primitives import constant_array

SECOND = ("auto", "collapsed", "jets", "forward-reverse", "reverse", "symbolic")
FOURTH = ("auto", "nested", "collapsed", "jets", "reverse", "symbolic")
X = np.array([0.3, -0.7, 1.1])


@pytest.mark.parametrize("method", SECOND)
def test_the_laplacian_of_a_gaussian(method: str) -> None:
    gaussian = lambda x: np.exp(-np.sum(x**2) / 2)  # noqa: E731
    expected = (X @ X - 3) * np.exp(-X @ X / 2)
    assert np.isclose(dl.laplacian(gaussian, method=method)(X), expected, rtol=1e-14)


@pytest.mark.parametrize("method", SECOND)
def test_harmonic_functions_have_no_laplacian(method: str) -> None:
    harmonic = lambda x: (  # noqa: E731
        np.exp(x[0]) * np.sin(x[1]),
        1 / np.sqrt(np.sum(x**2)),
        {"product": x[0] * x[1] * x[2]},
    )
    inverse, distance, product = dl.laplacian(harmonic, method=method)(X)
    assert max(abs(inverse), abs(distance), abs(product["product"])) < 1e-14


@pytest.mark.parametrize("method", FOURTH)
def test_biharmonic_functions(method: str) -> None:
    power = lambda x: np.sum(x**2) ** 3  # noqa: E731 - Δ² r⁶ = 6·7·4·5 r² in three dimensions
    assert np.isclose(dl.biharmonic(power, method=method)(X), 840 * X @ X, rtol=1e-12)
    assert abs(dl.biharmonic(lambda x: np.sum(x**2) * x[0], method=method)(X)) < 1e-12


@pytest.mark.parametrize("text", ["x^3*y^2 + z", "sin(x*y)*exp(z)", "x/(1 + y^2 + z^4)"])
def test_operators_of_formulas_against_sympy(text: str) -> None:
    x, y, z = sympy.symbols("x y z")
    f = sympy.sympify(text.replace("^", "**"))
    laplacian = sum(sympy.diff(f, v, 2) for v in (x, y, z))
    twice = sum(sympy.diff(laplacian, v, 2) for v in (x, y, z))
    at = dict(zip((x, y, z), X.tolist(), strict=True))
    for operator, methods, form in (
        (dl.laplacian, SECOND, laplacian),
        (dl.biharmonic, FOURTH, twice),
    ):
        expected = float(form.evalf(30, subs=at))
        for method in methods:
            found = float(operator(dl.parse(text), method=method)(*X))
            assert np.isclose(found, expected, rtol=1e-11), method


@pytest.mark.parametrize("method", ["auto", "forward", "reverse"])
def test_fields_against_sympy(method: str) -> None:
    names = sympy.symbols("x y z")
    x, y, z = names
    field = [x * y, sympy.sin(y * z), z**2 * x]
    at = dict(zip(names, X.tolist(), strict=True))
    J = np.array([[float(sympy.diff(f, v).subs(at)) for v in names] for f in field])
    expected = [J[2, 1] - J[1, 2], J[0, 2] - J[2, 0], J[1, 0] - J[0, 1]]
    code = lambda p: dl.arrays.stack([p[0] * p[1], np.sin(p[1] * p[2]), p[2] ** 2 * p[0]])  # noqa: E731
    formula = dl.parse("[x*y, sin(y*z), z^2*x]")
    tree = lambda p: (p[:2] * p[1:] * 1.0, p[2])  # noqa: E731 - paired in order
    assert np.isclose(dl.divergence(code, method=method)(X), np.trace(J), rtol=1e-14)
    assert np.isclose(dl.divergence(formula, method=method)(*X), np.trace(J), rtol=1e-14)
    assert np.allclose(dl.curl(code, method=method)(X), expected, rtol=1e-14)
    assert np.allclose(dl.curl(formula, method=method)(*X), expected, rtol=1e-14)
    assert np.isclose(dl.divergence(tree, method=method)(X), X[1] + X[2] + 1, rtol=1e-14)


def test_the_curl_in_two_dimensions_of_two_arguments() -> None:
    spin = dl.curl(lambda x, y: (-(y**3), x**2), argnums=(0, 1))
    assert spin(2.0, 3.0) == 4.0 + 27.0


def network(x, w):  # type: ignore[no-untyped-def]
    return np.sum(np.tanh(np.tanh(x @ w["a"]) @ w["b"]))


@pytest.fixture
def weights(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"a": rng.normal(size=(3, 4)), "b": rng.normal(size=(4, 2))}


def trace_of_hessian(x, w):  # type: ignore[no-untyped-def]
    return np.trace(dl.hessian(network)(x, w))


@pytest.mark.parametrize("method", SECOND)
def test_a_laplacian_is_differentiated_by_weights(method: str, weights) -> None:
    w = weights
    loss = lambda w: dl.laplacian(network, method=method)(X, w) ** 2  # noqa: E731
    expected = dl.grad(lambda w: trace_of_hessian(X, w) ** 2)(w)
    for transform in (dl.grad(loss), dl.jit(dl.grad(loss)), dl.jacfwd(loss)):
        found = transform(w)
        for name in w:
            assert np.allclose(found[name], expected[name], rtol=1e-10, atol=1e-12)
    tensors = {name: dl.tensor(value, requires_grad=True) for name, value in w.items()}
    loss(tensors).backward()
    assert np.allclose(tensors["a"].grad.numpy(), expected["a"], rtol=1e-10, atol=1e-12)


def test_batches_of_points(weights, rng: np.random.Generator) -> None:
    points = rng.normal(size=(5, 3))
    expected = [trace_of_hessian(x, weights) for x in points]
    at = lambda x: dl.laplacian(network)(x, weights)  # noqa: E731
    assert np.allclose(dl.vmap(at)(points), expected, rtol=1e-12)
    assert np.allclose(dl.jit(dl.vmap(at))(points), expected, rtol=1e-12)
    F = dl.laplacian(dl.trace(network, X, weights), argnums=0)
    assert np.allclose(F(points, weights), expected, rtol=1e-12)
    assert np.allclose(dl.compile(F)(points, weights["a"], weights["b"]), expected, rtol=1e-12)


def test_large_batches_are_computed_in_pieces(monkeypatch: pytest.MonkeyPatch, weights) -> None:
    from difflab.autodiff import recording

    points = np.linspace(-1, 1, 33).reshape(11, 3)
    at = lambda x, w: dl.laplacian(network)(x, w)  # noqa: E731
    mapped = dl.vmap(at, in_axes=(0, None))
    whole = mapped(points, weights)
    monkeypatch.setattr(recording, "STACKED_ELEMENTS", 48)
    monkeypatch.setattr(recording, "FEWEST_STACKED", 1)
    assert np.allclose(mapped(points, weights), whole, rtol=1e-14)
    assert mapped(points, weights).shape == (11,)
    alone = dl.vmap(dl.laplacian(lambda x: np.sum(np.tanh(x[:, None] - x)[0] ** 2)))
    pieces = alone(points)
    monkeypatch.undo()
    assert np.allclose(pieces, alone(points), rtol=1e-14)


def test_products_with_unit_vectors_are_rows_and_columns(rng: np.random.Generator) -> None:
    A = rng.normal(size=(3, 3))
    powers = lambda x: (np.sum(X * (A @ x) ** 2), np.sum((x @ A) ** 4), np.sin(A[0] @ x))  # noqa: E731
    columns, rows, wave = dl.laplacian(powers, method="collapsed")(X)
    assert np.isclose(columns, 2 * X @ np.sum(A * A, axis=1), rtol=1e-13)
    assert np.isclose(rows, 12 * np.sum((X @ A) ** 2 * (A * A).sum(0)), rtol=1e-13)
    assert np.isclose(wave, -np.sin(A[0] @ X) * (A[0] @ A[0]), rtol=1e-13)


def test_trees_and_precision() -> None:
    f = lambda p: {"sum": np.sum(p["x"] ** 3) * p["s"] ** 2, "x": p["x"] ** 2 * p["s"]}  # noqa: E731
    p = {"x": np.array([1.0, 2.0]), "s": 3.0}
    found = dl.laplacian(f)(p)
    assert np.isclose(found["sum"], 6 * 3 * 9 + 2 * 9)
    assert found["x"].tolist() == [6.0, 6.0]
    single = dl.laplacian(lambda x: np.sum(x**3))(np.array([1, 2], np.float32))
    assert single.dtype == np.float32
    assert dl.laplacian(lambda x: x**3)(2.0) == 12.0
    assert dl.laplacian(lambda x: x)(2.0) == 0.0


def test_directional_derivatives() -> None:
    f = lambda x: np.exp(x[0]) * x[1:] ** 2  # noqa: E731
    V = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    found = dl.directional(f, X, V, order=2)
    e = np.exp(X[0])
    assert np.allclose(found, [e * X[1:] ** 2, [8 * e, 0.0]], rtol=1e-14)
    assert np.allclose(dl.directional(f, X, V[0], order=3), e * X[1:] ** 2, rtol=1e-14)
    assert dl.directional(lambda x: x**4, 2.0, np.array([1.0, 2.0]), 4).tolist() == [24.0, 384.0]
    mixed = dl.directional(lambda x: dl.directional(f, x, V[1]), X, V[0])
    assert np.allclose(mixed, [4 * e * X[1], 0.0], rtol=1e-14)
    F = dl.directional(dl.parse("x^2*y"), order=2)
    assert (F.inputs, float(F(3.0, 5.0, 1.0, 2.0))) == (("x", "y", "x_dot", "y_dot"), 34.0)


# --- estimates --------------------------------------------------------------------------------


def test_the_estimate_is_a_mean_of_the_directions_and_states_its_error() -> None:
    H = np.array([[2.0, 1.0, 0.5], [1.0, -3.0, 0.2], [0.5, 0.2, 1.0]])
    f = lambda x: x @ H @ x / 2  # noqa: E731
    key, samples = dl.random.key(3), 40
    v = 2.0 * dl.random.bernoulli(key, 0.5, (samples, 3)) - 1
    products = np.einsum("si,ij,sj->s", v, H, v)
    estimated = dl.laplacian(f, method="hutchinson", key=key, samples=samples)
    value, error = estimated(X)
    assert np.isclose(value, products.mean(), rtol=1e-13)
    assert np.isclose(error, products.std(ddof=1) / np.sqrt(samples), rtol=1e-13)
    F = dl.laplacian(dl.trace(f, X), method="hutchinson", key=key, samples=samples)
    assert np.allclose(F(X), (value, error), rtol=1e-13)
    later = lambda k, x: dl.laplacian(f, method="hutchinson", key=k, samples=samples)(x)  # noqa: E731
    assert np.allclose(dl.jit(later)(key, X), (value, error), rtol=1e-13)


def test_estimates_are_unbiased_within_their_errors() -> None:
    f = lambda x: np.sum(np.sin(x) * x[::-1] ** 3) + np.sum(x) ** 4  # noqa: E731
    field = lambda x: x[::-1] ** 2 * np.sum(x)  # noqa: E731
    options = {"method": "hutchinson", "key": dl.random.key(5), "samples": 4000}
    for operator, g in ((dl.laplacian, f), (dl.biharmonic, f), (dl.divergence, field)):
        value, error = operator(g, **options)(X)
        assert error > 0
        assert abs(value - operator(g)(X)) < 4 * error


# --- the choice and its counts ----------------------------------------------------------------


def test_the_way_of_the_fewest_operations_is_chosen_and_reported() -> None:
    at = np.ones(20), {"a": np.ones((20, 16)), "b": np.ones((16, 3))}
    ways = dl.laplacian(network).explain(*at)
    assert ways.chosen == "collapsed" == min(ways.operations, key=ways.operations.get)
    assert set(ways.operations) == set(SECOND) - {"auto"}
    assert "collapsed" in str(ways).splitlines()[0]
    sparse = dl.laplacian(dl.parse("x^2 + y^2 + z^2 + x*y"))
    counts = sparse.explain().operations
    assert sparse.explain().chosen == "symbolic"
    assert counts["symbolic"] < counts["collapsed"]
    assert dl.laplacian(network, method="jets").explain(*at).chosen == "jets"
    assert dl.biharmonic(lambda x: np.sum(x) ** 4).explain(np.ones(70)).refused.keys() == {
        "symbolic"
    }


@pytest.mark.parametrize("n", [7, 31])
def test_one_pass_whose_stacks_are_first_derivatives_only(n: int) -> None:
    m, k = 11, 5
    f = dl.trace(
        lambda x, a, b, c: np.tanh(np.tanh(x @ a) @ b) @ c,
        *map(np.zeros, ((n,), (n, m), (m, k), (k,))),
    )
    collapsed = LAPLACIAN["collapsed"](f, (0,), (0,))
    products = [
        collapsed.graph.shape(node)
        for node in range(len(collapsed.graph))
        if (row := collapsed.graph.primitive(node)) is not None and row.name == "matmul"
    ]
    # The hidden values, the sums of second derivatives, and one matrix of first derivatives.
    assert sorted(products) == sorted([(m,), (k,), (k,), (), (n, k)])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_pass_takes_less_than_half_of_the_memory_of_nested_reverse(compiled: bool) -> None:
    """Of the network 50–256–256–1, eagerly in pieces and as one planned call."""
    rng = np.random.default_rng(0)
    w = [rng.normal(size=size) / 16 for size in ((50, 256), (256, 256), (256,))]
    f = lambda x, a, b, c: np.tanh(np.tanh(x @ a) @ b) @ c  # noqa: E731
    points = rng.uniform(-1, 1, (100, 50))
    peaks = []
    for method in ("collapsed", "reverse"):
        lap = dl.laplacian(f, method=method)
        mapped = dl.vmap(lap, in_axes=(0, None, None, None))
        if compiled:
            fast = dl.compile(dl.trace(mapped, points, *w))
            peaks.append(fast.memory_plan().peak_bytes)
        else:
            mapped(points, *w)
            peaks.append(peak_of(lambda mapped=mapped: mapped(points, *w)))
    assert 0 < peaks[0] < 0.4 * peaks[1]


@pytest.mark.parametrize("blocks", [1, 3, 7])
def test_stacks_in_blocks_of_directions(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, blocks: int
) -> None:
    """With and without unit vectors, with weights, and with products of two stacks."""
    A = rng.normal(size=(7, 7))
    f = lambda x: np.sum(np.tanh(x @ A) * np.cos(A @ x)) * x[0]  # noqa: E731
    tree = lambda p: f(np.concatenate([p["a"].ravel(), p["b"]]))  # noqa: E731
    x = rng.normal(size=7)
    as_tree = {"a": x[:4].reshape(2, 2), "b": x[4:]}
    monkeypatch.setattr(collapsed, "BLOCK_ELEMENTS", 1)
    monkeypatch.setattr(collapsed, "MOST_BLOCKS", blocks)
    recorded = dl.trace(f, x)
    found = LAPLACIAN["collapsed"](recorded, (0,), (0,))(x)
    assert np.isclose(found, np.trace(dl.hessian(f)(x)), rtol=1e-11)
    F = LAPLACIAN["collapsed"](dl.trace(tree, as_tree), (0, 1), (0,))
    assert np.isclose(F(*as_tree.values()), found, rtol=1e-11)
    fourth = BIHARMONIC["collapsed"](recorded, (0,), (0,))(x)
    assert np.isclose(fourth, dl.biharmonic(f, method="reverse")(x), rtol=1e-9)


def test_the_cost_is_proportional_to_the_coordinates() -> None:
    def operations(n: int, way: str) -> int:
        f = dl.trace(lambda x: np.sum(np.tanh(x) * np.sin(x[0])) ** 2, np.zeros(n))
        return dl.count(LAPLACIAN[way](f, (0,), (0,))).operations

    assert operations(8, "collapsed") == operations(64, "collapsed")


def test_a_sum_over_directions_with_weights() -> None:
    values, weights = np.array([1.0, -2.0, 3.0]), np.array([0.5, 2.0, -1.0])

    def constant(array):  # type: ignore[no-untyped-def]
        params = (("shape", array.shape), ("values", array.tobytes()))
        return lambda builder: Node(builder, builder.emit(constant_array, (), params))

    rows = Directions(3, {1: constant(values)}, float(weights.sum()), constant(weights))
    for text in ("a + d", "a - d*d", "-(d*a)", "d/a + a", "exp(d)*a", "where(a > 1, d, a)", "a/d"):
        f = dl.parse(f"{text} + 0*a + 0*d")
        expected = sum(w * f(2.0, d) for w, d in zip(weights, values, strict=True))
        assert np.isclose(summed(f, rows)(2.0), expected, rtol=1e-14), text


def test_ways_that_a_custom_function_lacks_are_refused() -> None:
    class Cube(dl.CustomFunction):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, bar):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return 3 * x * x * bar

    f = lambda x: np.sum(Cube.apply(x))  # noqa: E731
    found = dl.laplacian(f)
    assert np.isclose(found(X), 6 * X.sum(), rtol=1e-14)
    assert found.explain(X).refused.keys() == {"collapsed", "jets"}
    with pytest.raises(UnsupportedError):
        dl.laplacian(f, method="collapsed")(X)


# --- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dl.laplacian(np.sin, method="best"), "no method 'best'"),
        (lambda: dl.curl(np.sin, method="hutchinson"), "no method"),
        (lambda: dl.laplacian(np.sin, method="hutchinson"), "key and samples"),
        (lambda: dl.laplacian(np.sin, samples=3, key=dl.random.key(0)), "key and samples"),
        (
            lambda: dl.laplacian(np.sin, method="hutchinson", samples=1, key=dl.random.key(0)),
            "at least 2",
        ),
        (lambda: dl.divergence(np.sum)(X), "maps 3 to 1"),
        (lambda: dl.curl(np.sin)(np.ones(4)), "2 or 3 elements"),
        (lambda: dl.curl(dl.parse("[x, y]"), argnums=0), "maps 1 to 2"),
        (lambda: dl.laplacian(np.sum)(np.array([1, 2])), "integers"),
        (lambda: dl.directional(np.sin, X, X, order=0), "order"),
        (lambda: dl.directional(np.sin, X), "x and directions"),
        (lambda: dl.directional(np.sin, X, np.ones(4)), "directions"),
    ],
)
def test_errors_say_what_to_do(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("method", ["auto", "collapsed", "jets", "forward-reverse", "reverse"])
def test_no_coordinates(method: str) -> None:
    """A sum over no coordinates is 0, beside other leaves too, and an empty result is empty."""
    none = np.zeros(0)
    assert dl.laplacian(lambda x: np.sum(x**2), method=method)(none) == 0
    tree = {"a": none, "b": np.array([1.0, 2.0])}
    found = dl.laplacian(lambda d: np.sum(d["a"]) + np.sum(d["b"] ** 3), method=method)(tree)
    assert found == 18.0  # 6·1 + 6·2
    assert dl.laplacian(lambda x: x[:0] ** 2, method=method)(np.ones(2)).shape == (0,)


@pytest.mark.parametrize("method", ["auto", "nested", "collapsed", "jets", "reverse"])
def test_biharmonic_of_no_coordinates(method: str) -> None:
    assert dl.biharmonic(lambda x: np.sum(x**5), method=method)(np.zeros(0)) == 0
    assert dl.biharmonic(lambda x: np.sum(x**5), method=method)(np.ones(1)) == 120.0


def test_nothing_to_differentiate_is_named() -> None:
    with pytest.raises(InputError, match="whose argument has a number"):
        dl.laplacian(lambda x: 1.0)(())
    with pytest.raises(InputError, match="whose result has a number"):
        dl.laplacian(lambda x: ())(np.ones(2))
    with pytest.raises(InputError, match="at least 2"):
        dl.laplacian(np.sum, method="hutchinson", key=dl.random.key(0), samples=1)(np.ones(2))
    number = np.int64(2)
    dl.laplacian(np.sum, method="hutchinson", key=dl.random.key(0), samples=number)(np.ones(2))


@pytest.mark.parametrize("method", ["collapsed", "jets", "forward-reverse", "reverse"])
def test_powers_by_an_array_of_exponents_at_0(method: str) -> None:
    """Derivatives of x⁰, x¹, x², x³ at 0; a recurrence that divides by x has none."""
    exponents = np.arange(4.0)
    found = dl.laplacian(lambda x: np.sum(x[0] ** exponents), method=method)(np.zeros(1))
    assert found == 2.0


MATRIX, VECTOR = np.array([[0.3, -1.2], [0.8, 0.5]]), np.array([0.7, -0.4])


@pytest.mark.parametrize(
    "product",
    [
        lambda x: x @ VECTOR,
        lambda x: VECTOR @ x,
        lambda x: x @ MATRIX,
        lambda x: MATRIX @ x,
        lambda x: x @ x,
        lambda x: x.reshape(4) @ np.ones(4),
        lambda x: (x @ VECTOR)[0],
        lambda x: np.cumsum(VECTOR @ x),
    ],
)
def test_products_with_a_matrix_of_coordinates(product: Callable[[Any], Any]) -> None:
    """The sum of the Hessian's diagonal; the unit matrices are no unit vectors."""

    def fun(x: Any) -> Any:
        return np.sum(np.tanh(product(x)))

    expected = np.trace(dl.hessian(fun)(MATRIX).reshape(4, 4))
    for method in LAPLACIAN:
        assert dl.laplacian(fun, method=method)(MATRIX) == pytest.approx(expected, rel=1e-12)


def test_an_estimate_is_explained() -> None:
    lap = dl.laplacian(np.sum, method="hutchinson", key=dl.random.key(0), samples=4)
    found = lap.explain(np.ones(3))  # type: ignore[attr-defined]
    assert found.chosen == "hutchinson"
    assert list(found.operations) == ["hutchinson"]
