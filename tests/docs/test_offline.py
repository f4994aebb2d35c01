"""The built documentation opens without a network: its formulas are drawn by a file of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.browser import chromium, new_page
from tests.support.documents import ROOT

PAGE = """\
# Formulas

The chain rule, $\\dot y = f'(x)\\,\\dot x$.

$$\\int_0^1 x^2\\,dx = \\frac13$$
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a page that is built by the configuration of the documentation."""
    for needed in ("furo", "myst_nb", "numpydoc", "sphinx-mathjax-offline"):
        pytest.importorskip(needed, reason="needs pip install 'difflab[docs]'")
    folder = tmp_path_factory.mktemp("documentation")
    source, target = folder / "source", folder / "html"
    source.mkdir()
    (source / "index.md").write_text(PAGE, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-c", str(ROOT / "docs")]
    done = subprocess.run(
        [*command, str(source), str(target)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return target


def test_formulas_are_drawn_without_a_network(built: Path) -> None:
    requests: list[str] = []
    problems: list[str] = []
    with chromium() as browser:
        page = new_page(browser, offline=True)
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((built / "index.html").as_uri())
        page.wait_for_selector("mjx-container svg")
        assert page.locator(".math mjx-container svg").count() == 2
        assert page.locator("mjx-merror").count() == 0
    assert all(url.startswith(("file:", "data:")) for url in requests), requests
    assert problems == []
