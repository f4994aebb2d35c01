"""Bodies of random functions: operations on whatever shapes come, the same in every library.

An instruction is a name, two numbers that choose operands and details, and for a derivative the
body of its inner function. Every operation is bounded and smooth near the sampled values; where
it has a kink or a tie, its operand is moved away from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from difflab.errors import TraceError
from tests.differential import parts
from tests.differential.factored import FACTORED, separated
from tests.differential.network import NAMES

__all__ = ["INNER", "OPERATIONS", "Instruction", "run_body"]

Instruction = tuple[str, int, int, Any]
Xp = Any
LARGEST = 12
"""Numbers in a value above which it is summed over its first axis."""


def _fits(a: Any, b: Any) -> bool:
    pairs = zip(reversed(a.shape), reversed(b.shape), strict=False)
    return all(m == n or 1 in (m, n) for m, n in pairs)


def _paired(compute: Callable[[Xp, Any, Any], Any]) -> Callable[[Xp, Any, Any, int], Any]:
    """Apply an elementwise operation; an operand of another shape is summed first."""

    def operation(xp: Xp, a: Any, b: Any, k: int) -> Any:
        return compute(xp, a, b if _fits(a, b) else xp.sum(b))

    return operation


def _alone(compute: Callable[[Xp, Any], Any]) -> Callable[[Xp, Any, Any, int], Any]:
    return lambda xp, a, b, k: compute(xp, a)


def _axis(a: Any, k: int) -> int | None:
    return None if not a.shape or k % 3 == 0 else (k % (2 * len(a.shape))) - len(a.shape)


def _place(a: Any, k: int) -> int:
    return (k % (2 * len(a.shape))) - len(a.shape)


def _reduced(name: str) -> Callable[[Xp, Any, Any, int], Any]:
    def operation(xp: Xp, a: Any, b: Any, k: int) -> Any:
        return getattr(xp, name)(a, axis=_axis(a, k), keepdims=k % 2 == 1)

    return operation


def _extreme(name: str) -> Callable[[Xp, Any, Any, int], Any]:
    """Reduce to an extreme, with ties moved apart."""

    def operation(xp: Xp, a: Any, b: Any, k: int) -> Any:
        steps = 0.0137 * np.arange(float(np.prod(a.shape))).reshape(a.shape)
        return getattr(xp, name)(a + steps, axis=_axis(a, k))

    return operation


def _vector(xp: Xp, a: Any) -> Any:
    return xp.reshape(a, (-1,))


def _matrix(xp: Xp, a: Any) -> Any:
    """Return a well-conditioned matrix of two rows made of a value."""
    flat = xp.sin(_vector(xp, a if all(a.shape) else xp.sum(a)))  # an index may leave no element
    parts = [flat[place % flat.shape[0]] for place in range(4)]
    return xp.reshape(xp.stack(parts), (2, 2)) + 3.0 * np.eye(2)


def _matmul(xp: Xp, a: Any, b: Any, k: int) -> Any:
    if a.shape and b.shape and a.shape[-1] == b.shape[-2 if len(b.shape) > 1 else 0]:
        return xp.matmul(a, b)
    if a.shape and b.shape and a.shape[-1] == b.shape[-1]:
        return xp.matmul(a, xp.swapaxes(b, -1, -2) if len(b.shape) > 1 else b)
    return xp.matmul(_matrix(xp, a), _matrix(xp, b))


def _updated(xp: Xp, a: Any, b: Any, k: int) -> Any:
    if not a.shape:
        return a
    key = parts.key_of(a.shape, k)
    part = xp.cos(a[key]) * xp.sum(xp.sin(b))
    return parts.changed(xp, a, key, parts.CHANGES[k % 3], part)


def _index(xp: Xp, a: Any, b: Any, k: int) -> Any:
    if not a.shape:
        return a[None]
    size = a.shape[0]
    keys: list[Any] = [
        k % size,
        -1,
        slice(None, None, -1),
        slice(1, None),
        (Ellipsis, 0),
        (None, slice(None, 1)),
        np.array([k % size, 0, -1]),
        (slice(None, None, 2), None),
        (Ellipsis, slice(0, 1), None),
        np.arange(size) != k % size if size > 1 else slice(None),
        (slice(None), 0) if len(a.shape) > 1 else (0,),
        (-1, slice(None, None, -2)) if len(a.shape) > 1 else slice(-1, None, -1),
        parts.lists(a.shape, k),
        (slice(None), *parts.lists(a.shape[1:], k)),
    ]
    return a[keys[k % len(keys)]]


def _moved(xp: Xp, a: Any, b: Any, k: int) -> Any:
    if not a.shape:
        return xp.expand_dims(a, 0)
    choices: list[Callable[[], Any]] = [
        lambda: xp.transpose(a),
        lambda: a.T,
        lambda: xp.moveaxis(a, 0, -1),
        lambda: xp.swapaxes(a, 0, -1),
        lambda: xp.expand_dims(a, _place(a, k)),
        lambda: xp.squeeze(a),
        lambda: xp.ravel(a),
        lambda: xp.reshape(a, (a.shape[-1], -1)),
        lambda: xp.broadcast_to(a, (2, *a.shape)),
        lambda: xp.pad(a, 1),
    ]
    return choices[k % len(choices)]()


def _joined(xp: Xp, a: Any, b: Any, k: int) -> Any:
    if a.shape == b.shape:
        if a.shape and k % 2:
            return xp.concatenate([a, b], axis=_place(a, k))
        return xp.stack([a, b, a], axis=-1 if k % 4 else 0)
    return xp.concatenate([_vector(xp, a), _vector(xp, b)])


def _numpys(xp: Xp, a: Any, b: Any, k: int) -> Any:
    """Return what one of NumPy's compositions gives."""
    v, w = _vector(xp, a), _vector(xp, b)
    choices: list[Callable[[], Any]] = [
        lambda: xp.var(v + 0.1 * np.arange(float(v.shape[0]))),
        lambda: xp.diff(v, prepend=0.5),
        lambda: xp.roll(v, k) * xp.flip(v),
        lambda: xp.hstack([v[:2], w[:1]]),
        lambda: xp.trapezoid(v, dx=0.5),
        lambda: xp.tile(v[:2], 2) + xp.repeat(v[:1], 2)[0],
        lambda: xp.tril(xp.outer(v[:3], w[:2])),
        lambda: xp.kron(v[:2], w[:2]),
        lambda: xp.polyval(v[:3], xp.tanh(w)),
        lambda: xp.nan_to_num(v) + xp.pad(w[:1], (0, v.shape[0] - 1), mode="edge"),
        lambda: xp.average(a, weights=1.5 + xp.sin(a)),
        lambda: xp.sort(v + 0.0137 * np.arange(float(v.shape[0]))),
        lambda: xp.median(v + 0.0137 * np.arange(float(v.shape[0]))) * xp.cumprod(v),
        lambda: v[xp.argsort(v + 0.0137 * np.arange(float(v.shape[0])))],
        lambda: xp.convolve(v[:3], w),
        lambda: xp.interp(v, np.array([-1.0, 0.3, 2.0]), 1.5 * np.arange(3.0)),
        lambda: xp.vdot(v, xp.resize(w, v.shape)),
    ]
    return choices[k % len(choices)]()


