"""The fixture is the checker, in a plain test suite too."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import difflab
from difflab.testing.plugin import check_gradient  # noqa: F401 - also where it is not installed
from difflab.testing.suites.check_report import CheckReport
from tests.support.browser import chromium, new_page

ROOT = Path(difflab.__file__).parents[1]
SUITE = """
import numpy as np

def test_right(check_gradient):
    check_gradient(np.sin, np.cos, 0.5)

def test_wrong(check_gradient):
    check_gradient(np.sin, lambda x: -np.cos(x), 0.5)
"""


def test_the_fixture_checks(check_gradient: Callable[..., None]) -> None:  # noqa: F811
    check_gradient(np.sin, np.cos, 0.5)
    with pytest.raises(AssertionError):
        check_gradient(np.sin, np.sin, 0.5)


def outside(folder: Path, *options: str) -> str:
    """Run pytest there, where difflab's plug-in is named and not found by its entry point.

    Neither are those of other packages, which import much.
    """
    plugins = ["-p", "difflab.testing.plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    return done.stdout + done.stderr


def test_a_suite_of_somebody_elses_fails_with_the_message(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(SUITE)
    shown = outside(tmp_path)
    assert "1 failed, 1 passed" in shown
    assert "the gradient is wrong in 1 of 1 component" in shown
    assert "likely a sign error" in shown


STRUCTURES = """
import numpy as np

X = {"w": np.ones(2), "b": 1.0}

def loss(p):
    return np.sum(p["w"]) * p["b"]

def test_missing(check_gradient):
    check_gradient(loss, lambda p: {"w": p["b"] * np.ones(2)}, X)

def test_none(check_gradient):
    check_gradient(loss, lambda p: {"w": p["b"] * np.ones(2), "b": None}, X)

def test_shape(check_gradient):
    check_gradient(loss, lambda p: {"w": np.ones(3), "b": 2.0}, X)

def test_parts(check_gradient):
    check_gradient(lambda a, b: a * b, lambda a, b: b, 1.0, 2.0)

def test_array(check_gradient):
    check_gradient(np.sum, lambda x: np.ones(3), np.ones(2))
"""


def test_faults_of_the_structure_show_no_frames_of_the_checker(tmp_path: Path) -> None:
    (tmp_path / "test_structures.py").write_text(STRUCTURES)
    shown = outside(tmp_path)
    assert "5 failed" in shown
    assert 'p["b"] is missing in the gradient' in shown
    assert "cached_property" not in shown
    assert "raise GradientMismatch" not in shown
    assert "__tracebackhide__" not in shown


MARKED = """
import numpy as np
import pytest

@pytest.mark.gradients(points=[[0.5, 1.0], [2.0, 3.0]], dtypes=("float64", "float32"))
def test_right(check_gradient, point):
    assert point.shape == (2,)
    check_gradient(lambda x: np.sum(x**2), lambda x: 2 * x, point)

@pytest.mark.gradients(points=3, shape=(2, 2), between=(5, 6))
def test_wrong(check_gradient, point):
    assert point.shape == (2, 2) and 5 <= point.min() <= point.max() <= 6
    check_gradient(lambda x: np.sum(x**2), lambda x: -2 * x, point)
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_the_marker_makes_cases_and_the_report_and_junit_have_every_check(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    if workers:
        pytest.importorskip("xdist", reason="pytest-xdist runs tests in several processes")
    (tmp_path / "test_marked.py").write_text(MARKED)
    shown = outside(tmp_path, *workers, "--difflab-report=out/page.html", "--junitxml=junit.xml")
    assert "3 failed, 4 passed" in shown
    assert "test_right[float32-1]" in (tmp_path / "junit.xml").read_text()
    page = (tmp_path / "out/page.html").read_text()
    assert "7 checks, 3 failed" in page
    assert page.count('class="wrong"') == 3
    assert page.index("test_wrong") < page.index("test_right")
    tables = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)
    assert [len(table.splitlines()) for table in tables] == [5, 5, 5]  # a heading, four components
    assert all(re.match(r" +component +yours +numeric", table) for table in tables)
    assert "likely a sign error" in page
    assert "2 float32" in page
    assert "2×2 float64" in page
    properties = [
        json.loads(found.get("value", ""))
        for found in ElementTree.parse(tmp_path / "junit.xml").iter("property")
        if found.get("name") == "difflab.check"
    ]
    assert sorted(entry["verdict"] for entry in properties) == ["right"] * 4 + ["wrong"] * 3


def test_the_tables_of_the_page_keep_their_lines(tmp_path: Path) -> None:
    message = "the gradient is wrong\n" + "\n".join(["  component" + " 0.5000000000000001" * 9] * 4)
    record = {"function": "f" * 60, "verdict": "wrong", "message": message, "seconds": 0.5}
    report = CheckReport(str(tmp_path / "page.html"))
    report._checks.append((f"tests/{'long_' * 20}.py::test", record))
    report.pytest_sessionfinish()
    with chromium() as browser:
        for width in (390, 1200):
            page = new_page(browser, viewport={"width": width, "height": 800})
            page.goto((tmp_path / "page.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            box = page.locator("pre").bounding_box()
            size = page.evaluate(
                "parseFloat(getComputedStyle(document.querySelector('pre')).lineHeight)"
            )
            assert 4 * size <= box["height"] < 5.5 * size  # four lines and a scroll bar
            assert box["width"] < width


@pytest.mark.parametrize(
    ("test", "complaint"),
    [
        ("@pytest.mark.gradients(points=[1.0])\ndef test(): pass", "has no argument `point`"),
        ("@pytest.mark.gradients(points=[])\ndef test(point): pass", "there are no points"),
        ("@pytest.mark.gradients(points=['a'])\ndef test(point): pass", "not an array of real"),
        ("@pytest.mark.gradients([1.0], dtypes='int8')\ndef test(point): pass", "'int8' is not a"),
    ],
)
def test_a_marker_at_fault_is_refused_with_its_place(
    tmp_path: Path, test: str, complaint: str
) -> None:
    (tmp_path / "test_bad.py").write_text("import pytest\n" + test)
    shown = outside(tmp_path)
    assert complaint in shown
    assert "test_bad.py:2: test" in shown


REGRESSION = """
import numpy as np

def test_it(gradient_regression):
    gradient_regression({"w": np.array([1.0, 2.0, FACTOR]), "b": np.float32(0.5)})
"""


def test_stored_gradients_hold_later_runs(tmp_path: Path) -> None:
    def ran(factor: str, *options: str) -> str:
        (tmp_path / "test_regress.py").write_text(REGRESSION.replace("FACTOR", factor))
        return outside(tmp_path, *options)

    assert "stored for the first time" in ran("3.0")
    stored = tmp_path / "test_regress/test_it.json"
    assert json.loads(stored.read_text())["gradients"]["w"]["values"] == [1.0, 2.0, 3.0]
    assert "1 passed" in ran("3.0")
    assert "1 passed" in ran("3.0 + 4e-12")  # another order of addition
    changed = ran("3.0 + 4e-9")
    assert "1 failed" in changed
    assert "w[2]: was 3.0, is 3.000000004" in changed
    anew = ran("4.0", "--force-regen")
    assert "1 failed" in anew
    assert "stored anew" in anew
    assert "1 passed" in ran("4.0")
    stored.write_text("{}")
    assert "cannot read the stored gradients" in ran("4.0")


def test_the_plug_in_loads_no_mathematics() -> None:
    code = (
        "import sys, difflab.testing.plugin;"
        "heavy = {'numpy', 'scipy', 'sympy', 'mpmath', 'hypothesis'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
