"""Derivatives by the framework of the arrays: PyTorch, JAX, and difflab for NumPy and CuPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from difflab.errors import InputError
from difflab.graph.pytree import unflatten
from difflab.testing.checker.arguments import Outputs, Point
from difflab.testing.checker.leaves import Array, Callee


def framework_of(point: Point, outputs: Outputs) -> str:
    """Return which framework differentiates: "torch", "jax" or "difflab".

    Raises
    ------
    InputError
        The arrays are of a library that cannot differentiate, nor difflab its code.
    """
    libraries = point.libraries | outputs.libraries
    foreign = libraries - {"numpy", "torch", "jax", "cupy", ""}
    if foreign:
        raise InputError(
            f"{', '.join(sorted(foreign))} has no derivatives of its own",
            hint="give the derivative to check",
        )
    return "torch" if "torch" in libraries else "jax" if "jax" in libraries else "difflab"


def pulled(f: Callee, point: Point, outputs: Outputs, cotangent: Array) -> Array:
    r"""Return :math:`J^T \bar y`, ``(n,)``, by the framework.

    Parameters
    ----------
    f : callable
        The function.
    point, outputs : Point, Outputs
        Its arguments and its result there.
    cotangent : ndarray (m,)
        The weights of the real numbers of the result.
    """
    framework = framework_of(point, outputs)
    if framework == "torch":
        return _by_torch(f, point, outputs, cotangent)
    conjugate = framework == "jax"
    # The names of both packages are JAX's.
    _, pull = import_module(framework).vjp(_of_arrays(f, point, outputs), point.copies())
    (gradients,) = pull(outputs.split(cotangent, conjugate=conjugate))
    return _packed(point, gradients, conjugate)


def _packed(vector: Point | Outputs, leaves: Sequence[Any], conjugate: bool) -> Array:
    """Return derivatives of the leaves, None for zero, as one real vector."""
    parts = []
    for leaf, derivative in zip(vector.leaves, leaves, strict=True):
        if derivative is None:
            parts.append(np.zeros(leaf.size))
            continue
        part = type(leaf)(derivative, leaf.dtype, leaf.shape).numbers()
        if leaf.complex and conjugate:
            part = part.copy()
            part[1::2] *= -1.0
        parts.append(part)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _by_torch(f: Callee, point: Point, outputs: Outputs, cotangent: Array) -> Array:
    import torch

    active = [
        leaf.detach().requires_grad_(True) if isinstance(leaf, torch.Tensor) else leaf
        for leaf in point.copies()
    ]
    tensors = [leaf for leaf in active if isinstance(leaf, torch.Tensor)]
    with torch.enable_grad():
        results = outputs.chosen(f(point.rebuilt(active)))
    weights = outputs.split(cotangent)
    pairs = [
        (out, weight.detach())
        for out, weight in zip(results, weights, strict=True)
        if isinstance(out, torch.Tensor) and out.requires_grad
    ]
    if not pairs:  # detached as a whole
        return np.zeros(point.n)
    chosen, bars = zip(*pairs, strict=True)
    gradients = iter(torch.autograd.grad(chosen, tensors, bars, allow_unused=True))
    each = [next(gradients) if isinstance(leaf, torch.Tensor) else None for leaf in active]
    return _packed(point, each, conjugate=False)


def _of_arrays(f: Callee, point: Point, outputs: Outputs) -> Callable[[Sequence[Any]], list[Any]]:
    """Return the function from the arguments' arrays to those of the result."""
    return lambda leaves: outputs.chosen(f(point.rebuilt(leaves)))


def pushed(f: Callee, point: Point, outputs: Outputs, tangent: Array) -> Array:
    r"""Return :math:`J \dot x`, ``(m,)``, by the framework; of real arguments and results."""
    framework = framework_of(point, outputs)
    leaves, dots = point.copies(), point.split(tangent)
    chosen = _of_arrays(f, point, outputs)
    if framework == "torch":
        import torch

        weights = (leaf.detach() for leaf in leaves)
        inputs, directions = tuple(weights), tuple(dot.detach() for dot in dots)
        _, tangents = torch.autograd.functional.jvp(
            lambda *given: tuple(chosen(given)), inputs, directions
        )
    else:
        _, tangents = import_module(framework).jvp(chosen, (leaves,), (dots,))
    return _packed(outputs, tangents, conjugate=False)


def gradient_of(f: Callee, point: Point) -> Callee:
    """Return the function from a tree to the tree of gradients of a scalar `f`.

    The framework can differentiate it again; settings have the gradient None.
    """
    framework = framework_of(point, Outputs(f(point.copy())))

    def joined(gradients: Sequence[Any]) -> Any:
        values: list[Any] = [None] * len(point.values)
        for position, value in zip(point.positions, gradients, strict=True):
            values[position] = value
        return unflatten(point.structure, values)

    def by_torch(tree: Any) -> Any:
        import torch

        with torch.enable_grad():
            leaves = [
                leaf if leaf.requires_grad else leaf.detach().requires_grad_(True)
                for leaf in point.chosen(tree)
            ]
            result = f(point.rebuilt(leaves))
            gradients = torch.autograd.grad(result, leaves, create_graph=True, allow_unused=True)
        return joined(
            [
                torch.zeros_like(leaf) if g is None else g
                for leaf, g in zip(leaves, gradients, strict=True)
            ]
        )

    def by_others(tree: Any) -> Any:
        grad = import_module(framework).grad
        return joined(grad(lambda leaves: f(point.rebuilt(leaves)))(point.chosen(tree)))

    return by_torch if framework == "torch" else by_others


def like(vector: Point | Outputs, elements: Array) -> Any:
    """Return the tree of a point or a result with other elements, in its dtypes.

    Complex numbers are in the framework's convention of cotangents.
    """
    return vector.rebuilt(vector.split(elements, conjugate="jax" in vector.libraries))
