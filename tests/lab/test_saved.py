"""What was saved comes back the same, and what is no comparison is refused with a reason."""

import json
from pathlib import Path

import jsonschema
import pytest

from difflab.errors import InputError
from difflab.lab.compare import compare
from difflab.lab.record import from_dict, from_json

SEED = Path(__file__).parents[1] / "report" / "seed.json"
"""Of the schema ``difflab.comparison/1``."""


@pytest.fixture
def record():
    return json.loads(SEED.read_text(encoding="utf-8"))


def proved(record):
    """Return the record in the schema ``difflab.comparison/2``."""
    reference = record["reference"] | {"proved": True, "contradiction": "f by x1"}
    return record | {"schema": "difflab.comparison/2", "reference": reference}


def earlier(record, version):
    """Return a record as an earlier version wrote it, without what has been added since."""
    methods = [
        {name: value for name, value in row.items() if name not in ("call_form", "dtype")}
        for row in record["methods"]
    ]
    return record | {"schema": f"difflab.comparison/{version}", "methods": methods}


def test_the_second_schema_is_read(record, reference):
    record = compare("x^2", {"x": 3}, methods=["reverse"], timing=False).to_dict()
    record = earlier(record, 2)
    jsonschema.validate(record, reference("comparison-2.schema"))
    found = from_dict(record)
    assert (found.reference.proved, found.methods[0].verdict) == (True, "agree")


def test_a_declared_verdict_comes_back(reference):
    record = compare("x*stop_gradient(x)", {"x": 3}, methods=["reverse"], timing=False).to_dict()
    jsonschema.validate(record, reference("comparison-5.schema"))
    assert from_dict(record).methods[0].verdict == "declared"
    record = earlier(record, 3)
    jsonschema.validate(record, reference("comparison-3.schema"))
    assert (from_dict(record).methods[0].verdict, from_dict(record).methods[0].call_form) == (
        "declared",
        "",
    )


def test_the_first_schema_is_read_as_one_without_proofs(reference):
    record = compare("x^2", {"x": 3}, methods=["reverse"], timing=False).to_dict()
    record = earlier(record, 1)
    del record["reference"]["proved"], record["reference"]["contradiction"]
    jsonschema.validate(record, reference("comparison-1.schema"))
    found = from_dict(record)
    assert (found.reference.proved, found.reference.contradiction) == (False, "")
    assert found.methods[0].jacobian.tolist() == [[6.0]]


@pytest.mark.parametrize("part", ["proved", "contradiction"])
def test_the_second_schema_states_what_is_proved(record, part):
    record = proved(record)
    del record["reference"][part]
    with pytest.raises(InputError, match=rf"reference\.{part} is missing"):
        from_dict(record)


def test_there_and_back(record):
    record = proved(record)
    record["methods"][0].update(max_abs_error="inf", max_ulp_error="nan", jacobian=[["-inf", 1.0]])
    record["methods"][0]["size"]["tree"] = 10**5000
    empty = dict.fromkeys(("tree", "dag", "simplified_tree", "simplified_dag"))
    for method in record["methods"]:
        method["size"] = method["size"] or empty
    comparison = from_dict(record)
    record["schema"] = "difflab.comparison/5"  # in which it is written again
    for method in record["methods"]:
        method["call_form"], method["dtype"] = "", "float64"
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


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("methods", 0, "verdict"), None, "methods[0].verdict is null"),
        (("methods", 0, "message"), {}, "methods[0].message is an object"),
        (("methods", 0, "operations"), 2.5, "methods[0].operations is 2.5"),
        (("methods", 0, "operations"), -1, "methods[0].operations is an integer"),
        (("methods", 0, "size"), [], "methods[0].size is a list"),
        (("methods", 0, "max_abs_error"), "much", "methods[0].max_abs_error is 'much'"),
        (("methods", 0, "call_seconds"), True, "methods[0].call_seconds is a boolean"),
        (("methods",), {}, "methods is an object"),
        (("value",), [[[[1]]]], "value is a list, not one of rank 1"),
        (("value",), [10**400], "value[0] is an integer, not within the range of float64"),
        (("reference", "jacobian"), [[1.0], [1.0, 2.0]], "reference.jacobian[1] has 2 elements"),
        (("reference", "digits"), 10**400, "reference.digits is an integer"),
        (("reference", "proved"), 1, "reference.proved is an integer, not true or false"),
        (("point", "x1"), [1.0, [2.0]], "point.x1[1] is a list"),
        (("expression", "inputs", 0, "shape"), [-1], "expression.inputs[0].shape[0]"),
        (("expression", "text"), None, "expression.text is null"),
        (("environment",), None, "environment is null"),
        (("environment", "cpu"), [[]], "environment.cpu is a list"),
    ],
)
def test_a_part_of_another_type_is_named(record, path, value, named):
    *way, last = path
    part = record = proved(record)
    for key in way:
        part = part[key]
    part[last] = value
    with pytest.raises(InputError) as caught:
        from_dict(record)
    assert named in str(caught.value)


def test_arrays_as_deep_as_json_can_be_are_refused(record):
    deep = 1.0
    for _ in range(5000):
        deep = [deep]
    record["point"]["x1"] = deep
    with pytest.raises(InputError, match=r"point\.x1 is a list"):
        from_dict(record)
