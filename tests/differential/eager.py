"""Random programs of tensors, each run three times on difflab and once on PyTorch.

The three runs must agree bit for bit, in every value and gradient: the second sweep over a tape is
recorded and the third replayed. PyTorch computes what the documented rule says: a value is a
value, so that a change in place is written there as a new tensor, and a leaf that is changed
outside of the tape as a new leaf, whose gradient is added to the old one's. Without PyTorch the
three runs are compared with each other alone.

In every run a gradient has the type of what it belongs to, also where the first leaf is of single
precision, and gradients and seeds that are changed in place change nothing else.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab import arrays
from difflab.eager import grad
from difflab.errors import TapeError
from tests.differential import network
from tests.differential.factored import FACTORED, separated
from tests.differential.nearness import cancelled, close, reach
from tests.differential.peer_tapes import PeerRun, torch
from tests.differential.search import Family
from tests.differential.tapes import CHANGING, SELECTING, Action, Decoder, weights, written

TOLERANCE = 1e-10
"""Of an answer relative to the largest number of its array. A program has about ten operations,
each of which rounds differently in PyTorch by a few 1e-16 of its value; what is subtracted loses
four digits at most before `judge` asks how well conditioned the program is."""
NUDGE, NUDGES = 1e-9, 8
"""How far leaves are moved, relatively, to see how much of that arrives at an answer."""
ROUNDED = 1e-13
"""Of the numbers that a run has to do with (see `reach`): what is left where a sum should be 0."""
SINGLE_EVERY = 4
"""One program in so many is run with a leaf of single precision, too."""

counts: Counter[str] = Counter()
"""How programs ended: "agreed", with "ill-conditioned", "cancelled"; "refused" (6 of 100)."""


@dataclass(frozen=True)
class Program:
    """Bytes that stand for leaves and actions (see `tapes`)."""

    data: bytes

    def __repr__(self) -> str:
        run = OurRun(self.data)
        with np.errstate(all="ignore"), suppress(TapeError):
            run.first()
        leaves = [f"v{n} = leaf({leaf.tolist()})" for n, leaf in enumerate(run.decoder.leaves)]
        body = "\n".join([*leaves, *run.lines])
        return f"Program(bytes.fromhex('{self.data.rstrip(bytes(1)).hex()}'))\n{body}\n"


class Value:
    """A tensor of a program."""

    def __init__(self, tensor: Any, changeable: bool = True) -> None:
        self.tensor = tensor
        self.changeable = changeable
        self.viewed = False

    @property
    def numbers(self) -> np.ndarray[Any, Any]:
        """The numbers as they are now."""
        return np.asarray(self.tensor._data)


@dataclass
class Results:
    """All numbers that a run gives."""

    values: list[Any] = field(default_factory=list)
    gradients: list[Any] = field(default_factory=list)
    retained: list[Any] = field(default_factory=list)
    watched: list[Any] = field(default_factory=list)
    second: list[Any] = field(default_factory=list)


class OurRun:
    """One run of a program on difflab, if wanted with a first leaf of single precision."""

    def __init__(self, data: bytes, *, single: bool = False) -> None:
        self.decoder = Decoder(data)
        self.single = single
        self.values: list[Value] = []
        self.actions: list[Action] = []
        self.lines: list[str] = []
        self.watched: list[Any] = []
        self.kept: list[int] = []

    def first(self) -> Results:
        """Run, choosing the actions on the way."""
        self.begin()
        for action in self.decoder.actions(self.values):
            self.actions.append(action)
            self.lines.append(written(action, len(self.values)))
            getattr(self, action[0])(*action[1:])
        return self.finished()

    def again(self, actions: list[Action]) -> Results:
        """Run known actions."""
        self.begin()
        for action in actions:
            getattr(self, action[0])(*action[1:])
        return self.finished()

    def begin(self) -> None:
        numbers = list(self.decoder.leaves)
        if self.single:
            numbers[0] = numbers[0].astype(np.float32)
        self.leaves = [dl.tensor(leaf, requires_grad=True) for leaf in numbers]
        self.values += [Value(leaf, changeable=False) for leaf in self.leaves]

    def finished(self) -> Results:
        """Go backward from all values that nothing was made of lately, and collect."""
        found = Results([np.array(value.numbers) for value in self.values])
        self.backward(len(self.values) - 1)
        found.gradients = [gradient_of(leaf) for leaf in self.leaves]
        found.retained = [gradient_of(self.values[place].tensor) for place in self.kept]
        found.watched = list(self.watched)
        self.returned(self.values[-1].tensor)
        found.second = self.twice(len(self.values) - 1)
        return found

    def returned(self, last: Any) -> None:
        """Hold `difflab.eager.grad` to what `backward` adds to the leaves."""
        if not last.requires_grad:
            return
        stored = [leaf.grad for leaf in self.leaves]
        for leaf in self.leaves:
            leaf.grad = None
        seed = weights(last.shape)
        found = grad(last, self.leaves, seed, retain_graph=True, allow_unused=True)
        assert all(leaf.grad is None for leaf in self.leaves)
        last.backward(seed, retain_graph=True)
        for leaf, bar, before in zip(self.leaves, found, stored, strict=True):
            ours = None if bar is None else _array(bar, leaf.dtype)
            assert_same_bits(ours, gradient_of(leaf), "grad and backward differ")
            leaf.grad = before

    def twice(self, a: int) -> list[Any]:
        """Return the gradient of a sum of the gradient's numbers, each with a weight."""
        for leaf in self.leaves:
            leaf.zero_grad()
        last = self.values[a].tensor
        if not (self.decoder.twice and last.requires_grad):
            return []
        np.sum(last).backward(create_graph=True)
        slopes = [leaf.grad for leaf in self.leaves]
        total: Any = 0.0
        for leaf, slope in zip(self.leaves, slopes, strict=True):
            leaf.zero_grad()
            if slope is not None:
                total = total + np.sum(slope * weights(slope.shape))
        if getattr(total, "requires_grad", False):
            total.backward(retain_graph=True)
        second = [gradient_of(leaf) for leaf in self.leaves]
        self.keep_apart(last)
        return second

    def keep_apart(self, last: Any) -> None:
        """Change gradients that were recorded, and their seed, in place, one after another."""
        for leaf in self.leaves:
            leaf.zero_grad()
        seed = dl.tensor(np.ones(last.shape, last.dtype))
        last.backward(seed, create_graph=True)
        tensors = [seed, *[leaf.grad for leaf in self.leaves if leaf.grad is not None]]
        tensors = [tensor for tensor in tensors if tensor.shape]  # names of numbers are bound again
        before = [_array(tensor) for tensor in tensors]
        with dl.no_grad():
            for tensor in tensors:
                tensor *= 4.0
        for tensor, numbers in zip(tensors, before, strict=True):
            assert bits(_array(tensor)) == bits(4 * numbers), "gradients are one tensor"

    def make(self, tensor: Any) -> None:
        """Add a value; views and what they show are changed by the programs of `in_place`."""
        view = tensor._view is not None
        for value in self.values:
            if view and np.shares_memory(value.numbers, np.asarray(tensor._data)):
                value.viewed, value.changeable = True, False
        self.values.append(Value(tensor, changeable=not view))

    def unary(self, a: int, name: str) -> None:
        self.make(OURS[name](self.values[a].tensor))

    def binary(self, a: int, b: int, name: str) -> None:
        made = getattr(np, name)(self.values[a].tensor, self.values[b].tensor)
        self.make(made + 0.0 if name == "matmul" else made)

    def number(self, a: int, name: str, number: float) -> None:
        self.make(with_number(name, self.values[a].tensor, number))

    def array(self, a: int, name: str, array: Any) -> None:
        self.make(getattr(np, name)(self.values[a].tensor, array))

    def power(self, a: int, exponent: float) -> None:
        self.make(self.values[a].tensor ** exponent)

    def reduce(self, a: int, name: str, axis: Any, keepdims: bool) -> None:
        self.make(getattr(arrays, name)(self.values[a].tensor, axis, keepdims))

    def move(self, a: int, name: str, *shape: Any) -> None:
        self.make(getattr(np, name)(self.values[a].tensor, *shape))

    def index(self, a: int, key: Any) -> None:
        self.make(self.values[a].tensor[key])

    def gram(self, a: int) -> None:
        flat = self.values[a].tensor.reshape(-1, 1)
        self.make(flat @ flat.T + 0.0)  # of sums of zeros the sign is anything

    def factored(self, a: int, name: str, size: int) -> None:
        flat = self.values[a].tensor.reshape(-1)[:size]
        matrix = separated(np, flat[:, None] - 0.3 * flat[None, :])
        self.make(FACTORED[name](np, matrix))

    def where(self, a: int, b: int, mask: Any) -> None:
        self.make(np.where(mask, self.values[a].tensor, self.values[b].tensor))

    def chosen(self, a: int, bound: float) -> None:
        x = self.values[a].tensor
        self.make(np.where(x > bound, x, 0.5 * x**2))

    def join(self, a: int, b: int, name: str) -> None:
        self.make(getattr(np, name)([self.values[a].tensor, self.values[b].tensor]))

    def change(self, a: int, name: str, number: float) -> None:
        self.values[a].tensor = in_place(name, self.values[a].tensor, number)

    def change_by(self, a: int, b: int, name: str) -> None:
        self.values[a].tensor = in_place(name, self.values[a].tensor, self.values[b].tensor)

    def assign(self, a: int, key: Any, number: float) -> None:
        self.values[a].tensor[key] = number

    def assign_from(self, a: int, b: int, key: Any) -> None:
        self.values[a].tensor[key] = self.values[b].tensor

    def update(self, a: int, factor: float) -> None:
        with dl.no_grad():
            self.leaves[a] *= factor

    def hook(self, a: int, name: str) -> None:
        tensor = self.values[a].tensor
        if not tensor.requires_grad:
            return
        if name == "double":
            tensor.register_hook(lambda bar: bar * 2.0)
        elif a >= len(self.leaves):
            dtype = tensor.dtype
            tensor.register_hook(lambda bar: self.watched.append(_array(bar, dtype)))

    def retain(self, a: int) -> None:
        if a >= len(self.leaves) and self.values[a].tensor.requires_grad:
            self.values[a].tensor.retain_grad()
            self.kept.append(a)

    def backward(self, a: int) -> None:
        tensor = self.values[a].tensor
        if tensor.requires_grad:
            seed = np.array(weights(tensor.shape))
            tensor.backward(seed, retain_graph=True)
            seed[...] = np.nan  # it is the caller's

    def detach(self, a: int) -> None:
        self.values[a].changeable = False
        self.values.append(Value(self.values[a].tensor.detach(), changeable=False))


