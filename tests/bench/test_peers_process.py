"""A peer that ends its process: the rows say so, and everything else goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from difflab.bench.peers.bench import LAYOUT, SEED, contenders, tasks
from difflab.bench.peers.ways import PeerCase
from difflab.lab.compare import compare
from difflab.lab.conventions.cases import cases
from difflab.lab.conventions.measure import measure
from difflab.lab.sweep import run
from difflab.language import parse
from difflab.methods import registry

# What heyoka would do if it ended the process that builds an expression.
STAND_IN = """\
import os

def expression(*_):
    os._exit(7)

select = lt = gt = sigmoid = relu = eq = gte = lte = neq = expression
"""
ENDED = "its process ended with exit code 7"


@pytest.fixture
def heyoka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of this name that ends its process; only other processes import it."""
    (tmp_path / "heyoka.py").write_text(STAND_IN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_processes", {})  # another test's may have the true package
    return "heyoka"


def test_a_benchmark_goes_on_after_a_peer_that_ends_its_process(
    tmp_path: Path, heyoka: str
) -> None:
    case = PeerCase(parse(SEED), np.array([2.0, 5.0]), SEED, "x1 = 2, x2 = 5")
    chosen = contenders([heyoka])
    chosen = {name: chosen[name] for name in (heyoka, "difflab-numpy")}
    rows = run(tmp_path / "peers.csv", LAYOUT, tasks(case, chosen, (1, 8), 0.02))
    found = [(row["peer"], row["status"], row["message"]) for row in rows]
    assert found == [
        ("heyoka", "failed", ENDED),
        ("difflab-numpy", "ok", ""),
        ("heyoka", "failed", ENDED),  # another process of its own
        ("difflab-numpy", "ok", ""),
    ]


def test_a_comparison_has_a_row_for_it(heyoka: str) -> None:
    result = compare("x^2", {"x": 3}, methods=[heyoka, "reverse"], timing=False, timeout=60)
    assert [row.status for row in result.methods] == ["failed", "ok"]
    assert ENDED in str(result.methods[0].message)


def test_the_conventions_say_so_in_its_cells(heyoka: str) -> None:
    chosen = [case for case in cases() if case.formula in ("relu(x)", "det([[x, 0], [0, x]])")]
    found = measure([heyoka], chosen)
    answers = {each.formula: each.answers for each in found.results if each.package == heyoka}
    assert answers["relu(x)"] == (ENDED,) * 3
    assert answers["det([[x, 0], [0, x]])"] == ("heyoka has no such function",) * 3
