"""Sums of many terms that are computed alike, written out: loops of machine code against numbers.

The values are those of NumPy on whole vectors of terms, the gradients those of straight-line code
of Python's numbers, which knows no vectors. Calls of one compiled function at a point have the same
bits before and after it is optimised, and by its address.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import difflab as dl
from difflab.execute import workers
from difflab.execute.point_calls import FEWEST_CALLS
from difflab.execute.targets.llvm.libraries import available
from difflab.graph.repetition import LEAST_NODES
from tests.differential.search import Family

__all__ = ["FAMILY"]

Tree = Any
"""A leaf ``("x", step, shift)``, ``("s",)`` or ``("c", number)``, or a form and its operands."""

FORMS = {
    "({} + {})": np.add,
    "({} - {})": np.subtract,
    "({} * {})": np.multiply,
    "({} / (2 + {}^2))": lambda a, b: a / (2 + b**2),
    "sin({})": np.sin,
    "cos({})": np.cos,
    "exp(-{}^2)": lambda a: np.exp(-(a**2)),
    "tanh({})": np.tanh,
    "log1p({}^2)": lambda a: np.log1p(a**2),
    "sqrt(1 + {}^2)": lambda a: np.sqrt(1 + a**2),
    "({}^3)": lambda a: a**3,
    "where({} > {}, {}, {})": lambda a, b, c, d: np.where(a > b, c, d),
    "max({}, {})": np.maximum,
    "abs({})": np.abs,
}
EXACT = {"({} + {})", "({} - {})", "({} * {})", "({} / (2 + {}^2))", "max({}, {})", "abs({})"}
"""Forms that every target rounds alike."""
NODES = (400, 3_200)
"""Nodes that differ from term to term, together; from `LEAST_NODES` on repetition is looked for."""
RELATIVE = 1e-12


@dataclass(frozen=True)
class _Program:
    """A term, how many there are of it, and the target; the seed draws the points.

    After each term another one may be subtracted.
    """

    tree: Tree
    other: Tree | None
    inputs: int
    terms: int
    target: str
    seed: int

    def text(self) -> str:
        """Return the sum of the terms, each written out."""
        each = [self.tree] if self.other is None else [self.tree, self.other]
        terms = [
            " - ".join(_text(tree, i, self.inputs) for tree in each) for i in range(self.terms)
        ]
        return f"x: [{self.inputs}]\n" + " + ".join(terms)

    def values(self, x: Any, s: float) -> Any:
        """Return all terms."""
        added = _values(self.tree, x, s, self.terms)
        if self.other is None:
            return added
        return np.concatenate([added, -_values(self.other, x, s, self.terms)])


def _text(tree: Tree, i: int, n: int) -> str:
    kind, *rest = tree
    if kind == "x":
        return f"x[{(rest[0] * i + rest[1]) % n}]"
    if kind == "s":
        return "s"
    if kind == "c":
        return f"({rest[0]!r})"
    return kind.format(*[_text(part, i, n) for part in rest])


def _values(tree: Tree, x: Any, s: float, terms: int) -> Any:
    kind, *rest = tree
    if kind == "x":
        return x[(rest[0] * np.arange(terms) + rest[1]) % len(x)]
    if kind == "s":
        return np.full(terms, s)
    if kind == "c":
        return np.full(terms, rest[0])
    return FORMS[kind](*[_values(part, x, s, terms) for part in rest])


def _exact(tree: Tree) -> bool:
    """Whether a term, and its derivatives by x, have the same bits in every target."""
    return tree[0] in ("x", "c") or (tree[0] in EXACT and all(map(_exact, tree[1:])))


def _varying(tree: Tree) -> int:
    """Return how many nodes of a term differ from those of other terms."""
    if tree[0] not in FORMS:
        return int(tree[0] == "x")
    found = sum(map(_varying, tree[1:]))
    return found + (found > 0)


_LEAVES = st.one_of(
    st.tuples(st.just("x"), st.sampled_from((1, 1, 1, 2, 7, -1)), st.integers(0, 3)),
    st.just(("s",)),
    st.tuples(st.just("c"), st.sampled_from((0.5, 2.0, -3.0, 0.1))),
)


def _with(inner: Any) -> Any:
    return st.one_of(
        *[st.tuples(st.just(form), *[inner] * form.count("{}")) for form in FORMS],
    )


_TREES = st.recursive(_LEAVES, _with, max_leaves=6).filter(lambda tree: 3 <= _varying(tree) <= 20)


@st.composite
def _programs(draw: Any) -> _Program:
    tree, other = draw(_TREES), draw(st.one_of(st.none(), _TREES))
    terms = -(-draw(st.sampled_from(NODES)) // _varying(tree)) + draw(st.integers(0, 8))
    inputs = terms + draw(st.integers(0, 3))
    inputs += next(more for more in range(8) if math.gcd(inputs + more, 14) == 1)  # for each step
    target = draw(st.sampled_from(("auto", "native") if available() else ("auto",)))
    return _Program(tree, other, inputs, terms, target, draw(st.integers(0, 2**32)))


def _check(program: _Program) -> None:
    f = dl.parse(program.text())
    assume(len(f.graph) >= LEAST_NODES)  # parts of a term may be equal
    fast = dl.compile(dl.value_and_gradient(f), program.target, packed=True)
    slow = dl.compile(dl.jacobian(f, "reverse"), "python", packed=True)
    points = np.random.default_rng(program.seed).normal(size=(3, f.n))
    batch = fast(points)
    for number, point in enumerate(points):
        parts = dict(zip(f.inputs, f.split(point), strict=True))
        terms = program.values(parts["x"], float(parts.get("s", 0.0)))
        first = fast(point)
        value, gradient = first
        close = partial(np.testing.assert_allclose, rtol=RELATIVE, err_msg=repr(program))
        close(value, np.sum(terms), atol=RELATIVE * np.sum(np.abs(terms)))
        expected = slow(point)[0]
        close(gradient, expected, atol=RELATIVE * np.abs(expected).max(initial=1.0))
        close(batch[0][number], value, atol=RELATIVE * np.sum(np.abs(terms)))
        close(batch[1][number], gradient, atol=RELATIVE * np.abs(expected).max(initial=1.0))
    if all(_exact(tree) for tree in (program.tree, program.other) if tree is not None):
        in_order = dl.compile(dl.value_and_gradient(f), "numpy", packed=True)
        _assert_same_bits(in_order(points[-1]), first, program)
    for _ in range(FEWEST_CALLS + 1):
        fast(points[-1])
    workers.finish()
    _assert_same_bits(fast(points[-1]), first, program)
    if fast.reason.startswith("native"):
        y = np.empty(1 + f.n)
        fast.ctypes(points[-1].ctypes, y.ctypes)
        _assert_same_bits((y[0], y[1:]), first, program)


def _assert_same_bits(found: Any, expected: Any, program: _Program) -> None:
    for one, other in zip(found, expected, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), repr(program)


FAMILY = Family("repeated", _programs(), _check, fixed=40, fresh=20)