def with_number(name: str, x: Any, number: float) -> Any:
    """Return an operation with a plain number on either side."""
    if name == "multiply":
        return x * number
    if name == "add":
        return number + x
    if name == "rsubtract":
        return number - x
    if name == "subtract":
        return x - number
    return x / number if name == "divide" else number / x


def in_place(name: str, x: Any, other: Any) -> Any:
    """Change a tensor in place; a number is bound again, as NumPy's are."""
    if name == "multiply":
        x *= other
    elif name == "add":
        x += other
    elif name == "subtract":
        x -= other
    else:
        x /= other
    return x


def gradient_of(tensor: Any) -> Any:
    """Return the numbers of a tensor's gradient, if it has one."""
    return None if tensor.grad is None else _array(tensor.grad, tensor.dtype)


def _array(tensor: Any, dtype: Any = None) -> Any:
    assert dtype is None or tensor.dtype == dtype, f"a gradient of {tensor.dtype}, not {dtype}"
    return np.array(tensor.detach())


OURS = {
    name: getattr(np, name)
    for name in (
        *("sin", "tanh", "exp", "cos", "square", "negative", "absolute", "sqrt", "log"),
        *("arctan", "sign", "reciprocal", "expm1", "log1p"),
    )
} | {
    "relu": lambda x: dl.primitives.relu(x) + 0.0,  # of two zeros either is the larger
    "sigmoid": dl.primitives.sigmoid,
    "softmax": lambda x: arrays.softmax(x.reshape(-1)),
    "cumsum": lambda x: np.cumsum(x),
    "cumprod": lambda x: np.cumprod(x),
    "flip": lambda x: np.flip(x),
    "roll": lambda x: np.roll(x, 2),
    "triangle": lambda x: np.tril(np.atleast_2d(x)),
    "sort": lambda x: np.sort(x, axis=None),
    "spread": lambda x: np.var(x, ddof=0, keepdims=True),
    **network.OURS,
}


