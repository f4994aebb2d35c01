"""Random NumPy code that changes arrays in place, against NumPy itself on plain arrays.

A program is a list of statements over names: they make views and aliases, and change parts by
augmented assignment, assignment, ``out=`` and functions that write to their argument. It is plain
NumPy code, so the same code is run on NumPy's arrays, on tensors and under the transforms. Values
are held to the run on plain arrays, and derivatives to central differences of that run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.errors import DifflabError
from tests.differential.search import Family

STEP = 2e-5
TOLERANCE = 2e-5
"""Of a slope, relative to the largest: what central differences leave."""
ROUNDING = 1e-8
SHAPES = ((6,), (2, 3), (3, 3), (2, 2, 2), (1, 4), (4, 1, 2))

VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda y: y[1:],
    "every other": lambda y: y[::2],
    "reversed": lambda y: y[::-1],
    "last axis": lambda y: y[..., :2],
    "row": lambda y: y[0],
    "last row": lambda y: y[-1],
    "column": lambda y: y[..., 0],
    "no axes": lambda y: y[(0,) * y.ndim + (...,)],
    "newaxis": lambda y: y[None],
    "inner newaxis": lambda y: y[:, None],
    "reshape": lambda y: y.reshape(-1),
    "reshape two": lambda y: y.reshape(2, -1),
    "np.reshape": lambda y: np.reshape(y, (-1, 1)),
    "ravel": lambda y: y.ravel(),
    "np.ravel": lambda y: np.ravel(y),
    "T": lambda y: y.T,
    "transpose": lambda y: np.transpose(y),
    "swapaxes": lambda y: np.swapaxes(y, 0, -1),
    "moveaxis": lambda y: np.moveaxis(y, 0, -1),
    "squeeze": lambda y: np.squeeze(y),
    "expand_dims": lambda y: np.expand_dims(y, -1),
    "split": lambda y: np.split(y, [1])[1],
    "array_split": lambda y: np.array_split(y, 2, axis=-1)[0],
    "atleast_2d": lambda y: np.atleast_2d(y),
    "flip": lambda y: np.flip(y),
    "rot90": lambda y: np.rot90(y),
    "diagonal": lambda y: np.diagonal(y),
    "broadcast_to": lambda y: np.broadcast_to(y, (2, *y.shape)),
    "iteration": lambda y: list(y)[-1],
    "real": lambda y: y.real,
    "copy": lambda y: y.copy(),
    "flatten": lambda y: y.flatten(),
    "list": lambda y: y[[0, -1, 0]],
    "mask": lambda y: y[np.arange(len(y)) % 2 == 0],
    "roll": lambda y: np.roll(y, 0),
    "positive": lambda y: +y,
    "concatenate": lambda y: np.concatenate([y]),
    "sort": lambda y: np.sort(y, axis=-1),
    "zeros_like": lambda y: np.zeros_like(y),
    "of a turned one": lambda y: y.T * 0.5,
    "of a part": lambda y: np.sin(y[..., ::-1]),
    "sum of turned ones": lambda y: y.T + np.cos(y.T),
}
"""Views and copies, and results in the memory order of their operands."""

OPERANDS: dict[str, Callable[[Any, Any], Any]] = {
    "number": lambda y, z: 0.7,
    "integer": lambda y, z: 2,
    "sum": lambda y, z: 0.3 * np.sum(np.sin(z)),
    "itself": lambda y, z: y,
    "reversed": lambda y, z: y[::-1],
    "other": lambda y, z: z,
    "constant": lambda y, z: np.linspace(0.5, 1.5, y.size).reshape(y.shape),
    "last": lambda y, z: z.reshape(-1)[-1],
}

KEYS: dict[str, Callable[[Any], Any]] = {
    "first": lambda y: 0,
    "last": lambda y: -1,
    "slice": lambda y: slice(1, None),
    "all": lambda y: slice(None),
    "dots": lambda y: ...,
    "last axis": lambda y: (..., 0),
    "backwards": lambda y: slice(None, None, -2),
    "list": lambda y: [0, -1],
    "twice": lambda y: [0, 0],
    "mask": lambda y: np.arange(len(y)) % 2 == 0,
    "whole mask": lambda y: (np.arange(y.size) % 3 == 0).reshape(y.shape),
    "newaxis": lambda y: (None, 0),
    "values": lambda y: y > 0.4,
}


def _augmented(y: Any, operator: str, new: Any) -> Any:
    """Apply an augmented assignment; a number is bound to the name again."""
    if operator == "+=":
        y += 0.5 * new
    elif operator == "-=":
        y -= 0.5 * new
    elif operator == "*=":
        y *= np.cos(new)
    elif operator == "/=":
        y /= 1.5 + 0.4 * np.sin(new)
    else:
        y **= 2
    return y


def _augmented_part(y: Any, key: Any, operator: str, new: Any) -> None:
    if operator == "+=":
        y[key] += 0.5 * new
    elif operator == "-=":
        y[key] -= 0.5 * new
    elif operator == "*=":
        y[key] *= np.cos(new)
    elif operator == "/=":
        y[key] /= 1.5 + 0.4 * np.sin(new)
    else:
        y[key] **= 2


def _normalise(v: Any) -> None:
    v /= np.sqrt((v * v).sum() + 0.5)


def _rows(y: Any, new: Any) -> None:
    for row in y:
        row *= 0.8
        if row.ndim:
            row[..., 0] += 0.1


def _swapped(y: Any, new: Any) -> None:
    y[0], y[-1] = y[-1], y[0]


def _shifted(y: Any, new: Any) -> None:
    y[1:] += y[:-1]


def _writeable(y: Any) -> Any:
    """Return an array; refuse a read-only one, to which NumPy's ``at`` writes all the same."""
    if isinstance(y, np.ndarray) and not y.flags.writeable:
        raise ValueError("read-only")
    return y


