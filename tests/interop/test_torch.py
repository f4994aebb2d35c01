"""Functions wrapped for PyTorch, held to PyTorch's own derivatives under its transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import DeviceError, InputError, PointError
from tests.interop.wrapped import FUNCTIONS, example

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")

from difflab.interop.torch import wrap  # noqa: E402
from tests.support.rows import for_each  # noqa: E402

func = torch.func
tree = torch.utils._pytree


def close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    ours, shape = tree.tree_flatten(found)
    theirs, same = tree.tree_flatten(expected)
    assert shape == same
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a number of all results, with weights that tell them apart."""

    def summed(*args: Any) -> Any:
        leaves = tree.tree_leaves(f(*args))
        return sum((k + 1.5) * torch.sin(leaf).sum() for k, leaf in enumerate(leaves))

    return summed


def mixture(mean: Any, weight: Any, x: Any) -> Any:
    each = torch.logsumexp(weight - 0.5 * (x[:, None] - mean) ** 2, 1)
    return {"each": each, "total": each.sum()}  # in the order of their names


def own(f: Any) -> Callable[..., Any]:
    """Return a Function as PyTorch's operations, every result a tensor of its own shape."""
    if f is FUNCTIONS["tree"]:
        return mixture

    def call(*args: Any) -> Any:
        leaves, shape = tree.tree_flatten(f(*args))
        like = torch.zeros((), dtype=args[0].dtype)
        return tree.tree_unflatten([like + leaf for leaf in leaves], shape)

    return call


TRANSFORMS: dict[str, Callable[[Callable[..., Any], tuple[int, ...]], Callable[..., Any]]] = {
    "value": lambda f, n: f,
    "grad": lambda f, n: func.grad(total(f), n),
    "jacfwd": lambda f, n: func.jacfwd(f, n),
    "jacrev": lambda f, n: func.jacrev(f, n),
    "hessian": lambda f, n: func.hessian(total(f), n),
    "reverse over reverse": lambda f, n: func.jacrev(func.grad(total(f), n), n),
    "reverse over forward": lambda f, n: func.jacrev(func.jacfwd(total(f), n), n),
}


def values(f: Any) -> list[Any]:
    return [torch.tensor(value) for value in example(f)]


@for_each("transform", TRANSFORMS)
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "loop"])
def test_derivatives_are_pytorchs_own(name: str, transform: str) -> None:
    f, args = FUNCTIONS[name], values(FUNCTIONS[name])
    argnums = tuple(range(len(args)))
    by_torch = TRANSFORMS[transform](own(f), argnums)(*args)
    close(TRANSFORMS[transform](wrap(f), argnums)(*args), by_torch)


def test_a_loop_is_one_operation() -> None:
    def by_torch(x: Any, y: Any) -> Any:
        for _ in range(4):
            x = torch.sin(x) * y
        return x

    args = values(FUNCTIONS["loop"])
    for transform in ("grad", "hessian"):
        of = TRANSFORMS[transform]
        close(of(wrap(FUNCTIONS["loop"]), (0, 1))(*args), of(by_torch, (0, 1))(*args))


@pytest.mark.parametrize("name", ["scalars", "vectors", "sum", "several"])
def test_gradcheck_in_both_modes_and_twice(name: str) -> None:
    args = [value.requires_grad_() for value in values(FUNCTIONS[name])]
    f = wrap(FUNCTIONS[name])
    assert torch.autograd.gradcheck(f, args, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, args, check_fwd_over_rev=True)


def test_backward_accumulates_and_can_be_differentiated_again() -> None:
    f = wrap(dl.compile(dl.parse("x: [2]; sum(x^3*y)")))
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor(5.0, dtype=torch.float64)
    out = f(x, y)
    (slope,) = torch.autograd.grad(out, x, create_graph=True)
    assert slope.tolist() == [15.0, 60.0]
    slope.sum().backward()
    assert x.grad.tolist() == [30.0, 60.0]
    assert not f(x.detach(), y).requires_grad


