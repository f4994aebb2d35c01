"""Programs on arrays: a few steps, each a NumPy function of values before it.

A step runs on NumPy's arrays, on JAX's, and on traced values; the family `arrays` compares them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from difflab import arrays
from difflab.graph.node import Node
from tests.differential import network, parts
from tests.differential.factored import FACTORED, separated

__all__ = ["CHOSEN", "OPERATIONS", "Draw", "Step", "drawn_step", "loops", "run"]

Draw = Callable[[Any], Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One operation on the values `args`: the inputs come first, then the steps' results."""

    name: str
    args: tuple[int, ...]
    detail: Any = None


def run(steps: Sequence[Step], inputs: Sequence[Any], xp: Any) -> list[Any]:
    """Return the inputs and the result of every step."""
    values = list(inputs)
    for step in steps:
        operands = [values[arg] for arg in step.args]
        values.append(OPERATIONS[step.name].run(xp, operands, step.detail))
    return values


@dataclass(frozen=True)
class Operation:
    """What a step does, and how one is drawn for operands of given shapes.

    `detail` returns None where the operation does not take operands of these shapes.
    """

    run: Callable[[Any, Sequence[Any], Any], Any]
    arity: int = 1
    detail: Callable[[Draw, Sequence[Shape]], Any] = lambda draw, shapes: ()


def drawn_step(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    """Draw an operation on values of these shapes; None where its operands do not fit."""
    name = draw(_NAMES)
    operation = OPERATIONS[name]
    last = len(shapes) - 1
    # Late values more often than early ones, so that programs are deep.
    args = [last - draw(st.integers(0, last)) // 2 for _ in range(operation.arity)]
    args[0] = last - draw(st.integers(0, min(last, 1)))
    detail = operation.detail(draw, [shapes[arg] for arg in args])
    return None if detail is None else Step(name, tuple(args), detail)


# --- what details are drawn ---------------------------------------------------------------------


def _fitting(draw: Draw, shapes: Sequence[Shape]) -> Any:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return None
    return ()


def _axis(draw: Draw, shapes: Sequence[Shape]) -> Any:
    rank = len(shapes[0])
    return draw(st.integers(-rank, rank - 1)) if rank and math.prod(shapes[0]) else None


def _axes(draw: Draw, shapes: Sequence[Shape]) -> Any:
    """Axes of a reduction, and whether they are kept."""
    rank = len(shapes[0])
    if not math.prod(shapes[0]):
        return None
    keep = draw(st.booleans())
    if not rank or draw(st.integers(0, 2)) == 0:
        return (None, keep)
    axes = draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
    return (axes[0] if len(axes) == 1 else tuple(axes), keep)


def _axes_of_an_array(draw: Draw, shapes: Sequence[Shape]) -> Any:
    """As `_axes`, but not of a scalar, whose axes that are kept JAX counts as one."""
    return _axes(draw, shapes) if shapes[0] else None


def _key(draw: Draw, shapes: Sequence[Shape]) -> Any:
    """An indexing key; slices as tuples, so that a program can be hashed and repeated."""
    key: list[Any] = []
    for size in shapes[0][: draw(st.integers(0, len(shapes[0])))]:
        kind = draw(st.integers(0, 6))
        if kind == 6:
            key.append(None)
        if kind <= 1 and size:
            key.append(draw(st.integers(-size, size - 1)))
        elif kind <= 3:
            start, stop = draw(st.integers(-1, size)), draw(st.integers(-1, size + 1))
            key.append((start, stop, draw(st.sampled_from((1, 2, -1)))))
        else:
            key.append(draw(st.sampled_from(((None, None, None), (None, None, -1), (1, None, 1)))))
    if draw(st.integers(0, 4)) == 0:
        key.insert(draw(st.integers(0, len(key))), ...)
    return tuple(key)


def _places(draw: Draw, shapes: Sequence[Shape]) -> Any:
    """An axis and places along it, repeated ones too."""
    if (axis := _axis(draw, shapes)) is None:
        return None
    size = shapes[0][axis]
    places = draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=5))
    return (axis, tuple(places))


def _shape(draw: Draw, shapes: Sequence[Shape]) -> Any:
    size, found = math.prod(shapes[0]), list[int]()
    if not size:
        return None
    for _ in range(draw(st.integers(0, 2))):
        divisors = [n for n in range(1, size + 1) if size % n == 0]
        found.append(draw(st.sampled_from(divisors)))
        size //= found[-1]
    found.insert(draw(st.integers(0, len(found))), size)
    return tuple(found)


