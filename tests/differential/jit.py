"""``dl.jit(f)`` against `f`: functions whose surroundings change from call to call.

A program is a function that reads global variables, variables of enclosing functions, objects,
other functions, tensors, modules and static arguments, and a sequence of events: something that it
reads is replaced or changed in place, an optimizer makes a step, or its arguments have other
values, shapes, dtypes or trees. After each event the compiled function, or a transform of it, is
held to the plain one.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from tests.differential.nearness import assert_close
from tests.differential.search import Family

TOLERANCE = 1e-11
"""Of the largest number of the result, and of 1: every line has slopes of a few units."""
SINGLE = 1e-5
"""The same for calls on float32, which are rounded to it as NumPy's are."""

LINES = {
    "global": "x = x * RATE",
    "global array": "x = x + np.sum(TABLE * TABLE)",
    "flag": "x = np.exp(-x * x) if FLAG else np.cos(x)",
    "mode": "x = np.tanh(x) if MODE == 'tanh' else np.sin(x)",
    "turns": "for _ in range(TURNS): x = 0.5 * x + np.sin(x)",
    "tags": "x = x * (0.5 if 'half' in TAGS else 1.5)",
    "closure": "x = np.tanh(x) + shift",
    "closure array": "x = x * offsets[1] + offsets[0]",
    "list": "x = x + weights[1]",
    "nested list": "x = x * rows[0][1]",
    "dict": "x = x - options['bias']",
    "object": "x = np.sin(x) * box.rate",
    "inner object": "x = x + box.inner.level",
    "class": "x = x + box.BASE",
    "method": "x = box.scaled(x)",
    "helper": "x = helper(x)",
    "helper's global": "x = damped(x)",
    "default": "x = around(x)",
    "cond": "x = dl.cond(LEVEL > 0.5, np.sin, np.cos, x)",
    "loop": "x = dl.fori_loop(0, TURNS, lambda i, y: np.sin(y + RATE), x)",
    "static": "x = x + 0.25 * n",
    "static branch": "x = np.cos(x) if n % 2 else x * 0.5",
    "static loop": "for k in range(n): x = np.sin(x) + 0.1 * k",
    "size": "x = x / size",
    "tensor": "x = x * w.detach().numpy()[0]",
    "tensor's item": "x = x + w[1].item()",
    "tensor's gradient": "x = x + (0.0 if w.grad is None else w.grad[0].item())",
    "module": "x = x + np.sum(applied(layer, x))",
    "module in a list": "x = x - np.sum(applied(nets[0], x))",
    "module's mode": "x = x * (0.5 if layer.training else 1.5)",
    "package": "x = x * package.sub.rate",
    "package in a list": "x = x * packages[0].rate",
    "package's new attribute": "x = x * getattr(package, 'extra', 1.5)",
    "import": "import users_package.sub as sub; x = x + sub.rate",
    "function's attribute": "x = x + tripled.rate",
    "object array": "x = x + objects[0]",
    "context": "x = x * context.get()",
    "reference": "x = x * reference().rate",
    "chain": "x = x - chain['bias']",
    "bytes": "x = x + 0.01 * raw[0]",
    "name": "x = x * globals()['RATE']",
    "stream": "x = x + next(stream)",
}
"""What a line computes from x, by what it reads."""

