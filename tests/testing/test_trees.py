"""Trees, frameworks, dtypes: right gradients pass, a wrong component is named by its path."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import PointError
from difflab.testing import (
    GradientMismatch,
    GradientUnjudged,
    ImpureFunction,
    check_gradient,
    numeric_derivative,
)
from difflab.testing.gradient import judged_gradient

RANDOM = np.random.default_rng(0)
PARAMS = {
    "dense1": {"w": RANDOM.normal(size=(4, 8)), "b": RANDOM.normal(size=4)},
    "scale": 2.0,
    "steps": 3,
}


def loss(params: Any) -> Any:
    h = np.tanh(params["dense1"]["w"] @ np.ones(8) + params["dense1"]["b"])
    return params["scale"] * np.sum(h**2)


def loss_gradient(params: Any) -> Any:
    h = np.tanh(params["dense1"]["w"] @ np.ones(8) + params["dense1"]["b"])
    b_bar = params["scale"] * 2 * h * (1 - h**2)
    dense = {"w": np.outer(b_bar, np.ones(8)), "b": b_bar}
    return {"dense1": dense, "scale": np.sum(h**2), "steps": None}


def test_a_right_gradient_of_a_tree_passes() -> None:
    check_gradient(loss, loss_gradient, PARAMS)
    check_gradient(loss, loss_gradient(PARAMS), PARAMS)


def test_a_wrong_component_is_named_by_its_path() -> None:
    wrong = loss_gradient(PARAMS)
    wrong["dense1"]["w"][3, 7] *= 1.001
    with pytest.raises(GradientMismatch) as caught:
        check_gradient(loss, wrong, PARAMS)
    assert [each.name for each in caught.value.components] == ['params["dense1"]["w"][3, 7]']


def test_the_own_gradient_of_numpy_code_is_difflabs() -> None:
    check_gradient(loss, None, PARAMS)
    check_gradient(lambda x: np.sum(np.sin(x)), x=[1.0, 2.0])
    found = judged_gradient(lambda x: x[0] ** 2 + dl.stop_gradient(x[1] ** 2), x=[1.0, 2.0])
    assert found is not None
    assert (found.component, found.yours, found.derivative) == ("x[1]", 0.0, 4.0)


@dataclass
class Layer:
    w: Any
    name: str


Pair = namedtuple("Pair", ["a", "b"])


def test_containers_of_every_kind_are_trees() -> None:
    a, b = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    check_gradient(lambda x: np.sum(x[0] * x[1]), lambda x: [x[1], x[0]], [a, b])
    check_gradient(lambda x: np.sum(x[0] * x[1]), lambda x: (x[1], x[0]), (a, b))
    check_gradient(lambda x: np.sum(x.a * x.b), lambda x: Pair(x.b, x.a), Pair(a, b))
    with pytest.raises(GradientMismatch, match=r"layer\.w\[1\]"):
        check_gradient(
            lambda layer: np.sum(layer.w**2),
            lambda layer: Layer(layer.w * np.array([2.0, 3.0]), "g"),
            Layer(a, "first"),
        )


def test_another_structure_or_shape_is_refused() -> None:
    with pytest.raises(GradientMismatch, match="has the structure"):
        check_gradient(loss, lambda params: params["dense1"], PARAMS)
    wrong = loss_gradient(PARAMS)
    wrong["dense1"]["w"] = wrong["dense1"]["w"].T
    with pytest.raises(GradientMismatch, match=r'\["w"\] has the shape \(8, 4\); it must be \(4, '):
        check_gradient(loss, wrong, PARAMS)
    with pytest.raises(PointError, match="no array or number"):
        check_gradient(lambda x: 1.0, None, {"n": 3})


# --- dtypes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_values_are_computed_in_the_dtype(dtype: Any) -> None:
    seen = set()

    def f(x: Any) -> Any:
        seen.add(x.dtype.name)
        return np.sum(x**2)

    x = np.array([0.5, -1.5, 2.0], dtype=dtype)
    check_gradient(f, lambda x: 2 * x, x)
    assert seen == {np.dtype(dtype).name}
    for factor in ([1, 1, -1], [1, 1.5, 1], [1, 0, 1]):
        with pytest.raises(GradientMismatch):
            check_gradient(f, 2 * x * np.array(factor, dtype=dtype), x)


def test_small_errors_are_found_in_single_precision(rng: np.random.Generator) -> None:
    x = rng.normal(size=20).astype(np.float32)
    wrong = np.cos(x)
    wrong[7] *= np.float32(1.01)
    with pytest.raises(GradientMismatch, match=r"x\[7\]"):
        check_gradient(lambda x: np.sum(np.sin(x)), wrong, x)


def test_complex_gradients_follow_wirtinger(rng: np.random.Generator) -> None:
    z = rng.normal(size=3) + 1j * rng.normal(size=3)

    def f(z: Any) -> Any:
        return np.sum(np.abs(z) ** 4)

    # |z|^4 = (x² + y²)²: the derivatives by x and y are 4 |z|² x and 4 |z|² y.
    check_gradient(f, lambda z: 4 * np.abs(z) ** 2 * z, z)
    with pytest.raises(GradientMismatch, match=r"z\[0\]\.imag"):
        check_gradient(f, lambda z: 4 * np.abs(z) ** 2 * z.conj(), z)


def test_a_holomorphic_function_has_a_complex_derivative() -> None:
    z = np.array([1.0 + 2.0j, 0.5 - 1.0j])
    check_gradient(lambda z: z[0] ** 2 * z[1], lambda z: np.array([2 * z[0] * z[1], z[0] ** 2]), z)
    with pytest.raises(GradientMismatch):
        check_gradient(
            lambda z: z[0] ** 2 * z[1], lambda z: np.array([2 * z[0] * z[1], -(z[0] ** 2)]), z
        )


# --- frameworks --------------------------------------------------------------------------------


def test_jax_arrays_and_custom_vjp() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def make(factor: float) -> Any:
        @jax.custom_vjp
        def cube(x: Any) -> Any:
            return x**3

        cube.defvjp(lambda x: (x**3, x), lambda x, y_bar: (factor * x**2 * y_bar,))
        return cube

    x = {"a": jnp.array([0.5, -1.5, 2.0], dtype=jnp.float32)}
    check_gradient(lambda p: jnp.sum(make(3.0)(p["a"])), x=x)
    with pytest.raises(GradientMismatch, match=r"0.66666\d times"):
        check_gradient(lambda p: jnp.sum(make(2.0)(p["a"])), x=x)
    for dtype in (jnp.float16, jnp.bfloat16):
        x = {"a": jnp.array([0.5, -1.5, 2.0], dtype=dtype)}
        check_gradient(lambda p: jnp.sum(p["a"] ** 2), x=x)
        with pytest.raises(GradientMismatch):
            check_gradient(lambda p: jnp.sum(p["a"] ** 2), lambda p: {"a": -2 * p["a"]}, x)


def test_torch_tensors_functions_and_modules() -> None:
    torch = pytest.importorskip("torch")

    class Cube(torch.autograd.Function):
        factor = 3.0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, y_bar: Any) -> Any:
            (x,) = ctx.saved_tensors
            return Cube.factor * x**2 * y_bar

    for dtype in (torch.float64, torch.float32):
        x = torch.tensor([0.5, -1.5, 2.0], dtype=dtype)
        Cube.factor = 3.0
        check_gradient(lambda x: Cube.apply(x).sum(), x=x)
        Cube.factor = -3.0
        with pytest.raises(GradientMismatch, match="sign error"):
            check_gradient(lambda x: Cube.apply(x).sum(), x=x)


def test_a_module_is_checked_with_its_parameters() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)

    class Leaky(torch.nn.Module):
        def __init__(self, detach: bool) -> None:
            super().__init__()
            self.first = torch.nn.Linear(4, 5)
            self.detach = detach

        def forward(self, x: Any) -> Any:
            h = torch.tanh(self.first(x))
            return (h.detach() * h if self.detach else h * h).sum(1)

    x = torch.randn(3, 4)
    check_gradient(Leaky(False), x=x)
    with pytest.raises(GradientMismatch, match=r'parameters\["first.weight"\]\[\d, \d\]'):
        check_gradient(Leaky(True), x=x)


def test_complex_gradients_of_frameworks_are_in_their_convention() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    z = np.array([1.0 + 2.0j, 0.5 - 1.0j])
    check_gradient(lambda z: (z.abs() ** 4).sum(), x=torch.tensor(z))
    check_gradient(lambda z: jax.numpy.sum(jax.numpy.abs(z) ** 4), x=jax.numpy.asarray(z))


def test_a_tree_of_numpy_arrays_loads_no_framework() -> None:
    import subprocess
    import sys

    code = (
        "import sys, numpy as np; from difflab.testing import check_gradient;"
        "check_gradient(lambda p: np.sum(p['w'] ** 2), lambda p: {'w': 2 * p['w']},"
        " {'w': np.ones(3, dtype=np.float32)});"
        "heavy = {'torch', 'jax', 'cupy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- impurity ----------------------------------------------------------------------------------


def test_impurity_is_found_and_named() -> None:
    import time

    x = {"a": np.array([1.0, 2.0])}
    calls: list[int] = []
    draw = np.random.default_rng(1)

    def changing(p: Any) -> Any:
        p["a"] *= 2.0
        return np.sum(p["a"])

    def counting(p: Any) -> Any:
        calls.append(1)
        return np.sum(p["a"]) * len(calls)

    cases = {
        r'changes its argument: after the call, p\["a"\]': changing,
        "it keeps state: the call changed calls": counting,
        "it keeps state: the call changed draw": lambda p: np.sum(p["a"]) + draw.normal(),
        "reads a clock: time.perf_counter": lambda p: np.sum(p["a"]) * time.perf_counter(),
        "random numbers from np.random": lambda p: np.sum(p["a"]) * np.random.rand(),  # noqa: NPY002
    }
    for message, f in cases.items():
        with pytest.raises(ImpureFunction, match=message):
            check_gradient(f, lambda p: {"a": np.ones(2)}, x)
    with pytest.raises(ImpureFunction, match=r'line \d+: p\["a"\] \*= 2.0'):
        check_gradient(changing, lambda p: {"a": np.ones(2)}, x)
    with pytest.raises(ImpureFunction, match="reads a clock"):
        check_gradient(lambda x: x @ x * time.perf_counter(), lambda x: 2 * x, [1.0, 2.0])


def test_dropout_is_named() -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5))
    with pytest.raises(ImpureFunction, match="random numbers from torch"):
        check_gradient(net, x=torch.ones(2, 3))
    check_gradient(net.eval(), x=torch.ones(2, 3))


def test_what_the_dtype_hides_is_said(rng: np.random.Generator) -> None:
    x = rng.normal(size=2000).astype(np.float32)

    def f(x: Any) -> Any:
        return np.float32(1e12) + np.sum(np.sin(x))

    with pytest.raises(GradientUnjudged, match="could not judge the gradient"):
        check_gradient(f, np.cos, x)


def test_the_line_that_repeats_an_error() -> None:
    found = numeric_derivative(loss, PARAMS, 35)
    assert found.name == 'params["dense1"]["w"][3, 7]'
    right = loss_gradient(PARAMS)["dense1"]["w"][3, 7]
    assert abs(found.value - right) <= found.bar < 1e-6
