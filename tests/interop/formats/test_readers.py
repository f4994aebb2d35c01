"""Readers compare their reading with its source: faults planted in them are found and named."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import difflab as dl
from difflab import primitives as rows
from difflab.errors import GraphMismatchError
from difflab.interop.formats import readers
from difflab.interop.formats import sympy as sympy_reader
from difflab.interop.formats.readers import ReaderSource, verified

X = sympy.Symbol("x")


def of(text: str) -> dl.Function:
    return dl.parse(text)


def source(code: Callable[..., Any], **known: Any) -> ReaderSource:
    return ReaderSource("the source", lambda values: [np.asarray(code(*values))], **known)


def test_a_reading_with_the_values_of_its_source_is_returned() -> None:
    function = of("x: [3]; sin(x)*y")
    assert verified(function, source(lambda x, y: np.sin(x) * y)) is function


def test_both_values_and_the_point_are_named() -> None:
    with pytest.raises(GraphMismatchError) as found:
        verified(of("x: [2]; 2*x"), source(lambda x: 2 * x + np.array([0.0, 1.0])))
    point = np.random.default_rng(0).uniform(0.1, 0.9, 2).tolist()
    said = found.value.message
    assert f"at x = {point} " in said
    assert "the source gives y[1] = " in said
    theirs, ours = (
        float(part.split(" ")[0].strip(",")) for part in said.split("y[1] = ")[1].split("graph ")
    )
    assert theirs == pytest.approx(ours + 1, rel=1e-3)


@pytest.mark.parametrize("error", [1e-13, 1e-6, 0.1])
def test_a_relative_error_is_found_beyond_rounding(error: float) -> None:
    reading = source(lambda x: np.exp(x) * (1 + error))
    if error < 64 * 2.0**-52 * 8:
        verified(of("exp(x)"), source(lambda x: np.exp(x) * (1 + 1e-15)))
        return
    with pytest.raises(GraphMismatchError):
        verified(of("exp(x)"), reading)


SINGLE = 2.0**-23


@pytest.mark.parametrize(
    ("text", "code", "eps"),
    [
        # Cancellation: the rounding of the dtype is as large as the value.
        ("(x + 1e8) - 1e8", lambda x: (np.float32(x) + np.float32(1e8)) - np.float32(1e8), SINGLE),
        ("sin(1e6*x)", lambda x: np.sin(np.float32(1e6 * x)), SINGLE),
        ("(1 + x*1e-15) - 1", lambda x: x * 1e-15, 2.0**-52),
        # Rounding decides on which side of a jump a value is.
        ("floor(x/3*3)", lambda x: np.floor(x / 3 * 3 * (1 - 2.0**-52)), 2.0**-52),
        ("where(tanh(99*x) < 1, 0, 1)", lambda x: np.abs(x) * 0, 2.0**-52),
        # Where one of both is no number nothing is compared.
        ("log(x)", lambda x: np.log(np.abs(x)), 2.0**-52),
        ("where(x > 0, x, 0/0)", lambda x: x, 2.0**-52),
    ],
)
def test_rounding_times_conditioning_is_no_difference(text: str, code: Any, eps: float) -> None:
    with np.errstate(all="ignore"):
        verified(of(text), source(code, eps=eps))


def test_a_difference_in_float32_counts_beyond_the_rounding_of_float32() -> None:
    verified(of("0.1*x"), source(lambda x: np.float32(0.1) * x, eps=SINGLE))
    with pytest.raises(GraphMismatchError):
        verified(of("0.1*x"), source(lambda x: np.float32(0.1) * x))
    with pytest.raises(GraphMismatchError):
        verified(of("0.1*x"), source(lambda x: 0.1001 * x, eps=SINGLE))


def test_inputs_have_the_dtypes_and_the_values_of_the_source() -> None:
    seen: list[Any] = []

    def code(*values: Any) -> Any:
        seen.append(values)
        return values[0] * 1.0 + values[1] + values[2] + values[3]

    weights = np.array(0.125)
    verified(
        of("a + b + c + d"),
        source(code, dtypes=[np.float32, np.int64, np.bool_, np.float64], fixed={3: weights}),
    )
    kinds = {"".join(value.dtype.kind for value in values) for values in seen}
    assert kinds == {"fibf"}
    assert all(value[0].dtype == np.float32 and value[3] == 0.125 for value in seen)
    assert len({float(value[0]) for value in seen}) > 3


def test_shapes_are_compared() -> None:
    with pytest.raises(GraphMismatchError, match="has the shape"):
        verified(of("x: [2]; x"), source(lambda x: x[:1]))
    with pytest.raises(GraphMismatchError, match="it returns 0 outputs, the reading 1"):
        verified(of("x: [2]; x"), ReaderSource("it", lambda v: []))


def test_what_the_source_cannot_compute_is_left_out() -> None:
    def fails(values: Any) -> Any:
        raise NotImplementedError

    function = of("x^2")
    assert verified(function, ReaderSource("it", fails)) is function
    assert verified(function, ReaderSource("it", lambda values: [None])) is function


def test_what_is_too_large_is_not_compared_and_this_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = source(lambda x: x + 1)
    with pytest.warns(UserWarning, match="was not compared with the source: it has 4 operations"):
        verified(of("sin(sin(sin(x)))"), source(lambda x: x + 1, most=3))
    monkeypatch.setattr(readers, "MOST_ELEMENTS", 100)
    with pytest.warns(UserWarning, match=r"on 200 elements; verify=False says that this is known"):
        verified(of("x: [100]; sin(x)"), wrong)


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(readers, "SECONDS", 0.0)
    verified(of("2*x"), source(lambda x: (calls.append(1), 2 * x)[1]))
    assert len(calls) == 1


# --- faults in the readers --------------------------------------------------------------------


def test_a_fault_in_the_reader_of_sympy(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = sympy_reader._rules()
    monkeypatch.setitem(rules, sympy.tan, lambda reader, _, x: rows.tanh(x))  # type: ignore[index]
    with pytest.raises(GraphMismatchError, match=r"SymPy gives y = .*, the graph"):
        dl.from_sympy(sympy.tan(X) + 1)
    assert str(dl.from_sympy(sympy.tan(X) + 1, verify=False)) == "1 + tanh(x)"
    matrix = sympy.MatrixSymbol("A", 2, 2)
    monkeypatch.setitem(rules, sympy.Transpose, lambda reader, _, x: x)  # type: ignore[index]
    with pytest.raises(GraphMismatchError, match=r"at A = \["):
        dl.from_sympy(matrix.T * 2)
    monkeypatch.setitem(  # type: ignore[index]
        rules, sympy.Piecewise, lambda reader, _, *parts: rows.where(parts[1], parts[2], parts[0])
    )
    with pytest.raises(GraphMismatchError):
        dl.from_sympy(sympy.Piecewise((X, X > 0), (X**2, True)))


def test_sympys_values_are_compared_where_they_are_real() -> None:
    expressions = [
        sympy.sqrt(X) * sympy.log(X - 1),
        sympy.Matrix([[X, sympy.sqrt(X)], [1, X + 1]]),
        sympy.Piecewise((1, sympy.Eq(X, 2)), (X, X > 1), (0, True)),
        sympy.erfcinv(X) + X,
        sympy.Max(X, 1) * sympy.Heaviside(X) + sympy.sign(X) * sympy.floor(X),
        sympy.MatrixSymbol("A", 2, 2).inverse() * sympy.MatrixSymbol("B", 2, 1),
        [X, sympy.Matrix([X, 2 * X]), sympy.pi * X],
    ]
    for expression in expressions:
        dl.from_sympy(expression)


def test_a_large_expression_is_not_compared_and_this_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terms = sympy.Add(*[sympy.sin(k * X) for k in range(30)])
    monkeypatch.setattr(sympy_reader, "MOST_EVALUATED", 50)
    with pytest.warns(UserWarning, match="was not compared with SymPy"):
        dl.from_sympy(terms)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dl.from_sympy(terms, verify=False)


JAX_FAULTS = {
    "tanh": (lambda x, **_: np.sinh(x), lambda jnp, x: jnp.tanh(x)),
    "integer_pow": (lambda x, y: x ** float(y + 1), lambda jnp, x: x**3),
    "reduce_max": (lambda x, axes, **_: np.min(x), lambda jnp, x: jnp.max(x)),
    "transpose": (lambda x, permutation: x, lambda jnp, x: jnp.outer(x, x + 1).T),
    "select_n": (lambda c, a, b: np.where(c, a, b), lambda jnp, x: jnp.where(x > 0.5, x, -x)),
}


@pytest.mark.parametrize("name", JAX_FAULTS)
def test_a_fault_in_the_reader_of_jax(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jax = pytest.importorskip("jax")
    from difflab.interop.formats.jaxpr.operations import RULES

    fault, code = JAX_FAULTS[name]
    point = np.array([0.3, 0.8])
    dl.from_jax(lambda x: code(jax.numpy, x), point)
    monkeypatch.setitem(RULES, name, lambda *a, **k: fault(*a, **k))  # type: ignore[index]
    with pytest.raises(GraphMismatchError, match="JAX gives"):
        dl.from_jax(lambda x: code(jax.numpy, x), point)
    dl.from_jax(lambda x: code(jax.numpy, x), point, verify=False)
    closed = jax.make_jaxpr(lambda x: code(jax.numpy, x))(point)  # in float32
    with pytest.raises(GraphMismatchError, match="JAX gives"):
        dl.from_jax(closed)


def test_jaxs_rounding_is_that_of_its_coarsest_dtype() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    read = dl.from_jax(lambda x: x.astype(jnp.float16) * 0.1 + x, 1.0)
    assert float(read(1.0)) == pytest.approx(1.1, rel=1e-3)  # 0.1 is a float16
    inner = jax.jit(lambda x: x.astype(jnp.float32) / 3)
    assert float(dl.from_jax(lambda x: inner(x) * 1.0, 1.0)(1.0)) == 1 / 3


def test_a_fault_in_the_reader_of_casadi(monkeypatch: pytest.MonkeyPatch) -> None:
    casadi = pytest.importorskip("casadi")
    from difflab.interop.formats import casadi as reader

    x = casadi.SX.sym("x", 2, 2)
    f = casadi.Function("f", [x], [casadi.atan2(x[0, 1], x[1, 0]), x.T])
    dl.from_casadi(f)
    swapped = lambda a, b: rows.atan2(b, a)  # noqa: E731
    monkeypatch.setitem(reader._rules(), casadi.OP_ATAN2, swapped)  # type: ignore[index]
    with pytest.raises(GraphMismatchError, match="CasADi gives"):
        dl.from_casadi(f)
    dl.from_casadi(f, verify=False)


def test_a_fault_in_the_reader_of_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    from difflab.interop.formats.onnx.operators import OPERATORS

    def model(kind: int) -> Any:
        x, y = (helper.make_tensor_value_info(name, kind, [2, 3]) for name in "xy")
        weight = numpy_helper.from_array(np.arange(9.0).reshape(3, 3).astype(np.float32), "w")
        if kind == TensorProto.DOUBLE:
            weight = numpy_helper.from_array(np.arange(9.0).reshape(3, 3), "w")
        steps = [
            helper.make_node("MatMul", ["x", "w"], ["z"]),
            helper.make_node("Softplus", ["z"], ["y"]),
        ]
        return helper.make_model(helper.make_graph(steps, "g", [x], [y], [weight]))

    for kind in (TensorProto.FLOAT, TensorProto.DOUBLE):
        dl.from_onnx(model(kind))
        with monkeypatch.context() as patch:
            patch.setitem(OPERATORS, "Softplus", OPERATORS["Relu"])  # type: ignore[index]
            for parameters in (False, True):
                with pytest.raises(GraphMismatchError, match="reference evaluator gives y"):
                    dl.from_onnx(model(kind), parameters=parameters)
            dl.from_onnx(model(kind), verify=False)
    assert onnx is not None
