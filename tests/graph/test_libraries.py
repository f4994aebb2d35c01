"""Functions on PyTorch's and JAX's arrays: every row of the table, and errors that say whose."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.interpreters import interpreter_for
from difflab.primitives import TABLE
from tests.primitives.test_arrays import CASES, OF_FACTORS, indices_of
from tests.support.orders import orders
from tests.support.rows import for_each
from tests.support.special_rows import SPECIAL

RNG = np.random.default_rng(8)
ELEMENTWISE = [row for row in TABLE.values() if row.shape is None and not orders(row)]
WITHOUT = {("torch", "gamma")}
"""What a library has no function for."""


@pytest.fixture(params=["torch", "jax.numpy"])
def library(request: pytest.FixtureRequest) -> Any:
    if request.param == "jax.numpy":
        jax = pytest.importorskip("jax", reason="needs JAX: pip install 'difflab[peers]'")
        jax.config.update("jax_enable_x64", True)
    reason = "needs PyTorch: pip install 'difflab[peers]'"
    return pytest.importorskip(request.param, reason=reason)


def points(row: Primitive, rng: np.random.Generator) -> list[Any]:
    intervals = row.samples or ((0.2, 0.8),) * (row.arity or 1)
    values = [rng.uniform(low, high, 4) for low, high in intervals]
    return [value > 0.5 if place in row.truths else value for place, value in enumerate(values)]


def dtype_of(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def held(row: Primitive, values: list[Any], library: ModuleType, params: dict[str, Any]) -> None:
    """Hold a row on a library's arrays to NumPy's values."""
    if row.name in OF_FACTORS:
        values = [*values, TABLE[OF_FACTORS[row.name]](*values)]
    there = [library.asarray(v.copy()) if isinstance(v, np.ndarray) else v for v in values]
    compute = interpreter_for(there).operation(row)
    found, expected = compute(*there, **params), row.computer(np)(*values, **params)
    assert not isinstance(found, np.ndarray)
    assert found.shape == expected.shape
    assert dtype_of(found) == dtype_of(expected)
    free = row.name in ("eigh", "svd")  # the signs of vectors
    even = np.abs if free else np.asarray
    np.testing.assert_allclose(even(np.asarray(found)), even(expected), rtol=1e-12)


@for_each("row", ELEMENTWISE, ids=lambda row: row.name)
def test_every_elementwise_row_takes_arrays_beside_numbers(
    row: Primitive, library: Any, rng: np.random.Generator
) -> None:
    if (library.__name__, row.name) in WITHOUT:
        with pytest.raises(UnsupportedError, match=f"PyTorch has no function for '{row.name}'"):
            held(row, points(row, rng), library, {})
        return
    if row.name in SPECIAL:
        pytest.skip("a library may lack it: tests/methods/peers has what each computes")
    values = points(row, rng)
    held(row, values, library, {})
    for place in range(len(values) if len(values) > 1 else 0):
        mixed = [v if k == place else v[0].item() for k, v in enumerate(values)]
        held(row, mixed, library, {})


@for_each("name", CASES)
def test_every_row_of_arrays_takes_them_with_and_without_a_batch(name: str, library: Any) -> None:
    for case, (values, params) in enumerate(CASES[name]):
        places = indices_of(name, case)
        held(TABLE[name], [*values, *places], library, params)
        stacks = [np.stack([v, 0.9 * v + 0.01]) for v in values]
        held(TABLE[name], [*stacks, *places], library, params)


@for_each(
    "text",
    [
        "relu(x) + 1",
        "max(x, 0.3)",
        "where(x > 0 and x < 2, x, 0.1)",
        "x == 1.5",
        "clip(x, 0, 1) + round(x) + sign(x) + heaviside(x)",
        "polygamma(2, x)",
        "mod(x, 0.4)",
    ],
)
def test_parsed_functions_and_their_gradients_take_them(text: str, library: Any) -> None:
    function = dl.parse(text)
    xs = np.array([0.5, 1.5])
    for computed in (function, dl.gradient(function)):
        found = computed(library.asarray(xs.copy()))
        np.testing.assert_allclose(np.asarray(found), computed(xs), rtol=1e-12)


@pytest.mark.parametrize("name", ["sign", "heaviside"])
def test_steps_keep_nan(name: str, library: Any) -> None:
    held(TABLE[name], [np.array([np.nan, -2.0, 0.0, np.inf])], library, {})


def test_pytorch_differentiates_through_a_function() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")
    function = dl.parse("x: [3]\nsum(relu(x)*sin(x)) + x[2]*x[0]")
    x = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
    function(x).backward()
    expected = dl.gradient(function)(x.detach().numpy())
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-14)


SPECIAL_OF_PYTORCH = {
    "digamma(x)": (-2.5, 0.3, 1.442087, 3.0, 40.0, 1e9, 1e300, math.inf),
    "polygamma(1, x)": (-2.5, 0.3, 3.0, 40.0),
    "erfcx(x)": (-2.0, 0.5, 30.0),
    "erfinv(x)": (-0.9, 1e-9, 0.5),
    "ndtri(x)": (1e-9, 0.3, 0.99),
    "logit(x)": (1e-9, 0.3, 0.99),
    "entr(x)": (0.3, 2.0),
    "xlogy(x, 2.5)": (0.0, 2.0),
    "xlog1py(x, -0.5)": (0.0, 2.0),
    "gammainc(2.5, x)": (0.3, 2.0, 9.0),
    "gammaincc(2.5, x)": (0.3, 2.0, 9.0),
}


@for_each("text", SPECIAL_OF_PYTORCH)
def test_pytorch_computes_special_functions_and_their_derivatives(text: str) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")
    f = dl.parse(text)
    points = np.array(SPECIAL_OF_PYTORCH[text])
    alone = text.startswith("gammainc")  # the derivative takes a gamma function
    for function in (f,) if alone else (f, dl.gradient(f)):
        found = np.asarray(function(torch.tensor(points)))
        np.testing.assert_allclose(found, function(points), rtol=1e-13)


def test_pytorch_differentiates_the_derivative_of_digamma() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")
    x = torch.tensor([-2.5, 0.3, 3.0], dtype=torch.float64, requires_grad=True)
    dl.gradient(dl.parse("digamma(x)"))(x).sum().backward()
    wanted = dl.parse("polygamma(2, x)")(x.detach().numpy())
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-12)


def test_results_are_on_the_device_of_the_tensors() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")
    f = dl.gradient(dl.parse("x: [3]; x[0]*x[1] + max(x) + 2.5"))
    x = torch.ones(3, dtype=torch.float64, device="meta")
    for result in (f(x), *dl.evaluate(f, [x])):
        assert result.device.type == "meta"
        assert result.shape == (3,)


def test_what_pytorch_lacks_is_named() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")
    for text, name in (("besselj(0, x)", "jv"), ("gamma(x)", "gamma")):
        with pytest.raises(UnsupportedError, match=f"PyTorch has no function (for )?'{name}'"):
            dl.parse(text)(torch.tensor(0.5))


def test_float32_stays_float32(library: Any) -> None:
    x = library.asarray(np.array([0.5, 2.0], dtype=np.float32))
    found = dl.parse("relu(x)*1.5 + max(x, 1) - 0.1")(x)
    assert str(found.dtype).endswith("float32")


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.bool_])
def test_integers_and_truth_values_are_float64(dtype: Any, library: Any) -> None:
    x = np.array([1, 0, 1], dtype=dtype)
    for text in ("x: [3]; sum(sin(x))", "x: [3]; 0.7*x[0]", "x: [3]; argmax(x)/3", "x: [3]; x[2]"):
        f = dl.parse(text)
        for function in (f, dl.gradient(f)):
            found = function(library.asarray(x))
            assert dtype_of(found) == "float64"
            np.testing.assert_allclose(np.asarray(found), function(x), rtol=1e-15)


def test_what_a_library_refuses_is_said_as_difflabs(library: Any) -> None:
    x = library.asarray(np.array([[1.0, 2.0]]))
    with pytest.raises(UnsupportedError, match="cannot compute 'inv' for these values"):
        interpreter_for([x]).operation(TABLE["inv"])(x)
