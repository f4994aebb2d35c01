"""The fixture is the checker, in a plain test suite too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import difflab
from difflab.testing.plugin import check_gradient  # noqa: F401 - also where it is not installed

ROOT = Path(difflab.__file__).parents[1]
SUITE = """
import numpy as np

def test_right(check_gradient):
    check_gradient(np.sin, np.cos, 0.5)

def test_wrong(check_gradient):
    check_gradient(np.sin, lambda x: -np.cos(x), 0.5)
"""


def test_the_fixture_checks(check_gradient: Callable[..., None]) -> None:  # noqa: F811
    check_gradient(np.sin, np.cos, 0.5)
    with pytest.raises(AssertionError):
        check_gradient(np.sin, np.sin, 0.5)


def test_a_suite_of_somebody_elses_fails_with_the_message(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(SUITE)
    # Named, and not by its entry point: this also runs where difflab is not installed.
    plugins = ["-p", "no:difflab", "-p", "difflab.testing.plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, "test_theirs.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "1 failed, 1 passed" in done.stdout
    assert "the gradient is wrong in 1 of 1 component" in done.stdout
    assert "likely a sign error" in done.stdout


def test_the_plug_in_loads_no_mathematics() -> None:
    code = (
        "import sys, difflab.testing.plugin;"
        "heavy = {'numpy', 'scipy', 'sympy', 'mpmath', 'hypothesis'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
