"""Comparisons over a domain: verdicts as at single points, silence, the worst point, resuming."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, PointError
from difflab.lab.domain import compare as domain
from difflab.lab.domain import referees
from difflab.lab.domain.compare import compare_domain
from difflab.lab.domain.judging import VERDICTS
from difflab.lab.domain.record import DomainComparison, read_rows
from difflab.methods import registry
from tests.lab.domain.planted import SEED, Planted

OVER = {"x1": (0.1, 10.0), "x2": (-5.0, 5.0)}


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a method known by its name."""

    def planted(method: Planted) -> None:
        known = {**registry.own(), method.name: method}
        monkeypatch.setattr(registry, "installed", lambda: known)

    return planted


def test_the_seed_formula_is_right_everywhere_and_proved() -> None:
    found = compare_domain(SEED, OVER, points=64, methods=["reverse", "finite-central"])
    assert found.agreed
    assert found.proved == 1.0
    assert found.regularity == {"smooth": 1.0}
    reverse, central = found.methods
    assert reverse.shares["agree"] == central.shares["agree"] == 1.0
    assert reverse.ulps is not None
    assert central.ulps is not None
    # Central differences lose a third of the digits, reverse mode none.
    assert reverse.ulps[50] < 1 < 1e3 < central.ulps[50] < 1e8
    assert reverse.ulps[50] <= reverse.ulps[99] <= reverse.ulps[100]
    assert reverse.evaluations == 0 < central.evaluations


def test_a_point_has_the_verdict_and_the_errors_of_a_comparison_there() -> None:
    text, names = "abs(x)*sqrt(x + 1) + x^2", ["reverse", "finite-forward"]
    found = compare_domain(text, {"x": (-2.0, 2.0)}, points=24, methods=names)
    assert len(found.regularity) == 2  # smooth, and undefined below -1
    for index, x in enumerate(found.points[:, 0].tolist()):
        if x <= -1:
            continue  # a comparison at a point refuses one outside the domain
        single = dl.compare(text, {"x": x}, methods=names, timing=False)
        for row, judged in zip(single.methods, found.judged, strict=True):
            assert str(VERDICTS[judged.verdicts[index]]) == row.verdict
            assert judged.ulps[index] == pytest.approx(row.max_ulp_error, rel=0.05, abs=0.5)


def test_errors_are_those_of_mpmath() -> None:
    import mpmath

    found = compare_domain("exp(x)*sin(x)", {"x": (0.5, 9.0)}, points=16, methods=["reverse"])
    slope = dl.compile(dl.gradient(dl.parse("exp(x)*sin(x)")))
    for index, x in enumerate(found.points[:, 0].tolist()):
        with mpmath.workdps(60):
            exact = mpmath.exp(x) * (mpmath.sin(x) + mpmath.cos(x))
            ulps = abs(mpmath.mpf(float(slope(x)[0])) - exact) / math.ulp(float(exact))
        # The batch may round otherwise than a single call.
        assert found.judged[0].ulps[index] == pytest.approx(float(ulps), abs=16, rel=1)


def test_a_planted_box_is_found_by_the_search(plant: Any) -> None:
    plant(Planted((0.615, 0.205), (0.645, 0.235)))
    found = compare_domain(SEED, OVER, points=400, methods=["planted", "reverse"])
    planted, reverse = found.methods
    assert planted.worst is not None
    assert planted.worst.verdict == "disagree"
    assert planted.worst.max_rel_error == pytest.approx(0.5)
    unit = (planted.worst.point["x1"] - 0.1) / 9.9, (planted.worst.point["x2"] + 5) / 10
    assert 0.615 <= unit[0] <= 0.645
    assert 0.205 <= unit[1] <= 0.235
    assert not found.agreed
    assert reverse.worst is not None
    assert reverse.worst.verdict != "disagree"


def test_silence_says_where_and_why(plant: Any) -> None:
    plant(Planted(silent=0.75))
    (row,) = compare_domain(SEED, OVER, points=64, methods=["planted"]).methods
    assert row.shares["unanswered"] == pytest.approx(0.25, abs=0.02)
    (silence,) = row.silences
    assert (silence.status, silence.reason) == ("failed", "ValueError: it is too far to the right")
    assert silence.count == round(64 * row.shares["unanswered"])
    assert silence.low["x1"] > 0.1 + 0.75 * 9.9


def test_a_method_that_cannot_be_prepared_is_a_row() -> None:
    found = compare_domain("abs(x)", {"x": (-1, 1)}, points=8, methods=["complex-step"])
    (row,) = found.methods
    assert row.status == "unsupported"
    assert "abs" in row.message
    assert found.agreed


def test_the_node_that_loses_the_digits_is_marked() -> None:
    found = compare_domain(
        "exp(x) + (x - sin(x))*1e20", {"x": (1e-6, 1e-4)}, points=32, methods=["reverse"]
    )
    worst = found.methods[0].worst
    assert worst is not None
    assert worst.node is not None
    assert worst.node.span == (10, 20)  # x - sin(x)


def test_the_same_seed_gives_the_same_points_and_another_gives_others() -> None:
    runs = [
        compare_domain("x^2", {"x": (0, 1)}, points=8, methods=["reverse"], seed=s)
        for s in (3, 3, 4)
    ]
    assert (runs[0].points == runs[1].points).all()
    assert (runs[0].points != runs[2].points).any()


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.json.partial"
    options: dict[str, Any] = {"points": 40, "methods": ["reverse", "richardson"], "resume": path}
    monkeypatch.setattr(domain, "BLOCK", 10)
    asked: list[int] = []

    def interrupt(done: int, total: int, label: str) -> None:
        asked.append(done)
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare_domain(SEED, OVER, progress=interrupt, **options)
    assert path.exists()
    said: list[str] = []
    asked.clear()
    again = compare_domain(
        SEED, OVER, progress=lambda done, *_: asked.append(done), notify=said.append, **options
    )
    assert 0 not in asked
    assert any("going on" in line for line in said)
    assert not path.exists()
    whole = compare_domain(SEED, OVER, **{**options, "resume": None})
    _same(again, whole)