MODULE = """
import weakref
from collections import ChainMap
from contextvars import ContextVar
import numpy as np
import difflab as dl
from difflab import nn

class Inner:
    def __init__(self): self.level = 0.25

class Box:
    BASE = 0.5
    def __init__(self): self.rate, self.inner = 0.75, Inner()
    def scaled(self, x): return x * self.rate + self.inner.level

def tripled(x): return np.sin(3 * x)
def halved(x): return np.sin(x / 2)
def damped(x): return x * FACTOR

RATE, TABLE, FLAG, MODE, TURNS, TAGS = 0.5, np.array([0.1, 0.2]), True, "tanh", 2, {"half"}
LEVEL, FACTOR, helper, box = 0.75, 0.9, tripled, Box()
weights, rows, options = [0.1, 0.2], [[0.3, 0.4]], {"bias": 0.5}

nn.manual_seed(0)
w, layer = dl.tensor([0.5, 0.25], requires_grad=True), nn.Linear(1, 1)
nets = [nn.Sequential(nn.Linear(1, 2), nn.BatchNorm1d(2), nn.Tanh(), nn.Linear(2, 1)).eval()]
def applied(model, x):
    y = model(np.reshape(x, (-1, 1)))
    return y.detach().array() if isinstance(y, dl.Tensor) else y

packages, tripled.rate = [package.sub], 0.2
objects, context = np.array([0.1, None]), ContextVar("context", default=0.8)
held, chain, raw = Box(), ChainMap({}, options), bytearray([5])
reference = weakref.ref(held)
def count():
    while True: yield box.rate
stream = count()

def make():
    shift, offsets = 0.1, np.array([0.2, 0.8])
    def around(x, power=2): return np.tanh(x) ** power
    def set_shift(value):
        nonlocal shift
        shift = value
    def set_offsets(value, inside):
        nonlocal offsets
        if inside: offsets[0] = value
        else: offsets = np.array([value, 0.8])
    def set_power(value): around.__defaults__ = (value,)
    def f(tree, n):
        total, parts = 0.0, []
        for x in leaves(tree):
            size = max(np.size(x), 1) if not hasattr(x, "size") else max(x.size, 1)
            {lines}
            total = total + np.sum(x)
            parts.append(x)
        return {result}
    return f, set_shift, set_offsets, set_power

f, set_shift, set_offsets, set_power = make()
"""
SMALL = [0.25, -0.5, 0.75, 1.25, -1.0]


class Pair(NamedTuple):
    """A container with names."""

    left: Any
    right: Any


@dataclass
class Record:
    """A container that is a dataclass."""

    first: Any
    second: Any


TREES: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: {"b": a, "a": b},
    lambda a, b: [a, (b, None)],
    lambda a, b: Pair(a, {"inner": b}),
    lambda a, b: Record(a, [b]),
    lambda a, b: (a, b),
)


def leaves(tree: Any) -> Iterator[Any]:
    """Yield the leaves of a tree, in Python's own words."""
    if isinstance(tree, Record):
        tree = (tree.first, tree.second)
    if isinstance(tree, dict):
        tree = [tree[key] for key in sorted(tree)]
    if isinstance(tree, tuple | list):
        for part in tree:
            yield from leaves(part)
    elif tree is not None:
        yield tree


def _in_place(tensor: Any, value: float, k: int) -> None:
    """Change a tensor by an augmented assignment, by an element, or through its twin."""
    with dl.no_grad():
        if k % 3 == 0:
            tensor += value
        else:
            (tensor if k % 3 == 1 else tensor.detach())[k % len(tensor)] = value


def _descend(parameters: list[Any], loss: Any) -> None:
    loss.backward()
    dl.optim.SGD(parameters, lr=0.05).step()


