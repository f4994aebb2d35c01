"""Modules: names, modes, states, files, first values; as functions of their parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import nn
from difflab.arrays import cross_entropy as cross_entropy_of_classes
from difflab.errors import DifflabError, InputError, ShapeError, TraceError
from difflab.nn import functional as F  # noqa: N812  # as PyTorch's users write

RNG = np.random.default_rng(21)
X, TARGETS = RNG.normal(size=(6, 4)), np.array([0, 2, 1, 1, 0, 2])


def network() -> nn.Sequential:
    nn.manual_seed(5)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3))


def test_parameters_and_buffers_are_named_as_in_pytorch() -> None:
    model = network()
    names = ["0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias"]
    assert [name for name, _ in model.named_parameters()] == names
    buffers = ["1.running_mean", "1.running_var", "1.num_batches_tracked"]
    assert list(model.state_dict()) == [*names, *buffers]
    frozen = next(model.parameters())
    frozen.requires_grad = False
    assert [name for name, _ in model.named_parameters()] == names
    model[0].weight = nn.Parameter(np.zeros((5, 4)))
    assert len(list(model.parameters())) == 6
    assert "(1): BatchNorm1d()" in repr(model)


def test_first_values_are_uniform_in_pytorchs_bounds() -> None:
    nn.manual_seed(1)
    weight = nn.Linear(25, 4000).weight.detach().numpy()
    assert np.abs(weight).max() < 0.2 < 1.001 * np.abs(weight).max()
    np.testing.assert_allclose(weight.std(), 0.2 / np.sqrt(3), rtol=0.01)
    assert np.abs(nn.Conv2d(8, 50, (2, 1), groups=2).weight.detach().numpy()).max() < 8**-0.5
    nn.manual_seed(1)
    assert np.array_equal(nn.Linear(25, 4000).weight.detach().numpy(), weight)
    assert not np.array_equal(nn.Linear(25, 4000).weight.detach().numpy(), weight)


def test_evaluation_uses_running_statistics_and_drops_nothing(rng: np.random.Generator) -> None:
    model = nn.Sequential(nn.BatchNorm2d(3, momentum=0.5), nn.Dropout(0.9)).eval()
    images = rng.normal(2.0, 3.0, size=(4, 3, 5, 5))
    found = model(images).detach()
    np.testing.assert_allclose(found, images / np.sqrt(1 + 1e-5), rtol=1e-14)
    assert not np.array_equal(model.train()(images).detach(), model(images).detach())
    expected = 0.75 * images.mean((0, 2, 3))  # two calls, from 0
    np.testing.assert_allclose(model[0].running_mean, expected, rtol=1e-14)
    assert model[0].num_batches_tracked == 2


def test_a_state_is_saved_loaded_and_restored(tmp_path: Path) -> None:
    model, path = network(), tmp_path / "model.npz"
    model(X)
    nn.save(model.state_dict(), path)
    expected = model.eval()(X)
    other = network()
    assert not np.allclose(other.eval()(X).detach(), expected.detach())
    other.load_state_dict(nn.load(path))
    assert np.array_equal(other(X).detach(), expected.detach())
    state = other.state_dict()
    state["0.weight"][:] = 0
    assert np.array_equal(other(X).detach(), expected.detach())


def test_bad_states_and_files_change_nothing(tmp_path: Path) -> None:
    model = network()
    state = model.state_dict()
    before = model.eval()(X).detach().numpy()
    with pytest.raises(InputError, match=r"the state lacks 0\.bias"):
        model.load_state_dict({key: 0 * state[key] for key in state if key != "0.bias"})
    with pytest.raises(InputError, match=r"the module has no 9\.bias"):
        model.load_state_dict({**state, "9.bias": np.ones(1)})
    with pytest.raises(ShapeError, match=r"3.bias has shape \(3,\), not \(2,\)"):
        model.load_state_dict({**{key: 0 * state[key] for key in state}, "3.bias": np.ones(2)})
    with pytest.raises(InputError, match="arrays of numbers, not str"):
        model.load_state_dict({**state, "3.bias": "abc"})
    assert np.array_equal(model(X).detach(), before)
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "objects.npz", a=np.array([object()]), allow_pickle=True)
    for name in ("missing.npz", "text.npz", "objects.npz"):
        with pytest.raises(InputError, match=name.replace(".", r"\.")):
            nn.load(tmp_path / name)
    with pytest.raises(InputError, match="does not exist"):
        nn.save(state, tmp_path / "folder" / "model.npz")


# --- as functions of the parameters -----------------------------------------------------------


def arrays_of(model: nn.Module) -> dict[str, Any]:
    return {name: value.detach().numpy() for name, value in model.named_parameters()}


def test_a_training_step_is_compiled_with_the_parameters_as_a_tree() -> None:
    model = network().eval()

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(nn.functional_call(model, parameters, x), y)

    @dl.jit
    def step(parameters: Any, x: Any, y: Any) -> Any:
        value, slopes = dl.value_and_grad(loss)(parameters, x, y)
        return value, {name: parameters[name] - 0.1 * slopes[name] for name in parameters}

    parameters = arrays_of(model)
    optimizer = dl.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        value, parameters = step(parameters, X, TARGETS)
        optimizer.zero_grad()
        eager = F.cross_entropy(model(X), TARGETS)
        eager.backward()
        optimizer.step()
        np.testing.assert_allclose(value, eager.item(), rtol=1e-13)
    assert len(step.traces) == 1
    for name, expected in arrays_of(model).items():
        np.testing.assert_allclose(parameters[name], expected, rtol=1e-12, atol=1e-14)


def test_a_call_with_a_key_drops_other_elements_without_another_trace() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Dropout(0.2))
    call = dl.jit(lambda key, x: nn.functional_call(model, {}, x, key=key))
    first, second = dl.random.split(dl.random.key(3))
    eager = nn.functional_call(model, {}, X, key=first)
    np.testing.assert_allclose(call(first, X), eager.detach(), rtol=1e-14)
    assert not np.array_equal(call(first, X), call(second, X))
    assert len(call.traces) == 1
    assert model[1].num_batches_tracked == 0
    assert isinstance(model[1].running_mean, np.ndarray)


def test_what_a_trace_would_repeat_is_refused() -> None:
    with pytest.raises(TraceError, match="draws random numbers") as caught:
        dl.jit(nn.Dropout(0.5))(X)
    assert "key=key" in (caught.value.hint or "")
    with pytest.raises(TraceError, match="changes its statistics"):
        dl.trace(nn.BatchNorm1d(4), X)
    assert dl.trace(nn.BatchNorm1d(4).eval(), X)(X).shape == X.shape
    with pytest.raises(InputError, match=r"no parameter 7\.weight"):
        nn.functional_call(network(), {"7.weight": X}, X)


def test_a_network_in_use_is_folded(rng: np.random.Generator) -> None:
    nn.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
    images = rng.normal(size=(4, 2, 6, 6))
    model(images)
    state = model.eval().state_dict()
    function = dl.trace(lambda state, x: nn.functional_call(model, state, x), state, images)
    folded = dl.fold_batch_norm(function)
    np.testing.assert_allclose(folded(state, images), model(images).detach(), atol=1e-14)
    assert dl.count(folded).arithmetic < dl.count(function).arithmetic


# --- losses and settings ----------------------------------------------------------------------


def test_cross_entropy_of_traced_classes_is_that_of_known_ones(rng: np.random.Generator) -> None:
    logits = 300 * rng.normal(size=(6, 3))
    expected = cross_entropy_of_classes(logits, TARGETS.tolist())
    for target in (TARGETS, dl.tensor(TARGETS), TARGETS.tolist()):
        assert float(F.cross_entropy(logits, target)) == float(expected)
    for reduction, factor in (("mean", 1), ("sum", 6)):

        def loss(x: Any, y: Any, reduction: str = reduction) -> Any:
            return F.cross_entropy(x, y, reduction=reduction)

        traced = dl.trace(loss, logits, TARGETS)
        np.testing.assert_allclose(traced(logits, TARGETS), factor * expected, rtol=1e-14)
        known = F.cross_entropy(logits, TARGETS, reduction=reduction)
        np.testing.assert_allclose(known, factor * expected, rtol=1e-14)
    assert float(F.mse_loss(logits, 0 * logits, "sum")) == pytest.approx(np.sum(logits**2))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: F.mse_loss(X, X[:, 0]), "arrays of one shape"),
        (lambda: F.mse_loss(X, X, "all"), "'mean', 'sum' or 'none', not 'all'"),
        (lambda: nn.Module()(X), "Module has no method forward"),
        (lambda: dl.optim.SGD([]), "pass model.parameters"),
        (lambda: dl.optim.SGD([X]), "tensors made with requires_grad=True"),
        (lambda: dl.optim.Adam(network().parameters(), lr=-1.0), "lr of Adam is a number from 0"),
        (lambda: dl.optim.Adam(network().parameters(), betas=(0.9, "a")), "betas of Adam"),
        (lambda: nn.Linear(3, 2)(X), "matmul"),
    ],
)
def test_bad_input_is_refused(call: Any, said: str) -> None:
    with pytest.raises(DifflabError) as caught:
        call()
    assert said in str(caught.value)


def test_softsign_is_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="needs torch: pip install 'difflab[peers]'")
    x = np.array([-40.0, -1.5, 0.0, 0.25, 7.0])
    leaf, theirs = dl.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    found, wanted = nn.Softsign()(leaf), torch.nn.Softsign()(theirs)
    found.sum().backward()
    wanted.sum().backward()
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-15)
    np.testing.assert_allclose(leaf.grad.numpy(), theirs.grad.numpy(), rtol=1e-13)
    np.testing.assert_allclose(leaf.grad.numpy(), (1 + np.abs(x)) ** -2.0, rtol=1e-13)
