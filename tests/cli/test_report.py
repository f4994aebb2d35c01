"""``report``: one page over what was saved, and a word on what could not be read."""

import json
import sys
from pathlib import Path

import pytest

SEED = Path(__file__).parents[1] / "report" / "seed.json"


def test_saved_comparisons_become_one_page(difflab, tmp_path):
    record = json.loads(SEED.read_text(encoding="utf-8"))
    record["methods"][0]["size"]["tree"] = 10**5000
    (tmp_path / "saved").mkdir()
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    text = json.dumps(record)
    sys.set_int_max_str_digits(limit)
    (tmp_path / "saved" / "a.json").write_text(text, encoding="utf-8")
    (tmp_path / "saved" / "b.json").write_text('{"schema": "other"}', encoding="utf-8")
    (tmp_path / "saved" / "c.json").write_text("[" * 100_000, encoding="utf-8")
    record.pop("reference")
    del record["methods"][0]["size"]["tree"]
    (tmp_path / "saved" / "d.json").write_text(json.dumps(record), encoding="utf-8")
    result = difflab("report", "saved")
    assert result.code == 0
    page = (tmp_path / "saved" / "index.html").read_text(encoding="utf-8")
    assert "ln(x1)+x1*x2-sin(x2)" in page
    assert "1e5000" in page
    assert "1 comparison," in page
    for name in ("b.json", "c.json", "d.json"):
        assert name in page
        assert name in result.err


@pytest.mark.parametrize(
    ("name", "says"),
    [("missing", "no directory of comparisons and no study"), ("empty", "no comparison")],
)
def test_nothing_to_show_is_bad_input(difflab, tmp_path, name, says):
    (tmp_path / "empty").mkdir()
    result = difflab("report", name)
    assert result.code == 2
    assert says in result.err
    assert list((tmp_path / "empty").iterdir()) == []
