"""Faults planted in a copy of the source, and the tests that find them.

``faults.toml`` states each fault as a text of one file, what it is replaced by, and the test that
finds it. A copy consists of hard links, so that it costs nothing and keeps the byte code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.tiers import ROOT, full_only, function_of

LIST = Path(__file__).with_name("faults.toml")
# What the tests of a copy read.
COPIED = (
    "benchmarks",
    "difflab",
    "tests",
    "docs",
    "reports",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "cli.py",
)
PLUGIN = "difflab.testing.plugin"
_SKIPPED = re.compile(r"^SKIPPED .*", re.MULTILINE)
_REPORTED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """A change of one line that a test must find.

    Parameters
    ----------
    name
        The fault in words.
    file
        The file, from the root of the repository.
    old, new
        A text that the file contains once, and its replacement.
    found_by
        The test function that fails, or an empty text if it has not been sought.
    """

    name: str
    file: str
    old: str
    new: str
    found_by: str = ""

    @property
    def package(self) -> str:
        """The package of difflab that contains the fault, or `benchmarks`."""
        top, name, *_ = Path(self.file).parts
        return top if top == "benchmarks" else name.removesuffix(".py")

    @property
    def fits(self) -> bool:
        """Whether the text to be replaced occurs in the file, once."""
        return (ROOT / self.file).read_text(encoding="utf-8").count(self.old) == 1

    @property
    def tier(self) -> str:
        """The tier whose tests find the fault, ``"quick"`` or ``"full"``."""
        left_out = {self.found_by, self.found_by.partition("::")[0]} & {*full_only()}
        return "full" if left_out else "quick"


def faults() -> list[Fault]:
    """Return the faults of ``faults.toml``."""
    rows = tomllib.loads(LIST.read_text(encoding="utf-8"))["fault"]
    return [Fault(**row) for row in rows]


@contextmanager
def planted(fault: Fault, copy: Path) -> Iterator[None]:
    """Plant a fault in a copy of the source; on exit the copy is as before."""
    original, changed = ROOT / fault.file, copy / fault.file
    text = original.read_text(encoding="utf-8").replace(fault.old, fault.new)
    changed.unlink()  # a link: writing through it would change the source itself
    changed.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        changed.unlink()
        os.link(original, changed)


def copied(folder: Path) -> Path:
    """Return a copy of the source in a folder, on the same file system where links are possible."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("_build", "jupyter_execute", ".hypothesis")
            shutil.copytree(source, folder / name, ignore=ignored, copy_function=_link)
        else:
            _link(source, folder / name)
    return folder


def finder(copy: Path, tests: Sequence[str]) -> str:
    """Return the first test that fails in a copy, of the tests with these pytest arguments.

    Returns
    -------
    str
        The test function, without parameters; empty if all tests pass.

    Raises
    ------
    pytest.skip.Exception
        The one test that is named is skipped here.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfEs", *tests]
    # Plug-ins of other packages take as long to load as most tests that find a fault take to run.
    command += ["-p", "no:cacheprovider", "--disable-plugin-autoload", "-p", PLUGIN]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    reason = _SKIPPED.search(done.stdout)
    if reason and "::" in tests[0] and done.returncode != 1 and " passed" not in done.stdout:
        pytest.skip(reason[0].partition(": ")[2])
    if done.returncode not in (0, 1, 5):  # 5: all are skipped
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    match = _REPORTED.search(done.stdout) if done.returncode == 1 else None
    return function_of(match[1]) if match else ""


def sought(fault: Fault, copy: Path) -> Fault:
    """Return a fault with the test that finds it: in the folder of its package, then anywhere."""
    near = f"tests/{fault.package}"
    with planted(fault, copy):
        for tests in ([near] if (copy / near).is_dir() else [], ["tests", "difflab", "benchmarks"]):
            if tests and (found := finder(copy, tests)):
                return replace(fault, found_by=found)
    return replace(fault, found_by="")


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
