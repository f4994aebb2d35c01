"""What a notebook shows: results once, as a page, and their tables as text."""

import pytest

from tests.support.notebooks import without_progress

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
preprocessors = pytest.importorskip("nbconvert.preprocessors", reason="nbconvert is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

CELLS = (
    "import difflab as dl; r = dl.compare('x^2', {'x': 2.0}, timing=False)",
    "r",
    "print(r.table())",
    "dl.compare('1-cos(x)', {'x': 1e-9}, timing=False, stabilise=True)",
    "dl.stabilise('log(exp(a)+exp(b))')",
    "dl.parse('x^2')",
    "help(dl)",
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each cell shows, executed by a real kernel."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder))
        patch.setenv("JUPYTER_ALLOW_INSECURE_WRITES", "1")
        executor = preprocessors.ExecutePreprocessor(timeout=600, kernel_name="python3")
        executor.preprocess(notebook, {"metadata": {"path": str(folder)}})
    shown = [without_progress(cell.outputs) for cell in notebook.cells]
    return dict(zip(CELLS, shown, strict=True))


@pytest.mark.filterwarnings("ignore")
def test_a_notebook(outputs):
    assert outputs[CELLS[0]] == []
    for cell in (CELLS[1], CELLS[3]):
        (shown,) = outputs[cell]
        assert shown.output_type == "execute_result"
        assert '<div class="difflab">' in shown.data["text/html"]
        assert "reverse" in shown.data["text/plain"]
    (printed,) = outputs[CELLS[2]]
    assert printed.output_type == "stream"
    assert printed.text.startswith("f         x^2\n")
    assert "\nreverse " in printed.text
    (rewritten,) = outputs[CELLS[4]]
    assert rewritten.data["text/plain"].startswith("1:1  log(exp(a)+exp(b)) → logaddexp(a, b)")
    (function,) = outputs[CELLS[5]]
    assert function.data["text/plain"] == "<Function (x) -> (y), 3 nodes: x^2>"
    assert function.data["text/latex"] == "$$x^{2}$$"
    (help_,) = outputs[CELLS[6]]
    assert "compare              every method on one function" in help_.text[:3000]
