"""The command `difflab` in processes that are forked from one which has loaded it.

Starting Python and loading the packages costs a second a command. The tests of `difflab.cli` start
the command as a user does.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["difflab_command"]

LOADED = [
    *("pytest", "sympy", "flint", "difflab.autodiff", "difflab.balls.evaluation"),
    *("difflab.cli.app", "difflab.diagnose", "difflab.execute", "difflab.lab.compare"),
    *("difflab.language", "difflab.referee.referee", "difflab.report.comparison"),
]
"""What is loaded in the process from which the commands are forked."""
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def difflab_command(
    arguments: Sequence[str], where: Path, env: Mapping[str, str], printed: Path
) -> int:
    """Run a command in a folder and return its exit code; a file takes what it prints."""
    rest = list(arguments), str(where), dict(env), str(printed)
    process = _context().Process(target=_run, args=rest)
    process.start()
    process.join()
    return int(process.exitcode)


@cache
def _context() -> Any:
    context = multiprocessing.get_context(METHOD)
    if METHOD == "forkserver":
        context.set_forkserver_preload(LOADED)
    return context


def _run(arguments: list[str], where: str, env: dict[str, str], printed: str) -> None:
    """Make a process that was forked one that was started: its folder, environment and streams."""
    os.chdir(where)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = [where, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    stream = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(stream, descriptor)
    sys.argv = ["difflab", *arguments]
    with (
        open(1, "w", encoding="utf-8", closefd=False) as sys.stdout,
        open(2, "w", encoding="utf-8", closefd=False, buffering=1) as sys.stderr,
    ):
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
        from difflab.cli import main

        main()
