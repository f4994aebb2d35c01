"""`from_casadi` against CasADi's own values and Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError
from tests.support.rows import for_each

casadi = pytest.importorskip("casadi")


def assert_read(f: Any, seed: int = 0, rtol: float = 1e-14) -> dl.Function:
    """Hold values and Jacobians to those of CasADi."""
    read = dl.from_casadi(f)
    rng = np.random.default_rng(seed)
    point = [rng.uniform(0.1, 0.9, shape) for shape in read.input_shapes]
    found = read(*point)
    outputs = found if isinstance(found, tuple) else (found,)
    expected = f.call([casadi.DM(np.reshape(v, f.size_in(k))) for k, v in enumerate(point)])
    for one, other in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(np.ravel(one), np.ravel(np.array(other)), rtol, atol=1e-15)
    columns = []
    symbols = [casadi.MX.sym(f"s{k}", *f.size_in(k)) for k in range(f.n_in())]
    # Row by row, as difflab flattens; CasADi flattens column by column.
    parts = [casadi.vec(casadi.densify(part).T) for part in f.call(symbols)]
    for symbol in symbols:
        jacobian = casadi.Function("J", symbols, [casadi.jacobian(casadi.vertcat(*parts), symbol)])
        by_column = np.array(jacobian(*[np.reshape(v, f.size_in(k)) for k, v in enumerate(point)]))
        order = np.arange(symbol.numel()).reshape(symbol.shape, order="F").ravel()
        columns.append(by_column[:, order])
    np.testing.assert_allclose(
        np.reshape(dl.jacobian(read)(*point), (read.m, read.n)),
        np.concatenate(columns, 1),
        rtol=100 * rtol,
        atol=1e-13,
    )
    return read


UNARY = (
    *("acos", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfinv", "exp"),
    *("expm1", "fabs", "floor", "log", "log1p", "sign", "sin", "sinh", "sqrt", "tan", "tanh"),
)


@pytest.mark.parametrize("kind", [casadi.SX, casadi.MX])
@for_each("name", UNARY)
def test_functions_of_one_number(name: str, kind: Any) -> None:
    x = kind.sym("x", 2, 3)
    f = casadi.Function("f", [x], [getattr(casadi, name)(x)], ["x"], ["y"])
    read = assert_read(f, rtol=1e-7 if name == "erfinv" else 1e-14)  # CasADi's own has 8 digits
    assert read.inputs == ("x",)
    assert read.output_shapes == ((2, 3),)


@pytest.mark.parametrize("name", ["atan2", "fmax", "fmin", "fmod", "hypot", "copysign", "power"])
def test_functions_of_two_numbers(name: str) -> None:
    x, y = casadi.SX.sym("x", 3), casadi.SX.sym("y", 3)
    assert_read(casadi.Function("f", [x, y], [getattr(casadi, name)(x, y)]))


def test_the_remainder_is_that_of_ieee() -> None:
    x = casadi.SX.sym("x")
    read = dl.from_casadi(casadi.Function("f", [x], [casadi.remainder(x, 2.0)]))
    assert [float(read(value)) for value in (2.5, 3.5, -2.5, 1.0)] == [0.5, -0.5, -0.5, 1.0]


def test_conditions_powers_and_several_outputs() -> None:
    x, p = casadi.SX.sym("x", 4), casadi.SX.sym("p")
    y = casadi.if_else(casadi.logic_and(x > 0.5, p != x), x**3, 1 / (p + x)) + 2 * x
    z = casadi.if_else(casadi.logic_not(p <= 0.5), casadi.sumsqr(x), x[1])
    read = assert_read(casadi.Function("f", [x, p], [y, z], ["x", "p.1"], ["y", "z"]), seed=3)
    assert read.inputs == ("x", "p_1")
    assert read.output_names == ("y", "z")


def test_products_and_slices_of_mx() -> None:
    A, x = casadi.MX.sym("A", 3, 2), casadi.MX.sym("x", 2)
    y = casadi.mtimes(A, casadi.sin(x)) + A[:, 0] * casadi.dot(x, x)
    turned = casadi.horzcat(A.T, casadi.repmat(x, 1, 2))
    read = assert_read(
        casadi.Function("f", [A, x], [y, turned, casadi.norm_fro(A), casadi.det(A[:2, :])])
    )
    assert read.output_shapes == ((3,), (2, 5), (), ())


def test_sparse_inputs_and_outputs() -> None:
    x = casadi.SX.sym("x", casadi.Sparsity.lower(3))
    read = assert_read(
        casadi.Function("f", [casadi.SX.sym("y", 3)], [casadi.diag(casadi.SX([1, 2, 3]))])
    )
    assert read.output_shapes == ((3, 3),)
    lower = dl.from_casadi(casadi.Function("f", [x], [casadi.mtimes(x, x)]))
    dense = np.arange(1.0, 10).reshape(3, 3)
    assert lower(dense).tolist() == (np.tril(dense) @ np.tril(dense)).tolist()


def test_reused_places_of_the_work_vector() -> None:
    rng = np.random.default_rng(4)
    x = casadi.SX.sym("x", 3)
    values = [x[0], x[1], x[2]]
    kinds = [casadi.sin, casadi.cos, casadi.exp, lambda v: v * values[0], lambda v: v - values[1]]
    for _ in range(300):
        found = kinds[rng.integers(5)](values[rng.integers(len(values))])
        values.append(casadi.tanh(found))
    assert_read(casadi.Function("f", [x], [values[-1], values[-2] * values[-3]]))


def test_a_long_chain_is_read_without_recursion() -> None:
    x = casadi.SX.sym("x")
    y = x
    for _ in range(20_000):
        y = casadi.sin(y)
    read = dl.from_casadi(casadi.Function("f", [x], [y]))
    assert len(read.graph) == 20_001


def test_what_is_not_read() -> None:
    x = casadi.MX.sym("x")
    with pytest.raises(InputError, match=r"casadi.Function, not MX"):
        dl.from_casadi(x)
    solver = casadi.rootfinder("solver", "newton", {"x": x, "g": x**2 - 2})
    with pytest.raises(InputError, match=r"cannot expand solver|OP_CALL"):
        dl.from_casadi(solver)
    free = casadi.Function("f", [x], [x * casadi.MX.sym("t")], {"allow_free": True})
    with pytest.raises(InputError, match="free variables"):
        dl.from_casadi(free)
