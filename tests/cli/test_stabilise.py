"""``difflab compare --stabilise``: both forms of a function side by side, in every format."""

import csv
import io
import json

import jsonschema
import pytest

LOGISTIC = ("compare", "1/(1+exp(-x))", "--at", "x=-700", "--stabilise")
QUICK = ("--no-timing", "--methods", "forward,reverse")


def test_a_wrong_gradient_is_right_once_stabilised(difflab):
    result = difflab(*LOGISTIC, *QUICK)
    assert result.code == 0
    rows = [line.split() for line in result.out.splitlines()]
    assert ["forward", "agree", "0.0419", "agree", "0.0419"] in rows
    (reverse,) = [row for row in rows if row[:1] == ["reverse"]]
    assert reverse[1::2] == ["disagree", "agree"]
    assert float(reverse[2]) > 1e15 > 1 > float(reverse[4])
    assert ["stabilised", "sigmoid(x)"] in rows
    assert "line 1, column 1: 1/(1+exp(-x)) → sigmoid(x)" in result.out
    assert "equal to 60 digits at 4 points" in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_a_value_that_overflows_is_shown_beside_the_one_that_does_not(difflab):
    result = difflab("compare", "log(exp(a)+exp(b))", "--at", "a=1000,b=999", "--stabilise", *QUICK)
    assert "inf plain" in result.out
    assert "1000.3132616875182 stabilised" in result.out


def test_what_still_disagrees_decides_the_exit_code(difflab):
    result = difflab(*LOGISTIC, "--no-timing", "--methods", "symbolic,reverse")
    assert result.code == 1


def test_nothing_to_stabilise(difflab):
    result = difflab("compare", "x*y", "--stabilise", *QUICK)
    assert result.code == 0
    assert "nothing to stabilise" in result.out


def test_json_holds_two_comparisons_of_the_schema(difflab, reference):
    result = difflab(*LOGISTIC, *QUICK, "--format", "json")
    record = json.loads(result.out)
    assert list(record) == ["schema", "rewrites", "refused", "plain", "stabilised"]
    assert record["schema"] == "difflab.stabilisation/1"
    for name in ("plain", "stabilised"):
        jsonschema.validate(record[name], reference("comparison-5.schema"))
    assert record["plain"]["point"] == record["stabilised"]["point"] == {"x": -700.0}
    assert record["plain"]["reference"] == record["stabilised"]["reference"]
    assert record["stabilised"]["expression"]["text"] == "sigmoid(x)"
    (rewrite,) = record["rewrites"]
    assert (rewrite["line"], rewrite["column"], rewrite["digits"]) == (1, 1, 60)


def test_csv_has_the_rows_of_both(difflab):
    rows = list(csv.DictReader(io.StringIO(difflab(*LOGISTIC, *QUICK, "--format", "csv").out)))
    assert [(row["expression"], row["method"], row["verdict"]) for row in rows] == [
        ("1/(1+exp(-x))", "forward", "agree"),
        ("1/(1+exp(-x))", "reverse", "disagree"),
        ("sigmoid(x)", "forward", "agree"),
        ("sigmoid(x)", "reverse", "agree"),
    ]


@pytest.mark.parametrize("form", ["md", "html"])
def test_documents_escape_what_the_user_wrote(difflab, form):
    program = "a = x # <script>|*\n1 - cos(a)  # <b>"
    result = difflab("compare", program, "--stabilise", *QUICK, "--format", form)
    body = result.out.partition("</style>")[2] if form == "html" else result.out
    outside = body.split("```")[0::2] if form == "md" else [body]
    assert "<script>" not in "".join(outside)
    assert "<b>" not in "".join(outside)
    assert "versine(x)" in body
    assert "stabilised" in body


def test_markdown_does_not_format_what_was_rewritten(difflab):
    result = difflab("compare", "1 - cos(x*y)", "--stabilise", *QUICK, "--format", "md")
    assert r"1 - cos\(x\*y\) → versine\(x\*y\)" in result.out


def test_a_file_and_a_picture_are_written_together(difflab, tmp_path):
    result = difflab(*LOGISTIC, *QUICK, "-o", "both.html", "--plot", "both.svg")
    assert result.code == 0
    assert (tmp_path / "both.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert "<svg" in (tmp_path / "both.svg").read_text(encoding="utf-8")


def test_input_at_fault_is_marked_as_ever(difflab):
    result = difflab("compare", "1 - cos(", "--stabilise")
    assert result.code == 2
    assert "^" in result.err