def _of_mask(y: Any, new: Any) -> None:
    mask = y > 0.3
    other = mask
    other[..., 0] = True
    other ^= y > 0.6
    y[...] = np.where(mask, y, 0.5 * y)


def _of_a_turned_result(y: Any, new: Any) -> None:
    z = y.T * 0.5
    flat = z.ravel()
    flat *= 0.5
    y[...] = z.T + 0.1 * flat[0]


def _through_a_turned_part(y: Any, new: Any) -> None:
    part = y.T
    part *= 0.9
    flat = part.reshape(-1)
    flat += 0.1


def _of_numbers(y: Any, new: Any) -> None:
    s = np.sum(np.sin(y))
    t = s
    t *= 0.5
    y *= np.cos(s) + 0.1 * t


CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "normalise": lambda y, new: _normalise(y),
    "rows": _rows,
    "swapped": _swapped,
    "shifted": _shifted,
    "masks": _of_mask,
    "numbers": _of_numbers,
    "turned result": _of_a_turned_result,
    "turned part": _through_a_turned_part,
    "out": lambda y, new: np.multiply(y, 0.9, out=y),
    "out of another": lambda y, new: np.sin(new, out=y),
    "out of a sum": lambda y, new: np.sum(y, axis=0, out=y[0]),
    "out and where": lambda y, new: np.add(y, new, out=y, where=np.arange(y.shape[-1]) % 2 == 0),
    "copyto": lambda y, new: np.copyto(y, new),
    "copyto where": lambda y, new: np.copyto(y, 0.5 * y, where=np.arange(y.shape[-1]) > 0),
    "fill": lambda y, new: y.fill(0.3),
    "put": lambda y, new: np.put(y, [0, -1], [0.2, 0.4]),
    "put values": lambda y, new: np.put(y, [1], new),
    "putmask": lambda y, new: np.putmask(y, np.arange(y.size).reshape(y.shape) % 2 == 0, new),
    "place": lambda y, new: np.place(y, np.arange(y.size).reshape(y.shape) % 2 == 0, [0.1, 0.9]),
    "fill_diagonal": lambda y, new: np.fill_diagonal(y, 0.6),
    "add.at": lambda y, new: np.add.at(_writeable(y), [0, 0, -1], 0.25),
    "subtract.at": lambda y, new: np.subtract.at(_writeable(y), [0, 0], np.sin(new)),
    "sort": lambda y, new: y.sort(),
    "sort first": lambda y, new: y.sort(0),
    "flat": lambda y, new: y.flat.__setitem__(slice(0, 2), 0.35),
    "clip": lambda y, new: np.clip(y, -0.8, 0.9, out=y),
    "list of values": lambda y, new: y.__setitem__(slice(0, 2), [y[0] * 0.5, y[-1] * 0.25]),
    "nan_to_num": lambda y, new: np.nan_to_num(y, copy=False),
}

OPERATORS = ("+=", "-=", "*=", "/=", "**=")


@dataclass(frozen=True)
class Statement:
    """One statement: its kind, the names that it uses, and what it does with them."""

    kind: str
    target: int
    other: int
    what: str
    operator: str = ""
    operand: str = ""


@dataclass(frozen=True)
class Program:
    """Statements over an argument of one shape, a point by its seed, and one more transform."""

    statements: tuple[Statement, ...]
    shape: tuple[int, ...]
    seed: int
    way: str


