"""CSV: what a spreadsheet opens holds no formula, and numbers stay numbers."""

import csv as reader
import io

from difflab.report.csv import COLUMNS, csv


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