Event = tuple[str, int]
WORLD: dict[str, Callable[[dict[str, Any], float, int], Any]] = {
    "global": lambda w, v, k: w.update(RATE=v),
    "global array": lambda w, v, k: w.update(TABLE=np.array([v, 0.2])),
    "global array inside": lambda w, v, k: w["TABLE"].__setitem__(0, v),
    "flag": lambda w, v, k: w.update(FLAG=not w["FLAG"]),
    "mode": lambda w, v, k: w.update(MODE=("tanh", "sin")[k % 2]),
    "turns": lambda w, v, k: w.update(TURNS=k % 4),
    "tags": lambda w, v, k: (w["TAGS"].add if k % 2 else w["TAGS"].discard)("half"),
    "closure": lambda w, v, k: w["set_shift"](v),
    "closure array": lambda w, v, k: w["set_offsets"](v, False),
    "closure array inside": lambda w, v, k: w["set_offsets"](v, True),
    "list": lambda w, v, k: w["weights"].__setitem__(1, v),
    "nested list": lambda w, v, k: w["rows"][0].__setitem__(1, v),
    "row": lambda w, v, k: w["rows"].__setitem__(0, [0.3, v]),
    "dict": lambda w, v, k: w["options"].update(bias=v),
    "object": lambda w, v, k: setattr(w["box"], "rate", v),
    "inner object": lambda w, v, k: setattr(w["box"].inner, "level", v),
    "another object": lambda w, v, k: w.update(box=w["Box"]()),
    "class": lambda w, v, k: setattr(w["Box"], "BASE", v),
    "method": lambda w, v, k: setattr(w["Box"], "scaled", lambda self, x: x * v),
    "helper": lambda w, v, k: w.update(helper=w[("tripled", "halved")[k % 2]]),
    "helper's global": lambda w, v, k: w.update(FACTOR=v),
    "default": lambda w, v, k: w["set_power"](1 + k % 3),
    "level": lambda w, v, k: w.update(LEVEL=v),
    "tensor": lambda w, v, k: _in_place(w["w"], v, k),
    "tensor by an optimizer": lambda w, v, k: _descend([w["w"]], np.sum(w["w"] ** 2)),
    "tensor's gradient": lambda w, v, k: np.sum(w["w"] * v).backward(),
    "module": lambda w, v, k: _in_place(next(w["layer"].parameters()), v, 0),
    "module by a state": lambda w, v, k: w["layer"].load_state_dict({"weight": [[v]], "bias": [v]}),
    "module by an optimizer": lambda w, v, k: _descend(
        list(w["layer"].parameters()), np.sum(w["layer"](np.ones((3, 1))) ** 2)
    ),
    "module's mode": lambda w, v, k: w["layer"].train(k % 2 == 0),
    "module in a list by statistics": lambda w, v, k: (
        w["nets"][0].train()(dl.tensor([[v], [2.0], [k / 10]])),
        w["nets"][0].eval(),
    ),
    "module in a list": lambda w, v, k: w["nets"][0][1].running_mean.__setitem__(0, v),
    "package": lambda w, v, k: setattr(w["package"].sub, "rate", v),
    "package's new attribute": lambda w, v, k: setattr(w["package"], "extra", v),
    "import": lambda w, v, k: setattr(w["package"].sub, "rate", v),
    "function's attribute": lambda w, v, k: setattr(w["tripled"], "rate", v),
    "object array": lambda w, v, k: w["objects"].__setitem__(0, v),
    "context": lambda w, v, k: w["context"].set(v),
    "reference": lambda w, v, k: setattr(w["held"], "rate", v),
    "chain": lambda w, v, k: w["options"].update(bias=v),
    "chain before": lambda w, v, k: w["chain"].update(bias=v),
    "bytes": lambda w, v, k: w["raw"].__setitem__(0, k),
    "name": lambda w, v, k: w.update(RATE=v),
    "nothing": lambda w, v, k: None,
}
"""Events outside of the arguments; `v` is a number, `k` chooses."""
DTYPES = ("float64", "float32", "int64", "bool")
ARGUMENTS = ("values", "shape", "dtype", "tree", "static")
TRANSFORMS = ("none", "none", "jit of grad", "grad of jit", "vmap of jit", "jit of vmap")


@dataclass(frozen=True)
class Program:
    """A function, and what happens between its calls.

    Attributes
    ----------
    lines : tuple of str
        What it computes, from `LINES`.
    transform : str
        What is called.
    target : str
        The target of `jit`.
    events : tuple
        Each with a number that chooses its details.
    """

    lines: tuple[str, ...]
    transform: str
    target: str
    events: tuple[Event, ...]


# Half of the events concern what the lines read.
def _events(lines: tuple[str, ...]) -> st.SearchStrategy[tuple[Event, ...]]:
    near = [name for name in WORLD if any(name.startswith(line) for line in lines)] or ["nothing"]
    kinds = st.one_of(
        st.sampled_from(near), st.sampled_from(sorted(WORLD)), st.sampled_from(ARGUMENTS)
    )
    return st.lists(st.tuples(kinds, st.integers(0, 59)), min_size=1, max_size=6).map(tuple)


PROGRAMS = (
    st.lists(st.sampled_from(sorted(LINES)), min_size=1, max_size=4)
    .map(tuple)
    .flatmap(
        lambda lines: st.builds(
            Program,
            lines=st.just(lines),
            transform=st.sampled_from(TRANSFORMS),
            target=st.sampled_from(["auto", "auto", "auto", "numpy"]),
            events=_events(lines),
        )
    )
)


