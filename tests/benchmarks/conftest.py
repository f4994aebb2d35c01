"""Running ``python -m benchmarks`` in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.commands import app
from difflab.cli.app import run


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def benchmarks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Result]:
    """Run ``python -m benchmarks ARGUMENTS`` in an empty folder; return its code and output."""
    monkeypatch.chdir(tmp_path)
    # Here no command takes long enough to say how far it is, however busy the machine is.
    monkeypatch.setattr("difflab.core.progress.monotonic", lambda: 0.0)

    def called(*arguments: str) -> Result:
        code = run(arguments, app, "python -m benchmarks")
        return Result(code, *capsys.readouterr())

    return called
