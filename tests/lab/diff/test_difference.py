"""Differences of stores, comparisons and folders, with known changes."""

import dataclasses
import json

import pytest

from difflab.errors import InputError
from difflab.lab.compare import compare
from difflab.lab.diff.difference import Kind, difference
from difflab.lab.diff.sides import Measured, load
from difflab.lab.record import MethodRow, Status
from difflab.lab.study.cases import StudyStore
from difflab.lab.study.run import plan, run
from difflab.lab.study.study import read
from difflab.methods.protocol import Family
from difflab.report.differences import table

ROW = MethodRow(
    name="m", family=Family.NUMERIC, status=Status.OK, verdict="agree", max_ulp_error=1.0
)


def side(blocks=(), cpu="c", **changes):
    return {("a", "m"): Measured("f", "m", dataclasses.replace(ROW, **changes), blocks, cpu)}


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ({}, {}, []),
        ({}, {"verdict": "disagree"}, [Kind.WRONG]),
        ({}, {"verdict": "inconclusive"}, [Kind.VERDICT]),
        ({}, {"status": Status.TIMEOUT, "verdict": None, "max_ulp_error": None}, [Kind.VERDICT]),
        ({"verdict": "disagree"}, {}, [Kind.BETTER]),
        ({}, {"max_ulp_error": 1.0000000000000002}, [Kind.LESS_ACCURATE]),
        ({}, {"max_ulp_error": float("nan")}, [Kind.LESS_ACCURATE]),
        ({"max_ulp_error": float("nan")}, {"max_ulp_error": float("inf")}, []),
        ({}, {"max_ulp_error": 0.5}, [Kind.MORE_ACCURATE]),
        ({}, {"max_ulp_error": 9.0, "verdict": "disagree"}, [Kind.WRONG, Kind.LESS_ACCURATE]),
    ],
)
def test_changes_of_results(before, after, kinds):
    found = difference(side(**before), side(**after))
    assert [change.kind for change in found.changes] == kinds
    assert found.worse == any(kind.worse for kind in kinds)


def test_what_is_gone_is_worse_and_what_is_new_is_not():
    gone, new = difference(side(), {}), difference({}, side())
    assert [change.kind for change in gone.changes] == [Kind.GONE]
    assert [change.kind for change in new.changes] == [Kind.NEW]
    assert gone.worse
    assert not new.worse


BLOCKS = [([1.00, 1.01, 1.02], [2.0, 2.0, 2.0])] * 5


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (side(), side(), "no times in OLD and NEW"),
        (side(), side(BLOCKS), "no times in OLD"),
        (side(BLOCKS), side(), "no times in NEW"),
        (side(BLOCKS, "Zen 4"), side(BLOCKS, "M3"), "other processors: Zen 4 and M3"),
        (side(BLOCKS[:1]), side(BLOCKS), "too few undisturbed samples"),
        (side(BLOCKS), side(BLOCKS), None),
    ],
)
def test_it_says_why_times_were_not_compared(old, new, reason):
    found = difference(old, new)
    assert found.to_dict()["untimed"] == ({reason: 1} if reason else {})
    assert found.timed == (reason is None)
    shown = " ".join(table(found).split())
    ending = f"times not compared: {reason} (1)"
    assert (ending in shown) if reason else ("not compared" not in shown)


@pytest.mark.parametrize("scatter", [0.0, 0.05])
def test_the_smallest_slowdown_that_noise_does_not_hide(scatter):
    """Just below it nothing is reported, just above it the record is slower."""
    rounds = [1 - scatter, 1.0, 1 + scatter]

    def after(ratio):
        slower = [([ratio * seconds for seconds in rounds], [2.0] * 3)] * 5
        return difference(side([(rounds, [2.0] * 3)] * 5), side(slower))

    smallest = after(1.0).smallest_slowdown
    assert smallest > (1.1 if scatter else 1.02)
    assert after(0.999 * smallest).changes == ()
    assert [change.kind for change in after(1.001 * smallest).changes] == [Kind.SLOWER]
    assert difference(side(), side()).smallest_slowdown is None


def test_slower_and_faster_calls_on_one_processor_only():
    quick = [([1.0, 1.01, 1.0], [2.0] * 3)] * 5
    slow = [([1.1, 1.11, 1.1], [2.0] * 3)] * 5
    (change,) = difference(side(quick), side(slow)).changes
    assert (change.kind, round(change.ratio, 3)) == (Kind.SLOWER, 1.1)
    assert [c.kind for c in difference(side(slow), side(quick)).changes] == [Kind.FASTER]
    assert difference(side(quick), side(slow, cpu="d")).timed == 0


STUDY = """
[[grid]]
formulas = ["x^2*sin(x)"]
at = {x = 1.5}
methods = ["forward", "richardson"]
timing = false
"""


def stored(tmp_path, name):
    (tmp_path / "a.toml").write_text(STUDY, encoding="utf-8")
    with StudyStore(tmp_path / name, new=True) as store:
        run(store, plan(read(tmp_path / "a.toml")))
    return str(tmp_path / name)


def test_a_fault_of_one_ulp_in_a_derivative_rule_is_found(tmp_path, monkeypatch):
    """The fault: every derivative of the second run is rounded up once more."""
    import numpy as np

    from difflab.lab import measure

    old = stored(tmp_path, "old.db")
    assert difference(load(old), load(stored(tmp_path, "same.db"))).changes == ()
    answer = measure.answer

    def faulty(method, *arguments, **options):
        found = answer(method, *arguments, **options)
        if method.name == "forward":
            worse = np.nextafter(found.estimate.value, np.inf)
            estimate = dataclasses.replace(found.estimate, value=worse)
            found = dataclasses.replace(found, estimate=estimate)
        return found

    monkeypatch.setattr(measure, "answer", faulty)
    found = difference(load(old), load(stored(tmp_path, "new.db")))
    assert [change.method for change in found.changes] == ["forward"]
    (change,) = found.changes
    assert abs(change.new - change.old) == pytest.approx(
        1.0, abs=0.01
    ) or change.new + change.old == pytest.approx(1.0, abs=0.01)


def test_comparisons_and_folders_of_them(tmp_path):
    options = {"methods": ["forward", "reverse"], "timing": False}
    comparison = compare("x^2", {"x": 3}, **options)
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.json").write_text(comparison.to_json())
    record = comparison.to_dict()
    record["methods"][1]["verdict"] = "disagree"
    (tmp_path / "new" / "a.json").write_text(json.dumps(record))
    for names in (("old", "new"), ("old/a.json", "new/a.json")):
        found = difference(*(load(str(tmp_path / name)) for name in names))
        assert [(c.kind, c.method) for c in found.changes] == [(Kind.WRONG, "reverse")]


@pytest.mark.parametrize("name", ["absent", "empty", "text.json", "a.db:none"])
def test_what_cannot_be_read_is_refused(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.json").write_text("{}")
    stored(tmp_path, "a.db")
    with pytest.raises(InputError):
        load(str(tmp_path / name))
