"""Code over NumPy, JAX and PyTorch against the function that it was printed from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.arrays import argsort, linear_recurrence
from difflab.errors import UnsupportedError
from difflab.methods.peers.array_code import jax_code, numpy_code, torch_code

ULP = 2.0**-52


def in_numpy(function: dl.Function, values: list[Any]) -> Any:
    return _run(numpy_code(function), values)


def in_jax(function: dl.Function, values: list[Any]) -> Any:
    jax = pytest.importorskip("jax")
    from difflab.methods.peers.jax import double

    with double():
        return _run(jax_code(function), list(map(jax.numpy.asarray, values)))


def in_torch(function: dl.Function, values: list[Any]) -> Any:
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(np.array(value), dtype=torch.float64) for value in values]
    return _run(torch_code(function), tensors)


def _run(source: str, values: list[Any]) -> Any:
    names: dict[str, Any] = {}
    exec(source, names)
    found = names["f"](*values)
    parts = found if isinstance(found, tuple) else (found,)
    return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts])


LIBRARIES = [in_numpy, in_jax, in_torch]
PROGRAMS = [
    "ln(x) + x*y - sin(y)",
    "where(x > y, sqrt(x), y^3)*(x - (y - 2))/-(x*y)",
    "sigmoid(x)*softplus(y) + log1mexp(-x) + logcosh(y) + hypot(x, y) + atan2(x, y)",
    "exp(x)^2 + 2^y + relu(x) + max(x, 0.5) + floor(y) + mod(x, y) + cbrt(x)",
    "[x, y, 1, x*y]",
    "W: [2, 3]; v: [3]; softmax(W @ v)*x",
    "v: [3]; norm(v) + logsumexp(v) + prod(v) + max(v) + v[2]*y",
    "v: [3]; concatenate(v[::-1], 2*v[1:])*x",
    "W: [3, 3]; v: [3]; sum(solve(W, v)) + det(W) + trace(W) + dot(v, W[0])",
    "v: [3]; cumsum(v)*outer(v, v) + diag(v)",
    "v: [3]; sum(take(v, [2, 0, 2])^3)*x",
    "W: [2, 3]; v: [3]; take(W, [1, 0, 1, 1] along 0)^2 @ v",
    "def: []; lambda: []; def*sin(lambda)",
]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("derive", [lambda f: f, dl.jacobian], ids=["value", "jacobian"])
@pytest.mark.parametrize("text", PROGRAMS)
def test_code_computes_the_function(
    text: str, derive: Callable[[dl.Function], dl.Function], library: Callable[..., Any]
) -> None:
    function = derive(dl.parse(text))
    rng = np.random.default_rng(5)
    values = [rng.uniform(0.3, 1.9, shape) for shape in function.input_shapes]
    outputs = function(*values)
    parts = outputs if isinstance(outputs, tuple) else (outputs,)
    expected = np.concatenate([np.ravel(part) for part in parts])
    if "cbrt" in text and library is in_torch:
        pytest.skip("PyTorch has no cbrt")
    found = library(function, values)
    assert np.allclose(found, expected, rtol=8 * ULP, atol=16 * ULP)


def test_the_code_is_what_one_would_write() -> None:
    f = dl.parse("(a - (b - 2))*a^2 + max(a, b)")
    assert numpy_code(f).splitlines()[-1] == "    return (a - (b - 2)) * a ** 2 + np.maximum(a, b)"
    pytest.importorskip("torch")
    assert "torch.maximum(a, b)" in torch_code(f)


def test_a_chain_of_kernels_stays_linear() -> None:
    text = "x"
    for _ in range(30):
        text = f"sigmoid({text})"
    assert len(numpy_code(dl.parse(text))) < 30 * 400


def test_what_a_library_lacks_is_named() -> None:
    loop = dl.trace(lambda x: dl.while_loop(lambda v: v < 10.0, lambda v: v * 2.0, x), 1.0)
    with pytest.raises(UnsupportedError, match="NumPy code has no form of 'while_loop'"):
        numpy_code(loop)
    pytest.importorskip("torch")
    with pytest.raises(UnsupportedError, match="PyTorch code has no form of 'gamma'"):
        torch_code(dl.parse("gamma(x)"))


@pytest.mark.parametrize("library", [in_numpy, in_jax])
def test_casts_name_the_dtype(library: Callable[..., Any]) -> None:
    function = dl.parse("float32(x + x)*y")
    found = library(function, [0.05, 3.0])
    assert found == np.float64(np.float32(0.1)) * 3.0


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["sign", "heaviside"])
def test_nan_is_kept(name: str, library: Callable[..., Any]) -> None:
    assert np.isnan(library(dl.parse(f"{name}(x)"), [np.nan]))


@pytest.mark.parametrize(
    ("write", "name"), [(numpy_code, "numpy"), (jax_code, "jax.numpy"), (torch_code, "torch")]
)
def test_constants_without_elements_keep_their_shape(write: Callable[..., str], name: str) -> None:
    library = pytest.importorskip(name)
    function = dl.trace(lambda x: x + np.ones((0, 3)), np.float64(1.0))
    names: dict[str, Any] = {}
    exec(write(function), names)
    assert names["f"](library.asarray(1.0)).shape == (0, 3)


def test_square_roots_as_powers_are_those_of_ieee_754() -> None:
    """NumPy's operator gives nan and -0.0."""
    names: dict[str, Any] = {}
    exec(numpy_code(dl.parse("x^0.5")), names)
    found = names["f"](np.array([-np.inf, -0.0, 4.0]))
    assert found.tolist() == [np.inf, 0.0, 2.0]
    assert not np.signbit(found[1])


