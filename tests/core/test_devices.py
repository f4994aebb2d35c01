"""Arrays stay on their device: the whole table, derivatives and tapes on a strict stand-in."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.autodiff import jvp, vjp
from difflab.core.apply import module_of
from difflab.core.primitive import ByArgument, Primitive
from difflab.errors import DeviceError, InputError, ShapeError, TapeError
from difflab.primitives import TABLE
from tests.primitives.test_arrays import CASES, applied, indices_of
from tests.support import standin
from tests.support.orders import orders
from tests.support.rows import for_each
from tests.support.special_rows import NOT_IN_CUPY


def _cupy() -> Any:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    try:
        cupy.zeros(1)
    except Exception as error:
        pytest.skip(f"no GPU that CuPy can use: {error}")
    return cupy


@pytest.fixture(params=["standin", pytest.param("cupy", marks=pytest.mark.gpu)])
def xp(request: pytest.FixtureRequest) -> Any:
    return standin if request.param == "standin" else _cupy()


def same(found: Any, expected: Any, xp: Any) -> None:
    """Hold what is on the device to what the host computes."""
    if isinstance(found, tuple):
        for part, wanted in zip(found, expected, strict=True):
            same(part, wanted, xp)
        return
    assert isinstance(found, xp.ndarray)
    close = 1e-15 if xp is standin else 1e-11
    assert np.allclose(found.get(), expected, rtol=close, atol=close, equal_nan=True)


def points(row: Primitive) -> list[Any]:
    rng = np.random.default_rng(6)
    return [rng.uniform(low, high, 5) for low, high in row.samples]


ROWS = [
    row
    for row in TABLE.values()
    if row.samples and row.arity == len(row.samples) and row.name not in NOT_IN_CUPY
]
DIFFERENTIABLE = [
    row for row in ROWS if not row.boolean and row.name != "as_number" and not orders(row)
]
PLACES = [(name, place) for name, cases in CASES.items() for place in range(len(cases))]


def test_the_standin_refuses_what_cupy_refuses() -> None:
    there = standin.asarray(np.ones(3))
    for implicit in (
        lambda: np.asarray(there),
        lambda: np.sin(there),
        lambda: np.ones(3) + there,
        lambda: there * np.ones(3),
        lambda: np.sum(there),
        lambda: standin.add(there, np.ones(3)),
        lambda: standin.where(there > 0, np.ones(3), 0.0),
    ):
        with pytest.raises(TypeError):
            implicit()
    assert (2.0 * there + np.float64(1)).get().tolist() == [3.0, 3.0, 3.0]


@for_each("row", ROWS, ids=lambda row: row.name)
def test_every_elementwise_kernel_runs_there(row: Primitive, xp: Any) -> None:
    values = points(row)
    same(row(*map(xp.asarray, values)), row(*values), xp)


def unsigned(name: str, result: Any) -> Any:
    """Return what does not depend on the signs of vectors, which each library chooses."""
    return result**4 if name in ("eigh", "svd") else result


@for_each(("name", "place"), PLACES)
def test_every_kernel_of_arrays_runs_there(name: str, place: int, xp: Any) -> None:
    values, params = CASES[name][place]
    operands = [*values, *indices_of(name, place)]
    found = applied(name, list(map(xp.asarray, operands)), params)
    same(unsigned(name, found), unsigned(name, applied(name, operands, params)), xp)


MOVED: dict[str, Callable[[Any], Any]] = {
    "rearranged": lambda x: x.T.reshape(-1)[1:5:2] * x[0, 0] + x.sum(axis=0)[::-1][:2],
    "joined": lambda x: dl.arrays.concatenate([x, x[:1]], axis=0) * dl.arrays.stack([x[0]] * 3),
    "taken": lambda x: dl.arrays.take(x, [2, 0, 2], axis=1) * dl.arrays.diag(x[1]).sum(),
    "summed": lambda x: np.cumsum(x, axis=1) + x.mean() + np.argmax(x, axis=0),
    "padded": lambda x: dl.arrays.pad(x, 1) * 2.0 + np.trace(x[:, :2]) + np.diagonal(x @ x.T)[0],
    "constant": lambda x: x * np.array([1.0, 2.0, 3.0]) + np.eye(2, 3),
}
"""Compositions that use the rows which only move data."""
MATRIX = np.array([[0.3, 1.2, -0.5], [2.0, 0.7, 1.1]])


@for_each("name", MOVED)
def test_functions_and_their_derivatives_run_there(name: str, xp: Any) -> None:
    recorded = dl.trace(MOVED[name], MATRIX)
    there = xp.asarray(MATRIX)
    for function in (
        recorded,
        dl.jacobian(recorded, mode="forward"),
        dl.jacobian(recorded, mode="reverse"),
    ):
        same(function(there), function(MATRIX), xp)
    batch = np.stack([MATRIX, 2 * MATRIX])
    same(recorded(xp.asarray(batch)), recorded(batch), xp)


@for_each("row", DIFFERENTIABLE, ids=lambda row: row.name)
def test_derivatives_of_every_row_run_there(row: Primitive, xp: Any) -> None:
    values = points(row)
    there = [xp.asarray(value) for value in values]
    function = dl.trace(lambda *args: row(*args) * 1.5, *[value[0] for value in values])
    for derived in (dl.gradient(function, mode="forward"), dl.gradient(function)):
        same(derived(*there), derived(*values), xp)
    if xp is standin or row.arity == 1:
        second = dl.hessian(function)
        same(second(*there), second(*values), xp)
    for derived, more in ((jvp(function), values), (vjp(function), values[:1])):
        same(derived(*there, *map(xp.asarray, more)), derived(*values, *more), xp)


def gradients(function: Callable[..., Any], values: list[Any], again: bool = False) -> list[Any]:
    """Return the gradients of the sum of a result; `again`, of the norm of those."""
    leaves = [dl.tensor(value, requires_grad=True) for value in values]
    np.sum(function(*leaves) * 1.25).backward(create_graph=again)
    if again:
        first = [leaf.grad for leaf in leaves]
        for leaf in leaves:
            leaf.zero_grad()
        total = sum(np.sum(grad * grad) for grad in first)
        if total.requires_grad:
            total.backward()
    return [None if leaf.grad is None else leaf.grad.detach().array() for leaf in leaves]


@pytest.mark.parametrize("again", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)
def test_tapes_run_there(row: Primitive, again: bool, xp: Any) -> None:
    values = points(row)
    there = [xp.asarray(value) for value in values]
    for _ in range(3):  # swept, recorded, replayed
        found = gradients(row, there, again)
        for bar, expected in zip(found, gradients(row, values, again), strict=True):
            assert (bar is None) == (expected is None)
            if bar is not None:
                same(bar, expected, xp)


@for_each(("name", "place"), PLACES)
def test_tapes_of_arrays_run_there(name: str, place: int, xp: Any) -> None:
    values, params = CASES[name][place]
    assert isinstance(TABLE[name].rule, ByArgument)
    there = [xp.asarray(value) for value in values]

    def function(*args: Any) -> Any:
        kind = xp.asarray if isinstance(args[0].detach().array(), xp.ndarray) else np.asarray
        return unsigned(name, applied(name, [*args, *map(kind, indices_of(name, place))], params))

    for bar, expected in zip(
        gradients(function, there), gradients(function, list(values)), strict=True
    ):
        same(bar, expected, xp)


@for_each("name", [name for name in MOVED if name != "constant"])
def test_tapes_of_moved_data_run_there(name: str, xp: Any) -> None:
    (found,) = gradients(MOVED[name], [xp.asarray(MATRIX)])
    same(found, gradients(MOVED[name], [MATRIX])[0], xp)


def test_a_network_trains_there(xp: Any) -> None:
    rng = np.random.default_rng(2)
    data = [rng.normal(size=shape) for shape in ((5, 4), (5, 1), (4, 8), (8,), (8, 1), (1,))]

    def trained(put: Callable[[Any], Any]) -> list[Any]:
        X, Y, *weights = map(put, copy.deepcopy(data))
        params = [dl.tensor(value, requires_grad=True) for value in weights]
        for _ in range(5):
            W, b, V, c = params
            loss = np.mean((np.maximum(dl.tensor(X) @ W + b, 0) @ V + c - Y) ** 2)
            loss.backward()
            with dl.no_grad():
                for param in params:
                    param -= 0.1 * param.grad
                    param.zero_grad()
        return [param.detach().array() for param in params]

    for found, expected in zip(trained(xp.asarray), trained(np.asarray), strict=True):
        same(found, expected, xp)


def test_changes_in_place_stay_there(xp: Any) -> None:
    x = dl.tensor(xp.asarray(np.array([1.0, 2.0])), requires_grad=True)
    y = x * 1.0
    y[0] = 7.0
    y *= 3.0
    np.sum(y).backward()
    same(x.grad.array(), [0.0, 3.0], xp)
    z = np.sum(np.sin(x))
    with dl.no_grad():
        x += 1.0
    x.zero_grad()
    np.sum(x * x * z).backward()  # the sine keeps the values that it was computed from
    expected = 2 * np.array([2.0, 3.0]) * np.sin([1.0, 2.0]).sum() + 13 * np.cos([1.0, 2.0])
    assert np.allclose(x.grad.array().get(), expected, rtol=1e-14)
    assert "7" not in repr(x)
    assert repr(x.detach()) == "tensor([2., 3.])"


def test_arrays_of_two_places_are_named(xp: Any) -> None:
    here, there = np.ones(3), xp.asarray(np.ones(3))
    f = dl.parse("x: [3]; y: [3]; sum(x * y)")
    with pytest.raises(DeviceError, match=r"x is on the host \(numpy\), y is on"):
        f(here, there)
    leaf, other = (dl.tensor(value, requires_grad=True) for value in (here, there))
    for mixed in (
        lambda: leaf * other,
        lambda: other + here,
        lambda: leaf - there,
        lambda: np.where(other > 0, leaf, 0.0),
        lambda: np.sum(leaf) * other,
        lambda: TABLE["add"](here, there),
    ):
        with pytest.raises(DeviceError, match=r"(?s)takes arrays of one device.*asarray"):
            mixed()
    with pytest.raises(DeviceError, match=r"multiply.*argument 1 is on the host"):
        leaf * other
    with pytest.raises(DeviceError, match="gradient"):
        other.backward(here)


def test_numbers_are_welcome_everywhere(xp: Any) -> None:
    there = dl.tensor(xp.asarray(np.array([1.0, 2.0])), requires_grad=True)
    np.sum(2 * there + np.float64(3) * there + np.array(4.0) * there + dl.tensor(5.0)).backward()
    same(there.grad.array(), [9.0, 9.0], xp)


@pytest.mark.parametrize("dtype", [np.int32, np.bool_])
def test_integers_there_are_float64(dtype: Any, xp: Any) -> None:
    x = np.array([1, 0, 1], dtype=dtype)
    for function in (recorded := dl.parse("x: [3]; sum(sin(x))/3"), dl.gradient(recorded)):
        same(function(xp.asarray(x)), function(x), xp)


def test_nothing_comes_to_the_host_by_itself(xp: Any) -> None:
    tensor = dl.tensor(xp.asarray(np.ones(2)))
    with pytest.raises(DeviceError, match="array"):
        tensor.numpy()
    with pytest.raises(DeviceError, match="get"):
        np.asarray(tensor)
    with pytest.raises(TapeError, match="detach"):
        dl.tensor(xp.asarray(np.ones(2)), requires_grad=True).array()
    assert np.sum(tensor).item() == 2.0
    with pytest.raises(ShapeError):
        tensor + xp.asarray(np.ones(3))


def test_the_module_is_read_off_the_value() -> None:
    assert module_of(standin.asarray([1.0])) is standin
    assert module_of(np.float32(1)) is module_of([1.0]) is np


FORMS: dict[str, Callable[[Any], Any]] = {
    "custom": lambda x: np.sum(Squared.apply(x) * np.sin(x)),
    "custom of two": lambda x: np.sum(Multiples.apply(x)[0]),
    "custom under a mask": lambda x: np.sum(np.where(x > 0, Squared.apply(np.sqrt(x)), 0.0)),
    "checkpoint": lambda x: np.sum(dl.checkpoint(lambda a: np.sin(a) * a, x)),
    "chain": lambda x: np.sum(dl.checkpoint_chain(lambda k, s: np.sin(s) * 1.5, x, 7, 2)),
    "segments": lambda x: np.sum(dl.checkpoint_chain(lambda k, s: np.sin(s) * 1.5, x, 7, "sqrt")),
}


class Squared(dl.CustomFunction):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, y_bar: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2.0 * x * y_bar


class Multiples(dl.CustomFunction):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2.0, x * 3.0

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        return 2.0 * a + 3.0 * b


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_custom_functions_and_checkpoints_stay_there(name: str, again: bool, xp: Any) -> None:
    values = np.array([0.5, 1.5, -0.3])

    def gradient(on: Any) -> Any:
        x = dl.tensor(on, requires_grad=True)
        FORMS[name](x).backward(create_graph=again)
        if again and name != "custom of two":  # whose gradient is constant
            slope, x.grad = x.grad, None
            np.sum(slope * slope).backward()
        return x.grad.detach().array()

    same(gradient(xp.asarray(values)), gradient(values), xp)
    with dl.detect_anomaly():
        x = dl.tensor(xp.asarray(values), requires_grad=True)
        if name != "custom under a mask":
            FORMS[name](x).backward()
            assert module_of(x.grad.array()) is xp


def _number(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def _vector(x: Any) -> Any:
    return np.exp(x) * x[0]


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: dl.grad(_number)(x),
    "value_and_grad": lambda x: dl.value_and_grad(_number)(x),
    "jacfwd": lambda x: dl.jacfwd(_vector)(x),
    "jacrev": lambda x: dl.jacrev(_vector)(x),
    "hessian": lambda x: dl.hessian(_number)(x),
    "jvp": lambda x: dl.jvp(_vector, (x,), (x,)),
    "hvp": lambda x: dl.hvp(_number, (x,), (x,)),
    "vjp": lambda x: dl.vjp(_vector, x)[1](x),
    "linearize": lambda x: dl.linearize(_vector, x)[1](x),
    "vmap": lambda x: dl.vmap(lambda part: np.sin(part) * part)(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_callables_stay_there(name: str, xp: Any) -> None:
    values = np.array([0.5, 1.5, -0.3])
    same(TRANSFORMS[name](xp.asarray(values)), TRANSFORMS[name](values), xp)


def test_transforms_close_over_arrays_of_one_place(xp: Any) -> None:
    values = np.array([0.5, 1.5, -0.3])
    there = xp.asarray(values)
    same(dl.grad(lambda x: np.sum(x * there))(there), values, xp)
    with pytest.raises(DeviceError, match="a derivative takes arrays of one device"):
        dl.grad(lambda x: np.sum(x * values))(there)
    with pytest.raises(InputError, match="no derivative by integers"):
        dl.grad(np.sum)(xp.asarray(np.array([1, 2])))


# --- between devices --------------------------------------------------------------------------


def test_a_tensor_sent_to_a_device_gives_its_derivative_back(xp: Any) -> None:
    start = np.array([0.5, -1.0, 2.0])

    def loss(x: Any, there: Any, back: Any) -> Any:
        y = np.sin(x) * x
        z = np.tanh(there(y) * 2.0) + there(x)[::-1]
        return np.sum(back(np.where(z > 0, z * z, z)) * x)

    here = dl.tensor(start, requires_grad=True)
    loss(here, lambda t: t, lambda t: t).backward()
    for _ in range(3):  # a tape of two devices is never replayed
        x = dl.tensor(start, requires_grad=True)
        loss(x, lambda t: t.to(xp), lambda t: t.to("cpu")).backward()
        assert isinstance(x.grad.numpy(), np.ndarray)
        np.testing.assert_allclose(x.grad.numpy(), here.grad.numpy(), rtol=1e-14)
    on_device = dl.tensor(start, requires_grad=True)
    value = np.sum(on_device.to(xp) ** 3)
    assert isinstance(value.detach().array(), xp.ndarray)
    value.backward()
    np.testing.assert_allclose(on_device.grad.numpy(), 3 * start**2, rtol=1e-14)


def test_second_derivatives_go_between_devices(xp: Any) -> None:
    x = dl.tensor([0.5, -1.0], requires_grad=True)
    np.sum(np.exp(x.to(xp)).to("cpu") * x).backward(create_graph=True)
    first, x.grad = x.grad, None
    np.sum(first).backward()
    values = np.array([0.5, -1.0])
    np.testing.assert_allclose(x.grad.numpy(), np.exp(values) * (2 + values), rtol=1e-14)


def test_devices_are_named(xp: Any) -> None:
    x = dl.tensor([1.0], requires_grad=True)
    assert x.to("cpu") is x is x.to(np)
    assert x.to(xp).to(xp).grad_fn is not None
    for wrong in ("gpu:9", 3, None, object()):
        with pytest.raises(InputError, match="a device is 'cpu', 'cuda' or an array module"):
            x.to(wrong)


def test_a_module_on_a_device_computes_there(xp: Any) -> None:
    model = dl.nn.Sequential(dl.nn.Linear(3, 4), dl.nn.Tanh(), dl.nn.Linear(4, 2))
    x = np.ones((5, 3))
    expected = model(x).detach().numpy()
    state = model.state_dict()
    assert model.to("cpu") is model.to(xp)
    found = model(xp.asarray(x))
    np.sum(found * found).backward()
    same(found.detach().array(), expected, xp)
    assert isinstance(next(model.parameters()).grad.array(), xp.ndarray)
    for name, value in model.state_dict().items():
        assert np.array_equal(value, state[name])


def test_a_loop_over_an_array_there_may_begin_with_a_number(xp: Any) -> None:
    """The first state is a number of the host, the others are on the device."""
    x = np.array([0.5, 1.5, 2.0])
    last, states = dl.scan(lambda c, a: (c * a + 1.0, c), 1.0, xp.asarray(x))
    same(last, 7.5, xp)
    same(states, [1.0, 1.5, 3.25], xp)


def test_a_function_with_constants_is_a_layer_there(xp: Any) -> None:
    f = dl.trace(lambda x: np.sum(np.tanh(x) * np.array([1.0, -2.0, 3.0])), np.ones(3))
    leaf = dl.tensor(xp.asarray(np.array([0.5, 1.0, -0.3])), requires_grad=True)
    f(leaf).backward()
    slope = 1.0 - np.tanh([0.5, 1.0, -0.3]) ** 2
    same(leaf.grad.array(), slope * [1.0, -2.0, 3.0], xp)