def _same(a: DomainComparison, b: DomainComparison) -> None:
    """Assert that two comparisons differ in times only."""
    assert (a.points == b.points).all()
    for one, two in zip(a.judged, b.judged, strict=True):
        np.testing.assert_array_equal(one.verdicts, two.verdicts)
        np.testing.assert_array_equal(one.ulps, two.ulps)
    assert [row.worst for row in a.methods] == [row.worst for row in b.methods]


def test_blocks_of_another_question_are_not_used(tmp_path: Path) -> None:
    path = tmp_path / "blocks"
    path.write_text('{"function": "another"}\n{"block": 0}\n', encoding="utf-8")
    said: list[str] = []
    found = compare_domain(
        "x^2", {"x": (0, 1)}, points=8, methods=["reverse"], resume=path, notify=said.append
    )
    assert found.agreed
    assert "started again" in said[0]


def test_processes_and_this_process_judge_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"points": 24, "methods": ["reverse", "richardson"]}
    here = compare_domain("sin(x)*x", {"x": (0, 9)}, **options)
    monkeypatch.setattr(referees, "FEW", 1)
    _same(compare_domain("sin(x)*x", {"x": (0, 9)}, **options), here)


def test_json_follows_the_schema(reference: Any, plant: Any) -> None:
    schema = reference("domain-3.schema")
    plant(Planted((0.0, 0.0), (0.5, 1.0), silent=0.8))
    for text, over, at in (
        (SEED, OVER, None),
        ("w: [2]; sum(w*abs(x))*y", {"x": (-1, 1), "w": (0, 1)}, {"y": 2}),
    ):
        names = ["planted", "reverse"] if text == SEED else ["reverse", "complex-step"]
        found = compare_domain(text, over, at, points=16, methods=names)
        record = json.loads(found.to_json())
        jsonschema.validate(record, schema)
        for change in ({"schema": "difflab.domain/0"}, {"methods": [{}]}, {"domain": {}}):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(record | change, schema)


@pytest.mark.parametrize(
    ("over", "options", "message"),
    [
        ({}, {}, "a domain needs an interval"),
        ({"z": (0, 1)}, {}, "there is no input 'z'"),
        ({"x1": (0, 1)}, {}, "'x2' has neither an interval nor a value"),
        ({"x1": (1, 0), "x2": (0, 1)}, {}, "not below the upper end"),
        ({"x1": (0, math.inf), "x2": (0, 1)}, {}, "not finite"),
        ({"x1": 3, "x2": (0, 1)}, {}, "a pair of numbers"),
        ({"x1": (0, 1), "x2": (0, 1)}, {"scale": {"x1": "log"}}, "contains 0"),
        ({"x1": (1, 2), "x2": (0, 1)}, {"scale": {"x1": "cubic"}}, "unknown scale"),
        ({"x1": (1, 2), "x2": (0, 1)}, {"at": {"x1": 1.5}}, "an interval and a value"),
        ({"x1": (1, 2), "x2": (0, 1)}, {"points": 0}, "a positive integer"),
        ({"x1": (1, 2), "x2": (0, 1)}, {"seed": -1}, "a non-negative integer"),
    ],
)
def test_bad_domains_are_refused(over: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((PointError, InputError), match=message):
        compare_domain(SEED, over, **options)


@pytest.mark.parametrize("version", [1, 2])
def test_rows_are_read_as_they_were_written(version: int) -> None:
    found = compare_domain("sqrt(x)", {"x": (-1, 1)}, points=16, methods=["forward", "symbolic"])
    written = {**found.to_dict(), "schema": f"difflab.domain/{version}"}
    assert [row.to_dict() for row in read_rows(written)] == written["methods"]
    again = json.loads(json.dumps(written))
    assert [row.to_dict() for row in read_rows(again)] == written["methods"]


@pytest.mark.parametrize(
    ("part", "value", "named"),
    [
        ("evaluations", 2.5, "methods[0].evaluations is 2.5"),
        ("worst", 3, "methods[0].worst is an integer, not an object"),
        ("ulps", {"50": 0.5}, "methods[0].ulps.99 is missing"),
        ("status", "lost", "methods[0].status is 'lost', not one of ok, "),
    ],
)
def test_a_damaged_row_is_named(part: str, value: Any, named: str) -> None:
    found = compare_domain("sin(x)", {"x": (0, 1)}, points=4, methods=["forward"]).to_dict()
    found["methods"][0][part] = value
    with pytest.raises(InputError, match=re.escape(named)):
        read_rows(found)


def test_a_long_comparison_from_python_shows_its_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(range(0, 10**6, 3))  # each look at the clock is three seconds later
    monkeypatch.setattr("difflab.core.progress.monotonic", lambda: next(clock))
    options: dict[str, Any] = {"over": {"x": (0, 1)}, "points": 8, "methods": ["reverse"]}
    dl.compare("x^2", **options)
    assert capsys.readouterr().err.startswith("0 of 3: points 0 and on\n")
    seen: list[str] = []
    compare_domain("x^2", {"x": (0, 1)}, points=8, progress=lambda *step: seen.append(step[2]))
    assert (seen[0], capsys.readouterr().err) == ("points 0 and on", "")
