"""Graphs with loops, branches, solvers and checkpoints in other processes, and as copies."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl

LOADED = """
import pickle, sys
function, point = pickle.load(sys.stdin.buffer)
import numpy as np
import difflab as dl
function.graph.verify()
found = function(*point), dl.gradient(function)(*point)
pickle.dump([np.asarray(one) for one in found], sys.stdout.buffer)
"""
"""A process that has imported nothing of difflab before it reads the function."""

PROGRAMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "scan": (lambda x: dl.scan(lambda c, e: (c * e, np.sin(c)), 1.0, x)[0], np.array([0.5, 2.0])),
    "while": (lambda x: dl.while_loop(lambda s: s < 9.0, lambda s: s * x, x), 1.5),
    "cond": (lambda x: dl.cond(x > 0, lambda v: v * v, lambda v: 3 * v, x), 0.5),
    "checkpoint": (lambda x: dl.checkpoint(lambda v: np.sin(v) ** 2, x), 0.5),
    "root": (lambda a: dl.solve.root(lambda x, a: x**3 - a, 1.0, a).x, 2.0),
    "minimize": (lambda a: dl.solve.minimize(lambda x, a: np.cosh(x - a**2), 0.3, a).x, 0.5),
    "quad": (lambda a: dl.solve.quad(lambda x, a: np.exp(-a * x), 0.0, 1.0, a)[0], 0.5),
    "ivp": (lambda a: dl.solve.ivp(lambda t, y, a: -a * y, (0.0, 1.0), 1.0, a).y[-1], 0.5),
}


def _expected(function: Any, point: Any) -> list[Any]:
    return [np.asarray(function(point)), np.asarray(dl.gradient(function)(point))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_another_process_computes_and_differentiates_it(name: str) -> None:
    code, point = PROGRAMS[name]
    function = dl.trace(code, point)
    sent = pickle.dumps((function, [point]))
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, input=sent, capture_output=True, timeout=300)
    assert not done.returncode, done.stderr.decode()
    for one, other in zip(pickle.loads(done.stdout), _expected(function, point), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_copy_is_the_same_function(name: str) -> None:
    code, point = PROGRAMS[name]
    function = dl.trace(code, point)
    again = copy.deepcopy(function if name == "ivp" else dl.gradient(function))
    again.graph.verify()
    expected = _expected(function, point)[name != "ivp"]
    np.testing.assert_array_equal(again(point), expected)
    assert str(again) == str(function if name == "ivp" else dl.gradient(function))


def test_branches_of_a_stored_function_stay_where_they_are() -> None:
    function = dl.trace(*PROGRAMS["cond"])
    again = pickle.loads(pickle.dumps(function))
    assert [float(again(x)) for x in (3.0, -2.0)] == [9.0, -6.0]