def _order(draw: Draw, shapes: Sequence[Shape]) -> Any:
    return tuple(draw(st.permutations(range(len(shapes[0])))))


def _joined(draw: Draw, shapes: Sequence[Shape]) -> Any:
    if not shapes[0] or len(shapes[0]) != len(shapes[1]):
        return None
    axis = draw(st.integers(0, len(shapes[0]) - 1))
    rest = [shape[:axis] + shape[axis + 1 :] for shape in shapes]
    return axis if rest[0] == rest[1] else None


def _stacked(draw: Draw, shapes: Sequence[Shape]) -> Any:
    return draw(st.integers(0, len(shapes[0]))) if shapes[0] == shapes[1] else None


def _opened(draw: Draw, shapes: Sequence[Shape]) -> Any:
    return draw(st.integers(0, len(shapes[0]))) if len(shapes[0]) < 4 else None


def _wider(draw: Draw, shapes: Sequence[Shape]) -> Any:
    if len(shapes[0]) > 3:
        return None
    kept = [draw(st.integers(1, 3)) if size == 1 else size for size in shapes[0]]
    return (*([draw(st.integers(1, 3))] if draw(st.booleans()) else []), *kept)


def _product(draw: Draw, shapes: Sequence[Shape]) -> Any:
    """Whether the second operand has to be turned for the matrices to fit."""
    a, b = shapes
    for turned in (False, True):
        other = b[::-1] if turned else b
        try:
            if np.matmul(np.ones(a), np.ones(other)).ndim < 5:
                return turned
        except ValueError:
            continue
    return None


def _einsum(draw: Draw, shapes: Sequence[Shape]) -> Any:
    """Subscripts: equal sizes may share a letter, and any letters are kept."""
    if not all(shapes):
        return None
    sizes: dict[str, int] = {}
    parts = []
    for shape in shapes:
        part = ""
        for size in shape:
            spare = [n for n, s in sizes.items() if s == size and n not in part]
            fresh = "abcdefgh"[len(sizes)]
            part += draw(st.sampled_from([*spare, fresh]))
            sizes.setdefault(part[-1], size)
        parts.append(part)
    kept = [letter for letter in sizes if draw(st.booleans())][:4]
    return f"{','.join(parts)}->{''.join(kept)}"


def _differences(draw: Draw, shapes: Sequence[Shape]) -> Any:
    if (axis := _axis(draw, shapes)) is None or shapes[0][axis] < 2:
        return None
    return (draw(st.integers(1, min(2, shapes[0][axis] - 1))), axis)


def _shift(draw: Draw, shapes: Sequence[Shape]) -> Any:
    """A shift, and an axis or None."""
    if (axis := _axis(draw, shapes)) is None:
        return None
    return (draw(st.integers(-4, 4)), draw(st.sampled_from((axis, None))))


def _repeats(draw: Draw, shapes: Sequence[Shape]) -> Any:
    if (axis := _axis(draw, shapes)) is None:
        return None
    return (draw(st.integers(1, 2)), draw(st.sampled_from((axis, None))))


def _copies(draw: Draw, shapes: Sequence[Shape]) -> Any:
    return tuple(draw(st.lists(st.integers(1, 2), min_size=1, max_size=3)))


def _matrices(draw: Draw, shapes: Sequence[Shape]) -> Any:
    return draw(st.integers(-2, 2)) if len(shapes[0]) > 1 else None


def _margins(draw: Draw, shapes: Sequence[Shape]) -> Any:
    """Widths beside each axis, and a mode."""
    if _axis(draw, shapes) is None or min(shapes[0]) < 2:
        return None
    width = st.tuples(st.integers(0, 1), st.integers(0, 1))
    mode = draw(st.sampled_from(("constant", "edge", "reflect", "symmetric", "wrap")))
    return (tuple(draw(width) for _ in shapes[0]), mode)


def _flat_pair(draw: Draw, shapes: Sequence[Shape]) -> Any:
    return () if all(math.prod(shape) for shape in shapes) else None


def _square(draw: Draw, shapes: Sequence[Shape]) -> Any:
    shape = shapes[0]
    return () if len(shape) >= 2 and shape[-1] == shape[-2] and math.prod(shape) else None


