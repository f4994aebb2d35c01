"""The notebooks of `docs/notebooks/` show what their cells give: they are executed again.

``python -m tests.docs.test_notebooks`` executes them and writes their outputs anew.
"""

from __future__ import annotations

import re
import warnings
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.support.documents import ROOT, matches
from tests.support.notebooks import without_progress

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
LARGEST = 400_000
"""Bytes of a notebook."""


ENVIRONMENT = re.compile(r"(?<=difflab )(\d[\d.]*)[^·]*·.*?date \S+", re.DOTALL)
"""What follows difflab's version in the line that says where a comparison was computed."""


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.ipynb"


def executed(name: str, folder: Path) -> Any:
    """Return a notebook with the outputs that its cells give now, without times of execution."""
    notebook = nbformat.read(path_of(name), as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MPLBACKEND", raising=False)  # the kernel draws into the notebook
        patch.setenv("IPYTHONDIR", str(folder))
        patch.setenv("JUPYTER_ALLOW_INSECURE_WRITES", "1")
        patch.setenv("PYTHONPATH", str(ROOT))
        client = nbclient.NotebookClient(
            notebook,
            timeout=1200,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute()
    for cell in notebook.cells:
        cell.metadata = {}
        if "outputs" in cell:
            cell.outputs = without_progress(cell.outputs)
    return notebook


def read(output: Any) -> dict[str, str]:
    """Return what a reader sees of an output, by kind; a picture of matplotlib counts as one."""
    if output.output_type == "stream":
        return {"stream": output.text}
    shown = dict(output.get("data", {}))
    if "matplotlib" in shown.get("image/svg+xml", ""):
        shown["image/svg+xml"] = "matplotlib"
    if "text/html" in shown:
        hidden = r"<(style|script|svg|iframe)\b.*?</\1>|<img[^>]*>|<[^>]*>"
        text = unescape(re.sub(hidden, " ", shown["text/html"], flags=re.DOTALL))
        shown["text/html"] = ENVIRONMENT.sub(r"\1", text)
    return shown


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_outputs_are_those_of_the_cells(name: str, tmp_path: Path) -> None:
    committed = nbformat.read(path_of(name), as_version=4)
    for old, new in zip(committed.cells, executed(name, tmp_path).cells, strict=True):
        kinds = [[sorted(read(each)) for each in cell.get("outputs", [])] for cell in (old, new)]
        assert kinds[0] == kinds[1], old.source
        for before, after in zip(old.get("outputs", []), new.get("outputs", []), strict=True):
            found = read(after)
            for kind, text in read(before).items():
                assert matches(text, found[kind]), f"{old.source}\n{kind}: {found[kind]}"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_whole_and_small(name: str) -> None:
    assert path_of(name).stat().st_size < LARGEST
    cells = nbformat.read(path_of(name), as_version=4).cells
    assert cells[0].cell_type == "markdown"
    assert re.match(r"# .+\n\nThis notebook ", cells[0].source)
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    assert not [each for cell in code for each in cell.outputs if each.output_type == "error"]
    text = path_of(name).read_text("utf-8")
    assert "/home/" not in text
    assert "/tmp/" not in text


def test_a_changed_output_is_found() -> None:
    footer = "<footer>difflab 0.1.0 · python 3.11 · date 2026-01-01</footer>"
    old, new = (
        nbformat.v4.new_output("execute_result", {"text/html": text, "text/plain": "<Function>"})
        for text in (footer, footer.replace("0.1.0", "0.2.0").replace("01-01", "02-02"))
    )
    assert not matches(read(old)["text/html"], read(new)["text/html"])
    assert read(new) == {"text/html": " difflab 0.2.0 ", "text/plain": "<Function>"}
    before = nbformat.v4.new_output("execute_result", {"text/html": "<b>agree</b> <svg>1</svg>"})
    after = nbformat.v4.new_output("execute_result", {"text/html": "<i>disagree</i>"})
    assert matches(read(before)["text/html"], "agree")
    assert not matches(read(before)["text/html"], read(after)["text/html"])


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    warnings.simplefilter("ignore")
    for stem in NOTEBOOKS:
        with TemporaryDirectory() as place:
            nbformat.write(executed(stem, Path(place)), path_of(stem))
