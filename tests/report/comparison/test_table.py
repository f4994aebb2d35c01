"""The table: 80 columns whatever is in it, nothing that steers a terminal, numbers in full."""

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from difflab.lab.record import from_dict
from difflab.report.comparison.formats import view

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def widest(text):
    return max(cell_len(line) for line in text.splitlines())


def test_value_and_gradient_are_shown_with_all_their_digits(seed):
    text = view(seed).table()
    assert "11.652071455223084" in text
    assert "∂/∂x1 = 5.5\n" in text
    assert "∂/∂x2 = 1.7163378145367738\n" in text


def test_every_method_has_a_line_with_its_figures(seed):
    lines = view(seed).table().splitlines()
    symbolic = next(line for line in lines if line.startswith("symbolic"))
    assert " ".join(symbolic.split()) == "symbolic agree 0 0 8/8 4 51.2 ms 2.31 µs"
    forward = next(line for line in lines if line.startswith("finite-forward"))
    assert forward.split()[1:6] == ["agree", "2.1e-8", "2.4e7", "–", "–"]


def test_a_chosen_point_says_so(seed):
    given = from_dict(seed)
    assert "chosen" not in view(given).table()
    assert "chosen" in view(replace(given, point_chosen=True)).table()
    assert "chosen" not in view(seed).table()


def test_the_record_and_its_dictionary_look_alike(seed):
    assert view(from_dict(seed)).table() == view(seed).table()
    assert view(seed).table().rstrip().rsplit("\n\n", 1)[1].startswith("Use reverse here")


def test_fits_eighty_columns_when_every_cell_is_as_wide_as_it_gets(seed):
    for method in seed["methods"]:
        method.update(
            name="a-plug-in-with-a-very-long-name",
            verdict="inconclusive",
            message="word " * 60,
            max_abs_error=1.234e-100,
            max_ulp_error=1.234e15,
            size={"tree": 10**18, "dag": 123456789},
            operations=123456789,
            prepare_seconds=1.234,
            call_seconds=0.1234,
        )
    seed["expression"]["text"] = "ln(x1)+" * 5000
    seed["value"] = [1.2345678901234567e-100] * 50
    seed["environment"]["cpu"] = "x" * 200
    text = view(seed).table()
    assert widest(text) <= 80
    assert "inconclusive" in text
    assert "1.2e-100" in text
    assert len(text.splitlines()) < 150


@pytest.mark.parametrize("width", [40, 60, 80])
def test_fits_narrow_terminals(seed, width):
    assert widest(view(seed).table(width=width)) <= width


def test_hostile_text_is_shown_escaped(hostile):
    text = view(hostile).table()
    assert not CONTROL.search(text)
    assert "\\x1b[31mred\\x07\\x9b2J" in text.replace("\n", "").replace("  ", "")
    assert "<script>alert(1)</script>" in text.replace("\n          ", "")


def test_colour_only_when_asked_and_it_changes_nothing_else(seed, hostile):
    for record in (seed, hostile):
        plain, coloured = view(record).table(), view(record).table(colour=True)
        assert "\x1b[" not in plain
        stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
        assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


def test_a_method_without_an_answer_is_a_line_and_a_reason(seed):
    seed["methods"][0].update(
        status="timeout", verdict=None, message="stopped after 10 s", max_abs_error=None,
        max_ulp_error=None, size=None, operations=None, prepare_seconds=None, call_seconds=None,
    )  # fmt: skip
    text = view(seed).table()
    assert re.search(r"^symbolic +timeout +–", text, re.M)
    assert "symbolic: stopped after 10 s" in text


def test_many_inputs_are_abbreviated_and_the_last_is_shown(seed):
    n = 1000
    seed["expression"]["inputs"] = [{"name": "x", "shape": [n]}]
    seed["point"] = {"x": [0.5] * n}
    seed["reference"]["jacobian"] = [[float(k) for k in range(n)]]
    text = view(seed).table()
    assert "∂/∂x[3] = 3\n" in text
    assert "∂/∂x[999] = 999\n" in text
    assert "x[500]" not in text
    assert "1000 entries" in text
    assert "shape 1000" in text


def test_matrix_inputs_are_named_by_row_and_column(seed):
    seed["expression"]["inputs"] = [{"name": "W", "shape": [2, 3]}]
    seed["point"] = {"W": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]}
    seed["reference"]["jacobian"] = [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]
    assert "∂/∂W[1,2] = 5" in view(seed).table()
    assert "∂/∂W[1,0] = 3" in view(seed).table()


def test_a_hessian_shows_its_upper_triangle(seed):
    seed["order"] = 2
    seed["reference"]["jacobian"] = [[-0.25, 1.0], [1.0, -0.9589242746631385]]
    text = view(seed).table()
    assert "∂²/∂x1² = -0.25" in text
    assert "∂²/∂x1∂x2 = 1\n" in text
    assert "∂²/∂x2² = -0.9589242746631385" in text


def test_a_jacobian_names_outputs(seed):
    seed["expression"]["outputs"] = [{"name": "a", "shape": []}, {"name": "b", "shape": []}]
    seed["value"] = [1.0, 2.0]
    seed["reference"]["jacobian"] = [[1.0, 2.0], [3.0, 4.0]]
    text = view(seed).table()
    assert "∂b/∂x1 = 3" in text
    assert "∂a/∂x2 = 2" in text


def test_a_derivative_that_does_not_exist_is_no_number(seed):
    seed["reference"].update(jacobian=[["nan", 1.5]], status="kink", error_bound=0.0)
    text = view(seed).table()
    assert "∂/∂x1 = undefined\n" in text
    assert "∂/∂x2 = 1.5\n" in text
    assert re.search(r"^referee +kink, 50 digits$", text, re.M)
    seed["reference"].update(jacobian=[["nan", "nan"]], status="unresolved", error_bound="nan")
    text = view(seed).table()
    assert re.search(r"^gradient +unknown: the referee did not converge$", text, re.M)
    assert "nan" not in text


def test_a_referee_without_an_answer_is_no_crash(seed):
    seed["reference"].update(jacobian=None, error_bound=None, status="gave up: not resolved")
    assert "gave up: not resolved" in view(seed).table()
