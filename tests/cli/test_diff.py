"""``diff``: exit codes, formats, and hostile text."""

import json

import pytest

from difflab.lab.diff.difference import Difference
from difflab.lab.study.cases import StudyStore
from difflab.report import differences

STUDY = """
[[grid]]
formulas = ["x^2*sin(x) # <script>alert(1)</script> |"]
at = {x = 1.5}
methods = ["forward", "richardson"]
timing = false
"""


@pytest.fixture
def stores(difflab, tmp_path):
    """A store, and one with a derivative that became wrong, and one that became less accurate."""
    (tmp_path / "a.toml").write_text(STUDY, encoding="utf-8")
    assert difflab("study", "a.toml", "-o", "old.db").code == 0
    with StudyStore(tmp_path / "old.db") as store:
        store.copy(tmp_path / "new.db")
    with StudyStore(tmp_path / "new.db") as store:
        store._open.execute(
            'UPDATE records SET comparison = replace(comparison, \'"verdict": "agree"\', '
            "'\"verdict\": \"disagree\"') WHERE method = 'richardson'"
        )


def test_equal_stores_differ_in_nothing(difflab, stores):
    result = difflab("diff", "old.db", "old.db")
    assert result.code == 0
    assert "2 records compared" in result.out


def test_the_summary_says_what_the_noise_hides():
    found = differences.table(Difference((), 3, 2, 1.048))
    assert "2 of them in time: 0 changes for the worse" in found
    assert "noise hides slowdowns below 5 %" in " ".join(found.split())
    assert "noise" not in differences.view(Difference((), 3, 0)).markdown()


def test_what_became_wrong_ends_with_1(difflab, stores, tmp_path):
    result = difflab("diff", "old.db", "new.db")
    assert result.code == 1
    assert "Became wrong: 1" in result.out
    assert "richardson" in result.out
    assert difflab("diff", "new.db", "old.db").code == 0
    record = json.loads(difflab("diff", "old.db", "new.db", "--format", "json").out)
    assert record["worse"] is True
    (change,) = record["changes"]
    assert (change["kind"], change["old"], change["new"]) == ("wrong", "agree", "disagree")


@pytest.mark.parametrize("form", ["md", "html"])
def test_text_is_escaped(difflab, stores, tmp_path, form):
    assert difflab("diff", "old.db", "new.db", "-o", f"d.{form}").code == 1
    text = (tmp_path / f"d.{form}").read_text(encoding="utf-8")
    assert "alert(1)" in text.replace("\\", "")
    assert "<script" not in text
    assert form == "html" or "# \\|" not in text


def test_a_missing_file_is_bad_input(difflab, stores):
    result = difflab("diff", "old.db", "absent.db")
    assert (result.code, result.out) == (2, "")
