"""``write-test``: its file passes with a right gradient and fails with a wrong one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import difflab as package

MODULE = """
import math
import numpy as np

def pair(w): return np.sum(w**2), 2*w
def value(a, b): return a*b**2
def slope(a, b): return b**2, 2*a*b
def forgotten(a, b): return b**2, a*b
def layers(W, b, /, *, scale=2.0):
    return scale*np.sum(np.tanh(W @ b))
def several(x): return np.stack([x[0]*x[1], np.sin(x[0])])
def number(x): return x*np.exp(x)
def forward(params, x): return np.sum(np.tanh(x @ params["W"] + params["b"]) ** 2)
def backward(params, x):
    h = np.tanh(x @ params["W"] + params["b"])
    z = 2*h*(1 - h*h)
    return {"W": x.T @ z, "b": z.sum(0)}, z @ params["W"].T
def layered(params): return sum(each["s"] * np.sum(each["w"] ** 2) for each in params["layers"])
def nowhere(x): return x if x == 1.5 else float("nan")
"""
TREE = '{"params": {"W": [[1, 2], [0.5, -1]], "b": [0.1, -0.3]}, "x": [[0.1, 0.2], [0.3, -0.4]]}'
LAYERS = '{"params": {"layers": [{"w": [1, 2], "s": 3}, {"w": [[1, 2]], "s": 0.5}]}}'
ROOT = Path(package.__file__).parents[1]


@pytest.fixture
def write(difflab: Any, tmp_path: Path) -> Any:
    (tmp_path / "written_model.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "tree.json").write_text(TREE, encoding="utf-8")
    (tmp_path / "layers.json").write_text(LAYERS, encoding="utf-8")
    before = list(sys.path)

    def run(function: str, *arguments: str) -> Any:
        sys.modules.pop("written_model", None)
        return difflab("write-test", f"written_model:{function}", *arguments)

    yield run
    sys.modules.pop("written_model", None)
    sys.path[:] = before


def passed(folder: Path) -> str:
    plugins = ["-p", "difflab.testing.plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", *plugins]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # other packages' import much
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    return done.stdout


# One run of pytest for all files, since its start takes longer than the tests.
WRITTEN = {
    "pair": ["--at", "w=[1,2]"],
    "value": ["--gradient", "slope", "--points", "5"],
    "layers": ["--at", "W=[[1,2],[3,4.5]],b=[.1,.2]"],
    "several": ["--at", "x=[2,3]"],
    "number": [],
    "forward": ["--gradient", "backward", "--at", "@tree.json", "--points", "2"],
    "layered": ["--at", "@layers.json", "--points", "2"],
}


def test_the_files_pass_when_run(write: Any, tmp_path: Path) -> None:
    for name, arguments in WRITTEN.items():
        done = write(name, *arguments, "-o", f"test_{name}.py")
        assert done.code == 0, done.err
    assert "21 passed" in passed(tmp_path)


def test_a_wrong_gradient_is_reported_and_its_test_fails(write: Any, tmp_path: Path) -> None:
    done = write("value", "--gradient", "forgotten", "--at", "a=1,b=2", "--points", "1")
    assert done.code == 1
    assert "the test fails at a = 1, b = 2: the gradient is wrong in 1 of 2" in done.err
    (tmp_path / "test_it.py").write_text(done.out)
    assert "1 failed" in passed(tmp_path)


def test_the_file_has_the_functions_and_the_names_of_their_parameters(write: Any) -> None:
    text = write("value", "--gradient", "slope", "--at", "a=1,b=2", "--points", "1").out
    assert '@pytest.mark.parametrize("a, b", POINTS)' in text
    assert "(1.0, 2.0)," in text
    assert "check_gradient(written_model.value, written_model.slope, a, b)" in text
    text = write("layers", "--at", "W=[[1,2],[3,4.5]],b=[.1,.2]", "--points", "1").out
    assert "difflab.grad(written_model.layers, argnums=(0, 1))" in text
    assert "np.array(W, dtype=float)" in text


def test_trees_are_written_as_a_person_would(write: Any) -> None:
    arguments = ["--gradient", "backward", "--at", "@tree.json", "--points", "1"]
    text = write("forward", *arguments).out
    assert '@pytest.mark.parametrize("params, x", POINTS)' in text
    assert "({'W': np.array([[1.0, 2.0], [0.5, -1.0]]), 'b': np.array([0.1, -0.3])}, [[" in text
    assert "check_gradient(written_model.forward, written_model.backward, params, np.arr" in text


def test_a_function_that_is_defined_at_one_point_is_refused(write: Any) -> None:
    done = write("nowhere", "--gradient", "number", "--at", "x=1.5")
    assert done.code == 2
    assert "finite at 1 of 60 points" in done.err
