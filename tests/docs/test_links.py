"""Links between the files of the repository lead to a file, and to a heading that it has.

Sphinx checks the links between pages of `docs/`; this also checks those of README, CONTRIBUTING,
CHANGELOG, the reports and the notebooks, as code hosts and readers of files follow them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.documents import INLINE_CODE, ROOT

FENCED = re.compile(r"^( *)(`{3,}|:{3,}).*?^\1\2", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "docs").rglob("*.ipynb"),
        *(ROOT / "reports").rglob("*.md"),
    ]
    if not {"_build", "jupyter_execute"} & set(path.parts)
)


def prose(path: Path) -> str:
    """Return the Markdown of a document without its code."""
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return FENCED.sub("", text)


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings, as code hosts and MyST make them."""
    text = prose(path)
    included = re.search(r"```{include} (\S+)", path.read_text("utf-8"))
    if included:
        text += prose((path.parent / included[1]).resolve())
    slugs = [
        re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading).lower()).replace(" ", "-")
        for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE)
    ]
    # The second heading of one text is numbered 1.
    return {
        slug + (f"-{earlier}" if (earlier := slugs[:i].count(slug)) else "")
        for i, slug in enumerate(slugs)
    }


def broken(path: Path, text: str) -> list[str]:
    """Return the relative links of a text in `path` that lead nowhere."""
    found = []
    for link in LINK.findall(INLINE_CODE.sub("", text)):
        target, _, anchor = link.partition("#")
        goal = (path.parent / target).resolve() if target else path
        if not goal.exists() or (
            anchor and goal.suffix in (".md", ".ipynb") and anchor not in anchors(goal)
        ):
            found.append(link)
    return found


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    assert not broken(ROOT / document, prose(ROOT / document))


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    other = tmp_path / "other.md"
    other.write_text("# Two words, `code`\n\n## Same\n\n## Same\n\n```sh\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text("# Page\n")
    good = "`f[1](x)` [`a`](other.md) "
    good += "[b](other.md#two-words-code) [c](#page) [d](other.md#same-1) [e](x:y)"
    assert broken(page, good) == []
    bad = "[a](gone.md) [b](other.md#no-heading) [c](#other) [d](other.md#same-2)"
    assert broken(page, bad) == ["gone.md", "other.md#no-heading", "#other", "other.md#same-2"]
