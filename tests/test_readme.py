"""The README is run: its Python examples, its commands, its links.

- Python examples and commands are run as `tests.support.documents` says.
- A ```python block that starts with ``# name.py`` is written to that file, and commands are run
  where those files are.
- The table of conventions is the table of primitives.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from difflab.language.calls import CALLS
from difflab.primitives import TABLE
from difflab.testing import check_gradient
from tests.support.documents import ROOT, blocks, links, matches, python_failures, run, sessions

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = README.splitlines()[:24]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory) -> Path:
    """A directory that holds the files the README tells the reader to write."""
    where = tmp_path_factory.mktemp("readme")
    for block in blocks(README):
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
    failures = python_failures(README, "README.md")
    assert not failures, failures


@pytest.mark.parametrize("session", sessions(README), ids=lambda s: f"line {s.line}: {s.command}")
def test_commands_print_what_is_shown(session, workshop):
    actual = run(session.command, workshop)
    assert matches(session.output, actual), actual


def test_two_commands_stand_on_the_first_screen():
    commands = [line for line in FIRST_SCREEN if line.startswith("python3 -m venv .venv && ")]
    main, tests = commands
    assert main.endswith('.venv/bin/difflab compare "ln(x1)+x1*x2-sin(x2)"')
    assert tests.endswith(".venv/bin/python -m pytest")


@pytest.mark.parametrize("target", links(README))
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
    assert matches("Use a here: called in 1.5 ms.", "Use a here: called\nin 2 ns.")
    assert not matches("Use a here: called in 1.5 ms.", "Use b here: called in 1.5 ms.")
    assert not matches("Use a here: called in 1.5 ms.", "No method can be recommended here.")
    later = "Use a here; from about 20,000 calls on,\nb costs less (1.3 µs a call)."
    assert matches("Use a here.", later)
    assert not matches("Use a here; b ties.", later)
    assert matches("reverse agree 1e-9 3", "reverse  agree 7.1e-10 2.2")
    assert not matches("reverse agree 1e-9 3", "reverse disagree 1e-9 3")
