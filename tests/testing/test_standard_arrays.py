"""Arrays of other libraries: the array API standard by its strict implementation, and CuPy.

Expected gradients are known from algebra. Where CuPy is not installed its part is run on
`tests/support/standin.py`, a strict substitute.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from difflab.errors import InputError
from difflab.testing import GradientMismatch, check_gradient, check_hessian, check_jacobian
from tests.support import standin

NUMBERS = np.array([[0.5, -1.5, 2.0], [0.25, 1.0, -0.75]])


@pytest.fixture(params=["CPU_DEVICE", "device1"])
def strict(request: pytest.FixtureRequest) -> Any:
    """The strict namespace, and its arrays on the host's and on another device."""
    xp = pytest.importorskip("array_api_strict")
    device = xp.Device(request.param)

    def array(values: Any, dtype: str = "float64") -> Any:
        return xp.asarray(np.asarray(values), dtype=getattr(xp, dtype), device=device)

    return xp, array


def loss(params: Any) -> Any:
    w = params["w"]
    return w.__array_namespace__().sum(w**3) * params["scale"]


def loss_gradient(params: Any) -> Any:
    w = params["w"]
    total = w.__array_namespace__().sum(w**3)
    return {"w": 3 * w**2 * params["scale"], "scale": float(total)}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_tree_of_standard_arrays_is_judged(strict: Any, dtype: str) -> None:
    _, array = strict
    params = {"w": array(NUMBERS, dtype), "scale": 2.0}
    check_gradient(loss, loss_gradient, params)

    def wrong(params: Any) -> Any:
        found = loss_gradient(params)
        found["w"][1, 2] *= 1.01
        return found

    with pytest.raises(GradientMismatch) as caught:
        check_gradient(loss, wrong, params)
    assert [each.name for each in caught.value.components] == ['params["w"][1, 2]']


def test_values_stay_on_their_device_and_in_their_dtype(strict: Any) -> None:
    xp, array = strict
    x = array(NUMBERS, "float32")
    seen = set()

    def f(x: Any) -> Any:
        seen.add((type(x), x.dtype, x.device, x.shape))
        return xp.sum(x * x)

    check_gradient(f, lambda x: 2 * x, x)
    assert seen == {(type(x), xp.float32, x.device, (2, 3))}
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), NUMBERS.astype(np.float32))


def test_complex_standard_arrays_follow_wirtinger(strict: Any) -> None:
    xp, array = strict
    z = array([1.0 + 2.0j, -0.5 + 0.25j], "complex128")

    def f(z: Any) -> Any:
        return xp.sum(xp.abs(z) ** 2)

    check_gradient(f, lambda z: 2 * z, z)
    with pytest.raises(GradientMismatch):
        check_gradient(f, lambda z: 2 * xp.conj(z), z)


def test_large_standard_arrays_are_searched_for_the_wrong_component(strict: Any) -> None:
    xp, array = strict
    x = array(np.linspace(-1.0, 1.0, 2000))
    check_gradient(lambda x: xp.sum(xp.sin(x)), xp.cos, x)
    wrong = xp.cos(x)
    wrong[1234] *= 1.1
    with pytest.raises(GradientMismatch, match=r"x\[1234\]"):
        check_gradient(lambda x: xp.sum(xp.sin(x)), wrong, x)


def test_the_siblings_take_standard_arrays(strict: Any) -> None:
    xp, array = strict
    x = array([0.5, 2.0])
    check_jacobian(xp.sin, lambda x: xp.eye(2, device=x.device) * xp.cos(x), x)
    check_hessian(lambda x: xp.sum(x**3), lambda x: xp.eye(2, device=x.device) * 6 * x, x)
    with pytest.raises(GradientMismatch):
        check_jacobian(xp.sin, lambda x: xp.eye(2, device=x.device) * xp.sin(x), x)
    with pytest.raises(GradientMismatch):
        check_hessian(lambda x: xp.sum(x**3), lambda x: xp.eye(2, device=x.device) * 3 * x, x)


def test_a_library_without_derivatives_is_refused(strict: Any) -> None:
    xp, array = strict
    with pytest.raises(InputError, match="array_api_strict has no derivatives"):
        check_gradient(lambda x: xp.sum(x * x), None, array([1.0, 2.0]))


# --- CuPy --------------------------------------------------------------------------------------


@pytest.fixture
def standin_cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stand-in, known as CuPy."""
    monkeypatch.setattr(standin.ndarray, "__module__", "cupy._core.core")
    monkeypatch.delattr(standin.ndarray, "__array_namespace__")
    monkeypatch.setitem(sys.modules, "cupy", standin)
    return standin


@pytest.fixture
def real_cupy() -> Any:
    """CuPy with a GPU."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    try:
        cupy.zeros(1)
    except Exception as error:
        pytest.skip(f"no GPU that CuPy can use: {error}")
    return cupy


def check_cupy(cupy: Any) -> None:
    """Check a right gradient, difflab's own, and a wrong one, which is found."""
    x = cupy.asarray(NUMBERS)

    def f(x: Any) -> Any:
        return (x * x * x).sum()

    check_gradient(f, lambda x: 3 * x * x, x)
    check_gradient(f, None, x)
    assert type(x) is cupy.ndarray
    np.testing.assert_array_equal(x.get(), NUMBERS)
    with pytest.raises(GradientMismatch, match="sign error"):
        check_gradient(f, lambda x: -3 * x * x, x)


def test_arrays_of_the_stand_in_for_cupy(standin_cupy: Any) -> None:
    check_cupy(standin_cupy)


@pytest.mark.gpu
def test_arrays_of_cupy(real_cupy: Any) -> None:
    check_cupy(real_cupy)
