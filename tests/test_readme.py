"""The README is run: its Python examples, its commands, its links.

- A ```python block with ``>>>`` is a doctest; all of them share one namespace, in order.
- A ```python block that starts with ``# name.py`` is written to that file.
- A ```console block is run where those files are. Times differ from run to run, the last digits of
  errors from processor to processor, and with them the method that is recommended: they are
  compared by their places only, and so are runs of blanks, line ends and rules. A line ``...`` in
  the README stands for any text.
- The table of conventions is the table of primitives.
"""

from __future__ import annotations

import doctest
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from difflab.language.calls import CALLS
from difflab.primitives import TABLE
from difflab.testing import check_gradient

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = README.splitlines()[:24]

TIME = re.compile(r"\b\d[\d.,]*(e[+-]?\d+)?\s?(ns|µs|ms|s|min)\b")
SMALL = re.compile(r"\b\d[\d.]*e[+-]?\d+\b")
JUDGED = re.compile(r"\b(agree|disagree|convention|inconclusive)\s+\S+\s+\S+")
# Which method is the cheapest is the machine's to say.
CHOICE = re.compile(r"\bUse \S+ here: [^.]*(\.\d[^.]*)*\.(?=\s|$)")
RULE = re.compile(r"[─━═]{2,}")


class Block(NamedTuple):
    line: int
    language: str
    text: str


class Session(NamedTuple):
    line: int
    command: str
    output: str


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
            found.append(Session(block.line, command, output))
    return found


def masked(text: str) -> str:
    for pattern, shown in (
        (CHOICE, "Use <method> here."),
        (TIME, "<time>"),
        (JUDGED, r"\1 <error> <ulp>"),
        (SMALL, "<small>"),
        (RULE, "─"),
    ):
        text = pattern.sub(shown, text)
    return " ".join(text.split())


def matches(expected: str, actual: str) -> bool:
    pattern = re.escape(masked(expected)).replace(r"\ \.\.\.\ ", " .* ")
    return re.fullmatch(pattern, masked(actual)) is not None


def run(command: str, where: Path) -> str:
    """Run `command` without a shell; the only shell syntax is a final ``; echo $?``."""
    command, asks, _ = command.partition("; echo $?")
    name, *arguments = shlex.split(command)
    assert name == "difflab"
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "difflab", *arguments],
        cwd=where,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.stdout + (f"{done.returncode}\n" if asks else "")


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
    assert matches(session.output, actual), actual


def test_two_commands_stand_on_the_first_screen():
    commands = [line for line in FIRST_SCREEN if line.startswith("python3 -m venv .venv && ")]
    main, tests = commands
    assert main.endswith('.venv/bin/difflab compare "ln(x1)+x1*x2-sin(x2)"')
    assert tests.endswith(".venv/bin/python -m pytest")


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?:|#)([^)#]+)\)", README) or ["."])
def test_links_lead_to_files(target):
    assert (ROOT / target).exists()


def test_conventions_are_those_of_the_table():
    spellings: dict[str, list[str]] = {}
    for row in TABLE.values():
        if row.convention:
            spelling = row.names[0] if row.names else row.infix or row.name
            spellings.setdefault(row.convention, []).append(f"`{spelling}`")
    expected = [f"| {', '.join(names)} | {text} |" for text, names in spellings.items()]
    start = README.index("| function | convention |")
    assert README[start : README.index("\n\n", start)].splitlines()[2:] == expected


def test_every_function_of_the_language_is_named():
    section = README[README.index("## The language") : README.index("## See how")]
    named = set(re.findall(r"\w+", section))
    # The second spelling of a function that has a short one need not be named.
    assert {row.names[0] for row in TABLE.values() if row.names} | set(CALLS) <= named


def test_the_gradient_test_of_the_readme_fails_as_it_should(workshop, monkeypatch):
    monkeypatch.syspath_prepend(str(workshop))
    example = runpy.run_path(str(workshop / "test_my_model.py"))
    with pytest.raises(AssertionError, match="wrong in 2 of 2 components"):
        example["test_gradient"](check_gradient)


def test_the_comparison_can_fail():
    assert matches("a  1.5 ms\n...\nc", "a 20 µs\nb\nc")
    assert not matches("a 1.5 ms\nc", "a 20 µs\nb\nc")
    assert not matches("value 5.5", "value 5.6")
    assert matches("Use a here: called in 1.5 ms.", "Use b here: exact, called\nin 2 ns.")
    assert not matches("Use a here: called in 1.5 ms.", "No method can be recommended here.")
    assert matches("reverse agree 1e-9 3", "reverse  agree 7.1e-10 2.2")
    assert not matches("reverse agree 1e-9 3", "reverse disagree 1e-9 3")