def check(program: Program) -> None:
    """Compare three runs with each other, and with PyTorch."""
    first = OurRun(program.data)
    runs: list[Any] = []
    with np.errstate(all="ignore"):
        for _ in range(3):
            try:
                runs.append(OurRun(program.data).again(first.actions) if runs else first.first())
            except TapeError as error:
                runs.append(str(error.message))
    for run in runs[1:]:
        same(runs[0], run)
    if isinstance(runs[0], str):
        assert "changed in place" in runs[0], runs[0]
        assert any(action[0] in CHANGING for action in first.actions), runs[0]
        counts["refused"] += 1
        return
    with np.errstate(all="ignore"):
        if program.data[-1] % SINGLE_EVERY == 0:
            with suppress(TapeError):
                OurRun(program.data, single=True).again(first.actions)
        if torch is not None:
            judge(program, first.actions, runs[0])
    counts["agreed"] += 1


def same(one: Any, other: Any) -> None:
    """Compare two runs bit for bit; any nan is like any other."""
    if isinstance(one, str) or isinstance(other, str):
        assert one == other, (one, other)
        return
    for name in ("values", "gradients", "retained", "watched", "second"):
        pairs = zip(getattr(one, name), getattr(other, name), strict=True)
        for place, (a, b) in enumerate(pairs):
            assert_same_bits(a, b, f"runs differ in {name}[{place}]")