def test_vmap_over_some_arguments_and_twice() -> None:
    f = FUNCTIONS["sum"]
    x, y = values(f)
    x = x * torch.linspace(0.5, 1, 6, dtype=x.dtype).reshape(2, 3, 1)
    for of in (lambda f: f, lambda f: func.grad(f, (0, 1)), lambda f: func.jacfwd(f, (0, 1))):
        ours, by_torch = (
            func.vmap(func.vmap(of(call), (0, None)), (0, None)) for call in (wrap(f), own(f))
        )
        close(ours(x, y), by_torch(x, y))


def test_batches_broadcast_and_their_cotangents_are_summed() -> None:
    f = wrap(dl.parse("x: [2]; sum(sin(x)*y*z)"))
    x = torch.linspace(0.1, 1.0, 6, dtype=torch.float64).reshape(3, 1, 2)
    y, z = torch.linspace(0.2, 0.9, 4, dtype=torch.float64), torch.tensor(0.7).double()
    ours = func.grad(lambda *args: (f(*args) ** 2).sum(), (0, 1, 2))(x, y, z)
    by_torch = func.grad(lambda x, y, z: ((x.sin().sum(-1) * y * z) ** 2).sum(), (0, 1, 2))
    close(ours, by_torch(x, y, z))


def test_dtypes_are_those_of_the_tensors() -> None:
    f = wrap(dl.parse("x*sin(y)"))
    x = torch.tensor(0.3, requires_grad=True)
    out = f(x, 2.0)
    out.backward()
    assert (out.dtype, x.grad.dtype) == (torch.float32, torch.float32)
    assert f(1, 2).dtype == torch.float32
    assert f(x.double(), x).dtype == torch.float64
    assert f(x.half(), 1.0).dtype == torch.float16
    assert f(x.bfloat16(), 1.0).dtype == torch.bfloat16


def test_memory_is_read_in_place_and_results_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    from difflab.interop import derivatives

    seen: list[int] = []
    call = derivatives.CompiledOperation.__call__

    def spied(self: Any, values: Any) -> Any:
        seen.extend(value.ctypes.data for value in values)
        return call(self, values)

    monkeypatch.setattr(derivatives.CompiledOperation, "__call__", spied)
    x = torch.linspace(0.0, 1.0, 1000, dtype=torch.float64)
    same = wrap(dl.parse("x: [1000]; x"))(x)
    assert seen == [x.data_ptr()]
    assert same.data_ptr() != x.data_ptr()
    close(same, x)


def test_a_layer_trains_in_a_module() -> None:
    f = wrap(dl.compile(dl.parse("W: [1, 3]; x: [3]; W @ x + b")))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 3, generator=generator)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.25
    W, b = torch.nn.Parameter(torch.zeros(1, 3)), torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([W, b], lr=0.3)
    for _ in range(100):
        optimizer.zero_grad()
        loss = ((f(W=W, x=x, b=b) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    torch.testing.assert_close(W.detach(), torch.tensor([[1.0, -2.0, 0.5]]), atol=1e-4, rtol=0)
    assert b.item() == pytest.approx(0.25, abs=1e-4)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match=r"difflab.interop.torch.wrap takes a Function, not str"):
        wrap("x^2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="packed points"):
        wrap(dl.compile(dl.parse("x^2"), packed=True))
    f = wrap(dl.parse("x: [3]; y: [3]; x*y"))
    with pytest.raises(PointError, match="input 'x' has the shape"):
        f(torch.ones(2), torch.ones(3))
    with pytest.raises(PointError, match="no value is given for the input y"):
        f(torch.ones(3))
    with pytest.raises(PointError, match="complex"):
        f(torch.ones(3) * 1j, torch.ones(3))
    with pytest.raises(DeviceError, match="one is on meta"):
        f(torch.ones(3, device="meta"), torch.ones(3))
    assert np.isfinite(f(torch.ones(3), torch.ones(3)).numpy()).all()
