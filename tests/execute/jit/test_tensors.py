"""Tensors, modules and other libraries' arrays that a jitted function reads, changed in place."""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import nn, optim

X = np.linspace(-1, 1, 6).reshape(3, 2)


class Affine(nn.Module):
    """A module of the user's, with a number, a part and a list of its own."""

    def __init__(self) -> None:
        self.part = nn.Linear(2, 2)
        self.bias = nn.Parameter(np.ones(2))
        self.register_buffer("shift", np.zeros(2))
        self.factors = [1.0]
        self.settings = {"power": 1}

    def forward(self, x: Any) -> Any:
        for factor in self.factors:
            x = self.part(x) * factor + self.bias + self.shift
        return x ** self.settings["power"]


def networks() -> list[nn.Module]:
    nn.manual_seed(0)
    return [
        nn.Linear(2, 2),
        nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)),
        Affine(),
    ]


def as_array(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, dl.Tensor) else np.asarray(value)


def plain(model: nn.Module) -> Any:
    """Return the values of a module, computed on tensors."""
    return as_array(model(dl.tensor(X)))


def in_closure(model: nn.Module) -> Callable[[Any], Any]:
    return dl.jit(lambda x: model(x))


def in_default(model: nn.Module) -> Callable[[Any], Any]:
    def f(x: Any, held: Any = model) -> Any:
        return held(x)

    fast = dl.jit(f)
    return lambda x: fast(x)


def in_list(model: nn.Module) -> Callable[[Any], Any]:
    held = [nn.Tanh(), {"model": model}]
    return dl.jit(lambda x: held[1]["model"](x))


def in_namespace(model: nn.Module) -> Callable[[Any], Any]:
    held = types.SimpleNamespace(model=model)
    return dl.jit(lambda x: held.model(x))


def in_method(model: nn.Module) -> Callable[[Any], Any]:
    return dl.jit(model.forward)


def under_vmap(model: nn.Module) -> Callable[[Any], Any]:
    return dl.jit(dl.vmap(lambda row: model(row[None])[0]))


def under_grad(model: nn.Module) -> Callable[[Any], Any]:
    """Return the values again, as the derivative by a factor of 1."""
    fast = dl.jit(dl.jacfwd(lambda t, x: model(x) * t))
    return lambda x: fast(1.0, x)


def static(model: nn.Module) -> Callable[[Any], Any]:
    fast = dl.jit(lambda m, x: m(x), static_argnums=0)
    return lambda x: fast(model, x)


HOLDERS = [dl.jit, in_closure, in_default, in_list, in_namespace, in_method]
HOLDERS += [under_vmap, under_grad, static]


def step_of(optimizer: Callable[..., Any]) -> Callable[[nn.Module], None]:
    def step(model: nn.Module) -> None:
        mode = model.training
        (model.eval()(dl.tensor(X)) ** 2).sum().backward()
        optimizer(model.parameters(), lr=0.1).step()
        model.train(mode)

    return step


def loaded(model: nn.Module) -> None:
    state = model.state_dict()
    model.load_state_dict({name: value + 0.25 for name, value in state.items()})


def in_place(model: nn.Module) -> None:
    with dl.no_grad():
        for parameter in model.parameters():
            parameter += 0.5  # in place


def one_element(model: nn.Module) -> None:
    with dl.no_grad():
        for parameter in model.parameters():
            parameter[(0,) * len(parameter.shape)] = 3.0


def detached(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.detach()[...] = as_array(parameter) * 2.0


def replaced(model: nn.Module) -> None:
    owner = next(part for _, part in model.named_modules() if isinstance(part, nn.Linear))
    owner.weight = nn.Parameter(np.full(owner.weight.shape, 0.5))


def new_part(model: nn.Module) -> None:
    for owner in [part for _, part in model.named_modules()]:
        for name, part in list(owner.named_children()):
            if isinstance(part, nn.Linear):
                setattr(owner, name, nn.Linear(part.weight.shape[1], part.weight.shape[0]))
                return
    replaced(model)


CHANGES = [step_of(optim.SGD), step_of(optim.AdamW), loaded, in_place, one_element, detached]
CHANGES += [replaced, new_part]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__qualname__)
@pytest.mark.parametrize("hold", HOLDERS, ids=lambda hold: hold.__name__)
def test_a_module_that_was_changed(
    hold: Callable[[nn.Module], Callable[[Any], Any]], change: Callable[[nn.Module], None]
) -> None:
    for model in networks() if hold is in_closure else [Affine()]:
        fast = hold(model.eval())
        before = plain(model)
        np.testing.assert_allclose(as_array(fast(X)), before, rtol=1e-12)
        change(model)
        assert np.abs(plain(model) - before).max() > 1e-3
        np.testing.assert_allclose(as_array(fast(X)), plain(model), rtol=1e-12)


