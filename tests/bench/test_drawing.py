"""The lab's pictures draw what was measured, and never fail on what was not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from difflab.bench import drawing as bench
from difflab.bench.accuracy import steps
from difflab.bench.cost import FIXED
from difflab.bench.swell import SERIES
from difflab.errors import InputError
from difflab.lab.sweep import SweepRow
from difflab.report.canvas import spread

Draw = Callable[[Sequence[SweepRow], str], bytes]


def accuracy_rows(expression: str = "sin(x)") -> list[SweepRow]:
    common: SweepRow = {"expression": expression, "point": "x = 1", "status": "ok"}
    rows: list[SweepRow] = [
        {
            **common,
            "method": "central difference",
            "step": h,
            "absolute_error": h * h + 1e-16 / h,
            "relative_error": h * h + 1e-16 / h,
        }
        for h in steps(2)
    ]
    own: SweepRow = {**common, "method": "reverse", "step": None, "absolute_error": 0.0}
    refused: SweepRow = {**common, "method": "complex-step", "step": None, "status": "unsupported"}
    return [*rows, {**own, "relative_error": 0.0}, {**refused, "absolute_error": None}]


def swell_rows() -> list[SweepRow]:
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


def cost_rows() -> list[SweepRow]:
    rows: list[SweepRow] = []
    for size in (2, 8, 32):
        for n, m in ((size, FIXED), (FIXED, size)):
            for method, work in (("forward", n), ("reverse", m), ("plug-in", n + m)):
                row: SweepRow = {"inputs": n, "outputs": m, "method": method, "status": "ok"}
                rows.append({**row, "operations": 100 * work, "call_seconds": 1e-6 * work})
    refused: SweepRow = {
        "inputs": 2,
        "outputs": FIXED,
        "method": "symbolic",
        "status": "unsupported",
    }
    return [*rows, {**refused, "message": "too <large>", "operations": None, "call_seconds": None}]


CASES: list[tuple[Draw, Callable[[], list[SweepRow]]]] = [
    (bench.accuracy, accuracy_rows),
    (bench.swell, swell_rows),
    (bench.cost, cost_rows),
]
EACH = pytest.mark.parametrize(("draw", "rows"), CASES, ids=["accuracy", "swell", "cost"])


@EACH
@pytest.mark.parametrize(
    ("kind", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_a_picture_of_each_kind(
    draw: Draw, rows: Callable[[], list[SweepRow]], kind: str, start: bytes
) -> None:
    picture = draw(rows(), kind)
    assert picture.startswith(start)
    assert len(picture) > 5_000


@EACH
def test_the_same_rows_give_the_same_bytes(draw: Draw, rows: Callable[[], list[SweepRow]]) -> None:
    assert draw(rows(), "svg") == draw(rows(), "svg")


@EACH
def test_an_unknown_kind_is_refused(draw: Draw, rows: Callable[[], list[SweepRow]]) -> None:
    with pytest.raises(InputError, match="cannot draw a picture as 'gif'"):
        draw(rows(), "gif")


def texts(picture: bytes) -> str:
    """Return the texts of a picture; matplotlib names the glyphs' texts in comments."""
    return "\n".join(re.findall(r"<!-- (.*?) -->", picture.decode(), re.DOTALL))


def test_accuracy_names_slope_and_floor() -> None:
    shown = texts(bench.accuracy(accuracy_rows(), "svg"))
    assert "central difference" in shown
    assert "slope 2.00" in shown
    assert "reverse: 0" in shown
    assert "complex-step" not in shown


def test_swell_says_where_sympy_was_stopped() -> None:
    shown = texts(bench.swell(swell_rows(), "svg"))
    assert "SymPy f′ written out, to 2" in shown
    assert "reverse mode" in shown
    assert "f written out" in shown


def test_a_function_that_shares_nothing_has_one_curve() -> None:
    rows = swell_rows()
    for row in rows:
        if row["series"] == "function tree":
            row["operations"] = 2 * 10 ** int(row["depth"] or 0)  # as `function`
    assert "f written out" not in texts(bench.swell(rows, "svg")).replace("f′ written", "")


def test_cost_marks_the_crossover_and_names_the_absent() -> None:
    shown = texts(bench.cost(cost_rows(), "svg"))
    assert shown.count(f"n ≈ {FIXED}") == 2
    assert shown.count(f"m ≈ {FIXED}") == 2
    assert "plug-in" in shown
    assert "symbolic has no line" in shown


@pytest.mark.parametrize(
    "text", ["x^2 + $y_1$", "<script>alert(1)</script>", "a\x1b[31mb", "x" * 5000]
)
def test_text_stays_text(text: str) -> None:
    picture = bench.accuracy(accuracy_rows(text), "svg").decode()
    assert "<script" not in picture
    assert "\x1b" not in picture
    assert len(picture) < 500_000


@pytest.mark.parametrize(
    ("heights", "rooms", "ceiling"),
    [
        ([5.0, 5.0, 5.0], [4.0, 4.0, 4.0], 100.0),
        ([0.0, 100.0, 99.0, 98.0], [10.0, 5.0, 10.0, 5.0], 100.0),
        ([3.0], [4.0], 4.0),
        ([1.0, 9.0, 2.0, 8.0, 3.0], [2.0, 2.0, 2.0, 2.0, 2.0], 9.0),
    ],
)
def test_labels_never_overlap_and_keep_their_order(
    heights: list[float], rooms: list[float], ceiling: float
) -> None:
    places = spread(heights, rooms, ceiling=ceiling)
    order = sorted(range(len(heights)), key=lambda k: heights[k])
    assert all(heights[a] <= heights[b] and places[a] < places[b] for a, b in pairwise(order))
    edges = [(places[k] - rooms[k] / 2, places[k] + rooms[k] / 2) for k in order]
    assert all(low[1] <= high[0] + 1e-9 for low, high in pairwise(edges))
    assert edges[-1][1] <= ceiling + 1e-9