def statement(kind: str, whats: Any, **more: Any) -> st.SearchStrategy[Statement]:
    """Draw statements of one kind."""
    index = st.integers(0, 7)
    drawn = {name: st.sampled_from(sorted(choices)) for name, choices in more.items()}
    what = st.sampled_from(sorted(whats))
    return st.builds(Statement, st.just(kind), index, index, what, **drawn)


STATEMENTS = st.one_of(
    statement("view", VIEWS),
    statement("view", VIEWS),
    statement("view", VIEWS),
    statement("alias", ("alias",)),
    statement("augmented", ("name",), operator=OPERATORS, operand=OPERANDS),
    statement("augmented", ("name",), operator=OPERATORS, operand=OPERANDS),
    statement("assigned", KEYS, operand=OPERANDS),
    statement("part", KEYS, operator=OPERATORS, operand=OPERANDS),
    statement("change", CHANGES, operand=OPERANDS),
    statement("change", CHANGES, operand=OPERANDS),
)


def _execute(one: Statement, names: list[Any]) -> None:
    target, other = one.target % len(names), one.other % len(names)
    y = names[target]
    if one.kind == "view":
        names.append(VIEWS[one.what](y))
    elif one.kind == "alias":
        names[other] = y
    elif one.kind == "augmented":
        names[target] = _augmented(y, one.operator, OPERANDS[one.operand](y, names[other]))
    elif one.kind == "change":
        CHANGES[one.what](y, OPERANDS[one.operand](y, names[other]))
    else:
        key = KEYS[one.what](y)
        new = OPERANDS[one.operand](y, names[other])
        if one.kind == "assigned":
            y[key] = new
        else:
            _augmented_part(y, key, one.operator, new)


def run(statements: tuple[Statement, ...], x: Any) -> Any:
    """Run the program: one number that depends on every element of every name."""
    names = [x * 1.0]
    for one in statements:
        _execute(one, names)
    total = 0.0
    for place, value in enumerate(names):
        weights = np.cos(np.arange(value.size) + place).reshape(value.shape)
        total = total + np.sum(weights * np.tanh(value))
    return total


def possible(statements: tuple[Statement, ...], x: Any) -> tuple[Statement, ...]:
    """Return the statements that NumPy executes, without those that raise an error."""
    names, kept = [x * 1.0], []
    for one in statements:
        before = [name.copy() for name in names]
        try:
            _execute(one, names)
        except (ValueError, TypeError, IndexError, AttributeError):
            assert all(map(np.array_equal, before, names)), "a statement fails half done"
            continue
        kept.append(one)
    return tuple(kept)


KEPT = dl.checkpoint_with(dl.policies.optimal(bytes=64))

WAYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "jit": lambda f, x, u: dl.jit(f)(x),
    "jit of grad": lambda f, x, u: np.sum(dl.jit(dl.grad(f))(x) * u),
    "jvp": lambda f, x, u: dl.jvp(f, (x,), (u,))[1],
    "vjp": lambda f, x, u: np.sum(dl.vjp(f, x)[1](1.0)[0] * u),
    "linearize": lambda f, x, u: dl.linearize(f, x)[1](u),
    "jacfwd": lambda f, x, u: np.sum(dl.jacfwd(f)(x) * u),
    "jacrev": lambda f, x, u: np.sum(dl.jacrev(f)(x) * u),
    "vmap": lambda f, x, u: dl.vmap(f)(np.stack([x, 0.5 * x]))[0],
    "trace": lambda f, x, u: dl.trace(f, x)(x),
    "compiled": lambda f, x, u: dl.compile(dl.trace(f, x))(x),
    "checkpoint": lambda f, x, u: np.sum(dl.grad(lambda x: dl.checkpoint(f, x))(x) * u),
    "kept": lambda f, x, u: np.sum(dl.grad(KEPT(f))(x) * u),
    "scan": lambda f, x, u: (
        np.sum(dl.grad(lambda x: dl.scan(lambda c, _: (c + f(x), None), 0.0, length=2)[0])(x) * u)
        / 2
    ),
    "cond": lambda f, x, u: np.sum(
        dl.grad(lambda x: dl.cond(np.sum(x) < 1e9, f, lambda x: 0.0 * np.sum(x), x))(x) * u
    ),
    "grad of grad": lambda f, x, u: dl.grad(lambda s: np.sum(dl.grad(f)(x + s * u) * u))(0.0),
    "tensor checkpoint": lambda f, x, u: np.sum(_backward(lambda t: dl.checkpoint(f, t), x) * u),
    "tensor kept": lambda f, x, u: np.sum(_backward(KEPT(f), x) * u),
    "tensor twice": lambda f, x, u: _twice(f, x, u),
}
SLOPES = frozenset(WAYS) - {"jit", "vmap", "trace", "compiled", "grad of grad", "tensor twice"}
TRACED = frozenset(WAYS) & {
    *("jit", "jit of grad", "vmap", "trace", "compiled", "checkpoint", "kept", "scan", "cond"),
}
"""Ways without values, where masks that depend on values are refused."""

