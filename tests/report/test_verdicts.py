"""Every verdict has a style, a colour and a place in every report."""

import json
from pathlib import Path

import pytest

import difflab as dl
from difflab.cli.check import CheckOutcome
from difflab.lab.diff.difference import _OUTCOMES
from difflab.lab.record import VERDICTS
from difflab.referee.verdict import Verdict
from difflab.report import html
from difflab.report.comparison.plots import picture
from difflab.report.domain.plots import HUES
from difflab.report.domain.plots import picture as map_picture
from difflab.report.site.pictures import _COLOURS
from difflab.report.terminal import STYLES


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_its_styles(verdict):
    sheet = Path(html.__file__).parents[1] / "explore" / "assets" / "style.css"
    assert verdict in STYLES
    assert verdict in HUES
    assert verdict in _COLOURS
    assert verdict in VERDICTS
    assert verdict in _OUTCOMES
    assert f".{verdict}" in Path(html.__file__).read_text(encoding="utf-8")
    assert f".{verdict}" in sheet.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def declared():
    return dl.compare("x*stop_gradient(x)", {"x": 3}, methods=["reverse", "symbolic"])


def test_reports_of_a_declared_derivative(declared):
    assert "declared" in declared.table()
    assert "by the rule of stop_gradient: 3 where the derivative is 6" in " ".join(
        declared.table().split()
    )
    assert 'class="declared"' in declared._repr_html_()
    assert "declared by a rule" in picture(declared, "svg").decode()
    methods = json.loads(declared.to_json())["methods"]
    assert [row["verdict"] for row in methods] == ["declared", "agree"]


def test_a_map_of_a_declared_derivative():
    found = dl.compare("x*stop_gradient(x)", over={"x": (1, 2)}, points=20, methods=["reverse"])
    assert "declared" in found.table()
    assert "declared" in map_picture(found, "svg").decode()


def test_a_check_that_is_declared():
    from difflab.testing.gradient import judged_gradient

    found = judged_gradient(lambda x: x * dl.stop_gradient(x), None, 3.0)
    outcome = CheckOutcome("m:f", None, {"x": 3.0}, "x = 3", 1e-8, 0.0, None, found)
    assert outcome.status == "declared"
    assert outcome.message.startswith("the gradient is declared: it differs from the derivative")
