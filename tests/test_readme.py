"""The README is run: its Python examples, its commands, its links.

- Python examples and commands are run as `tests.support.documents` says.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from difflab.testing import check_gradient
from tests.support.documents import (
    ROOT,
    links,
    matches,
    printed,
    python_failures,
    sessions,
    write_files,
)

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = README.splitlines()[:24]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory) -> Path:
    """A directory that holds the files the README tells the reader to write."""
    return write_files(README, tmp_path_factory.mktemp("readme"))


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
    actual = printed(session, workshop)
    assert matches(session.output, actual), actual


def test_two_commands_stand_on_the_first_screen():
    commands = [line for line in FIRST_SCREEN if line.startswith("python3 -m venv .venv && ")]
    main, tests = commands
    assert main.endswith('.venv/bin/difflab compare "ln(x1)+x1*x2-sin(x2)"')
    assert tests.endswith(".venv/bin/python -m pytest")


@pytest.mark.parametrize("target", links(README))
def test_links_lead_to_files(target):
    assert (ROOT / target).exists()


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
