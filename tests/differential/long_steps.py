"""Random arithmetic in long `while_loop`s of plain values, which machine code takes over.

A program is the source of a condition and a step of a counter, numbers of several types and an
array. Types and bits of the result, and errors, are held to Python's own loop: at the first call,
during which the code is compiled, and at the second one, which it computes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.execute import workers
from difflab.graph.pytree import flatten
from tests.differential.search import Family

STEPS = 4_700
"""Just more than after which the second call has its code."""
FIRST = {"k": 0, "x": 0.3, "y": np.float64(-0.7), "a": np.array([0.1, -2.5, 0.0])}
AROUND = {"np": np, "c": 0.4, "d": np.float64(-0.2), "n": 3, "m": np.array([0.5, -0.25, 0.0])}
NUMBERS = ("k", "x", "x", "y", "y", "c", "d", "n", "0.5", "2", "1e-3", "-0.0")
ARRAYS = (*NUMBERS, "a", "a", "a", "m", "m")
BINARY = ("({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / {1})", "({0} / (abs({1}) + 1.5))")
UNARY = ("(-{0})", "abs({0})", "np.sqrt(abs({0}))", "np.square({0})", "(0.25 * {0})")
UNARY += ("np.exp({0})", "np.sin({0})", "np.tanh({0})", "np.log({0})", "np.log1p(abs({0}))")


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.builds(lambda form, *args: form.format(*args), st.sampled_from(BINARY), inner, inner)
    one = st.builds(lambda form, arg: form.format(arg), st.sampled_from(UNARY), inner)
    chosen = st.builds("np.where({} < {}, {}, {})".format, inner, inner, inner, inner)
    return two | two | one | chosen


TERMS = st.recursive(st.sampled_from(NUMBERS), _joined, max_leaves=5)
WHOLE = st.recursive(st.sampled_from(ARRAYS), _joined, max_leaves=5)


@dataclass(frozen=True)
class Steps:
    """The next value of each part of the value, as text."""

    x: str
    y: str
    a: str
    count: int

    def functions(self) -> tuple[Any, Any]:
        """Return the condition and the step."""
        names: dict[str, Any] = dict(AROUND)
        source = (
            f"def go(v):\n    return v['k'] < {STEPS * self.count}\n"
            "def step(v):\n    k, x, y, a = v['k'], v['x'], v['y'], v['a']\n"
            f"    return {{'k': k + {self.count}, 'x': {self.x}, 'y': {self.y}, 'a': {self.a}}}\n"
        )
        exec(source, names)
        return names["go"], names["step"]


PROGRAMS = st.builds(
    Steps,
    TERMS.map("{} * 0.5".format) | st.just("0.9 * x + 0.01"),
    TERMS.map("{} * 0.5".format) | st.just("d * y - 0.5"),
    WHOLE.map("a * 0.5 + m * {}".format),
    st.sampled_from((1, 1, 7)),
)


def _outcome(run: Any) -> Any:
    """Return the types and bits of a result, or what was raised or warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = run()
        except Exception as error:
            return type(error), str(error)
    parts, structure = flatten(found)
    return structure, [(type(part), np.shape(part), np.asarray(part).tobytes()) for part in parts]


def _in_python(go: Any, step: Any, value: Any) -> Any:
    shapes = {name: np.shape(part) for name, part in value.items()}
    while go(value):
        value = step(value)
        if {name: np.shape(part) for name, part in value.items()} != shapes:
            raise dl.errors.ShapeError("changes its shape")
    return value


def check(program: Steps) -> None:
    """Compare two calls with Python's loop."""
    go, step = program.functions()
    wanted = _outcome(lambda: _in_python(go, step, dict(FIRST)))
    for _ in range(2):
        found = _outcome(lambda: dl.while_loop(go, step, dict(FIRST)))
        workers.finish()
        if wanted[0] is dl.errors.ShapeError:
            assert found[0] is dl.errors.ShapeError, (found, wanted)
        else:
            assert found == wanted, (found, wanted)


FAMILY = Family("long_steps", PROGRAMS, check, fixed=6, fresh=6)
