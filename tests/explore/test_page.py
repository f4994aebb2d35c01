"""The file of a page: its size, what it may do, and what it does with hostile text."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.cli.app import run
from difflab.errors import InputError, PointError, UnsupportedError
from difflab.explore.shown import LARGEST_PAGE
from difflab.language import parse


class Tags(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, Any]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.found.append((tag, dict(attributes)))


def data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    record: dict[str, Any] = json.loads(found[1])
    return record


def test_it_loads_nothing_and_runs_only_its_own_script() -> None:
    page = parse("x*sin(y)").explore({"x": 1, "y": 2}).html()
    tags = Tags(page).found
    assert not [tag for tag, attributes in tags if {"src", "href"} & set(attributes)]
    (policy,) = [a["content"] for tag, a in tags if tag == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy
    assert len(page.encode()) < LARGEST_PAGE / 3


def test_text_of_the_user_is_text() -> None:
    function = parse("x < 1 # </script><script>alert(1)</script><img src=x onerror=alert(2)>")
    page = function.explore({"x": 0.0}).html()
    assert "<script>alert" not in page
    assert "<img" not in page
    assert data(page)["text"].startswith("x < 1 # </script>")


def test_ten_thousand_operations_fit() -> None:
    terms = "+".join(f"x[{i % 50}]*sin(x[{7 * i % 50}] + {i})" for i in range(2501))
    page = parse(f"x: [50]; {terms}").explore({"x": [0.5] * 50}).html()
    assert "10,003 operations" in data(page)["key"]
    assert len(page.encode()) <= LARGEST_PAGE


def test_verdicts_are_those_of_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflab.explore.shown.TIMEOUT", 600.0)
    shown = data(dl.parse("x*sin(x)").explore({"x": 2}).html())["verdicts"]
    assert {row["name"] for row in shown["rows"]} >= {"forward", "reverse", "symbolic"}
    assert {row["outcome"] for row in shown["rows"]} == {"agree"}


@pytest.mark.parametrize(
    ("program", "at", "kind", "message"),
    [
        ("x*y", {"x": 1}, PointError, "input y"),
        ("x", {"x": np.nan}, PointError, "finite"),
        ("exp_remainder(17, 0, x)", {"x": 2}, UnsupportedError, "no function for 'exp_remainder'"),
        ("x: [9]; sum(x)", {"x": [1, 2]}, PointError, "shape"),
        ("1 + 2", {}, InputError, "has no input"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    program: str, at: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        parse(program).explore(at)


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.html"
    assert run(["explore", "x*sin(y)", "--at", "x=1,y=2", "-o", str(path)]) == 0
    assert data(path.read_text(encoding="utf-8"))["inputs"] == [["x", 1.0], ["y", 2.0]]
    assert f"wrote {path}" in capsys.readouterr().err
    assert run(["explore", "x*sin(", "-o", str(path)]) == 2
    assert run(["explore", "x: [300, 300]; sum(x@x)", "-o", str(tmp_path / "no.html")]) == 2
    assert not (tmp_path / "no.html").exists()


def test_a_point_is_chosen_where_none_is_given() -> None:
    assert "page of ln(x)" in repr(parse("ln(x)").explore())
    with pytest.raises(InputError, match="up to 4 rows, not 5"):
        parse("A: [5, 5]; det(A)").explore()


def test_a_page_that_is_too_large_is_refused() -> None:
    terms = "+".join(f"{1 / (k + 3)!r}*sin(x[{7 * k % 50}] + {k + 1 / 7!r})" for k in range(3_200))
    with pytest.raises(InputError, match=f"bytes, more than {LARGEST_PAGE:,}"):
        parse(f"x: [50]; {terms}").explore({"x": [0.5] * 50}).html()
