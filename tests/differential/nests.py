"""Transforms in the words of difflab, of JAX and of algebra, and the layers that apply them.

A layer takes a function of trees and returns one of the same arguments, so that layers nest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import difflab as dl
from tests.differential import network

try:
    import jax
except ImportError:  # the algebraic identities take its place
    jax = None

__all__ = ["LAYERS", "OURS", "THEIRS", "leaves", "mapped", "rebuilt"]

LARGEST = 24
"""Numbers in a result above which it is summed before it is differentiated further."""


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of tuples, lists, dicts and None, those of dicts by sorted keys."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        tree = [tree[key] for key in sorted(tree)]
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def rebuilt(tree: Any, values: Iterator[Any]) -> Any:
    """Return a tree with other leaves, in the order of `leaves`."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {key: rebuilt(tree[key], values) for key in sorted(tree)}
    if isinstance(tree, tuple | list):
        parts = [rebuilt(part, values) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return next(values)


def mapped(fn: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply `fn` to the leaves of trees of one structure."""
    rows = zip(leaves(tree), *map(leaves, others), strict=True)
    return rebuilt(tree, iter([fn(*row) for row in rows]))


# --- libraries -----------------------------------------------------------------------------------


def _dl_softmax(x: Any) -> Any:
    return dl.arrays.softmax(x, -1)


WAYS = ("auto", "collapsed", "jets", "forward-reverse", "reverse", "symbolic")


def _laplacian_by_hessian(lib: Any) -> Any:
    """Return the Laplacian as the sum of the traces of the Hessian's blocks on the diagonal."""

    def laplacian(fun: Any, argnums: int, detail: int) -> Any:
        def value(*args: Any) -> Any:
            blocks = leaves(lib.hessian(fun, argnums)(*args))
            sizes = [int(np.prod(np.shape(leaf))) for leaf in leaves(args[argnums])]
            diagonal = blocks[:: len(sizes) + 1]
            return sum(
                lib.np.trace(lib.np.reshape(block, (n, n)))
                for block, n in zip(diagonal, sizes, strict=True)
            )

        return value

    return laplacian


def _along_by_jvp(lib: Any) -> Any:
    """Return the derivative along a direction by nested forward mode."""

    def along(fun: Any, x: Any, direction: Any, order: int) -> Any:
        if order == 0:
            return fun(x)
        return lib.jvp(lambda x: along(fun, x, direction, order - 1), (x,), (direction,))[1]

    return along


OURS = SimpleNamespace(
    np=np,
    laplacian=lambda fun, argnums, detail: dl.laplacian(fun, argnums, WAYS[detail % len(WAYS)]),
    directional=dl.directional,
    grad=dl.grad,
    value_and_grad=dl.value_and_grad,
    jacfwd=dl.jacfwd,
    jacrev=dl.jacrev,
    hessian=dl.hessian,
    jvp=dl.jvp,
    vjp=dl.vjp,
    linearize=dl.linearize,
    hvp=dl.hvp,
    vmap=dl.vmap,
    checkpoint=dl.checkpoint,
    softmax=_dl_softmax,
    logsumexp=dl.arrays.logsumexp,
    stopped=lambda x: x * dl.stop_gradient(np.tanh(x)),
    **network.OURS,
)


def _jax_hvp(fun: Any, primals: Any, tangents: Any) -> Any:
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jax.jvp(jax.grad(fun, argnums), tuple(primals), tuple(tangents))[1]


def _theirs() -> SimpleNamespace:
    return SimpleNamespace(
        np=jax.numpy,
        grad=jax.grad,
        value_and_grad=jax.value_and_grad,
        jacfwd=jax.jacfwd,
        jacrev=jax.jacrev,
        hessian=jax.hessian,
        jvp=lambda fun, primals, tangents: jax.jvp(fun, tuple(primals), tuple(tangents)),
        vjp=jax.vjp,
        linearize=jax.linearize,
        hvp=_jax_hvp,
        vmap=jax.vmap,
        checkpoint=lambda fun, *args: jax.checkpoint(fun)(*args),
        softmax=jax.nn.softmax,
        logsumexp=jax.scipy.special.logsumexp,
        stopped=lambda x: x * jax.lax.stop_gradient(jax.numpy.tanh(x)),
        **network.definitions(jax.numpy),
    )


def _other_jvp(fun: Any, primals: Any, tangents: Any) -> Any:
    value, push = dl.linearize(fun, *primals)
    return value, push(*tangents)


def _other_vjp(fun: Any, *primals: Any) -> Any:
    """Return the gradient of ⟨ȳ, f(x)⟩ by forward mode."""

    def pull(bar: Any) -> Any:
        def product(*args: Any) -> Any:
            pairs = zip(leaves(fun(*args)), leaves(bar), strict=True)
            return sum((np.sum(y * y_bar) for y, y_bar in pairs), 0.0)

        return dl.jacfwd(product, tuple(range(len(primals))))(*primals)

    return fun(*primals), pull


def _other_hvp(fun: Any, primals: Any, tangents: Any) -> Any:
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    _, push = dl.linearize(dl.jacrev(fun, argnums), *primals)
    return push(*tangents)


def _other_vmap(fun: Any, in_axes: Any, out_axes: Any) -> Any:
    def looped(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        size = next(
            leaf.shape[axis]
            for arg, axis in zip(args, axes, strict=True)
            if axis is not None
            for leaf in leaves(arg)
        )

        def example(k: int, arg: Any, axis: int | None) -> Any:
            if axis is None:
                return arg
            return mapped(lambda leaf: np.moveaxis(leaf, axis, 0)[k], arg)

        results = [fun(*map(lambda a, x: example(k, a, x), args, axes)) for k in range(size)]
        return mapped(lambda *parts: np.stack(parts, out_axes), *results)

    return looped


def _other_value_and_grad(fun: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
    def both(*args: Any) -> Any:
        found = dl.jacfwd(fun, argnums, has_aux)(*args)
        return fun(*args), (found[0] if has_aux else found)

    return both


OTHERWISE = SimpleNamespace(
    np=np,
    grad=dl.jacfwd,
    value_and_grad=_other_value_and_grad,
    jacfwd=dl.jacrev,
    jacrev=dl.jacfwd,
    hessian=lambda fun, argnums=0: dl.jacrev(dl.jacfwd(fun, argnums), argnums),
    jvp=_other_jvp,
    vjp=_other_vjp,
    linearize=lambda fun, *primals: (
        fun(*primals),
        lambda *tangents: dl.jvp(fun, primals, tangents)[1],
    ),
    hvp=_other_hvp,
    vmap=_other_vmap,
    checkpoint=lambda fun, *args: fun(*args),
    softmax=lambda x: np.exp(x) / np.sum(np.exp(x), axis=-1, keepdims=True),
    logsumexp=lambda x: np.log(np.sum(np.exp(x))),
    stopped=lambda x: x * np.tanh(x).detach() if hasattr(x, "detach") else x * np.tanh(x),
    **network.definitions(np),
)
THEIRS = OTHERWISE if jax is None else _theirs()
THEIRS.laplacian = _laplacian_by_hessian(THEIRS)
THEIRS.directional = _along_by_jvp(THEIRS)


# --- transforms ----------------------------------------------------------------------------------


def scalar(lib: Any, tree: Any) -> Any:
    """Return one number that depends on every leaf in another way, and enlarges no rounding."""
    total: Any = 0.0
    for place, leaf in enumerate(leaves(tree)):
        total = total + lib.np.sum(signs(leaf) * lib.np.arctan(leaf + 0.3 * place))
    return total


def size_of(tree: Any) -> int:
    return sum(int(np.prod(leaf.shape)) for leaf in leaves(tree))


def small(lib: Any, fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fun`, its result summed where it is large."""

    def bounded(*args: Any) -> Any:
        tree = fun(*args)
        return scalar(lib, tree) if size_of(tree) > LARGEST else tree

    return bounded


def _argnums(count: int, detail: int) -> Any:
    """Return a position, counted from either end, or a tuple of them."""
    first = detail % count
    choices = [first, first - count, (first,), tuple(range(count)), tuple(reversed(range(count)))]
    return choices[(detail // 7) % len(choices)]


def signs(leaf: Any) -> Any:
    """Return numbers of both signs, of the shape of a leaf."""
    shape = np.shape(leaf)
    return np.cos(1.0 + 2.3 * np.arange(float(np.prod(shape)))).reshape(shape)


def directions(lib: Any, tree: Any, detail: int) -> Any:
    """Return vectors like a tree: constants, or functions of it."""
    if detail % 3 == 0:
        return mapped(lambda leaf: signs(leaf) / (1.0 + leaf * leaf), tree)
    if detail % 3 == 1:
        return mapped(lambda leaf: 0.5 * signs(leaf) + 0.0 * leaf, tree)
    return mapped(lambda leaf: lib.np.arctan(leaf) - 0.4, tree)


def gradient_layer(lib: Any, fun: Any, detail: int) -> Any:
    def layer(*args: Any) -> Any:
        argnums = _argnums(len(args), detail)
        if detail % 2:
            with_aux = lambda *a: (scalar(lib, fun(*a)), {"aux": a[0]})  # noqa: E731
            return lib.grad(with_aux, argnums, has_aux=True)(*args)
        return lib.grad(lambda *a: scalar(lib, fun(*a)), argnums)(*args)

    return layer


def value_and_gradient_layer(lib: Any, fun: Any, detail: int) -> Any:
    def layer(*args: Any) -> Any:
        return lib.value_and_grad(lambda *a: scalar(lib, fun(*a)), _argnums(len(args), detail))(
            *args
        )

    return layer


def jacobian_layer(name: str) -> Any:
    def build(lib: Any, fun: Any, detail: int) -> Any:
        def layer(*args: Any) -> Any:
            argnums = _argnums(len(args), detail)
            if name != "hessian" and detail % 5 == 0:
                with_aux = lambda *a: (small(lib, fun)(*a), [a[-1], None])  # noqa: E731
                return getattr(lib, name)(with_aux, argnums, has_aux=True)(*args)
            inner = small(lib, fun)
            if name == "hessian":
                inner = lambda *a: scalar(lib, fun(*a))  # noqa: E731
            return getattr(lib, name)(inner, argnums)(*args)

        return layer

    return build


def jvp_layer(lib: Any, fun: Any, detail: int) -> Any:
    def layer(*args: Any) -> Any:
        value, tangent = lib.jvp(fun, args, directions(lib, args, detail))
        return [value, tangent] if detail % 2 else tangent

    return layer


def vjp_layer(lib: Any, fun: Any, detail: int) -> Any:
    def layer(*args: Any) -> Any:
        value, pull = lib.vjp(fun, *args)
        return pull(directions(lib, value, detail))

    return layer


def linearize_layer(lib: Any, fun: Any, detail: int) -> Any:
    def layer(*args: Any) -> Any:
        value, push = lib.linearize(fun, *args)
        once = push(*directions(lib, args, detail))
        return (value, once, push(*directions(lib, args, detail + 1))) if detail % 2 else once

    return layer


def hvp_layer(lib: Any, fun: Any, detail: int) -> Any:
    def layer(*args: Any) -> Any:
        return lib.hvp(lambda *a: scalar(lib, fun(*a)), args, directions(lib, args, detail))

    return layer


def laplacian_layer(lib: Any, fun: Any, detail: int) -> Any:
    def layer(*args: Any) -> Any:
        argnums = next(k for k in range(detail, detail + len(args)) if leaves(args[k % len(args)]))
        inner = lambda *a: scalar(lib, fun(*a))  # noqa: E731
        return lib.laplacian(inner, argnums % len(args), detail)(*args)

    return layer


def directional_layer(lib: Any, fun: Any, detail: int) -> Any:
    """Differentiate twice along a direction of all arguments."""

    def layer(*args: Any) -> Any:
        constant = mapped(lambda leaf: signs(leaf) / 2, args)
        return lib.directional(lambda tree: fun(*tree), args, constant, 2)

    return layer


def vmap_layer(lib: Any, fun: Any, detail: int) -> Any:
    """Map over two or three examples, made of the arguments; one argument may be shared."""

    def layer(*args: Any) -> Any:
        count = 2 + detail % 2
        shared = (detail // 4) % len(args) if len(args) > 1 and detail % 3 == 0 else None
        last = (detail // 2) % 2

        def examples(leaf: Any) -> Any:
            parts = [leaf * (1.0 - 0.3 * k) + 0.1 * k for k in range(count)]
            return lib.np.stack(parts, axis=-1 if last else 0)

        axes = tuple(None if k == shared else -1 if last else 0 for k in range(len(args)))
        stacks = [arg if k == shared else mapped(examples, arg) for k, arg in enumerate(args)]
        if not any(leaves(arg) for k, arg in enumerate(args) if k != shared):
            return fun(*args)
        return lib.vmap(fun, axes, -1 if detail % 5 == 1 else 0)(*stacks)

    return layer


def closure_layer(lib: Any, fun: Any, detail: int) -> Any:
    """Differentiate by a number of its own, with the arguments closed over."""

    def layer(*args: Any) -> Any:
        where = scalar(lib, args) * 0.2

        def along(s: Any) -> Any:
            return scalar(lib, fun(*mapped(lambda leaf: leaf * s + leaf, args))) * s

        return (lib.grad if detail % 2 else lib.jacfwd)(along)(where)

    return layer


def checkpoint_layer(lib: Any, fun: Any, detail: int) -> Any:
    """Compute again in the reverse sweep; some arguments are closed over."""

    def layer(*args: Any) -> Any:
        count = 1 + detail % len(args)
        return lib.checkpoint(lambda *a: fun(*a, *args[count:]), *args[:count])

    return layer


LAYERS: dict[str, tuple[int, Callable[..., Any]]] = {
    "grad": (1, gradient_layer),
    "jvp": (1, jvp_layer),
    "vjp": (1, vjp_layer),
    "jacfwd": (1, jacobian_layer("jacfwd")),
    "jacrev": (1, jacobian_layer("jacrev")),
    "vmap": (0, vmap_layer),
    "checkpoint": (0, checkpoint_layer),
    "linearize": (1, linearize_layer),
    "closure": (1, closure_layer),
    "value_and_grad": (1, value_and_gradient_layer),
    "hvp": (2, hvp_layer),
    "hessian": (2, jacobian_layer("hessian")),
    "laplacian": (2, laplacian_layer),
    "directional": (2, directional_layer),
}
