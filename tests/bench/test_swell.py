"""Sizes against depth are SymPy's published counts, and both modes stay within their bounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from difflab.bench import swell
from difflab.bench.swell import LAYOUT, SERIES, draw, recurrence, tasks, tree_operations
from difflab.errors import InputError
from difflab.graph.counts import count
from difflab.lab.problems import FAMILIES
from difflab.lab.sweep import SweepRow, run
from difflab.language import parse
from tests.bench.picture_checks import check_picture, texts

Read = Callable[[str], Any]


def measured(folder: Path, **depths: tuple[int, ...]) -> dict[tuple[Any, Any], SweepRow]:
    """Measure all series but SymPy's simplified one, which ends with its time; none else does."""
    every = tasks(depths, 1000.0)
    chosen = [task for task in every if task.key["series"] != "symbolic simplified"]
    rows = run(folder / "swell.csv", LAYOUT, chosen)
    return {(row["depth"], row["series"]): row for row in rows}


def test_logistic_map_swells_as_counted_by_sympy(tmp_path: Path, reference: Read) -> None:
    expected = reference("baydin")["swell_sympy"]["rows"][:6]
    found = measured(tmp_path, logistic=tuple(row["n"] for row in expected))
    for row in expected:
        n = row["n"]
        assert found[n, "symbolic tree"]["operations"] == row["sympy_count_ops_diff_raw"]
        assert found[n, "symbolic cse"]["operations"] == row["sympy_cse_ops"]
        # 7 operations per iteration: 3 of the map, 4 of the tangent.
        for mode in ("forward", "reverse"):
            assert found[n, mode]["operations"] <= row["forward_AD_ops"] + 2


def test_product_swells_in_truth(tmp_path: Path) -> None:
    """∏ of 40: 1,520 operations written out, 780 after cse, 114 = 3n - 6 in reverse mode."""
    found = measured(tmp_path, product=(40,))
    assert found[40, "symbolic tree"]["operations"] == 1520
    assert found[40, "symbolic cse"]["operations"] == 780
    assert found[40, "reverse"]["operations"] == 114
    assert found[40, "function"]["operations"] == 39


def test_nested_sine_swells_as_a_tree_only(tmp_path: Path) -> None:
    found = measured(tmp_path, nested=(40,))
    assert found[40, "symbolic tree"]["operations"] == 1719
    assert int(found[40, "symbolic cse"]["operations"] or 0) <= 200
    assert int(found[40, "reverse"]["operations"] or 0) <= 200


def test_a_timeout_is_a_row_and_greater_depths_are_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    prepare = swell.SYMBOLIC.prepare

    def counted(problem: Any) -> Any:
        asked.append(count(problem.function).operations)
        return prepare(problem)

    monkeypatch.setattr(swell.SYMBOLIC, "prepare", counted)
    rows = run(tmp_path / "swell.csv", LAYOUT, tasks({"logistic": (15, 16, 17)}, 0.1))
    symbolic = [row for row in rows if str(row["series"]).startswith("symbolic")]
    assert {row["status"] for row in symbolic} == {"timeout"}
    assert len(asked) == 1
    assert "not tried: at depth 15" in str(symbolic[-1]["message"])
    others = [row for row in rows if row["series"] in ("forward", "reverse", "function tree")]
    assert {row["status"] for row in others} == {"ok"}


def test_tree_operations_agree_with_writing_out() -> None:
    for family, depth in (("logistic", 6), ("product", 9), ("nested", 7)):
        text = FAMILIES[family].text(depth)
        function = parse(text)
        leaves = count(function).tree - tree_operations(function)
        # A tree of binary operations has one leaf more than operations; sines have one operand.
        sines = text.count("sin")
        assert leaves == tree_operations(function) - sines + 1


# --- the picture


def picture_rows() -> list[SweepRow]:
    rows: list[SweepRow] = []
    for depth in (1, 2, 3):
        for k, series in enumerate(SERIES):
            stopped = series == "symbolic tree" and depth == 3
            rows.append(
                {
                    "family": "made",
                    "title": "made <up>",
                    "depth": depth,
                    "series": series,
                    "status": "timeout" if stopped else "ok",
                    "operations": None if stopped else (k + 1) * 10**depth,
                }
            )
    return rows


def test_the_picture_of_swell_in_every_format() -> None:
    check_picture(draw, picture_rows())


def test_swell_says_where_sympy_was_stopped() -> None:
    shown = texts(draw(picture_rows(), "svg"))
    assert "SymPy f′ written out, to 2" in shown
    assert "reverse mode" in shown
    assert "f written out" in shown


def test_a_function_that_shares_nothing_has_one_curve() -> None:
    rows = picture_rows()
    for row in rows:
        if row["series"] == "function tree":
            row["operations"] = 2 * 10 ** int(row["depth"] or 0)  # as `function`
    assert "f written out" not in texts(draw(rows, "svg")).replace("f′ written", "")


def test_the_iterates_of_a_recurrence_swell_as_the_family_does(tmp_path: Path) -> None:
    """y = x*y at depth k is y x^k; y = 4y(1 - y) is the logistic family one step further on."""
    for text, name, shift in (
        ("y = 4*y*(1 - y)", "logistic", 1),
        ("x = 4*x*(1 - x)", "logistic", 1),
    ):
        depths = {text: (1, 3, 5)}
        own = tasks(depths, 1000.0, families={text: recurrence(text)})
        chosen = [task for task in own if task.key["series"] != "symbolic simplified"]
        rows = run(tmp_path / "own.csv", LAYOUT, chosen)
        family = measured(tmp_path, **{name: tuple(k + shift for k in depths[text])})
        for row in rows:
            known = family[int(row["depth"] or 0) + shift, row["series"]]
            assert row["operations"] == known["operations"], row["series"]


def test_a_recurrence_with_other_names() -> None:
    family = recurrence("y = y*x + y_1")
    assert parse(family.text(4)).inputs == ("x", "y", "y_1")
    # y = 2, x = 3, y_1 = 1: 7, 22, 67, 202
    assert parse(family.text(4))(x=3.0, y=2.0, y_1=1.0) == 202
    assert parse(recurrence("x₁ = 2·x₁").text(10))(x1=1.0) == 1024


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4*y", "a definition of one name"),
        ("", "a definition of one name"),
        ("y == y", "a definition of one name"),
        ("[a, b] = y", "a definition of one name"),
        ("y = x*x", "does not use y"),
        ("y = [y, y]", "2 values instead of one"),
        ("y = sin(y", "\\("),
    ],
)
def test_what_is_no_recurrence_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recurrence(text)
