"""Running the command in broken surroundings: full disks, closed streams, little memory."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "difflab")
# Limits are set by a process of its own: a function between fork and exec is not safe, and JAX
# warns of it, where other tests have started threads.
LIMITED = """
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for kind, value in {limits!r}:
    resource.setrlimit(kind, (value, value))
os.execv(sys.argv[1], sys.argv[1:])
"""


@dataclass(frozen=True)
class Result:
    """What a process left behind."""

    code: int
    out: str
    err: str

    @property
    def blamed(self) -> bool:
        """Whether difflab took the blame, or nobody caught what happened."""
        return self.code == 70 or "fault in difflab" in self.err or "Traceback" in self.err


@dataclass(frozen=True)
class Command:
    """Starts ``difflab`` in an empty folder, with no settings of whoever runs the tests."""

    folder: Path

    def environment(self, changes):
        found = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHON"))}
        found |= {"PYTHONPATH": str(ROOT), "DIFFLAB_CACHE": str(self.folder / "cache")}
        found |= {"MPLBACKEND": "Agg", "COLUMNS": "80"}
        found |= changes
        return {name: value for name, value in found.items() if value is not None}

    def start(self, *arguments, limits=(), **options):
        """Start the process; `limits` are pairs for `resource.setrlimit`."""
        changes = options.pop("environment", {})
        before: tuple[str, ...] = ()
        if limits:
            # Python does not notice that the compiled form of a module was cut at a limit.
            changes = {"PYTHONDONTWRITEBYTECODE": "1", **changes}
            before = (sys.executable, "-c", LIMITED.format(limits=[*limits]))
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **options}
        return subprocess.Popen(
            [*before, *COMMAND, *arguments],
            cwd=self.folder,
            env=self.environment(changes),
            stderr=subprocess.PIPE,
            **options,
        )

    def __call__(self, *arguments, **options):
        """Run the process to its end."""
        with self.start(*arguments, **options) as process:
            out, err = process.communicate(timeout=600)
        return Result(process.returncode, (out or b"").decode(), err.decode())

    def shell(self, script, **environment):
        """Run a shell script in which ``$difflab`` is the command."""
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment(environment) | {"difflab": " ".join(COMMAND)},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=600,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def command(tmp_path):
    return Command(tmp_path)
