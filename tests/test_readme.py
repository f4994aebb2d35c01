"""The README is run: its Python examples, its commands, its links.

- A ```python block with ``>>>`` is a doctest; all of them share one namespace, in order.
- A ```python block that starts with ``# name.py`` is written to that file.
- A ```console block is run where those files are. Times differ from run to run and column widths
  follow them, so both sides are compared with every time as ``<time>`` and every run of blanks or
  rules as one; a line ``...`` in the README stands for any lines.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = README.splitlines()[:24]

TIME = re.compile(r"\b\d[\d.,]*(e[+-]?\d+)?\s?(ns|µs|ms|s|min)\b")
RULE = re.compile(r"[─━═—-]{2,}")
COLUMNS_OF_TIMES = re.compile(r"(<time>\s*)+")


class Block(NamedTuple):
    line: int
    language: str
    text: str


class Session(NamedTuple):
    line: int
    command: str
    output: list[str]


def blocks() -> list[Block]:
    fenced = re.finditer(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [Block(README.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in fenced]


def sessions() -> list[Session]:
    found = []
    for block in blocks():
        if block.language != "console":
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append(Session(block.line, command, output.splitlines()))
    return found


def masked(line: str) -> str:
    line = RULE.sub("─", TIME.sub("<time>", line))
    return " ".join(COLUMNS_OF_TIMES.sub("<time> ", line).split())


def matches(expected: list[str], actual: list[str]) -> bool:
    pattern = ""
    for line in expected:
        text = masked(line)
        pattern += (
            r"(?:.*\n)*?" if text == "..." else re.escape(text).replace(r"\.\.\.", ".*") + "\n"
        )
    return re.fullmatch(pattern, "".join(masked(line) + "\n" for line in actual)) is not None


def run(command: str, where: Path) -> list[str]:
    """Run `command` without a shell; the only shell syntax is a final ``; echo $?``."""
    command, asks, _ = command.partition("; echo $?")
    name, *arguments = shlex.split(command)
    module = {"difflab": ["-m", "difflab"], "pytest": ["-m", "pytest", "-p", "no:cacheprovider"]}
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, *module[name], *arguments],
        cwd=where,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    lines = done.stdout.rstrip("\n").splitlines()
    return [*lines, str(done.returncode)] if asks else lines


@pytest.fixture(scope="module")
def workshop(tmp_path_factory) -> Path:
    """A directory that holds the files the README tells the reader to write."""
    where = tmp_path_factory.mktemp("readme")
    for block in blocks():
        name = re.match(r"# (\w+\.py)\n", block.text)
        if block.language == "python" and name:
            (where / name[1]).write_text(block.text, encoding="utf-8")
    return where


@pytest.fixture
def in_the_workshop(workshop, monkeypatch):
    monkeypatch.chdir(workshop)
    monkeypatch.syspath_prepend(str(workshop))


@pytest.mark.usefixtures("in_the_workshop")
def test_python_examples_say_the_truth():
    source = "".join(
        # Blank lines keep the line numbers of failures those of the README.
        "\n" * (block.line - previous.line - previous.text.count("\n")) + block.text
        for previous, block in _consecutive("python")
    )
    test = doctest.DocTestParser().get_doctest(source, {"__name__": "readme"}, "README.md", None, 0)
    assert test.examples
    report: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert result.failed == 0, "".join(report)


def _consecutive(language: str) -> list[tuple[Block, Block]]:
    chosen = [block for block in blocks() if block.language == language and ">>>" in block.text]
    return list(zip([Block(0, language, ""), *chosen], chosen, strict=False))


@pytest.mark.parametrize("session", sessions(), ids=lambda s: f"line {s.line}: {s.command}")
def test_commands_print_what_is_shown(session, workshop):
    actual = run(session.command, workshop)
    assert matches(session.output, actual), "\n".join(actual)


def test_two_commands_stand_on_the_first_screen():
    commands = [line for line in FIRST_SCREEN if line.startswith("python3 -m venv .venv && ")]
    main, tests = commands
    assert main.endswith('.venv/bin/difflab compare "ln(x1)+x1*x2-sin(x2)"')
    assert tests.endswith(".venv/bin/python -m pytest")


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?:|#)([^)#]+)\)", README) or ["."])
def test_links_lead_to_files(target):
    assert (ROOT / target).exists()


def test_the_comparison_can_fail():
    assert matches(["a  1.5 ms", "...", "c"], ["a 20 µs", "b", "c"])
    assert not matches(["a 1.5 ms", "c"], ["a 20 µs", "b", "c"])
    assert not matches(["value 5.5"], ["value 5.6"])
