"""Reports of comparisons over a domain: pictures, data, and hostile names."""

from __future__ import annotations

import csv as csv_reader
import io
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from difflab.errors import InputError
from difflab.lab.domain.compare import compare_domain
from difflab.lab.domain.judging import VERDICTS
from difflab.lab.domain.record import DomainComparison
from difflab.lab.record import Expression, Variable
from difflab.report.canvas import style
from difflab.report.domain import formats
from difflab.report.domain.plots import HUES, colours, figure, picture
from difflab.report.domain.result import DomainResult
from tests.bench.picture_checks import STARTS, check_page, texts
from tests.report.conftest import HOSTILE


@pytest.fixture(scope="module")
def one() -> DomainComparison:
    return compare_domain(
        "x - sin(x)", {"x": (1e-6, 3)}, points=48, scale={"x": "log"}, methods=["reverse"]
    )


@pytest.fixture(scope="module")
def two() -> DomainComparison:
    return compare_domain(
        "x*y + log(x)", {"x": (-1, 1), "y": (0, 1)}, points=24, methods=["forward", "exact"]
    )


@pytest.fixture(scope="module")
def three() -> DomainComparison:
    over = {"x": (1.0, 10.0), "w": (0.0, 1.0)}
    return compare_domain(
        "w: [2]; x*sum(w)", over, points=24, scale={"x": "log"}, methods=["reverse"]
    )


@pytest.mark.parametrize("name", ["one", "two", "three"])
def test_pictures_of_every_dimension_and_format(name: str, request: Any) -> None:
    found = request.getfixturevalue(name)
    with style():
        check_page(figure(found))
    kinds = STARTS if name == "one" else ["svg"]
    for kind in kinds:
        assert picture(found, kind).startswith(STARTS[kind])
    if name == "two":
        assert picture(found, "svg") == picture(found, "svg")
    with pytest.raises(InputError, match="cannot draw a picture as 'gif'"):
        picture(found, "gif")


def test_the_operation_that_loses_the_digits_is_marked(one: DomainComparison) -> None:
    drawn = texts(picture(one, "svg"))
    assert "x - sin(x)" in drawn
    assert re.search("reverse loses its digits in", drawn)


def test_verdict_is_the_hue_and_error_the_shade(one: DomainComparison) -> None:
    from matplotlib.colors import to_rgb

    judged = one.judged[0]
    shades = colours(judged)
    agree, ulps = judged.verdicts == 0, judged.ulps
    order = np.argsort(ulps[agree])
    assert (np.diff(shades[agree][order].sum(axis=1)) <= 1e-12).all()  # the worse, the darker
    wrong = shades[judged.verdicts == VERDICTS.index("disagree")]
    assert len(wrong)
    assert (np.abs(wrong - to_rgb(HUES["disagree"])).max(axis=1) < 0.31).all()


def test_csv_has_a_row_for_each_point_and_method(two: DomainComparison) -> None:
    rows = list(csv_reader.DictReader(io.StringIO(formats.csv(two))))
    assert len(rows) == 48
    assert [float(row["x"]) for row in rows[:24]] == two.points[:, 0].tolist()
    outside = [row for row in rows if float(row["x"]) < 0]
    assert outside
    assert {row["status"] for row in outside} == {"undefined"}
    assert {row["verdict"] for row in outside if row["method"] == "exact"} == {"unanswered"}
    assert all(row["ulp_error"] == "" for row in outside)


def test_parquet_has_the_same_rows(two: DomainComparison, tmp_path: Any) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    path = tmp_path / "points.parquet"
    DomainResult.of(two).save(path)
    found = parquet.read_table(path)
    assert b'"difflab.domain/3"' in found.schema.metadata[b"difflab"]
    DomainResult.of(two).save(tmp_path / "points.csv")
    text = (tmp_path / "points.csv").read_text(encoding="utf-8")
    rows = list(csv_reader.DictReader(io.StringIO(text)))
    assert found.column_names == list(rows[0])
    for name in ("x", "y"):
        assert found[name].to_pylist() == [float(row[name]) for row in rows]
    assert found["verdict"].to_pylist() == [row["verdict"] for row in rows]
    known = [float(row["ulp_error"]) if row["ulp_error"] else None for row in rows]
    assert found["ulp_error"].to_pylist() == known
    with pytest.raises(InputError, match="cannot tell the format"):
        DomainResult.of(two).save(tmp_path / "points.txt")