class _Arguments:
    """The arguments of the next call."""

    def __init__(self) -> None:
        self.shapes: tuple[tuple[int, ...], ...] = ((2,), ())
        self.tree, self.n, self.seed = TREES[0], 1, 0
        self.dtypes: tuple[str, ...] = ("float64", "float64")

    def change(self, kind: str, k: int) -> None:
        if kind == "values":
            self.seed = k
        elif kind == "shape":
            self.shapes = (((2,), ()), ((3,), (2, 2)), ((), ()), ((1,), (3,)))[k % 4]
        elif kind == "dtype":
            self.dtypes = (DTYPES[k % 4], DTYPES[k // 4 % 4])
        elif kind == "tree":
            self.tree = TREES[k % len(TREES)]
        else:
            self.n = k % 4

    def drawn(self, stack: tuple[int, ...], dtypes: Sequence[str]) -> Any:
        """Return the trees of a call; those of any dtypes hold the same numbers."""
        draw = np.random.default_rng(self.seed)
        found = [
            draw.uniform(-1.5, 1.5, (*stack, *shape)).astype(own).astype(dtype)
            for shape, own, dtype in zip(self.shapes, self.dtypes, dtypes, strict=True)
        ]
        return self.tree(*[value[()] for value in found])


def _transformed(transform: str, f: Callable[..., Any], target: str | None) -> Callable[..., Any]:
    """Return a transform of `f`, compiled unless `target` is None."""

    def jit(g: Callable[..., Any]) -> Callable[..., Any]:
        return g if target is None else dl.jit(g, static_argnums=1, target=target)

    return {
        "none": lambda: jit(f),
        "jit of grad": lambda: jit(dl.grad(f)),
        "grad of jit": lambda: dl.grad(jit(f)),
        "vmap of jit": lambda: dl.vmap(jit(f), in_axes=(0, None)),
        "jit of vmap": lambda: jit(dl.vmap(f, in_axes=(0, None))),
    }[transform]()


def _package() -> ModuleType:
    """Return a package of the user's with a module in it, which code can import."""
    names = ("users_package", "users_package.sub")
    package, sub = modules = [ModuleType(name) for name in names]
    package.__dict__["sub"] = sub
    for name, module in zip(names, modules, strict=True):
        module.__dict__.update(rate=0.7, __file__=f"{name}.py")
        sys.modules[name] = module
    return package


def check(program: Program) -> None:
    """Hold every call of the compiled function to one of the plain function."""
    lines = "\n            ".join(LINES[name] for name in program.lines)
    scalar = "grad" in program.transform
    result = "total" if scalar else "{'total': total, 'parts': parts}"
    source = MODULE.replace("{lines}", lines).replace("{result}", result)
    world: dict[str, Any] = {"__name__": "program", "leaves": leaves, "package": _package()}
    exec(compile(source, "<program>", "exec"), world)
    fast = _transformed(program.transform, world["f"], program.target)
    plain = _transformed(program.transform, world["f"], None)
    arguments = _Arguments()
    stack = (2,) if "vmap" in program.transform else ()
    for kind, k in (("nothing", 0), *program.events):
        if kind in WORLD:
            WORLD[kind](world, SMALL[k % len(SMALL)], k)
        else:
            arguments.change(kind, k)
        # There are no derivatives by integers.
        dtypes = [
            "float64" if scalar and not dtype.startswith("float") else dtype
            for dtype in arguments.dtypes
        ]
        with warnings.catch_warnings():
            # What a run reads on, such as a generator, is named: every call traces the function.
            warnings.filterwarnings("ignore", "jit of .*: every call traces it")
            found = fast(arguments.drawn(stack, dtypes), arguments.n)
        expected = plain(arguments.drawn(stack, ("float64", "float64")), arguments.n)
        tolerance = SINGLE if "float32" in dtypes else TOLERANCE
        _compare(found, expected, tolerance, f"after {kind!r} of\n{source}")


def _compare(found: Any, expected: Any, tolerance: float, where: str) -> None:
    assert type(found) is type(expected) or not isinstance(expected, dict | tuple | list), where
    mine, theirs = list(leaves(found)), list(leaves(expected))
    assert len(mine) == len(theirs), where
    for one, other in zip(mine, theirs, strict=True):
        assert_close(one, other, tolerance, where)


FAMILY = Family("jit", PROGRAMS, check, fixed=100, fresh=30)
