"""A checkout of GradBench: its evals and tools as commands, and its published figures."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from difflab.core.optional import installed
from difflab.errors import InputError

__all__ = ["EVALS", "TOOLS", "Checkout", "Eval", "PublishedTime", "published"]

_MODES = ("rr", "ff", "fr", "rf")


@dataclass(frozen=True)
class Eval:
    """An eval: its functions, and the arguments of a quick run.

    Attributes
    ----------
    functions : tuple of str
        In the order in which GradBench names them: the value first.
    quick : str
        Arguments of its program, for sizes that take seconds.
    golden : bool
        Whether it compares with the tool `manual`; otherwise with stored numbers.
    """

    functions: tuple[str, ...]
    quick: str
    golden: bool = True


_SOON = "--min-runs 5 --min-seconds 0.3"
EVALS: Mapping[str, Eval] = {
    "hello": Eval(("square", "double"), "", golden=False),
    "llsq": Eval(("primal", "gradient"), f"-n 64 1024 16392 {_SOON}"),
    "lse": Eval(("primal", "gradient"), f"-n 2500 40000 320000 {_SOON}"),
    "gmm": Eval(("objective", "jacobian"), f"-d 2 10 32 -k 5 25 {_SOON}"),
    "kmeans": Eval(("cost", "dir"), f"-k 10 100 -n 1000 10000 -d 8 {_SOON}"),
    "ba": Eval(("objective", "jacobian"), "--max 1 --min-runs 1 --min-seconds 0.3"),
    "ht": Eval(("objective", "jacobian"), f"--model small --max 3 {_SOON}"),
    "det": Eval(("primal", "gradient"), f"-l 5 7 9 {_SOON}"),
    "lstm": Eval(("objective", "jacobian"), "-l 2 4 -c 1024 --min-runs 3 --min-seconds 0.3"),
    "ode": Eval(
        ("primal", "gradient"), "-n 100 1000 10000 -s 10 100 --min-runs 5 --min-seconds 0.1"
    ),
    "particle": Eval(_MODES, _SOON, golden=False),
    "saddle": Eval(_MODES, _SOON, golden=False),
}
"""The evals, in the order of the table."""

_CPP = ("python/gradbench/gradbench/cpp.py",)
TOOLS: Mapping[str, tuple[str, ...]] = {
    "difflab": ("-m", "benchmarks", "gradbench-tool"),
    "jax": ("-m", "benchmarks.gradbench.waiting_jax"),
    "pytorch": ("python/gradbench/gradbench/tools/pytorch/run.py",),
    "tensorflow": ("python/gradbench/gradbench/tools/tensorflow/run.py",),
    "manual": (*_CPP, "manual"),
    "finite": (*_CPP, "finite"),
}
"""The tools, each as arguments of this Python, in a checkout's root.

`jax` is GradBench's tool with its clock stopped when the result is computed, see `waiting_jax`.
"""
_PACKAGES = {"jax": "jax", "pytorch": "torch", "tensorflow": "tensorflow"}


@dataclass(frozen=True)
class Checkout:
    """The root of a checkout.

    Attributes
    ----------
    root : pathlib.Path
        Absolute.
    """

    root: Path

    @classmethod
    def of(cls, folder: Path, evals: Sequence[str]) -> Checkout:
        """Return the checkout, which can run some evals.

        Raises
        ------
        InputError
            It is none, there is no such eval, or the tool that an eval compares with is missing.
        """
        for name in evals:
            if name not in EVALS:
                raise InputError(
                    f"GradBench has no eval '{name}'", hint=f"one of {', '.join(EVALS)}"
                )
        root = folder.resolve()
        if not (root / "python/gradbench/gradbench/evals").is_dir():
            raise InputError(
                f"{folder} is no checkout of GradBench",
                hint="git clone https://github.com/gradbench/gradbench, and give it by --gradbench",
            )
        missing = [
            name
            for name in evals
            if EVALS[name].golden and not (root / "tools/manual/bin" / name).exists()
        ]
        if missing:
            raise InputError(
                f"GradBench's tool 'manual', with which {', '.join(missing)} compare, is not built",
                hint=f"make -C {folder}/cpp && make -C {folder}/tools/manual",
            )
        return cls(root)

    def eval_command(self, name: str, *, quick: bool) -> list[str]:
        """Return the command of an eval."""
        script = f"python/gradbench/gradbench/evals/{name}/run.py"
        return [sys.executable, script, *(EVALS[name].quick.split() if quick else ())]

    def tool_command(self, name: str) -> list[str]:
        """Return the command of a tool."""
        return [sys.executable, *TOOLS[name]]

    def lacks(self, name: str) -> str | None:
        """Return why a tool cannot run, or None."""
        package = _PACKAGES.get(name)
        if package is not None and not installed(package):
            return f"it needs the package {package}"
        if name in ("manual", "finite") and not (self.root / "cpp/json.hpp").exists():
            return "it is compiled with cpp/json.hpp, which `make -C cpp` fetches"
        return None


@dataclass(frozen=True)
class PublishedTime:
    """Seconds of a function of an eval, summed over the workloads of GradBench's default sizes."""

    eval: str
    function: str
    tool: str
    seconds: float
    workloads: int
    source: str


def published(folder: Path) -> list[PublishedTime]:
    """Return the figures of GradBench's nightly run.

    Parameters
    ----------
    folder : pathlib.Path
        A checkout of the branch ``ci/refs/heads/nightly`` of GradBench: ``summary.json`` and
        ``evals/NAME/summary.json``.

    Raises
    ------
    InputError
        A file is missing or is not such a summary.
    """
    try:
        about = json.loads((folder / "summary.json").read_text())
        source = f"GradBench's nightly run of {about['date']}, commit {about['commit'][:8]}"
        return [
            entry
            for name, known in EVALS.items()
            for path in [folder / "evals" / name / "summary.json"]
            if path.exists()
            for entry in _times(name, known, json.loads(path.read_text()), source)
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{folder} holds no published figures of GradBench: {type(error).__name__}: {error}",
            hint="check out its branch ci/refs/heads/nightly there",
        ) from error


def _times(name: str, known: Eval, summary: Any, source: str) -> list[PublishedTime]:
    """Return the sums of the tools that have computed all workloads."""
    tools: Mapping[str, Mapping[str, Any]] = summary["tools"]
    if "primal" not in summary:  # one workload, and an entry for each function
        return [
            PublishedTime(name, function, tool, _seconds(time), 1, source)
            for tool, times in tools.items()
            for function, time in times.items()
        ]
    most = max((len(workloads) for workloads in tools.values()), default=0)
    found = []
    for tool, workloads in tools.items():
        for part in ("primal", "derivative"):
            times = [_seconds(entry[part]) for entry in workloads.values() if part in entry]
            if times and len(times) == most:
                function = summary[part]
                total = math.fsum(times)
                found.append(PublishedTime(name, function, tool, total, most, source))
    return found


def _seconds(duration: Mapping[str, int]) -> float:
    return duration["secs"] + duration["nanos"] / 1e9