def test_hostile_names_are_escaped(two: DomainComparison) -> None:
    inputs = (Variable("<b>$x$\x1b[1m"), Variable("y"))
    row = replace(two.methods[1], name="@plug\x1b[0m<i>", message="=1+1 <img src=x>\x1b]0;t\x07")
    row = replace(row, silences=(), worst=None)
    hostile = replace(
        two, expression=Expression(HOSTILE, inputs, two.expression.outputs), methods=(row, row)
    )
    for text in (
        formats.view(hostile).table(),
        formats.view(hostile).markdown(),
        formats.view(hostile).page(),
    ):
        assert "\x1b" not in text
        assert "\x07" not in text
    assert "<script>" not in formats.view(hostile).page()
    assert "<img" not in formats.view(hostile).page()
    assert "<img" not in formats.view(hostile).markdown()
    assert "\x1b" not in formats.csv(hostile)
    assert "'@plug" in formats.csv(hostile)
    assert picture(hostile, "svg").startswith(b"<?xml")


def test_the_pages_policy_shows_the_maps(two: DomainComparison) -> None:
    """The maps are images in the page itself, which a browser refuses unless the policy says so."""
    text = formats.view(two).page()
    assert "data:image/png" in text
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', text)
    assert "img-src data:" in policy.split("; ")


def test_errors_beyond_the_axis_are_counted_and_ends_are_written_as_on_the_ticks() -> None:
    # exp overflows above 709.78; the derivative's difference of infinities is NaN.
    over = {"x": (700, 1e9)}
    found = compare_domain("(exp(x)-1-x)/x^2", over, points=16, methods=["reverse"])
    drawn = texts(picture(found, "svg"))
    beyond = int((~(found.judged[0].ulps < 1e20)).sum())
    assert beyond == len(found.points)
    assert f"{beyond} of {len(found.points)} points at" in drawn
    assert "over x = 700 … 1e9" in drawn
    assert "1000000000" not in drawn
    assert {"2.5e8", "5e8", "1e9"} <= set(drawn.split("\n"))


@pytest.mark.parametrize(
    ("low", "high", "log", "expected"),
    [
        (1e-300, 1e300, True, {1e-200: "1e-200", 1.0: "1", 1e200: "1e200"}),
        (-1e6, -1e-2, True, {-1e6: "-1e6", -1e4: "-1e4", -1.0: "-1", -0.01: "-0.01"}),
        (2.0, 8.0, True, {2.0: "2", 4.0: "4", 8.0: "8"}),
        (1.0, 1.0 + 2e-9, False, {1.0: "1", 1.000000001: "1.000000001"}),
    ],
)
def test_ticks_name_the_values_where_they_stand(
    low: float, high: float, log: bool, expected: dict[float, str]
) -> None:
    scale = {"x": "log"} if log else {}
    found = compare_domain("x", {"x": (low, high)}, points=8, scale=scale, methods=["reverse"])
    with style():
        axes = figure(found).axes[0]
        labels = dict(zip(axes.get_xticks(), axes.xaxis.get_ticklabels(), strict=True))
        axes.get_figure().draw_without_rendering()
    shown = {label.get_text(): float(tick) for tick, label in labels.items()}
    assert len(shown) == len(labels)  # no two ticks have the same name
    for value, text in expected.items():
        ends = math.log(abs(low)), math.log(abs(high))
        place = (math.log(abs(value)) - ends[0]) / (ends[1] - ends[0]) if log else value
        assert shown[text] == pytest.approx(place, rel=1e-12, abs=1e-12)
