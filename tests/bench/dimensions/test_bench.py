"""The sweep of a family: operations by algebra, wrong methods found, timeouts not repeated."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from base64 import b64encode

import numpy as np
import pytest

from difflab.bench.dimensions.bench import LAYOUT, tasks
from difflab.bench.dimensions.drawing import draw, page
from difflab.errors import MethodTimeout, UnsupportedError
from difflab.lab.problems.sized import formula_family
from difflab.lab.sweep import run
from difflab.methods.protocol import Estimate, Family
from difflab.methods.registry import own
from tests.bench.picture_checks import check_picture, texts


class Given:
    """A method that returns a given multiple of the right Jacobian, or raises."""

    family = Family.NUMERIC
    summary = ""
    orders = (1,)
    size = None
    operations = None

    def __init__(self, name, factor=1.0, error=None, until=(0, 0)):
        self.name, self.factor, self.error, self.until = name, factor, error, until
        self.tried = []

    def missing(self):
        return None

    def prepare(self, problem):
        self.tried.append((problem.n, problem.m))
        if self.error is not None and problem.n > self.until[0] and problem.m > self.until[1]:
            raise self.error
        return self

    def __call__(self, x):
        return Estimate(self.factor * np.diag(np.cos(x)), None, 0)


def rows_of(path, family, sizes, methods):
    return run(path / "d.csv", LAYOUT, tasks(formula_family(family), sizes, methods, 1000.0))


def test_operations_grow_as_the_modes_do(tmp_path):
    chosen = [own()[name] for name in ("forward", "reverse", "finite-central")]
    family = "x: [n]; W = 0.5; c = sum(sin(x)); c*c"
    rows = rows_of(tmp_path, family, ((4, 8, 16), (1,)), chosen)
    assert {row["status"] for row in rows} == {"ok"}
    by = {(row["method"], row["n"]): row["operations"] for row in rows}
    function = {row["n"]: row["function_operations"] for row in rows}
    assert function == {n: n + (n - 1) + 1 for n in (4, 8, 16)}  # sines, sum, product
    assert by["forward", 16] > 2 * by["forward", 8]
    assert by["reverse", 16] < 2.2 * by["reverse", 8]
    for n in function:
        assert by["finite-central", n] % function[n] == 0
        assert by["finite-central", n] >= 2 * n * function[n]
    assert all(row["inputs"] == row["n"] and row["outputs"] == 1 for row in rows)
    assert all(row["call_seconds"] > 0 and row["peak_bytes"] > 0 for row in rows)


def test_a_wrong_jacobian_is_a_row_without_a_time(tmp_path):
    methods = [Given("right"), Given("wrong", 1.001), Given("nan", float("nan"))]
    rows = rows_of(tmp_path, "x: [n]; sin(x)", ((1, 3), (1,)), methods)
    assert [row["status"] for row in rows] == ["ok", "disagree", "disagree"] * 2
    assert rows[4]["error"] == pytest.approx(1e-3, rel=1e-6)
    right, wrong = rows[3], rows[4]
    assert right["error"] < 1e-12
    assert wrong["call_seconds"] is None


def test_no_size_larger_than_a_timeout_is_tried(tmp_path):
    slow = Given("slow", error=MethodTimeout("stopped"), until=(1, 1))
    unable = Given("unable", error=UnsupportedError("cannot"))
    rows = rows_of(tmp_path, "x: [n]; sin(x)*m", ((1, 2, 4), (1, 3)), [slow, unable])
    assert {row["status"] for row in rows if row["method"] == "unable"} == {"unsupported"}
    assert len(unable.tried) == 6
    # It times out at n = 2, m = 1, and every other size with n > 1 is larger.
    assert list(dict.fromkeys(slow.tried)) == [(1, 1), (2, 2)]
    messages = [row["message"] for row in rows if row["method"] == "slow"][2:]
    assert messages == ["stopped", *["not tried: at n = 2, m = 1 it was stopped"] * 3]


def test_a_member_that_cannot_be_built_is_a_row(tmp_path):
    rows = rows_of(tmp_path, "x: [n]; x[3]", ((2, 4), (1,)), [own()["reverse"]])
    assert [row["status"] for row in rows] == ["failed", "ok"]
    assert "3" in str(rows[0]["message"])


# --- picture and page


def picture_rows(family="x: [n]; W: [m, n]; W@x"):
    rows = []
    for n in (1, 2, 4, 8, 16):
        for m in (1, 2, 4):
            for method, prepare, call in (("symbolic", n * m, 1e-6 * n), ("reverse", 1e-3, 1e-4)):
                row = {"family": family, "n": n, "m": m, "method": method, "status": "ok"}
                row |= {"operations": 10 * n * m, "peak_bytes": 80 * n, "message": ""}
                row |= {"prepare_seconds": prepare, "call_seconds": call}
                if method == "symbolic" and n == 16:
                    row |= {"status": "timeout", "call_seconds": None, "prepare_seconds": None}
                    row |= {"message": "not <tried>"}
                about = {"difflab": "1", "python": "3", "cpu": "c<p>u", "threads": 1}
                rows.append(row | about | {"timeout": 5.0})
    return rows


def test_the_picture_in_every_format():
    check_picture(draw, picture_rows())


def test_the_picture_names_methods_laws_and_extrapolation():
    shown = texts(draw(picture_rows(), "svg"))
    assert "n^1.00 [1.00, 1.00]" in shown
    assert "cheapest, 1,000 calls" in shown
    assert "hatched: extrapolated" in shown


def data_of(text):
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(data)


def test_the_page_has_the_break_even_calls():
    data = data_of(page(picture_rows()))
    cell = data["cells"]["4,2"]
    # 8 + 4e-6 k <= 1e-3 + 1e-4 k
    assert cell["cheapest"]["symbolic"] == [pytest.approx(7.999 / 9.6e-5), None]
    assert cell["pays"]["reverse"]["symbolic"] == [1, pytest.approx(7.999 / 9.6e-5)]
    assert cell["extrapolated"] == []
    assert data["cells"]["16,2"]["extrapolated"] == ["symbolic"]


def test_the_users_text_is_escaped_and_nothing_is_loaded():
    rows = picture_rows("x: [n]; x # </script><b onclick=1>")
    for row in rows:
        row["method"] = f"{row['method']}</script><i>"
    text = page(rows)
    assert "<b onclick" not in text
    assert "</script><i>" not in text
    assert "c&lt;p&gt;u" in text
    assert not re.search(r"(?:src|href)=\"(?!data:)", text)
    assert set(data_of(text)["colours"]) == {row["method"] for row in rows}


def test_the_policy_allows_the_pages_own_script_only():
    text = page(picture_rows())
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:;" in text
    assert f"; script-src 'sha256-{digest}'\"" in text


NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium in PATH")
def test_the_slider_moves_the_map_in_chromium(tmp_path):
    (tmp_path / "d.html").write_text(page(picture_rows()))

    def shown(hash_):
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        url = f"file://{tmp_path}/d.html#{hash_}"
        done = subprocess.run([*command, url], capture_output=True, text=True, check=True)
        tables = re.findall(r'<table class="map"[^>]*>(.*?)</table>', done.stdout, re.DOTALL)
        return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", table) for table in tables]

    winners, breaks = shown("calls=1&first=symbolic&second=reverse")
    assert not any("symbolic" in cell for cell in winners)
    assert winners[0] == "m = 4"
    # n = 4, m = 2: 7.999 s / 96 µs
    assert breaks[6 + 3] == "from 83323"
    winners, _ = shown("calls=1e9")
    assert sum("symbolic" in cell for cell in winners) == 15
