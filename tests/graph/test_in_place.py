"""Changes in place mean what they mean in NumPy, on traced values and tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import DifflabError, IndexingError, InputError, ShapeError, TraceError

X = np.array([1.0, 2.0, 3.0])


def aliased(x: Any) -> Any:
    y = x * 1.0
    v = y
    v *= 2.0
    return (y * y).sum()


def of_a_part(x: Any) -> Any:
    y = x * 1.0
    v = y[1:]
    v *= 3.0
    return (y * y).sum()


def an_element_of_a_part(x: Any) -> Any:
    y = x * 1.0
    v = y[1:]
    v[0] = 9.0
    return (y * y).sum()


def reshaped(x: Any) -> Any:
    y = x * 1.0
    v = y.reshape(3, 1)
    v[0, 0] = 9.0
    return (y * y).sum()


def seen_by_a_part(x: Any) -> Any:
    y = x * 1.0
    v = y[:2]
    y[0] = 9.0
    return (v * v).sum()


def turned(x: Any) -> Any:
    y = x * 1.0
    v = y.T
    v += 1.0
    return (y * y).sum()


def in_a_loop(x: Any) -> Any:
    y = x * 1.0
    for r in (y,):
        r += 1.0
    return (y * y).sum()


def rows(x: Any) -> Any:
    y = np.stack([x, x])
    for r in y:
        r *= 2.0
    return (y * y).sum()


def by_a_helper(x: Any) -> Any:
    def normalise(v: Any) -> None:
        v /= np.sqrt((v * v).sum())

    u = x * 1.0
    normalise(u)
    return (u * np.array([3.0, 1.0, 2.0])).sum()


def overlapping(x: Any) -> Any:
    y = x * x
    y[1:] += y[:-1]
    y[::-1] *= y
    return (y * X).sum()


def of_views_of_views(x: Any) -> Any:
    y = np.stack([x, x * 2.0, x * 3.0])
    v = y.T[1:, ::-1][:, None]
    v **= 2
    y[:, 1] -= v[0, 0, 0] * x[0]
    return (y * y * np.arange(9.0).reshape(3, 3)).sum()


def with_out(x: Any) -> Any:
    y, z = x * 1.0, np.zeros_like(x)
    np.multiply(y, y, out=z)
    np.add(z[1:], 1.0, out=z[:-1])
    np.sin(y, out=y, where=np.array([True, False, True]))
    np.sum(np.stack([y, z]), axis=0, out=y)
    y.clip(0.5, None)
    np.clip(y, 0.2, 8.0, out=y)
    return (y * X).sum() + (z * z).sum()


def by_functions(x: Any) -> Any:
    y = np.stack([x, x + 1.0, x * x])
    np.fill_diagonal(y, x)
    np.copyto(y[0], x * 3.0, where=[True, False, True])
    np.put(y, [1, -1], x[:2])
    np.add.at(y, ([0, 0], [1, 1]), x[1])
    y[2].sort()
    y[1].fill(0.5)
    y.flat[3:5] = x[1:]
    np.putmask(y, np.eye(3, k=1) == 1, 0.25 * y)
    np.put_along_axis(y, np.array([[2], [0], [1]]), x.reshape(3, 1), 1)
    return (y * np.arange(1.0, 10).reshape(3, 3)).sum()


def by_keys(x: Any) -> Any:
    y = np.outer(x, x)
    y[[0, 2]] *= 2.0
    y[np.array([True, False, True]), 1] = [x[0], x[1] * 3.0]
    y[[0, 0], [1, 1]] += x[:2]
    y[..., -1], y[None, 0] = x[::-1], 0.5 * x
    y[1, ...] -= y[0]
    y[y > 100.0] = 7.0
    return (y * np.arange(1.0, 10).reshape(3, 3)).sum()


def of_masks(x: Any) -> Any:
    mask = x > 1.5
    other = mask
    other[0] = True
    other &= x < 2.5
    assert mask.dtype == np.bool_
    return np.where(mask, x * x, 0.0).sum() + x.sum()


def of_numbers(x: Any) -> Any:
    s = x.sum()
    t = s
    t *= x[0]
    y = x * 1.0
    first = y[0]
    first += 100.0
    return s * 10.0 + t + y.sum()


def of_copied_parts_of_itself(x: Any) -> Any:
    y = np.outer(x, X)
    turned = y.T
    np.copyto(turned, y)
    numbers = np.arange(9.0).reshape(3, 3)
    z = x * 1.0
    part = z[::-1]
    np.copyto(z, part)
    seen = (part * X).sum()
    np.copyto(part, (z * X)[None])
    return ((y + turned * turned) * numbers).sum() + seen + ((z - 1.0) * X).sum()


def of_elements(x: Any) -> Any:
    y = x * 1.0
    number = list(y)[1]
    alone, shared = number[...], y[0, ...]
    alone **= 3
    shared *= 4.0
    again, opened = shared[...], y[2, None]
    again += x[1]
    opened -= alone
    opened[None][..., 0] *= 2.0
    return (y * X).sum() + 10.0 * number + 100.0 * alone


def by_one_truth_value(x: Any) -> Any:
    y = x * 1.0
    y[True] *= 2.0
    y[False] = 9.0
    first = y[0, ...]
    first[True] **= 2
    return (y[None, True, 1:] * y[np.True_][0, 1:]).sum() + y[0]


def of_complex_values(x: Any) -> Any:
    z = np.fft.rfft(x)
    w, q = z[1:], z
    w *= 2.0
    q[0] = x[0] + 1j * x[1]
    q /= 1 + 1j
    part = z.real
    part += x[:2]
    return (np.fft.irfft(z, n=3) * X).sum()


CODES: list[Callable[[Any], Any]] = [
    *(aliased, of_a_part, an_element_of_a_part, reshaped, seen_by_a_part, turned, in_a_loop),
    *(rows, by_a_helper, overlapping, of_views_of_views, with_out, by_functions, by_keys),
    *(of_masks, of_numbers, of_complex_values, of_copied_parts_of_itself, of_elements),
    by_one_truth_value,
]


def difference(f: Callable[[Any], Any]) -> Any:
    steps = 1e-6 * np.eye(3)
    return np.array([(f(X + step) - f(X - step)) / 2e-6 for step in steps])


def on_the_tape(f: Callable[[Any], Any]) -> Any:
    x = dl.tensor(X, requires_grad=True)
    f(x).backward()
    return x.grad.numpy()


GRADIENTS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: dl.grad(f)(X),
    "jit": lambda f: dl.jit(dl.grad(f))(X),
    "jvp": lambda f: np.array([dl.jvp(f, (X,), (e,))[1] for e in np.eye(3)]),
    "vjp": lambda f: dl.vjp(f, X)[1](1.0)[0],
    "vmap": lambda f: dl.vmap(dl.grad(f))(np.stack([X, X + 1.0]))[0],
    "jacfwd": lambda f: dl.jacfwd(f)(X),
    "jacrev": lambda f: dl.jacrev(f)(X),
    "linearize": lambda f: np.array([dl.linearize(f, X)[1](e) for e in np.eye(3)]),
    "trace": lambda f: dl.grad(dl.trace(f, X))(X),
    "checkpoint": lambda f: dl.grad(lambda x: dl.checkpoint(f, x))(X),
    "scan": lambda f: dl.grad(
        lambda x: dl.scan(lambda c, _: (c + f(x * 1.0), None), 0.0, length=2)[0] / 2
    )(X),
    "tensor": on_the_tape,
    "checkpointed tensor": lambda f: on_the_tape(lambda t: dl.checkpoint(f, t)),
}


@pytest.mark.parametrize("way", GRADIENTS)
@pytest.mark.parametrize("code", CODES)
def test_derivatives_are_those_of_numpys_run(code: Callable[[Any], Any], way: str) -> None:
    before = X.copy()
    expected = difference(code)
    found = GRADIENTS[way](code)
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-8 * max(1.0, np.abs(expected).max()))
    assert np.array_equal(X, before)


@pytest.mark.parametrize("code", CODES)
def test_values_are_those_of_numpys_run(code: Callable[[Any], Any]) -> None:
    expected = float(code(X))
    found = [
        dl.value_and_grad(code)(X)[0],
        dl.jit(code)(X),
        dl.vmap(code)(np.stack([X, X + 1.0]))[0],
        dl.trace(code, X)(X),
        dl.compile(dl.trace(code, X))(X),
        code(dl.tensor(X)).item(),
    ]
    assert np.allclose(found, expected, rtol=1e-12)


def test_the_table_of_the_values() -> None:
    """Computed by hand, with x = (1, 2, 3)."""
    values = [56.0, 118.0, 91.0, 94.0, 85.0, 29.0, 29.0, 112.0]
    for code, value in zip(CODES, values, strict=False):
        assert float(dl.trace(code, X)(X)) == value
    point = np.array([1.0, 2.0, 2.0])
    assert dl.value_and_grad(by_a_helper)(point)[0] == pytest.approx(3.0, rel=1e-15)


def test_second_derivatives() -> None:
    for code in (overlapping, by_keys, of_views_of_views, by_functions):
        steps = 1e-5 * np.eye(3)
        slopes = [(dl.grad(code)(X + h) - dl.grad(code)(X - h)) / 2e-5 for h in steps]
        scale = max(1.0, np.abs(slopes).max())
        assert np.allclose(dl.hessian(code)(X), slopes, rtol=1e-6, atol=1e-7 * scale)


def test_an_argument_is_a_copy() -> None:
    def changing(x: Any) -> Any:
        x *= 2.0
        x[0] = 0.0
        return (x * x).sum()

    x = X.copy()
    expected = [0.0, 16.0, 24.0]
    assert dl.grad(changing)(x).tolist() == expected
    assert dl.jit(dl.grad(changing))(x).tolist() == expected
    outer = dl.grad(lambda y: dl.checkpoint(changing, y) + y[0])(x)
    assert outer.tolist() == [1.0, 16.0, 24.0]
    assert x.tolist() == X.tolist()


def test_loops_and_choices_run_on_copies() -> None:
    def step(carry: Any, x: Any) -> Any:
        carry += x
        x *= 2.0
        return carry, carry

    init, xs = np.zeros(2), np.ones((3, 2))
    for run in (lambda *a: dl.scan(step, *a), dl.jit(lambda *a: dl.scan(step, *a))):
        last, ys = run(init, xs)
        assert (last.tolist(), ys.tolist()) == ([3.0, 3.0], [[1.0] * 2, [2.0] * 2, [3.0] * 2])

    def grown(value: Any) -> Any:
        value += 1.0
        return value

    assert dl.fori_loop(0, 3, lambda i, v: grown(v), init).tolist() == [3.0, 3.0]
    assert dl.while_loop(lambda v: v[0] < 2, grown, init).tolist() == [2.0, 2.0]
    assert dl.cond(True, grown, lambda v: v, init).tolist() == [1.0, 1.0]
    assert (init.tolist(), xs.tolist()) == ([0.0, 0.0], np.ones((3, 2)).tolist())


def choice(change: Callable[[Any, Any], Any], x: Any) -> Any:
    y = x * 1.0
    part = y[1:]

    def yes(z: Any) -> Any:
        change(y, part)
        return z * 2.0

    return (y * dl.cond(x[0] > 0, yes, lambda z: z, x)).sum()


def loop(change: Callable[[Any, Any], Any], x: Any) -> Any:
    y = x * 1.0
    part = y[1:]

    def step(carry: Any, _: None) -> Any:
        change(y, part)
        return carry * 2.0, None

    return (y * dl.scan(step, x, length=2)[0]).sum()


def inner(change: Callable[[Any, Any], Any], x: Any) -> Any:
    y = x * 1.0
    part = y[1:]

    def inside(z: Any) -> Any:
        change(y, part)
        return z * 2.0

    return y.sum() * dl.grad(inside)(1.0)


def write_number(y: Any, part: Any) -> None:
    y[0] = 9.0


def write_part(y: Any, part: Any) -> None:
    part[...] = 2.0


def write_in_place(y: Any, part: Any) -> None:
    y *= 2.0


@pytest.mark.parametrize("change", [write_number, write_part, write_in_place])
@pytest.mark.parametrize("code", [choice, loop, inner])
@pytest.mark.parametrize("transform", [dl.grad, dl.jit])
def test_what_is_outside_is_not_changed_from_inside(
    code: Callable[..., Any], change: Callable[[Any, Any], Any], transform: Any
) -> None:
    with pytest.raises(TraceError, match="from outside of the function") as caught:
        transform(lambda x: code(change, x))(X)
    assert "test_in_place.py" in caught.value.message
    assert caught.value.text in ("y[0] = 9.0", "part[...] = 2.0", "y *= 2.0")


def test_what_is_made_inside_is_changed_inside() -> None:
    """Also where it is made from values from outside alone."""

    def code(x: Any) -> Any:
        def step(carry: Any, _: None) -> Any:
            y = np.zeros_like(x)
            part = y[1:]
            y[0] = carry
            part += x[1:] * carry
            z = x.copy()
            z[0] = 2.0
            return carry + y.sum() * z.sum() * 0.1, None

        return dl.scan(step, x[0], length=3)[0]

    def plain(x: Any) -> Any:
        carry = x[0]
        for _ in range(3):
            rest = carry + (x[1:] * carry).sum()
            carry = carry + rest * (2.0 + x[1:].sum()) * 0.1
        return carry

    assert np.allclose(dl.grad(code)(X), dl.grad(plain)(X), rtol=1e-13)
    assert np.allclose(dl.jit(dl.grad(code))(X), dl.grad(plain)(X), rtol=1e-13)


def test_a_value_of_a_trace_that_has_ended_is_not_changed() -> None:
    kept: list[Any] = []
    dl.grad(lambda x: (kept.append(x * 2.0), x.sum())[1])(X)
    with pytest.raises(TraceError, match="trace that has ended"):
        kept[0][0] = 1.0


READ_ONLY: list[Callable[[Any], Any]] = [
    lambda y: np.broadcast_to(y, (2, 3)),
    lambda y: np.diagonal(np.stack([y, y, y])),
    lambda y: np.broadcast_to(y, (2, 3))[0],
]


@pytest.mark.parametrize("f", READ_ONLY)
def test_what_numpy_does_not_write_to_is_read_only(f: Callable[[Any], Any]) -> None:
    def code(x: Any) -> Any:
        v = f(x * 1.0)
        v += 1.0
        return v.sum()

    with pytest.raises(ValueError, match="read-only"):
        code(X)
    for run in (dl.grad(code), dl.jit(code), lambda x: code(dl.tensor(x))):
        with pytest.raises(InputError, match="read-only") as caught:
            run(X)
        assert caught.value.text == "v += 1.0"


def test_shapes_and_dtypes_are_those_of_the_array() -> None:
    def wide(x: Any) -> Any:
        y = x * 1.0
        y += np.ones((2, 3))
        return y

    def truths(x: Any) -> Any:
        y = x > 1
        y += 1.5
        return y

    def imaginary(x: Any) -> Any:
        y = x * 1.0
        y *= 1j
        return y

    def single(x: Any) -> Any:
        y = x.astype(np.float32)
        v = y
        y *= np.float64(1 / 3)
        assert v.dtype == np.float32
        return v

    for code, error in ((wide, ShapeError), (truths, InputError), (imaginary, InputError)):
        with pytest.raises((ValueError, TypeError)):
            code(X)
        with pytest.raises(error):
            dl.trace(code, X)
        with pytest.raises(error):
            code(dl.tensor(X))
    expected = single(X)
    assert dl.jit(single)(X).tolist() == expected.tolist()
    assert single(dl.tensor(X)).numpy().tolist() == expected.tolist()
    whole = dl.tensor([1, 2], dtype=int)
    with pytest.raises(InputError, match="float64 to int64"):
        whole /= 2


def test_writing_through_a_chain_of_views_is_linear() -> None:
    """A thousand views of views: each change appends a few nodes, whatever the depth."""

    def code(x: Any) -> Any:
        y = x * 1.0
        v = y
        for _ in range(300):
            v = v[1:]
            v *= 0.5
        return y.sum()

    x = np.ones(400)
    function = dl.trace(code, x)
    assert len(function.graph) < 300 * 12
    expected = code(x)
    assert float(function(x)) == expected
    assert code(dl.tensor(x)).item() == expected


# --- numbers that are known ---------------------------------------------------------------------

KNOWN: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "index": (lambda x: x[int(x[1])] ** 2, [0.0, 0.0, 6.0]),
    "range": (lambda x: sum(x[0] * k for k in range(int(x[2]))), [3.0, 0.0, 0.0]),
    "list": (lambda x: ["a", x[0] * 3.0, x[1]][int(x[0])], [3.0, 0.0, 0.0]),
    "item": (lambda x: x[1].item() * x[0], [2.0, 1.0, 0.0]),
    "item of a place": (lambda x: x.item(2) * x[0], [3.0, 0.0, 1.0]),
    "round": (lambda x: x[round(x[0].item())] ** 2, [0.0, 4.0, 0.0]),
    "floor": (lambda x: x[math.floor(x[1] + 0.5)] ** 2, [0.0, 0.0, 6.0]),
    "mask": (lambda x: (x[x > 1.5] ** 2).sum(), [0.0, 4.0, 6.0]),
    "mask of a row": (lambda x: np.stack([x, x * x])[1, x > 1.5].sum(), [0.0, 4.0, 6.0]),
    "where": (lambda x: (x[np.where(x > 1.5)] ** 2).sum(), [0.0, 4.0, 6.0]),
    "nonzero": (lambda x: x[np.nonzero(x > 1.5)[0][0]] ** 2, [0.0, 4.0, 0.0]),
    "flatnonzero": (lambda x: x[np.flatnonzero(x < 2.5)].sum(), [1.0, 1.0, 0.0]),
    "argwhere": (lambda x: x[np.argwhere(x > 1.5)].sum(), [0.0, 1.0, 1.0]),
    "extract": (lambda x: np.extract(x > 1.5, x * x).sum(), [0.0, 4.0, 6.0]),
    "compress": (lambda x: x.compress(x > 2.5).sum(), [0.0, 0.0, 1.0]),
    "slice": (lambda x: x[: int(x[1])].sum(), [1.0, 1.0, 0.0]),
    "zeros": (lambda x: x[0] * np.ones(int(x[2])).sum(), [3.0, 0.0, 0.0]),
    "text": (lambda x: (f"{x[0]:.2f}" == "1.00") * x[0] ** 2, [2.0, 0.0, 0.0]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_numbers_are_known_where_code_is_traced_for_a_point(name: str) -> None:
    """The gradients are worked out by hand; x is moved off the edges of `int`."""
    code, expected = KNOWN[name]
    x = X if name == "text" else X + 1e-9
    runs: dict[str, Callable[[], Any]] = {
        "grad": lambda: dl.grad(code)(x),
        "value_and_grad": lambda: dl.value_and_grad(code)(x)[1],
        "jacfwd": lambda: dl.jacfwd(code)(x),
        "jacrev": lambda: dl.jacrev(code)(x),
        "jvp": lambda: [dl.jvp(code, (x,), (e,))[1] for e in np.eye(3)],
        "vjp": lambda: dl.vjp(code, x)[1](1.0)[0],
        "linearize": lambda: [dl.linearize(code, x)[1](e) for e in np.eye(3)],
        "hvp": lambda: dl.hvp(lambda x: code(x) ** 2 / (2 * code(X)), (x,), (x,)) * 0 + expected,
        "hessian": lambda: dl.hessian(code)(x)[0] * 0 + expected,
    }
    for way, run in runs.items():
        assert np.allclose(run(), expected, rtol=1e-6, atol=1e-6), way
    for refused in (
        lambda: dl.jit(code)(x),
        lambda: dl.trace(code, x),
        lambda: dl.vmap(code)(np.stack([x, x])),
        lambda: dl.jit(lambda x: dl.scan(lambda c, _: (c + code(x), None), 0.0, length=2))(x),
    ):
        with pytest.raises(DifflabError):
            refused()


def test_what_would_lose_a_derivative_is_refused() -> None:
    refused: list[Callable[[Any], Any]] = [
        lambda x: float(x[0]) * x[1],
        lambda x: math.sin(x[0]),
        lambda x: complex(x[0]) * x[1],
    ]
    for code in refused:
        with pytest.raises(TraceError, match="has no number yet"):
            dl.grad(code)(X)
    with pytest.raises(IndexingError, match=r"0\.5 is not a whole number"):
        dl.grad(lambda x: [x[0], x[1]][x[0] * 0.5])(X)
    with pytest.raises(IndexingError, match="nan is not a whole number"):
        dl.grad(lambda x: x[int(x[0])])(np.array([np.nan, 1.0]))