PROGRAMS = st.builds(
    Program,
    statements=st.lists(STATEMENTS, min_size=3, max_size=12).map(tuple),
    shape=st.sampled_from(SHAPES),
    seed=st.integers(0, 2**16),
    way=st.sampled_from(sorted(WAYS)),
)


def _backward(f: Callable[[Any], Any], x: Any) -> Any:
    t = dl.tensor(x, requires_grad=True)
    found = f(t)
    if found.requires_grad:  # else every name holds constants
        found.backward()
    return np.zeros(x.shape) if t.grad is None else t.grad.numpy()


def _twice(f: Callable[[Any], Any], x: Any, u: Any) -> Any:
    """Return the second derivative along a direction, by the tape's own tape."""
    t = dl.tensor(x, requires_grad=True)
    found = f(t)
    if not found.requires_grad:
        return 0.0
    found.backward(create_graph=True)
    slope = np.sum(t.grad * u)
    t.grad = None
    if slope.requires_grad:
        slope.backward()
    return 0.0 if t.grad is None else np.sum(t.grad.numpy() * u)


def _difference(f: Callable[[Any], Any], x: Any, u: Any) -> tuple[float, float]:
    """Return a slope by central differences, and how far it is from that of half the step."""
    slopes = [(f(x + h * u) - f(x - h * u)) / (2 * h) for h in (STEP, STEP / 2)]
    return float(slopes[1]), abs(float(slopes[0] - slopes[1]))


def check(program: Program) -> None:
    """Hold values and derivatives of every way to NumPy's run of the same code."""
    rng = np.random.default_rng(program.seed)
    x, u = rng.uniform(-1.0, 1.0, (2, *program.shape))
    given = x.copy()
    with np.errstate(all="ignore"):
        statements = possible(program.statements, x)

        def f(x: Any) -> Any:
            return run(statements, x)

        value = float(f(x))
        if not np.isfinite(value):
            return
        found, gradient = dl.value_and_grad(f)(x)
        taped = _backward(f, x)
        on_tensors = f(dl.tensor(x)).item()
        slope, uncertain = _difference(f, x, u)
    scale = max(1.0, float(np.abs(gradient).max()))
    close = ROUNDING * scale
    assert abs(found - value) <= ROUNDING * max(1.0, abs(value)), (found, value)
    assert abs(on_tensors - value) <= ROUNDING * max(1.0, abs(value)), (on_tensors, value)
    assert np.allclose(taped, gradient, rtol=ROUNDING, atol=close), (taped, gradient)
    ours = float(np.sum(gradient * u))
    if uncertain <= TOLERANCE * scale:  # else the steps cross a kink
        assert abs(ours - slope) <= TOLERANCE * scale * 4, (ours, slope)
    _check_way(program, statements, f, (x, u), (value, ours))
    assert np.array_equal(x, given)


def _check_way(
    program: Program,
    statements: tuple[Statement, ...],
    f: Callable[[Any], Any],
    point: tuple[Any, Any],
    wanted: tuple[float, float],
) -> None:
    x, u = point
    way = program.way
    unknown = any(one.what == "values" for one in statements)
    with np.errstate(all="ignore"):
        try:
            result = float(WAYS[way](f, x, u))
        except DifflabError:
            assert unknown
            assert way in TRACED
            return
        if way in ("grad of grad", "tensor twice"):
            slopes = [np.sum(dl.grad(f)(x + h * u) * u) for h in (-STEP, STEP)]
            expected = float(slopes[1] - slopes[0]) / (2 * STEP)
            inner = [np.sum(dl.grad(f)(x + h * u) * u) for h in (-STEP / 2, STEP / 2)]
            scale = max(1.0, abs(expected))
            if abs((inner[1] - inner[0]) / STEP - expected) > TOLERANCE * scale:
                return
            assert abs(result - expected) <= 8 * TOLERANCE * scale, (way, result, expected)
            return
    right = wanted[1] if way in SLOPES else wanted[0]
    assert abs(result - right) <= ROUNDING * 10 * max(1.0, abs(right)), (way, result, right)


FAMILY = Family("in_place", PROGRAMS, check, fixed=60, fresh=20)
