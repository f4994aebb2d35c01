"""``budget`` and ``dtypes``: formats, pictures, code, domains, and errors with their place."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from difflab.rounding.assignment import compiled

QUADRATIC = "(-b + sqrt(b^2-4*a*c))/(2*a)"
AT = ("--at", "a=1,b=1e5,c=1")


def test_the_table_names_the_operation_the_proof_and_what_to_write(difflab: Any) -> None:
    done = difflab("budget", QUADRATIC, *AT)
    assert done.code == 0
    assert "sqrt(b^2-4*a*c)  column 7  2.15e9" in done.out
    assert "proved the error lies in the budget" in done.out
    assert "multiply by the" in done.out
    assert "The value may lose 9.6 of 16.0 digits" in done.out


def test_json_is_strict_and_complete(difflab: Any) -> None:
    done = difflab("budget", QUADRATIC, *AT, "--format", "json")
    found = json.loads(done.out, parse_constant=lambda name: pytest.fail(name))
    assert found["schema"] == "difflab.error_budget/1"
    value, gradient = found["parts"]
    assert value["kind"], gradient["kind"] == ("value", "gradient")
    assert value["contributions"][0]["operation"] == "sqrt"
    assert value["outputs"][0]["proved"] is True
    assert len(gradient["outputs"]) == 3


def test_csv_has_a_row_for_each_operation(difflab: Any) -> None:
    rows = list(csv.DictReader(StringIO(difflab("budget", "x*y/3", "--format", "csv").out)))
    assert {row["part"] for row in rows} == {"value", "gradient"}
    assert {row["operation"] for row in rows} == {"multiply", "divide"}


@pytest.mark.parametrize(("ending", "begins"), [("md", "### Error budget"), ("html", "<!DOCTYPE")])
def test_reports_by_the_ending_of_the_file(difflab: Any, ending: str, begins: str) -> None:
    assert difflab("budget", "x*y/3", "-o", f"report.{ending}").code == 0
    text = Path(f"report.{ending}").read_text()
    assert text.lower().startswith(begins.lower())
    assert "x*y/3" in text


def test_the_picture_is_the_graph_with_its_hot_operations(difflab: Any) -> None:
    assert difflab("budget", QUADRATIC, *AT, "--plot", "budget.svg").code == 0
    text = Path("budget.svg").read_text()
    assert text.count('class="bad heat"') >= 2  # in the graphs of value and gradient
    assert "gradient, in its own graph" in text
    assert difflab("budget", QUADRATIC, *AT, "--plot", "budget.png").code == 0
    assert Path("budget.png").read_bytes().startswith(b"\x89PNG")
    done = difflab("budget", QUADRATIC, *AT, "--plot", "budget.pdf")
    assert (done.code, "SVG or PNG" in done.err) == (2, True)


def test_lines_of_a_program_have_their_shares(difflab: Any) -> None:
    done = difflab("budget", "s = 0.1*x\nt = sin(s) - s\nt/x^3", "--at", "x=0.01")
    assert "lines of code" in done.out
    assert re.search(r"2  t = sin\(s\) - s +100 % +100 %", done.out)


def test_lines_of_a_python_function_have_their_shares(difflab: Any) -> None:
    Path("model_of_budget.py").write_text(
        "import numpy as np\n\n\ndef loss(x):\n    s = 0.1 * x\n    t = np.sin(s) - s\n"
        "    return t / x**3\n"
    )
    done = difflab("budget", "model_of_budget:loss", "--at", "x=0.01")
    assert done.code == 0
    assert "t = np.sin(s) - s" in done.out
    assert "model_of_budget.py:6" in done.out


def test_a_domain_and_a_dtype(difflab: Any) -> None:
    done = difflab("budget", "(1-cos(x))/x^2", "--over", "x=1e-3:1", "--points", "8",
                   "--dtype", "float32")  # fmt: skip
    assert done.code == 0
    assert "x = 0.001 … 1: 8 points" in done.out
    assert "of 7.2 digits" in done.out


def test_a_problem_of_the_library(difflab: Any) -> None:
    done = difflab("budget", "problem:traps/abs-cubed")
    assert done.code == 0
    assert "Error budget" not in done.err


def test_errors_mark_their_place(difflab: Any) -> None:
    done = difflab("budget", "x*(y", "--at", "x=1,y=2")
    assert done.code == 2
    assert "^" in done.err
    done = difflab("budget", "1 + exp(x)", "--at", "x=12", "--dtype", "float16")
    assert done.code == 2
    assert "exp(12) overflows in float16" in done.err
    assert "^~~~~~" in done.err


# --- dtypes -----------------------------------------------------------------------------------

MIXED = ("dtypes", "exp(x)*y", "--over", "x=0:15,y=1:2", "--tolerance", "1e-2")


def test_dtypes_prints_operations_and_code(difflab: Any) -> None:
    done = difflab(*MIXED)
    assert done.code == 0
    assert "2 in float32, 2 in float16" in done.out
    assert "overflows in" in done.out
    value, gradient = compiled(done.out[done.out.index("import numpy") :])(2.0, 1.5)
    assert float(value) == pytest.approx(1.5 * 7.38905609893065, rel=1e-2)
    assert gradient.tolist() == pytest.approx([1.5 * 7.38905609893065, 7.38905609893065], rel=1e-2)


def test_dtypes_in_every_format(difflab: Any) -> None:
    found = json.loads(difflab(*MIXED, "--format", "json").out)
    assert found["schema"] == "difflab.dtypes/1"
    assert found["error"] <= 1
    assert difflab(*MIXED, "--format", "python").out.startswith("import numpy as np\n")
    assert difflab(*MIXED, "--format", "csv").out.startswith("node,operation,")
    for ending in ("md", "html", "py"):
        assert difflab(*MIXED, "-o", f"report.{ending}").code == 0
        assert "np.float16" in Path(f"report.{ending}").read_text()


def test_dtypes_refuses_what_float64_does_not_keep(difflab: Any) -> None:
    done = difflab("dtypes", "(1-cos(x))/x^2", "--over", "x=1e-6:1e-3")
    assert done.code == 2
    assert "the tolerance 1e-06 is beyond float64: at x = " in done.err


def test_dtypes_needs_a_domain(difflab: Any) -> None:
    done = difflab("dtypes", "x*y", "--at", "x=1,y=2")
    assert done.code == 2
    assert "needs a domain" in done.err
    done = difflab("dtypes", "x*y", "--over", "x=0:1,y=1")
    assert done.code == 2
    assert "^~~" in done.err