def _system(draw: Draw, shapes: Sequence[Shape]) -> Any:
    square = _square(draw, shapes) is not None and len(shapes[0]) == 2
    return () if square and shapes[1][:1] == shapes[0][:1] and len(shapes[1]) <= 2 else None


def _factors(draw: Draw, shapes: Sequence[Shape]) -> Any:
    small = len(shapes[0]) == 2 and 0 < min(shapes[0]) <= 3
    return draw(st.sampled_from(tuple(FACTORED))) if small else None


def _diagonal(draw: Draw, shapes: Sequence[Shape]) -> Any:
    rank = len(shapes[0])
    if rank < 2 or not math.prod(shapes[0]):
        return None
    axes = draw(st.permutations(range(rank)))[:2]
    return (draw(st.integers(-1, 1)), axes[0], axes[1] - rank)


def _mask(draw: Draw, shapes: Sequence[Shape]) -> Any:
    size = math.prod(shapes[0])
    if not size:
        return None
    pattern = draw(st.lists(st.booleans(), min_size=1, max_size=min(size, 7)))
    return tuple(np.resize(pattern, size).tolist())


def _image(draw: Draw, shapes: Sequence[Shape]) -> Any:
    (a, b) = shapes if len(shapes) == 2 else (shapes[0], (1, 1))
    if len(a) < 2 or len(b) != 2 or not math.prod(a) or not math.prod(b):
        return None
    rows, columns = a[-2], a[-1]
    if b[0] > rows or b[1] > columns:
        return None
    dilation = draw(st.integers(1, 3))
    if any(dilation * (taps - 1) >= size for taps, size in zip(b, (rows, columns), strict=True)):
        dilation = 1
    return (draw(st.integers(1, 2)), draw(st.integers(0, 1)), dilation, draw(st.integers(1, 2)))


# --- what steps run -----------------------------------------------------------------------------


