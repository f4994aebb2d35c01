"""The pages of `docs/examples/` are run, and their pictures are those of the gallery."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.support.documents import ROOT, links, matches, printed, python_failures, sessions

FOLDER = ROOT / "docs" / "examples"
INDEX = "index"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != INDEX)
GALLERY = ROOT / "reports" / "gallery"


def text_of(page: str) -> str:
    return (FOLDER / f"{page}.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples, where a page is read and where it writes."""
    copy = Path(shutil.copytree(FOLDER, tmp_path / "examples"))
    monkeypatch.chdir(copy)
    return copy


@pytest.mark.parametrize("page", PAGES)
def test_page_says_the_truth(page: str, folder: Path) -> None:
    import matplotlib.pyplot as plt

    text = text_of(page)
    failures = python_failures(text, f"{page}.md")
    plt.close("all")
    assert not failures, failures
    for session in sessions(text):
        actual = printed(session, folder)
        assert matches(session.output, actual), actual
    for picture in folder.glob("*.svg"):
        assert f"../../reports/gallery/{picture.name}" in links(text)
        drawn, shown = (path.read_text("utf-8") for path in (picture, GALLERY / picture.name))
        # What matplotlib draws differs from version to version.
        assert drawn == shown or "matplotlib" in drawn, f"{picture.name}: copy it to {GALLERY}"


@pytest.mark.parametrize("page", [INDEX, *PAGES])
def test_links_lead_to_files(page: str) -> None:
    for target in links(text_of(page)):
        assert (FOLDER / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_short_and_listed(page: str) -> None:
    text = text_of(page)
    assert len(text.splitlines()) <= 120
    assert max(map(len, text.splitlines())) <= 120
    assert f"{page}.md" in links(text_of(INDEX))


def test_the_irises_are_those_of_the_paper() -> None:
    """Fisher's Table I, and the means that he prints below it."""
    lines = (FOLDER / "iris.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines[1:]]
    assert len(rows) == 150
    lengths = np.array([row[:4] for row in rows], dtype=float)
    assert [row[4] for row in rows[::50]] == ["setosa", "versicolor", "virginica"]
    means = lengths.reshape(3, 50, 4).mean(axis=1)
    np.testing.assert_allclose(
        means,
        [[5.006, 3.428, 1.462, 0.246], [5.936, 2.770, 4.260, 1.326], [6.588, 2.974, 5.552, 2.026]],
        rtol=1e-12,
    )
    assert rows[34] == ["4.9", "3.1", "1.5", "0.2", "setosa"]
    assert rows[37] == ["4.9", "3.6", "1.4", "0.1", "setosa"]
