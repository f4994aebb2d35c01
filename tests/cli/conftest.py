"""Running the command: in this process where that is enough, as a process where it is not."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from difflab.cli import main

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def difflab(capsys, monkeypatch, tmp_path):
    """Run ``difflab ARGUMENTS`` in an empty directory; return its exit code and output."""
    monkeypatch.chdir(tmp_path)
    # Here no command takes long enough to say how far it is, however busy the machine is.
    monkeypatch.setattr("difflab.core.progress.monotonic", lambda: 0.0)

    def run(*arguments):
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        captured = capsys.readouterr()
        return Result(exit_.value.code, captured.out, captured.err)

    return run


@pytest.fixture
def process(tmp_path):
    """Start a real ``python -m difflab`` in an empty directory."""

    def start(*arguments, stdin=b"", **environment):
        done = subprocess.run(
            [sys.executable, "-m", "difflab", *arguments],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return start