def _decoded(key: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(slice(*entry) if isinstance(entry, tuple) else entry for entry in key)


def _softmax(xp: Any, x: Any, axis: int) -> Any:
    if isinstance(x, Node):
        return arrays.softmax(x, axis=axis)
    e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return e / xp.sum(e, axis=axis, keepdims=True)


def _logsumexp(xp: Any, x: Any, axis: Any, keep: bool) -> Any:
    if isinstance(x, Node):
        return arrays.logsumexp(x, axis=axis, keepdims=keep)
    largest = xp.max(x, axis=axis, keepdims=True)
    total = xp.log(xp.sum(xp.exp(x - largest), axis=axis, keepdims=True)) + largest
    return total if keep else xp.sum(total, axis=axis)


def _tame(xp: Any, a: Any) -> Any:
    """A matrix that is far from a singular one."""
    return 3.0 * np.eye(a.shape[-1]) + 0.5 * xp.tanh(a)


def _factored(xp: Any, x: Any, name: str) -> Any:
    size = min(x.shape)
    return FACTORED[name](xp, separated(xp, x[:size, :size]))


def _solved(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(b, Node) or b.ndim == 2:
        return xp.linalg.solve(_tame(xp, a), b)
    return xp.linalg.solve(_tame(xp, a), b[:, None])[:, 0]


def _updated(xp: Any, x: Any, y: Any, name: str, rows: Sequence[int]) -> Any:
    part = xp.sin(x[np.array(rows)]) - xp.sum(y)
    return parts.changed(xp, x, np.array(rows), name, part)


def _masked(xp: Any, x: Any, mask: Any) -> Any:
    return xp.where(np.array(mask).reshape(x.shape), x, 2.0 - x * x)


def _convolved(
    xp: Any, x: Any, w: Any, stride: int, padding: int, dilation: int, groups: int
) -> Any:
    """One channel of images in, one out; of two groups, the difference of the second from it."""
    rows, columns = x.shape[-2:]
    images = xp.reshape(x, (math.prod(x.shape[:-2]), 1, rows, columns))
    kernel = xp.reshape(w, (1, 1, *w.shape))
    if isinstance(x, Node) or isinstance(w, Node):
        if groups == 2:
            images = np.concatenate([images, -images], axis=1)
            kernel = np.concatenate([kernel, 2.0 * kernel])
        found = arrays.conv2d(images, kernel, None, stride, padding, dilation, groups)
        return found[:, 0] + found[:, 1] if groups == 2 else found[:, 0]
    padded = xp.pad(images[:, 0], ((0, 0), (padding, padding), (padding, padding)))
    down = (padded.shape[1] - dilation * (w.shape[0] - 1) - 1) // stride + 1
    across = (padded.shape[2] - dilation * (w.shape[1] - 1) - 1) // stride + 1

    def seen(i: int, j: int) -> Any:
        last = (stride * (down - 1), stride * (across - 1))
        return padded[:, i : i + last[0] + 1 : stride, j : j + last[1] + 1 : stride]

    pairs = [(i, j) for i in range(w.shape[0]) for j in range(w.shape[1])]
    total = sum(seen(dilation * i, dilation * j) * w[i, j] for i, j in pairs)
    return -total if groups == 2 else total


def _elements(draw: Draw, shapes: Sequence[Shape]) -> Any:
    """How many turns a loop over single numbers has, and how far apart its numbers are."""
    if len(shapes[0]) != 1 or not shapes[0][0]:
        return None
    return (draw(st.integers(2, 12)), draw(st.integers(1, 3)))


def _terms(xp: Any, x: Any, turns: int, apart: int) -> Any:
    """A sum of equal terms, each of two numbers of a vector."""
    total, size = 0.0, x.shape[0]
    for k in range(turns):
        total = total + xp.sin(x[k % size]) * x[(k * apart + 1) % size]
    return total


def _listed(xp: Any, x: Any, turns: int, apart: int) -> Any:
    """A vector put together number by number."""
    size = x.shape[0]
    return xp.stack([x[k % size] * x[(k + apart) % size] + 0.5 * k for k in range(turns)])


def _rows(draw: Draw, shapes: Sequence[Shape]) -> Any:
    """Nothing to draw, for arrays of two rows or more."""
    return (0,) if shapes[0] and shapes[0][0] > 1 else None


def _neighbours(xp: Any, x: Any) -> Any:
    """Parts side by side that are computed of neighbours, and of each other."""
    inner = xp.sin(x[:-1]) * x[1:]
    return xp.concatenate([x[:1] * 0.5, inner, xp.cos(inner[::-1]), inner * xp.sum(inner)])


def _scaled(xp: Any, x: Any, y: Any) -> Any:
    """The product of a column and a matrix of one element, which is often 0."""
    return xp.reshape(x, (-1, 1)) @ xp.reshape(xp.floor(xp.reshape(y, (-1,))[0]), (1, 1))


def _recurrence(xp: Any, x: Any, turns: int, apart: int) -> Any:
    """A recurrence on the whole vector."""
    state = x
    for k in range(turns):
        state = xp.tanh(state) * 0.75 + x[(k * apart) % x.shape[0]]
    return state


def loops(steps: Sequence[Step]) -> bool:
    """Whether a program has a loop over numbers."""
    return any(step.name in ("terms", "listed", "recurrence") for step in steps)


def _ordered(xp: Any, v: Sequence[Any], axis: int) -> Any:
    """A value in the order of its squares."""
    return xp.take_along_axis(v[0], xp.argsort(v[0] * v[0], axis=axis, stable=True), axis=axis)


def _filtered(xp: Any, v: Sequence[Any], detail: Any) -> Any:
    """A convolution of two vectors, and what lies in its middle."""
    a, b = (xp.reshape(x, (-1,)) for x in v)
    return xp.append(xp.convolve(a, b), xp.correlate(a, b, mode="same"))


def _unary(run: Callable[[Any, Any], Any]) -> Operation:
    return Operation(lambda xp, v, d: run(xp, v[0]))


def _binary(run: Callable[[Any, Any, Any], Any]) -> Operation:
    return Operation(lambda xp, v, d: run(xp, v[0], v[1]), 2, _fitting)


def _reduction(name: str) -> Operation:
    return Operation(lambda xp, v, d: getattr(xp, name)(v[0], axis=d[0], keepdims=d[1]), 1, _axes)


def _of_networks(name: str) -> Operation:
    """An operation of `network`, by its definition outside of traces."""

    def run(xp: Any, v: Sequence[Any], d: Any) -> Any:
        x = v[0]
        return network.OURS[name](x) if isinstance(x, Node) else network.definitions(xp)[name](x)

    return Operation(run, 1, lambda draw, shapes: () if math.prod(shapes[0]) else None)


def _spectrum(xp: Any, x: Any, axis: int) -> Any:
    """Return the real part of a spectrum of complex values."""
    z = xp.fft.fft(x + 0.5j * x, axis=axis, norm="ortho")
    return xp.real(z) - 0.25 * xp.imag(z)


def _shifted(xp: Any, x: Any, axis: int) -> Any:
    """Turn the phases of a real spectrum."""
    z = xp.fft.rfft(x, axis=axis)
    return xp.fft.irfft(z * (0.5 - 1j) + 0.25, x.shape[axis], axis=axis)


OPERATIONS: dict[str, Operation] = {
    "sin": _unary(lambda xp, x: xp.sin(x)),
    "tanh": _unary(lambda xp, x: xp.tanh(x)),
    "bell": _unary(lambda xp, x: xp.exp(-x * x)),
    "sqrt": _unary(lambda xp, x: xp.sqrt(1.0 + x * x)),
    "log1p": _unary(lambda xp, x: xp.log1p(x**2)),
    "cube": _unary(lambda xp, x: x**3),
    "relu": _unary(lambda xp, x: xp.maximum(x, 0.0)),
    "abs": _unary(lambda xp, x: xp.abs(x)),
    "negative": _unary(lambda xp, x: -x),
    "affine": _unary(lambda xp, x: 2.0 * x - 0.25),
    "nothing": _unary(lambda xp, x: 0.0 * x + 1.0),
    "sign": _unary(lambda xp, x: xp.sign(x) * x + xp.floor(x)),
    "add": _binary(lambda xp, x, y: x + y),
    "subtract": _binary(lambda xp, x, y: x - y),
    "multiply": _binary(lambda xp, x, y: x * y),
    "divide": _binary(lambda xp, x, y: x / (1.0 + y * y)),
    "maximum": _binary(lambda xp, x, y: xp.maximum(x, y)),
    "minimum": _binary(lambda xp, x, y: xp.minimum(x, y)),
    "hypot": _binary(lambda xp, x, y: xp.hypot(x, y + 3.0)),
    "where": _binary(lambda xp, x, y: xp.where(x > y, x * y, y - 1.0)),
    "guarded": _binary(lambda xp, x, y: xp.where(x > 0.0, xp.sqrt(xp.maximum(x, 0.01)), y)),
    "either": _binary(lambda xp, x, y: xp.where((x > 0.5) | (y < 0.0), x, 0.0)),
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "max": _reduction("max"),
    "min": _reduction("min"),
    "prod": _reduction("prod"),
    "logsumexp": Operation(lambda xp, v, d: _logsumexp(xp, v[0], *d), 1, _axes),
    "softmax": Operation(lambda xp, v, d: _softmax(xp, v[0], d), 1, _axis),
    "cumsum": Operation(lambda xp, v, d: xp.cumsum(v[0], axis=d), 1, _axis),
    "argmax": Operation(lambda xp, v, d: xp.argmax(v[0], axis=d) * 0.5, 1, _axis),
    "index": Operation(lambda xp, v, d: v[0][_decoded(d)], 1, _key),
    "lists": Operation(lambda xp, v, d: v[0][tuple(map(np.array, d))], 1, parts.drawn_lists),
    "updated": Operation(lambda xp, v, d: _updated(xp, v[0], v[1], *d), 2, parts.drawn_change),
    "take": Operation(lambda xp, v, d: xp.take(v[0], np.array(d[1]), axis=d[0]), 1, _places),
    "reshape": Operation(lambda xp, v, d: xp.reshape(v[0], d), 1, _shape),
    "transpose": Operation(lambda xp, v, d: xp.transpose(v[0], d), 1, _order),
    "squeeze": _unary(lambda xp, x: xp.squeeze(x)),
    "concatenate": Operation(lambda xp, v, d: xp.concatenate(v, axis=d), 2, _joined),
    "stack": Operation(lambda xp, v, d: xp.stack(v, axis=d), 2, _stacked),
    "expand": Operation(lambda xp, v, d: xp.expand_dims(v[0], d), 1, _opened),
    "broadcast": Operation(lambda xp, v, d: xp.broadcast_to(v[0], d), 1, _wider),
    "masked": Operation(lambda xp, v, d: _masked(xp, v[0], d), 1, _mask),
    "matmul": Operation(lambda xp, v, d: v[0] @ (v[1].T if d else v[1]), 2, _product),
    "scaled": Operation(lambda xp, v, d: _scaled(xp, *v), 2, _flat_pair),
    "einsum": Operation(lambda xp, v, d: xp.einsum(d, v[0], v[1]), 2, _einsum),
    "inv": Operation(lambda xp, v, d: xp.linalg.inv(_tame(xp, v[0])), 1, _square),
    "det": Operation(lambda xp, v, d: xp.linalg.det(_tame(xp, v[0])) / 27.0, 1, _square),
    "solve": Operation(lambda xp, v, d: _solved(xp, v[0], v[1]), 2, _system),
    "factored": Operation(lambda xp, v, d: _factored(xp, v[0], d), 1, _factors),
    "trace": Operation(lambda xp, v, d: xp.trace(v[0], *d), 1, _diagonal),
    "convolve": Operation(lambda xp, v, d: _convolved(xp, v[0], v[1], *d), 2, _image),
    "sort": Operation(lambda xp, v, d: xp.sort(v[0], axis=d), 1, _axis),
    "argsort": Operation(lambda xp, v, d: xp.argsort(v[0], axis=d, stable=True) * 0.5, 1, _axis),
    "ordered": Operation(_ordered, 1, _axis),
    "median": Operation(
        lambda xp, v, d: xp.median(v[0], axis=d[0], keepdims=d[1]), 1, _axes_of_an_array
    ),
    "cumprod": Operation(lambda xp, v, d: xp.cumprod(v[0], axis=d), 1, _axis),
    "spectrum": Operation(lambda xp, v, d: _spectrum(xp, v[0], d), 1, _axis),
    "shifted": Operation(lambda xp, v, d: _shifted(xp, v[0], d), 1, _axis),
    "filter": Operation(_filtered, 2, _flat_pair),
    "var": _reduction("var"),
    "ptp": _reduction("ptp"),
    "nansum": _reduction("nansum"),
    "diff": Operation(lambda xp, v, d: xp.diff(v[0], n=d[0], axis=d[1]), 1, _differences),
    "roll": Operation(lambda xp, v, d: xp.roll(v[0], d[0], axis=d[1]), 1, _shift),
    "repeat": Operation(lambda xp, v, d: xp.repeat(v[0], d[0], axis=d[1]), 1, _repeats),
    "tile": Operation(lambda xp, v, d: xp.tile(v[0], d), 1, _copies),
    "flip": Operation(lambda xp, v, d: xp.flip(v[0], axis=d), 1, _axis),
    "triangle": Operation(lambda xp, v, d: xp.tril(v[0], d) + xp.triu(v[0], 1), 1, _matrices),
    "diagonal": Operation(lambda xp, v, d: xp.diagonal(v[0], d), 1, _matrices),
    "margins": Operation(lambda xp, v, d: xp.pad(v[0], d[0], mode=d[1]), 1, _margins),
    "trapezoid": Operation(lambda xp, v, d: xp.trapezoid(v[0], dx=0.5, axis=d), 1, _axis),
    "append": Operation(lambda xp, v, d: xp.append(v[0], v[1]), 2, _flat_pair),
    "kron": Operation(lambda xp, v, d: xp.kron(v[0], v[1]), 2, _flat_pair),
    **{name: _of_networks(name) for name in network.NAMES},
    "terms": Operation(lambda xp, v, d: _terms(xp, v[0], *d), 1, _elements),
    "listed": Operation(lambda xp, v, d: _listed(xp, v[0], *d), 1, _elements),
    "neighbours": Operation(lambda xp, v, d: _neighbours(xp, v[0]), 1, _rows),
    "recurrence": Operation(lambda xp, v, d: _recurrence(xp, v[0], *d), 1, _elements),
}

_OFTEN = ("index", "index", "index", "reshape", "transpose", "matmul", "sum", "take", "where")
_NAMES = st.sampled_from((*OPERATIONS, *_OFTEN))

CHOSEN = frozenset({"shifted", "spectrum", "filter", "max", "min", "ptp", "argmax", "median"})
CHOSEN |= {"sort", "argsort", "ordered"}
"""Steps in which the library chooses which elements inf reaches, and which of several nan is the
largest."""
