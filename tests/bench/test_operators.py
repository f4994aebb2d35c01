"""The bench of operators: closed forms hold, every way of difflab's agrees, and the picture."""

from __future__ import annotations

from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from difflab.bench.operators import bench
from difflab.bench.operators.bench import LAYOUT, cheapest, draw, tasks
from difflab.bench.operators.ways import FUNCTIONS, OWN, WAYS, points_of
from difflab.lab.sweep import SweepRow, run
from tests.bench.picture_checks import check_picture

NAMES = ("tanh", "sin", "sqrt")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_closed_forms_are_those_of_differences(name: str) -> None:
    function, x = FUNCTIONS[name], points_of(3, 1)[0]
    weights = function.weights(3)
    rows = {row: np.vectorize(getattr(mpmath, row), otypes=[object]) for row in NAMES}
    numbers = SimpleNamespace(sum=np.sum, **rows)
    with mpmath.workdps(40):
        number = np.vectorize(mpmath.mpf, otypes=[object])
        big, arrays = number(x), [number(w) for w in weights]
        h = mpmath.mpf(10) ** -12
        expected = mpmath.mpf(0)
        for k in range(3):
            step = np.array([h * (j == k) for j in range(3)], dtype=object)
            values = [function.of(numbers, big + s * step, arrays) for s in (-1, 0, 1)]
            expected += (values[0] - 2 * values[1] + values[2]) / h**2
    assert np.isclose(function.exact(x, weights), float(expected), rtol=1e-12)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[SweepRow]:
    path = tmp_path_factory.mktemp("operators") / "operators.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "DIMENSIONS", (2, 3))
        patch.setattr(bench, "POINTS", 4)
        patch.setattr(bench, "BUDGET", 0.0)
        patch.setattr(bench, "WAYS", {name: WAYS[name] for name in (*OWN, "jax jet", "folx")})
        return run(path, LAYOUT, tasks())


def test_every_way_of_difflab_is_right(rows: list[SweepRow]) -> None:
    own = [row for row in rows if row["way"] in OWN]
    assert len(own) == 3 * 2 * len(OWN)
    for row in own:
        assert row["status"] == "ok", row["message"]
        assert float(row["relative_error"] or 0) < (10 if row["way"] == "hutchinson" else 1e-12)
        assert float(row["peak_bytes"] or 0) > 0


def test_peers_are_right_or_say_what_is_missing(rows: list[SweepRow]) -> None:
    for row in rows:
        if row["way"] not in OWN:
            right = row["status"] == "ok" and float(row["relative_error"] or 0) < 1e-12
            assert right or row["message"], row


def test_the_cheapest_way_by_count_is_the_least(rows: list[SweepRow]) -> None:
    best = cheapest(rows, "operations")
    for (name, n), way in best.items():
        counts = {
            row["way"]: row["operations"]
            for row in rows
            if (row["function"], row["inputs"]) == (name, n) and row["operations"] is not None
        }
        assert counts[way] == min(counts.values())
    assert len(best) == 6


def test_the_picture(rows: list[SweepRow]) -> None:
    check_picture(draw, rows)


def test_a_slow_way_is_not_tried_at_a_larger_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "DIMENSIONS", (2, 3))
    monkeypatch.setattr(bench, "_shortest", lambda call: 99.0)
    found = [task for task in tasks() if task.key["way"] == "jets"][:2]
    assert [task.measure()["status"] for task in found] == ["ok", "timeout"]
