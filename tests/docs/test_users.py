"""The pages of `docs/users/`: each is run from its first block to its last, in one folder.

A later command reads what an earlier one wrote, as the reader's does.
"""

from __future__ import annotations

import doctest
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import (
    ROOT,
    Block,
    blocks,
    failures,
    matches,
    printed,
    sessions,
    write_files,
)

FOLDER = ROOT / "docs" / "users"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "index")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def wrong(block: Block, page: str, names: dict[str, object]) -> str:
    """Run one block of Python examples and return what went wrong."""
    test = doctest.DocTestParser().get_doctest(block.text, names, page, page, block.line)
    report = failures(test, clear=False)
    names |= test.globs
    return report


@pytest.mark.parametrize("page", PAGES)
def test_the_page_says_the_truth(page: str, folder: Path) -> None:
    text = (FOLDER / f"{page}.md").read_text("utf-8")
    if "\n$ cc " in text and shutil.which("cc") is None:
        pytest.skip("there is no C compiler, cc")
    write_files(text, folder)
    names: dict[str, object] = {"__name__": "document"}
    for block in blocks(text):
        if block.language == "python" and ">>>" in block.text:
            found = wrong(block, page, names)
            assert not found, found
        for session in sessions(f"```{block.language}\n{block.text}```\n"):
            actual = printed(session, folder)
            assert matches(session.output, actual), f"$ {session.command}\n{actual}"


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_short_and_starts_with_what_one_gets(page: str) -> None:
    text = (FOLDER / f"{page}.md").read_text("utf-8")
    assert len(text.splitlines()) <= 200
    first = text.split("\n\n")[1]
    assert "At the end of this page" in " ".join(first.split())