def _outer(xp: Xp, a: Any, b: Any, k: int) -> Any:
    a, b = _vector(xp, a)[:3], _vector(xp, b)[:3]
    return xp.outer(a, b) if k % 2 else xp.einsum("i,j->ji", a, b)


def _solved(xp: Xp, a: Any, b: Any, k: int) -> Any:
    matrix, right = _matrix(xp, a), _matrix(xp, b)
    return xp.linalg.solve(matrix, right if k % 2 else right[0])


def _branched(xp: Xp, a: Any, b: Any, k: int) -> Any:
    """Branch in Python where the condition has a value, and select where it has none."""
    condition = xp.sum(a) > 0.1003 + 0.1 * k
    branches = (lambda: xp.sin(2.0 * a), lambda: a * a)
    try:
        return branches[0 if condition else 1]()
    except (TraceError, TypeError):  # TypeError is that of JAX
        return xp.where(condition, branches[0](), branches[1]())


SLOPES = {
    "sin": _alone(lambda xp, a: xp.sin(a)),
    "multiply": _paired(lambda xp, a, b: a * b),
    "add": _paired(lambda xp, a, b: a + b),
    "subtract": _paired(lambda xp, a, b: a - b),
    "divide": _paired(lambda xp, a, b: a / (1.0 + b * b)),
    "square": _alone(lambda xp, a: a**2),
    "cube": _alone(lambda xp, a: xp.tanh(a) ** 3),
    "power": _paired(lambda xp, a, b: (1.0 + a * a) ** xp.tanh(b)),
    "tanh": _alone(lambda xp, a: xp.tanh(a)),
    "cos": _alone(lambda xp, a: xp.cos(2.0 * a)),
    "exp": _alone(lambda xp, a: xp.exp(xp.sin(a))),
    "log": _alone(lambda xp, a: xp.log(1.5 + xp.sin(a))),
    "log1p": _alone(lambda xp, a: xp.log1p(a * a)),
    "sqrt": _alone(lambda xp, a: xp.sqrt(1.0 + a * a)),
    "arctan": _alone(lambda xp, a: xp.arctan(a)),
    "arctan2": _paired(lambda xp, a, b: xp.arctan2(a, 1.5 + b * b)),
    "logarithm": _paired(lambda xp, a, b: xp.log(xp.exp(xp.tanh(a)) + xp.exp(xp.tanh(b)))),
    "absolute": _alone(lambda xp, a: xp.abs(a + 0.0617)),
    "clip": _alone(lambda xp, a: xp.clip(a + 0.0113, -0.7, 0.7)),
    "maximum": _paired(lambda xp, a, b: xp.maximum(a, b + 0.123)),
    "minimum": _paired(lambda xp, a, b: xp.minimum(a + 0.0771, b)),
    "where": _paired(lambda xp, a, b: xp.where(a > b + 0.1003, xp.sin(a), a * b)),
    "guarded": _alone(lambda xp, a: xp.where(a > 0.1003, xp.sqrt(xp.where(a > 0.1003, a, 1.0)), a)),
    "hypot": _paired(lambda xp, a, b: xp.hypot(1.1 + a * a, b)),
    "rounded": _alone(lambda xp, a: a * xp.floor(a + 0.0317)),
}
ARRAYS = {
    "branched": _branched,
    "numpys": _numpys,
    "index": _index,
    "updated": _updated,
    "moved": _moved,
    "joined": _joined,
    "sum": _reduced("sum"),
    "mean": _reduced("mean"),
    "prod": _reduced("prod"),
    "max": _extreme("max"),
    "min": _extreme("min"),
    "matmul": _matmul,
    "outer": _outer,
    "cumsum": lambda xp, a, b, k: xp.cumsum(a, axis=_place(a, k) if a.shape else None),
    "norm": lambda xp, a, b, k: xp.linalg.norm(_vector(xp, a) + 1.7),
    "solve": _solved,
    "inv": lambda xp, a, b, k: xp.linalg.inv(_matrix(xp, a)),
    "det": lambda xp, a, b, k: xp.linalg.det(_matrix(xp, a)),
    "factored": lambda xp, a, b, k: list(FACTORED.values())[k % len(FACTORED)](
        xp, separated(xp, _matrix(xp, a) - 3.0 * np.eye(2))
    ),
    "diag": lambda xp, a, b, k: xp.diag(_vector(xp, a)[:3]),
    "trace": lambda xp, a, b, k: xp.trace(_matrix(xp, a)),
}
OF_LIBRARY = ("softmax", "logsumexp", "stopped", *NAMES)
OPERATIONS = (*SLOPES, *ARRAYS, *OF_LIBRARY)
INNER = (
    *("inner grad", "inner jvp", "inner jacrev", "inner vjp", "inner vmap", "inner jacfwd"),
    "inner checkpoint",
)