def test_pytorchs_powers_are_those_of_ieee_754() -> None:
    """With the number -0.5 its operator gives nan and -inf."""
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")
    x = torch.tensor([-torch.inf, -0.0, 0.0, 4.0], dtype=torch.float64)
    for exponent in (-0.5, 0.5, 1.5, -2.0):
        names: dict[str, Any] = {}
        exec(torch_code(dl.parse(f"x^({exponent})")), names)
        expected = [math.pow(float(each), exponent) if each else 0.0 for each in x]
        if exponent < 0:
            expected[1:3] = [math.inf, math.inf]
        assert names["f"](x).tolist() == expected


@pytest.mark.parametrize("run", LIBRARIES)
@pytest.mark.parametrize("axis", [0, 1])
def test_recurrences_are_computed_in_order(run: Callable[..., Any], axis: int) -> None:
    """y = b₀, a₀ y₀ + b₁, …: no product of coefficients overflows that the values do not have."""
    steps = np.array([[1.5, 2.0], [1e200, 1e200], [np.inf, 0.0]])
    terms = np.array([[100.0, 0.0, 50.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    wanted = np.array([[100.0, 150.0, 350.0], [0.0, 0.0, 1.0], [1.0, np.inf, np.nan]])
    if axis == 0:
        steps, terms, wanted = steps.T, terms.T, wanted.T
    function = dl.trace(lambda a, b: linear_recurrence(a, b, axis=axis), steps, terms)
    with np.errstate(all="ignore"):
        found = run(function, [steps, terms])
    np.testing.assert_array_equal(found, wanted.ravel())


def test_the_loop_of_a_recurrence_is_differentiated_by_pytorch() -> None:
    torch = pytest.importorskip("torch")
    names: dict[str, Any] = {}
    exec(torch_code(dl.gradient(dl.trace(lambda x: np.sum(np.cumprod(x)), np.ones(3)))), names)
    x = torch.tensor([2.0, 3.0, 5.0], dtype=torch.float64, requires_grad=True)
    names["f"](x).sum().backward()
    # The sum of d/dx, d/dy and d/dz of x + xy + xyz is 1 + y + yz + x + xz + xy.
    assert x.grad.tolist() == [1.0 + 5.0 + 3.0, 1.0 + 5.0 + 2.0, 3.0 + 2.0]


@pytest.mark.parametrize("run", LIBRARIES)
def test_the_order_of_equal_elements_is_theirs(run: Callable[..., Any]) -> None:
    x = np.tile([2.0, 1.0], 20)
    found = run(dl.trace(lambda x: argsort(x) + 0.1, x), [x])
    places = [*range(1, 40, 2), *range(0, 40, 2)]
    np.testing.assert_array_equal(found, np.array(places) + 0.1)  # in float64


@pytest.mark.parametrize("code", [numpy_code, jax_code], ids=["numpy", "jax"])
def test_a_number_of_python_can_be_an_element(code: Callable[..., str]) -> None:
    """A Python float, which a call may pass, has no method ``reshape``."""
    if code is jax_code:
        pytest.importorskip("jax")
    f = dl.trace(lambda x, y: np.concatenate([np.reshape(y, (1,)), x]) * 2, np.ones(2), 1.0)
    names: dict[str, Any] = {}
    exec(code(f), names)
    assert np.asarray(names["f"](np.array([1.0, 3.0]), 2.5)).tolist() == [5.0, 2.0, 6.0]


def test_bessel_functions_are_those_of_the_library() -> None:
    # J0, J1 and I1 at 1.5, from mpmath.
    values = {
        "besselj(0, x)": 0.511827671735918128749,
        "besselj(1, x)": 0.557936507910099641990,
        "besseli(1, x)": 0.981666428577907534958,
    }
    for text, value in values.items():
        for library in (in_jax, in_torch) if "besseli" in text else (in_jax,):
            found = library(dl.parse(text), [1.5])
            np.testing.assert_allclose(found, [value], 1e-13, err_msg=text)
            if "besseli" in text:  # the libraries' own are nan there
                assert np.isinf(library(dl.parse(text), [np.inf])).all()
    torch = pytest.importorskip("torch")
    # J0(5.01) has 6 digits in PyTorch.
    found = float(torch.special.bessel_j0(torch.tensor(5.01, dtype=torch.float64)))
    assert abs(found - -0.174315432056749) > 1e-8
    with pytest.raises(UnsupportedError, match="J and Y have 6 digits near 5"):
        torch_code(dl.parse("besselj(0, x)"))
    code = torch_code(dl.parse("besselk(1, x)")).splitlines()[-1]
    assert code == "    return torch.special.modified_bessel_k1(x)"
    with pytest.raises(UnsupportedError, match="orders 0, 1 only, not of an input"):
        torch_code(dl.parse("besseli(n, x)"))
