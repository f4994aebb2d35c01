"""Markdown that is run: Python examples, commands, and the comparison of what they print.

- A ```python block with ``>>>`` is a doctest; those of a document share one namespace, in order.
- A ```console block holds commands of difflab after ``$`` and what they print. Times differ from
  run to run, the last digits of errors from processor to processor: they are compared by their
  places only, and so are runs of blanks, line ends and rules. From how many calls on another
  method costs less is not compared. A line ``...`` in the document stands for any text.
- A block that starts with ``# name.py``, ``# name.txt`` or ``# pyproject.toml`` is written to that
  file, and commands are run where those files are. A ``pyproject.toml`` with entry points is
  installed there, as ``pip install -e .`` does.
- At an example that needs an optional package which is missing, the test is skipped.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.optional import needed

__all__ = [
    "INLINE_CODE",
    "ROOT",
    "Block",
    "Session",
    "blocks",
    "failures",
    "links",
    "matches",
    "printed",
    "python_failures",
    "run",
    "sessions",
    "write_files",
]

ROOT = Path(__file__).parents[2]

PROGRAMS = {
    "difflab": [sys.executable, "-m", "difflab"],
    "pytest": [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
    "cc": ["cc"],
}
"""The commands of a document, and what runs them."""

TIME = re.compile(r"\b\d[\d.,]*(e[+-]?\d+)?\s?(ns|µs|ms|s|min)\b")
SMALL = re.compile(r"\b\d[\d.]*e[+-]?\d+\b")
JUDGED = re.compile(r"\b(agree|disagree|convention|declared|inconclusive)\s+\S+\s+\S+")
# Whether a method that is prepared more slowly is called faster is the machine's to say.
LATER = re.compile(r"; from about [\d,]+ calls on, \S+ costs less \([^)]*\)")
# A command that takes a while, as on a busy machine, says on standard error how far it is.
PROGRESS = re.compile(r"^\d+ of \d+: .*\n", re.MULTILINE)
RULE = re.compile(r"[─━═]{2,}")
# A command goes on after a backslash at the end of its line.
COMMAND = re.compile(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", re.DOTALL)
INLINE_CODE = re.compile(r"`[^`\n]+`")


class Block(NamedTuple):
    line: int
    language: str
    text: str


class Session(NamedTuple):
    line: int
    command: str
    output: str


def blocks(document: str) -> list[Block]:
    fenced = re.finditer(r"^```(\w+)\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)
    return [Block(document.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in fenced]


def sessions(document: str) -> list[Session]:
    found = []
    for block in blocks(document):
        if block.language != "console":
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            lines, output = COMMAND.fullmatch(part).groups()
            command = re.sub(r"\s*\\\n\s*", " ", lines)
            found.append(Session(block.line, command, output))
    return found


def write_files(document: str, where: Path) -> Path:
    """Write the files that a document tells its reader to write, and return their directory."""
    for block in blocks(document):
        name = re.match(r"# (\w+\.(?:py|txt|toml))\n", block.text)
        if name:
            (where / name[1]).write_text(block.text, encoding="utf-8")
            if name[1] == "pyproject.toml":
                install(block.text, where)
    return where


def install(project: str, where: Path) -> None:
    """Write the metadata of a project, from which Python reads its entry points."""
    found = tomllib.loads(project)["project"]
    name, version = found["name"], found["version"]
    folder = where / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8"
    )
    groups = (
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())])
        for group, entries in found["entry-points"].items()
    )
    (folder / "entry_points.txt").write_text("\n".join(groups) + "\n", encoding="utf-8")


def links(document: str) -> list[str]:
    """Return the files that a document links to or shows."""
    return re.findall(r"\]\((?!https?:|#)([^)#]+)\)", INLINE_CODE.sub("", document))


def python_failures(document: str, name: str) -> str:
    """Run the Python examples where the process is, and return what went wrong."""
    source = "".join(
        # Blank lines keep the line numbers of failures those of the document.
        "\n" * (block.line - previous.line - previous.text.count("\n")) + block.text
        for previous, block in _consecutive(document)
    )
    test = doctest.DocTestParser().get_doctest(source, {"__name__": "document"}, name, None, 0)
    return failures(test)


class _Runner(doctest.DocTestRunner):
    """Skips the test at an example that needs a missing package, if none failed before."""

    def __init__(self) -> None:
        super().__init__(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        self.report: list[str] = []

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        reason = needed(exc_info[1])
        if reason and not self.report:
            pytest.skip(reason)
        super().report_unexpected_exception(out, test, example, exc_info)


def failures(test: doctest.DocTest, *, clear: bool = True) -> str:
    """Run examples and return what went wrong."""
    runner = _Runner()
    runner.run(test, out=runner.report.append, clear_globs=clear)
    return "".join(runner.report)


def _consecutive(document: str) -> list[tuple[Block, Block]]:
    chosen = [
        block for block in blocks(document) if block.language == "python" and ">>>" in block.text
    ]
    return list(zip([Block(0, "python", ""), *chosen], chosen, strict=False))


def masked(text: str) -> str:
    text = " ".join(text.split())
    for pattern, shown in (
        (LATER, ""),
        (TIME, "<time>"),
        (JUDGED, r"\1 <error> <ulp>"),
        (SMALL, "<small>"),
        (RULE, "─"),
    ):
        text = pattern.sub(shown, text)
    return text


def matches(expected: str, actual: str) -> bool:
    pattern = re.escape(f" {masked(expected)} ").replace(r"\ \.\.\.\ ", " .* ")
    return re.fullmatch(pattern, f" {masked(actual)} ") is not None


def printed(session: Session, where: Path) -> str:
    """Return what the command of a session prints.

    A recommendation rests on measured times, which another process can change: a command that
    prints something else than is shown has two tries more.
    """
    for _ in range(3):
        actual = run(session.command, where)
        if matches(session.output, actual):
            break
    return actual


def run(command: str, where: Path) -> str:
    """Run `command` without a shell; the only shell syntax is a final ``; echo $?``."""
    command, asks, _ = command.partition("; echo $?")
    name, *arguments = shlex.split(command)
    assert name in PROGRAMS
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [*PROGRAMS[name], *arguments],
        cwd=where,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return PROGRESS.sub("", done.stdout) + (f"{done.returncode}\n" if asks else "")