def _shrunk(xp: Xp, value: Any) -> Any:
    while int(np.prod(value.shape)) > LARGEST:
        value = xp.sum(value, axis=0) if value.shape[0] > 1 else value[0]
    return value


def _inner(lib: Any, name: str, a: Any, b: Any, body: Any) -> Any:
    """Return a derivative by a value of its own of a function that closes over two others."""
    xp = lib.np
    s = xp.sum(xp.sin(b)) * 0.3

    def curve(t: Any) -> Any:
        (found,) = run_body(lib, [t * a, b, t], body, 1)
        return found

    def number(t: Any) -> Any:
        return xp.sum(curve(t)) * t

    if name == "inner grad":
        return lib.grad(number)(s)
    if name == "inner jvp":
        return lib.jvp(curve, (s,), (xp.cos(s),))[1]
    if name == "inner jacrev":
        return lib.jacrev(curve)(s)
    if name == "inner checkpoint":
        return lib.checkpoint(curve, s)
    if name == "inner jacfwd":
        return lib.jacfwd(lambda u: xp.sum(u * b if _fits(u, b) else u) * u)(a)
    if name == "inner vjp":
        value, pull = lib.vjp(curve, s)
        return pull(xp.sin(value))[0]
    return lib.vmap(lib.grad(number), 0, 0)(xp.stack([s, s * 0.5]))


def run_body(
    lib: Any, inputs: Sequence[Any], body: Sequence[Instruction], wanted: int
) -> list[Any]:
    """Run the instructions on arrays, and return the last `wanted` values."""
    xp = lib.np
    values = list(inputs)
    for name, i, j, inner in body:
        a, b = values[-1 - i % len(values)], values[-1 - j % len(values)]
        if name in INNER:
            made = _inner(lib, name, a, b, inner)
        elif name in OF_LIBRARY:
            made = getattr(lib, name)(_vector(xp, a))
        else:
            made = (SLOPES.get(name) or ARRAYS[name])(xp, a, b, i + j)
        values.append(_shrunk(xp, made))
    return [values[-1 - place % len(values)] for place in range(wanted)]
