"""What was saved comes back the same, and what is no comparison is refused with a reason."""

import json
from pathlib import Path

import pytest

from difflab.errors import InputError
from difflab.lab.saved import from_dict, from_json

SEED = Path(__file__).parents[1] / "report" / "seed.json"


@pytest.fixture
def record():
    return json.loads(SEED.read_text(encoding="utf-8"))


def test_there_and_back(record):
    record["methods"][0].update(max_abs_error="inf", max_ulp_error="nan", jacobian=[["-inf", 1.0]])
    record["methods"][0]["size"]["tree"] = 10**5000
    empty = dict.fromkeys(("tree", "dag", "simplified_tree", "simplified_dag"))
    for method in record["methods"]:
        method["size"] = method["size"] or empty
    comparison = from_dict(record)
    assert comparison.to_dict() == record
    assert from_json(comparison.to_json()).to_dict() == record


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "{}", '{"schema": "other/1"}'])
def test_other_files_are_refused(text):
    with pytest.raises(InputError, match=r"not a JSON file|schema"):
        from_json(text)


@pytest.mark.parametrize("part", ["expression", "point", "value", "reference", "methods"])
def test_missing_parts_are_named(record, part):
    del record[part]
    with pytest.raises(InputError, match=part):
        from_dict(record)


def test_wrong_parts_are_refused(record):
    record["methods"][0]["family"] = "magic"
    with pytest.raises(InputError, match="magic"):
        from_dict(record)
