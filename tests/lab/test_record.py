"""The record and its JSON form, against the schema that is written down beside the tests."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import jsonschema
import numpy as np
import pytest

from difflab.core.strict_json import strict
from difflab.lab.environment import environment
from difflab.lab.record import (
    Comparison,
    Expression,
    MethodRow,
    ReferenceRow,
    Status,
    Variable,
)
from difflab.methods.protocol import Family, Size


def comparison(**changes: Any) -> Comparison:
    row = MethodRow(
        name="reverse",
        family=Family.AUTOMATIC,
        status=Status.OK,
        jacobian=np.array([[1.0, math.inf]]),
        max_abs_error=0.0,
        max_rel_error=math.nan,
        max_ulp_error=0.5,
        verdict="agree",
        size=Size(tree=4**3000, dag=9),
        operations=4,
        function_evaluations=0,
        prepare_seconds=0.001,
        call_seconds=1e-6,
        samples=(1e-6, 2e-6),
        peak_bytes=100,
    )
    fields: dict[str, Any] = {
        "expression": Expression(
            "<script>\x1b=cmd()", (Variable("x"), Variable("w", (2,))), (Variable("y"),)
        ),
        "point": {"x": 2.0, "w": np.array([1.0, -math.inf])},
        "order": 1,
        "value": np.array([math.nan]),
        "reference": ReferenceRow(np.array([[1.0, -math.inf]]), 50, 1e-50, "smooth"),
        "methods": (
            row,
            MethodRow(name="b", family=Family.NUMERIC, status=Status.TIMEOUT, message="10 s"),
        ),
        "environment": environment(),
    }
    return Comparison(**(fields | changes))


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def test_it_is_strict_json_of_the_schema(reference: Any) -> None:
    text = comparison(methods=comparison().methods[1:]).to_json()
    jsonschema.validate(json.loads(text, parse_constant=refuse), reference("comparison-5.schema"))


def test_every_key_of_the_contract_is_there(reference: Any) -> None:
    found = comparison().to_dict()
    jsonschema.validate(found, reference("comparison-5.schema"))
    assert list(found["methods"][0]) == [
        *("name", "family", "status", "message", "jacobian"),
        *("max_abs_error", "max_rel_error", "max_ulp_error", "error_estimate", "verdict"),
        *("size", "operations", "function_evaluations"),
        *("prepare_seconds", "call_seconds", "call_form", "peak_bytes", "dtype"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "difflab.comparison/1"},
        {"order": 3},
        {"value": [None]},
        {"point": {"x": "2"}},
        {"more": 1},
        {"methods": [{"name": "reverse"}]},
    ],
)
def test_the_schema_can_fail(reference: Any, change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(comparison().to_dict() | change, reference("comparison-5.schema"))


def test_what_is_not_finite_is_a_string() -> None:
    found = comparison().to_dict()
    assert found["value"] == ["nan"]
    assert found["point"] == {"x": 2.0, "w": [1.0, "-inf"]}
    assert found["methods"][0]["jacobian"] == [[1.0, "inf"]]
    assert found["methods"][0]["max_rel_error"] == "nan"
    assert strict([math.inf, -math.inf]) == ["inf", "-inf"]


def test_sizes_are_exact_and_written_out() -> None:
    tree = comparison().to_dict()["methods"][0]["size"]["tree"]
    assert tree == 2**6000
    big = comparison(methods=(dataclasses.replace(comparison().methods[0], size=Size(2**60000)),))
    # 2^60000 has 18,062 digits, beyond what Python writes without being told to.
    written = big.to_json().split('"tree": ')[1].split(",")[0]
    assert len(written) == 18_062
    assert int(written[-18:]) == pow(2, 60000, 10**18)
    with pytest.raises(ValueError, match="limit"):
        str(2**60000)  # and the limit is back


def test_text_stays_text() -> None:
    text = comparison().to_json()
    assert json.loads(text.replace(str(2**6000), "0"))["expression"]["text"] == "<script>\x1b=cmd()"
    assert "\x1b" not in text


def test_rows_are_immutable() -> None:
    found = comparison()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.order = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.methods[0].message = ""


@pytest.mark.parametrize(
    ("verdicts", "agreed"),
    [
        (["agree", "agree"], True),
        (["agree", "disagree"], False),
        (["convention", "inconclusive", None], True),
    ],
)
def test_agreed_means_nobody_is_wrong(verdicts: list[str | None], agreed: bool) -> None:
    rows = tuple(
        MethodRow(name="m", family=Family.NUMERIC, status=Status.OK, verdict=verdict)
        for verdict in verdicts
    )
    assert comparison(methods=rows).agreed is agreed