@pytest.mark.parametrize("hold", HOLDERS, ids=lambda hold: hold.__name__)
def test_new_statistics_of_a_batch(hold: Callable[..., Any]) -> None:
    model = networks()[1].eval()
    fast = hold(model)
    fast(X)
    model.train()(dl.tensor(5 * X + 1))
    model.eval()
    np.testing.assert_allclose(as_array(fast(X)), plain(model), rtol=1e-12)
    model[1].running_var[2] = 9.0
    np.testing.assert_allclose(as_array(fast(X)), plain(model), rtol=1e-12)


def test_train_and_eval() -> None:
    class Doubled(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * (2.0 if self.training else 1.0)

    model = nn.Sequential(Doubled())
    fast = dl.jit(model)
    found = [fast(X)[0, 0] for mode in (True, False, True) if model.train(mode)]
    assert found == [-2.0, -1.0, -2.0]
    assert len(fast.traces) == 2


def test_what_a_user_sets_in_a_module() -> None:
    model = Affine()
    fast = dl.jit(model)
    for change in (
        lambda: model.factors.append(2.0),
        lambda: model.settings.update(power=2),
        lambda: setattr(model, "shift", np.ones(2)),
        lambda: model.shift.__setitem__(0, 5.0),
        lambda: setattr(model, "forward", lambda x: model.part(x)),
    ):
        fast(X)
        change()
        np.testing.assert_allclose(as_array(fast(X)), plain(model), rtol=1e-12)


def test_the_settings_of_an_optimizer() -> None:
    w = dl.tensor(1.0, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.5)
    fast = dl.jit(lambda x: x - optimizer.lr)
    assert [fast(1.0), optimizer.param_groups[0].update(lr=0.25), fast(1.0)] == [0.5, None, 0.75]


READS: dict[str, Callable[[Any], Any]] = {
    "item": lambda w: w[1].item(),
    "numpy": lambda w: w.detach().numpy()[1],
    "array": lambda w: w.detach().array()[1],
    "float": lambda w: float(w.detach()[1]),
    "branch": lambda w: 5.0 if w.detach()[1] > 2.5 else 2.0,
}


def add(w: Any) -> None:
    with dl.no_grad():
        w += 1.0


def set_part(w: Any) -> None:
    with dl.no_grad():
        w[1] = 3.0


def set_twin(w: Any) -> None:
    w.detach()[1] = 3.0


def descend(w: Any) -> None:
    (-w).sum().backward()
    optim.SGD([w], lr=1.0).step()


@pytest.mark.parametrize("change", [add, set_part, set_twin, descend], ids=lambda f: f.__name__)
@pytest.mark.parametrize("read", READS)
def test_the_values_of_a_tensor(read: str, change: Callable[[Any], None]) -> None:
    w = dl.tensor([1.0, 2.0], requires_grad=True)
    fast = dl.jit(lambda x: x * READS[read](w))
    assert [fast(10.0), fast(10.0)] == [20.0, 20.0]
    change(w)
    wanted = 50.0 if read == "branch" else 30.0
    assert [fast(10.0), fast(10.0)] == [wanted, wanted]
    assert len(fast.traces) == 2
    assert fast.traces[1].cause == "w around <lambda> was changed in place"


def test_a_detached_tensor_is_changed_with_its_origin() -> None:
    w = dl.tensor([1.0, 2.0], requires_grad=True)
    twin = w.detach()
    fast = dl.jit(lambda x: x * twin.numpy()[1])
    assert fast(10.0) == 20.0
    add(w)
    assert fast(10.0) == 30.0


def test_whether_a_tensor_requires_grad() -> None:
    w = dl.tensor(1.0)
    fast = dl.jit(lambda x: x * (2.0 if w.requires_grad else 1.0))
    assert fast(1.0) == 1.0
    w.requires_grad = True
    assert fast(1.0) == 2.0


def test_a_tensor_that_is_traced_stays_one() -> None:
    w = dl.tensor(2.0, requires_grad=True)
    fast = dl.jit(lambda x: x * w)
    for _ in range(3):
        found = fast(10.0)
        assert found.item() == 10 * w.item()
        add(w)
    w.zero_grad()
    fast(10.0).backward()
    assert w.grad.item() == 10.0


def test_old_parameters_are_not_kept_and_compiled_code_is() -> None:
    model = nn.Linear(2, 2)
    fast = dl.jit(model)
    held = []
    for _ in range(6):
        np.testing.assert_allclose(fast(X), plain(model), rtol=1e-12)
        held.append(weakref.ref(fast.traces[-1].captured[0]))
        in_place(model)
    gc.collect()
    assert [array() is None for array in held] == [True] * 5 + [False]
    assert [bool(trace.captured) for trace in fast.traces] == [False] * 5 + [True]
    assert [trace.calls for trace in fast.traces] == [1] * 6
    assert len({id(trace.compiled) for trace in fast.traces}) == 1


def test_gradients_matter_to_code_that_names_them() -> None:
    w = dl.tensor(3.0, requires_grad=True)
    slope = dl.jit(lambda x: dl.grad(lambda y: y * w.item())(x))
    noted = dl.jit(lambda x: dl.grad(lambda y: y * w.grad.item())(x))
    for count in (1, 2):
        (w * 5.0).backward()
        assert [slope(1.0), noted(1.0)] == [3.0, 5.0 * count]
    assert [len(slope.traces), len(noted.traces)] == [1, 2]


def test_a_tensor_that_no_run_reads_may_change() -> None:
    model, other = nn.Linear(2, 2), dl.tensor(1.0)

    def f(parameters: Any, x: Any) -> Any:
        return nn.functional_call(model, parameters, x) + (other.item() if len(x) > 3 else 0.0)

    fast = dl.jit(f)
    parameters = {name: as_array(value).copy() for name, value in model.named_parameters()}
    before = fast(parameters, X)
    in_place(model)
    add(other)
    np.testing.assert_array_equal(fast(parameters, X), before)
    assert len(fast.traces) == 1
    fast({"bias": parameters["bias"]}, X)
    model.weight.detach()[...] = 0.0
    np.testing.assert_allclose(fast({"bias": np.ones(2)}, X), 1.0)


def test_an_unchanged_module_is_traced_once() -> None:
    model = networks()[1].eval()
    fast = dl.jit(model)
    for _ in range(3):
        fast(X)
        model.eval()
        model.zero_grad()
    assert len(fast.traces) == 1


class TestPyTorch:
    @pytest.fixture
    def torch(self) -> Any:
        return pytest.importorskip("torch")

    def changes(self, torch: Any) -> dict[str, Callable[[Any], Any]]:
        return {
            "in place": lambda w: w.detach().add_(1.0),
            "data": lambda w: w.data.add_(1.0),
            "an element": lambda w: w.data.__setitem__(1, 3.0),
            "by NumPy": lambda w: np.add(w.detach().numpy(), 1.0, out=w.detach().numpy()),
            "other data": lambda w: setattr(w, "data", torch.tensor([0.0, 3.0])),
        }

    @pytest.mark.parametrize("change", ["in place", "data", "an element", "by NumPy", "other data"])
    @pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
    def test_a_change_is_seen(self, torch: Any, change: str, dtype: str) -> None:
        if dtype == "bfloat16" and change == "by NumPy":
            pytest.skip("NumPy has no bfloat16")
        w = torch.tensor([1.0, 2.0], dtype=getattr(torch, dtype), requires_grad=True)
        fast = dl.jit(lambda x: x * w[1].item())
        assert [fast(10.0), fast(10.0)] == [20.0, 20.0]
        if change == "other data":
            w.data = torch.tensor([0.0, 3.0], dtype=w.dtype)
        else:
            self.changes(torch)[change](w)
        assert fast(10.0) == 30.0
        assert len(fast.traces) == 2

    def test_a_sparse_tensor_is_named(self, torch: Any) -> None:
        w = torch.tensor([0.0, 2.0]).to_sparse()
        fast = dl.jit(lambda x: x * float(w.values()[0]))
        with pytest.warns(UserWarning, match="what is written to its .data is not watched"):
            assert fast(10.0) == 20.0
        w.mul_(1.5)
        assert fast(10.0) == 30.0

    def test_a_module(self, torch: Any) -> None:
        model = torch.nn.Linear(1, 1)
        fast = dl.jit(lambda x: x * model.weight.item())
        for _ in range(2):
            assert fast(2.0) == pytest.approx(2 * model.weight.item(), rel=1e-15)
            with torch.no_grad():
                model.weight += 1.0


def test_arrays_of_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    held = pandas.Series([1.0, 2.0])
    fast = dl.jit(lambda x: x * float(held[1]))
    with pytest.warns(UserWarning, match="the labels of a table are not watched"):
        assert fast(10.0) == 20.0
    held[1] = 3.0
    assert fast(10.0) == 30.0
