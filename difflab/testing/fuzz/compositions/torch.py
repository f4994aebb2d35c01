"""PyTorch's transforms: ``torch.func``, ``torch.autograd``, dual numbers and in-place changes."""

from __future__ import annotations

from functools import partial
from typing import Any

from difflab.methods.peers.spelling import LibrarySpelling
from difflab.testing.fuzz.compositions.framework import Fn, Framework, named


def _eye(x: Any) -> Any:
    import torch

    return torch.eye(x.shape[0], dtype=x.dtype)


def _units(y: Any) -> Any:
    """Return the unit cotangents of a result, along a new first axis."""
    import torch

    return torch.eye(y.numel(), dtype=y.dtype).reshape(y.numel(), *y.shape)


def _watched(x: Any) -> Any:
    """Return a tensor that is recorded; a view keeps the tangent of a dual number."""
    return x if x.requires_grad else x.view_as(x).requires_grad_()


def _rows(f: Fn, n: int, x: Any) -> Any:
    """Differentiate by ``torch.autograd.grad``, row by row."""
    import torch

    x = _watched(x)
    y = f(x)
    rows = []
    for entry in y.reshape(-1).unbind():
        slope = None
        if entry.requires_grad:
            (slope,) = torch.autograd.grad(entry, x, create_graph=True, allow_unused=True)
        rows.append(torch.zeros_like(x) if slope is None else slope)
    return torch.stack(rows).reshape(*y.shape, n)


def _batched_rows(f: Fn, n: int, x: Any) -> Any:
    import torch

    x = _watched(x)
    y = f(x)
    if not y.requires_grad:
        return torch.zeros(*y.shape, n, dtype=x.dtype)
    (rows,) = torch.autograd.grad(
        y, x, _units(y), create_graph=True, is_grads_batched=True, allow_unused=True
    )
    jacobian = torch.zeros(y.numel(), n, dtype=x.dtype) if rows is None else rows
    return jacobian.reshape(*y.shape, n)


def _functional(f: Fn, n: int, x: Any, **options: Any) -> Any:
    import torch

    return torch.autograd.functional.jacobian(f, x, **options)


def _twice_back(f: Fn, n: int, x: Any) -> Any:
    """Push forward by two pullbacks."""
    import torch

    jvp = torch.autograd.functional.jvp
    return torch.stack([jvp(f, x, v, create_graph=True)[1] for v in _eye(x)], -1)


def _jvp(f: Fn, n: int, x: Any) -> Any:
    import torch

    return torch.stack([torch.func.jvp(f, (x,), (v,))[1] for v in _eye(x)], -1)


def _dual(f: Fn, n: int, x: Any) -> Any:
    """Push forward by dual tensors."""
    import torch
    from torch.autograd import forward_ad

    def column(x: Any, v: Any) -> Any:
        with forward_ad.dual_level():
            y, tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(x, v)))
            return torch.zeros_like(y) if tangent is None else tangent

    return torch.stack([column(x, v) for v in _eye(x)], -1)


def _jvp_of_vmap(f: Fn, n: int, x: Any) -> Any:
    import torch

    tiled = x.repeat(n, 1)
    pushed = torch.func.jvp(torch.func.vmap(f), (tiled,), (_eye(x),))[1]
    return torch.movedim(pushed, 0, -1)


def _vmap_of_vjp(f: Fn, n: int, x: Any) -> Any:
    import torch

    y, back = torch.func.vjp(f, x)
    return torch.func.vmap(back)(_units(y))[0].reshape(*y.shape, n)


def _linearize(f: Fn, n: int, x: Any) -> Any:
    import torch

    tangent = torch.func.linearize(f, x)[1]
    return torch.stack([tangent(v) for v in _eye(x)], -1)


def _checkpoint(f: Fn, n: int, x: Any) -> Any:
    from torch.utils.checkpoint import checkpoint

    return checkpoint(f, x, use_reentrant=False)


def _vmap(f: Fn, n: int, x: Any) -> Any:
    import torch

    return torch.func.vmap(f)(torch.stack([x, x.detach() + 1]))[0]


def _in_place(f: Fn, n: int, x: Any) -> Any:
    """Fill an array element by element."""
    copied = x.clone()
    for k in range(n):
        copied[k] = x[k]
    return f(copied)


def _in_place_result(f: Fn, n: int, x: Any) -> Any:
    """Change the result in place, and undo the change."""
    return f(x).clone().mul_(2.0).neg_().mul_(-0.5)


def _hooks(f: Fn, n: int, x: Any) -> Any:
    """Save copies of the tensors of the backward pass."""
    import torch

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        return f(x)


def _single() -> LibrarySpelling:
    import torch

    from difflab.methods.peers.torch import torch_spelling

    spelling = torch_spelling(torch)

    def lifted(value: Any) -> Any:
        return torch.tensor(value, dtype=torch.float32)

    return LibrarySpelling(spelling.xp, {**spelling.rows, "sign": torch.sign}, lifted)


FRAMEWORK = Framework(
    "torch",
    {
        "grad": _rows,
        "batched_grad": _batched_rows,
        "functional.jacobian": partial(_functional, create_graph=True),
        "functional.jacobian_vectorized": partial(_functional, create_graph=True, vectorize=True),
        "functional.jacobian_forward": partial(
            _functional, vectorize=True, strategy="forward-mode"
        ),
        "functional.jvp": _twice_back,
        "jacrev": named("torch.func:jacrev"),
        "jacfwd": named("torch.func:jacfwd"),
        "jvp": _jvp,
        "dual": _dual,
        "jvp_of_vmap": _jvp_of_vmap,
        "vmap_of_vjp": _vmap_of_vjp,
        "linearize": _linearize,
    },
    {
        "checkpoint": _checkpoint,
        "vmap": _vmap,
        "in_place": _in_place,
        "in_place_result": _in_place_result,
        "functionalize": named("torch.func:functionalize"),
        "saved_tensors_hooks": _hooks,
    },
    spelling32=_single,
)
