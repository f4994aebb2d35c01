"""CSV: what a spreadsheet opens holds no formula, and numbers stay numbers."""

import csv as reader
import io
import json

import pytest

from difflab.report.comparison.formats import COLUMNS, csv


def rows(record):
    return list(reader.DictReader(io.StringIO(csv(record))))


def test_a_row_per_method_with_figures_in_full(seed):
    table = rows(seed)
    assert [row["method"] for row in table] == [m["name"] for m in seed["methods"]]
    assert float(table[0]["call_seconds"]) == 2.31e-06
    assert table[1]["max_ulp_error"] == "23712345.0"
    assert table[1]["operations"] == ""
    assert table[0]["size_simplified_dag"] == "7"
    assert table[0]["derivative"] == "[[5.5, 1.7163378145367738]]"
    assert csv(seed).splitlines()[0] == ",".join(COLUMNS)


def test_every_row_says_what_produced_it(seed):
    times = {"call": [2e-6, 3e-6, 4e-6], "prepare": [1e-3]}
    name = seed["methods"][0]["name"]
    seed["environment"] |= {
        "packages": "sympy 1.14.0",
        "target": "auto",
        "timeout": "10 s",
        "seed": 3,
        "date": "2026-01-01T00:00:00+00:00",
        "samples": json.dumps({name: times}),
    }
    first, second, *_ = rows(seed)
    for row in (first, second):
        assert row["difflab"] == seed["environment"]["difflab"]
        assert row["cpu"] == seed["environment"]["cpu"]
        assert (row["packages"], row["target"], row["seed"]) == ("sympy 1.14.0", "auto", "3")
        assert row["date"] == "2026-01-01T00:00:00+00:00"
    assert (first["repetitions"], float(first["spread"])) == ("3", pytest.approx(1 / 3))
    assert (second["repetitions"], second["spread"]) == ("", "")


def test_no_cell_is_a_formula(hostile):
    text = csv(hostile)
    assert "\x1b" not in text
    table = rows(hostile)
    assert table[0]["expression"].startswith("'=cmd()")
    assert table[0]["method"].startswith("'@plug")
    assert table[0]["message"].startswith("'-1+1")
    for row in table:
        for cell in row.values():
            assert cell[:1] not in "=+@\t\r" or cell == ""


def test_a_negative_derivative_stays_a_number_and_an_expression_becomes_text(seed):
    seed["expression"]["text"] = "-x1^2"
    seed["methods"][0]["error_estimate"] = -1.5
    row = rows(seed)[0]
    assert row["expression"] == "'-x1^2"
    assert row["error_estimate"] == "-1.5"


def test_sizes_of_any_length_are_written_out(seed):
    seed["methods"][0]["size"]["tree"] = 10**30 + 1
    assert rows(seed)[0]["size_tree"] == "1" + "0" * 29 + "1"
