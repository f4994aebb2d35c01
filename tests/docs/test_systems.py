"""`docs/explanation/systems.md`: every name on it exists, and every system has its four parts."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

import difflab as dl
from difflab.cli.app import run
from difflab.methods.registry import describe, peer_names
from tests.support.documents import ROOT

TEXT = (ROOT / "docs" / "explanation" / "systems.md").read_text("utf-8")
CONVENTIONS = (ROOT / "docs" / "explanation" / "conventions.md").read_text("utf-8")
SECTIONS = re.findall(r"^### ([^\n]+)\n\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)
SYSTEMS = (
    *("PyTorch", "TorchInductor", "JAX and XLA", "TensorFlow 1", "TensorFlow 2", "Theano"),
    *("Chainer", "TVM", "ONNX Runtime", "Enzyme", "heyoka", "Warp", "Dr.Jit", "Taichi"),
    *("advect", "folx", "SymbAnaFis"),
)


def test_every_system_has_its_idea_a_source_its_place_and_what_is_missing() -> None:
    assert tuple(name for name, _ in SECTIONS) == SYSTEMS
    for name, section in SECTIONS:
        assert re.findall(r"^- \*\*(.+?)\*\*:", section, re.MULTILINE) == [
            "Idea",
            "Here",
            "Not here",
        ], name
        assert re.search(r"\]\(https://", section), name
        assert re.search(rf"^\| \[{re.escape(name)}\]\(#", TEXT, re.MULTILINE), name


def test_each_system_that_is_a_method_is_linked_to_what_it_chooses() -> None:
    linked = re.findall(r"\[`([\w-]+)`\]\(conventions\.md#what-each-package-chooses\)", TEXT)
    elsewhere = {
        "autograd",
        "casadi",
        "jacobi",
        "numdifftools",
        "symengine",
        "symforce",
        "tinygrad",
    }
    assert set(linked) | elsewhere == set(peer_names())
    assert "\n## What each package chooses\n" in CONVENTIONS


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`dl\.(\w+)`", TEXT))))
def test_public_names_exist(name: str) -> None:
    assert getattr(dl, name) is not None


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(difflab\.[\w.]+)`", TEXT))))
def test_modules_exist(name: str) -> None:
    assert import_module(name).__doc__


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`difflab ([^`]+)`", TEXT))))
def test_commands_and_their_options_exist(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = command.split()
    names = [word for word in words if not word.startswith("-")]
    options = [word for word in words if word.startswith("-")]
    depth = 2 if names[0] == "bench" else 1
    assert run([*names[:depth], "--help"]) == 0
    text = capsys.readouterr().out
    assert all(option in text for option in options)


@pytest.mark.parametrize("peer", sorted(set(re.findall(r"peer `([\w-]+)`", TEXT))))
def test_peers_are_methods(peer: str) -> None:
    assert peer in {method.name for method in describe()}
