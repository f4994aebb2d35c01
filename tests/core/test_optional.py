"""Distributions that overwrite each other's module."""

from __future__ import annotations

from pathlib import Path

import pytest

from difflab.core.optional import conflict, repair

BESIDE = "cannot be used beside"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of distributions that Python finds, and no others."""
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    return tmp_path


def install(folder: Path, name: str) -> None:
    metadata = folder / f"{name}-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("present", "name", "unusable", "found"),
    [
        ([], "symengine", True, ""),
        ([], "symforce", True, ""),
        (["symengine"], "symengine", False, ""),
        (["symengine"], "symengine", True, ""),  # broken for a reason of its own
        (["symforce"], "symforce", True, ""),
        # Its module is there, and is that of SymForce, without LLVM.
        (["symforce"], "symengine", False, f"symengine {BESIDE} symforce"),
        (["symengine", "symforce"], "symengine", False, f"symengine {BESIDE} symforce"),
        # SymForce works if it was installed last.
        (["symengine", "symforce"], "symforce", False, ""),
        (["symengine", "symforce"], "symforce", True, f"symforce {BESIDE} symengine"),
        (["symengine"], "symforce", True, f"symforce {BESIDE} symengine"),
        (["symengine", "symforce"], "jax", True, ""),
    ],
)
def test_a_conflict_names_the_other_one(
    present: list[str], name: str, unusable: bool, found: str, environment: Path
) -> None:
    for each in present:
        install(environment, each)
    said = conflict(name, unusable=unusable)
    assert said.startswith(found)
    assert bool(said) == bool(found)


def test_a_repair_never_breaks_another_package(environment: Path) -> None:
    assert repair("symforce") == "repair it with: pip install --force-reinstall symforce"
    install(environment, "symengine")
    assert "pip install" not in repair("symforce")
    assert "an environment that has only one of them" in repair("symforce")