def assert_same_bits(a: Any, b: Any, what: str) -> None:
    """Compare two arrays, or None, bit for bit."""
    equal = (a is None) == (b is None) and (a is None or bits(a) == bits(b))
    assert equal, f"{what}:\n{a}\n{b}"


def bits(array: Any) -> bytes:
    """Return the bytes of an array, with one kind of nan."""
    return bytes(np.where(np.isnan(array), np.nan, array).tobytes())


def judge(program: Program, actions: list[Action], ours: Results) -> None:
    """Compare a run with PyTorch's; where they differ, ask how well conditioned that is."""
    start = Decoder(program.data)
    theirs = PeerRun(start.leaves, start.twice).run(actions)
    if any(action[0] == "hook" and action[-1] == "double" for action in actions):
        ours.second = theirs.second = []  # a rule that reads its result meets the hook again
    tolerant = any(SELECTING & set(map(str, action)) for action in actions)
    wrong = [
        (name, place, a, b)
        for name in ("values", "gradients", "retained", "watched", "second")
        for place, (a, b) in enumerate(zip(getattr(ours, name), getattr(theirs, name), strict=True))
        if not close(a, b, TOLERANCE, tolerant or name == "second")
    ]
    if not wrong:
        return
    if cancelled(ours.values) or cancelled(theirs.values):
        counts["cancelled"] += 1
        return
    spread = sensitivity(program, actions, theirs)  # rarely asked for
    if np.inf in spread["values"]:  # rounding decides whether a value is infinite
        counts["ill-conditioned"] += 1
        return
    scale = reach(ours.values)
    for name, place, a, b in wrong:
        order = 1 if name == "values" else 3 if name == "second" else 2
        allowed = ROUNDED * scale**order + 1e-14 / NUDGE * spread[name][place]
        assert close(a, b, TOLERANCE, tolerant or name == "second", allowed), (
            f"{name}[{place}] differs from PyTorch's:\n{a}\n{b}\n{program!r}"
        )
    counts["ill-conditioned"] += 1


def sensitivity(program: Program, actions: list[Action], theirs: Any) -> dict[str, list[float]]:
    """Return how far PyTorch's answers move with the leaves."""
    moved = []
    start = Decoder(program.data)
    for number in range(NUDGES):
        leaves = [
            leaf * (1 + NUDGE * np.cos(1 + number + np.arange(leaf.size)).reshape(leaf.shape))
            for leaf in start.leaves
        ]
        moved.append(PeerRun(leaves, start.twice).run(actions))
    found = {}
    for name in ("values", "gradients", "retained", "watched", "second"):
        found[name] = [
            0.0 if a is None else max(float(apart(a, b).max(initial=0.0)) for b in others)
            for a, *others in zip(
                getattr(theirs, name), *[getattr(other, name) for other in moved], strict=False
            )
        ]
    return found


def apart(one: Any, other: Any) -> Any:
    """Return how far numbers are from each other: infinitely where one is no number or infinite."""
    with np.errstate(invalid="ignore"):
        far = np.nan_to_num(np.abs(one - other), nan=np.inf, posinf=np.inf)
    return np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0.0, far)


FAMILY = Family(
    name="eager",
    programs=st.binary(min_size=64, max_size=64).map(Program),
    check=check,
    fixed=1000,
    fresh=300,
)
