"""Profiles over problems: figures by hand, resuming, the table, the picture and the page."""

from __future__ import annotations

import math
import re

import pytest

import difflab as dl
from difflab.bench import problems as bench
from difflab.bench.problems import LAYOUT, Profiles, draw, page, ratios, share, tasks, text
from difflab.lab.sweep import run
from tests.bench.picture_checks import check_picture, texts


def row(problem, method, verdict="agree", prepare=1e-3, call=1e-6, ulps=0.5, status="ok"):
    about = {"problem": problem, "method": method, "family": "automatic", "kind": "scalar"}
    return about | {
        "status": status,
        "verdict": verdict,
        "message": "<b>why</b>" if verdict != "agree" else "",
        "ulps": ulps,
        "prepare_seconds": prepare,
        "call_seconds": call,
    }


ROWS = [
    row("a/1", "reverse"),
    row("a/1", "symbolic", prepare=0.1, call=0.5e-6),
    row("a/2", "reverse", verdict="disagree", ulps=1e9),
    row("a/2", "symbolic", prepare=0.2),
    row("a/3", "reverse", verdict="convention", ulps=None),
    row("a/3", "symbolic", verdict="", status="timeout", ulps=None, prepare=None, call=None),
]


def test_profiles_are_those_of_dolan_and_more():
    found = Profiles.of(ROWS)
    once = found.once["symbolic"]
    assert once == (pytest.approx(0.1000005 / 0.001001), 1.0, math.inf)
    # 1,000 calls: 1 ms + 1 ms against 100 ms + 0.5 ms.
    assert found.often["symbolic"][0] == pytest.approx(0.1005 / 0.002)
    assert found.often["reverse"] == (1.0, math.inf, 1.0)
    assert found.ulps["reverse"] == (0.5, 1e9, math.inf)
    assert share(found.often["reverse"], 1.0) == pytest.approx(2 / 3)


def test_no_method_is_right():
    assert ratios({"a": [math.inf], "b": [math.inf]}) == {"a": (math.inf,), "b": (math.inf,)}


def test_table_picture_and_page():
    table = text(ROWS, width=110)
    assert "3 problems of a, each at its start" in table
    assert re.search(r"reverse +2/3 +1 +0 +0 +", table)
    check_picture(draw, ROWS)
    assert "1,000 derivatives" in texts(draw(ROWS))
    shown = page(ROWS)
    assert "&lt;b&gt;why&lt;/b&gt;" in shown
    assert "<b>why" not in shown
    assert "symbolic: 1" in shown


def test_rows_are_kept_and_a_problem_is_compared_once(tmp_path, monkeypatch):
    compared = []
    compare = bench.compare

    def counted(*arguments, **options):
        compared.append(arguments)
        return compare(*arguments, **options)

    monkeypatch.setattr(bench, "compare", counted)
    chosen = [dl.problem("mgh/beale"), dl.problem("traps/abs")]
    path = tmp_path / "problems.csv"
    rows = run(path, LAYOUT, tasks(chosen, ["reverse", "finite-central"]))
    assert len(compared) == 2
    assert [found["verdict"] for found in rows] == ["agree", "agree", "convention", "convention"]
    assert run(path, LAYOUT, tasks(chosen, ["reverse", "finite-central"])) == rows
    assert len(compared) == 2


def test_a_comparison_that_raises_is_a_row(monkeypatch):
    def broken(*arguments, **options):
        raise MemoryError("too large")

    monkeypatch.setattr(bench, "compare", broken)
    (task,) = tasks([dl.problem("mgh/beale")], ["reverse"])
    found = task.measure()
    assert found["status"] == "failed"
    assert "too large" in found["message"]
