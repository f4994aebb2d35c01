"""Optional packages that are broken, each in its own way: a row, a fallback, or a word of doctor.

Every case is a folder on the module path of a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BROKEN = {
    "raises": ("raise RuntimeError('jaxlib is too old')", "RuntimeError: jaxlib is too old"),
    "library": ("raise OSError('libLLVM.so: no such file')", "OSError: libLLVM.so: no such file"),
    "exits": ("import sys; sys.exit('goodbye')", "SystemExit: goodbye"),
    "dies": ("import os; os._exit(3)", "its process ended with exit code 3"),
    "prints": ("print('noise'); raise ValueError('loud')", "ValueError: loud"),
    "hangs": ("import time; time.sleep(1000)", "its process did not start in 1 s"),
}


@pytest.fixture
def run(tmp_path: Path):
    """Return a function that runs Python with packages of some names put first on its path."""

    def run(code: str, **packages: str) -> subprocess.CompletedProcess[str]:
        for name, text in packages.items():
            home = tmp_path / "path" / name
            home.mkdir(parents=True)
            (home / "__init__.py").write_text(text, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "path")}
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            env=environment,
        )

    return run


COMPARED = """
import difflab.core.worker as process
process.STARTING = {starting}
from difflab.cli import main
main(["compare", "x^2", "--at", "x=3", "--methods", "reverse,{name}", "--format", "csv",
      "--no-timing"])
"""


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_peer_is_a_row(run, kind: str) -> None:
    text, reason = BROKEN[kind]
    starting = 1 if kind == "hangs" else 60
    # "symengine" stands for all: the file on the path is what is imported.
    done = run(COMPARED.format(name="symengine", starting=starting), symengine=text)
    assert done.returncode == 0, done.stderr
    _heading, reverse, broken = done.stdout.splitlines()
    assert ",reverse,automatic,ok,agree," in reverse
    assert ",symengine,symbolic,unsupported," in broken
    assert reason in broken
    assert "noise" not in done.stdout


def test_all_peers_of_which_one_is_broken(run) -> None:
    code = """
import difflab.methods.registry as registry, difflab as dl
registry._PEERS = {name: registry._PEERS[name] for name in ("jax", "autograd")}
print(*[(row.name, str(row.status), row.message)
        for row in dl.compare("x^2", {"x": 3}, methods=["peers"], timing=False).methods])
"""
    done = run(code, jax=BROKEN["raises"][0], autograd=BROKEN["library"][0])
    assert done.returncode == 0, done.stderr
    assert "('jax', 'unsupported', 'jax is installed and broken: RuntimeError:" in done.stdout
    assert "('autograd', 'unsupported'" in done.stdout


def test_differentiate_says_what_is_broken(run) -> None:
    code = "import difflab as dl\ndl.differentiate(dl.parse('x^2'), 3.0, method='jax')"
    done = run(code, jax=BROKEN["raises"][0])
    assert "UnsupportedError: jax is installed and broken: RuntimeError: jaxlib" in done.stderr


FALLS_BACK = """
import warnings, numpy as np, difflab as dl
f = dl.parse("sin(x)*x + exp(x)")
points = np.linspace(0.0, 1.0, 5000)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    fast = dl.compile(f)
    again = dl.compile(dl.gradient(f), packed=True)
    right = np.allclose(fast(points), np.sin(points)*points + np.exp(points), rtol=1e-15)
    again(points[:, None])
    many = dl.compile(dl.parse("+".join(f"sin(x{k}*y)" for k in range(1000))), threads=1)
    slope = dl.differentiate(f, 0.5, method="finite-central").value
print(right, len(told), abs(slope - 2.567) < 1e-3)
print(told[0].message)
print(fast.reason)
try:
    dl.compile(f, "native")
except dl.errors.MissingDependencyError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        (BROKEN["library"][0], "", BROKEN["library"][1]),
        (BROKEN["exits"][0], "", BROKEN["exits"][1]),
        ("", "raise ImportError('no binding')", "ImportError: no binding"),
        (
            "__version__ = '0'",
            "def initialize_native_target(): raise RuntimeError('no such target')",
            "RuntimeError: no such target",
        ),
    ],
)
def test_without_a_working_llvmlite_numpy_computes(
    run, tmp_path: Path, text: str, more: str, reason: str
) -> None:
    (tmp_path / "path" / "llvmlite").mkdir(parents=True)
    (tmp_path / "path" / "llvmlite" / "__init__.py").write_text(text, encoding="utf-8")
    (tmp_path / "path" / "llvmlite" / "binding.py").write_text(more, encoding="utf-8")
    done = run(FALLS_BACK)
    assert done.returncode == 0, done.stderr
    computed, told, why, asked = done.stdout.splitlines()
    assert computed == "True 1 True"
    assert told.startswith(f"llvmlite is installed and broken: {reason}")
    assert "numpy for more; no machine code: llvmlite is installed and broken" in why
    assert asked.startswith(f"llvmlite is installed and broken: {reason}")


def test_doctor_survives_what_it_looks_at(run) -> None:
    code = (
        "from difflab.methods.process.loading import faults\n"
        "print(faults(['jax', 'torch', 'casadi']))"
    )
    done = run(code, jax=BROKEN["raises"][0], torch=BROKEN["dies"][0], casadi="print('noise')")
    assert done.returncode == 0, done.stderr
    assert "'jax': 'broken: RuntimeError: jaxlib is too old'" in done.stdout
    assert "'torch': 'broken: importing it: its process ended with exit code 3'" in done.stdout
    assert "casadi" not in done.stdout
    assert "noise" not in done.stdout


def test_doctor_does_not_wait_for_ever(run) -> None:
    code = """
import difflab.methods.process.loading as loading
loading.LIMIT = 1
print(loading.faults(["torch", "casadi"]))
"""
    done = run(code, torch=BROKEN["hangs"][0], casadi="")
    assert done.stdout == "{'torch': 'broken: importing it: stopped after 1 s'}\n", done.stderr
