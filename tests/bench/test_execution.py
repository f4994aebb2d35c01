"""Ways of execution: every way gives the right answer, and the number of calls that repays it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflab.bench.peers import execution
from difflab.bench.peers.bench import SEED
from difflab.bench.peers.execution import LAYOUT, OWN, break_even, contenders, draw, table, tasks
from difflab.bench.peers.ways import EXECUTIONS, WAYS, Own, PeerCase, Way, cold
from difflab.errors import InputError, UnsupportedError
from difflab.graph.function import Function
from difflab.lab.sampling import Pairs
from difflab.lab.sweep import SweepRow, run
from difflab.language import parse
from difflab.methods.peers.peer import CallAdapter
from tests.bench.picture_checks import check_picture, texts

LAYER = "x: [3]; W: [2, 3]; sum(tanh(W @ x)^2)"


def seed() -> PeerCase:
    return PeerCase(parse(SEED), np.array([2.0, 5.0]), SEED, "x1 = 2, x2 = 5")


def layer() -> PeerCase:
    function = parse(LAYER)
    return PeerCase(function, np.linspace(-0.5, 0.7, function.n), LAYER, "")


def measured(path: Path, case: PeerCase, chosen: dict[str, Way]) -> list[SweepRow]:
    return run(path / "execution.csv", LAYOUT, tasks(case, chosen, (1, 8), 0.01))


@pytest.mark.parametrize("make", [seed, layer])
def test_every_way_of_difflab_answers(tmp_path: Path, make: Callable[[], PeerCase]) -> None:
    rows = measured(tmp_path, make(), contenders([]))
    assert [row["way"] for row in rows] == [*OWN, *OWN]
    assert {(row["status"], row["message"]) for row in rows} == {("ok", "")}
    assert [row["execution"] for row in rows[:5]] == [*EXECUTIONS, "compiled"]
    for row in rows:
        assert float(row["ulps"] or 0) < 20
        assert float(row["prepare_seconds"] or 0) > 0 < float(row["call_seconds"] or 0)
        assert row["baseline"] == "difflab tensors"
        assert (row["break_even"] is None) == (row["way"] == row["baseline"])


@pytest.mark.parametrize(
    "name",
    [
        *("PyTorch eager", "torch.jit.trace", "JAX eager", "jax.jit", "autograd", "CasADi"),
        *("SymEngine", "GradientTape", "tf.function"),
    ],
)
def test_every_way_of_a_peer_answers(tmp_path: Path, name: str) -> None:
    way = WAYS[name]
    pytest.importorskip(way.package, exc_type=ImportError)
    rows = measured(tmp_path, layer(), {name: way})
    assert [(row["status"], row["message"]) for row in rows] == [("ok", "")] * 2
    assert {row["package"] for row in rows} == {way.package}


class Double(Own):
    """The seed's gradient by hand, which may be spoiled."""

    def __init__(self, spoil: float = 1.0, error: Exception | None = None) -> None:
        super().__init__("difflab")
        self.spoil, self.error = spoil, error

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        if function.inputs == ("t",):  # what the package is warmed up with
            return super().adapter(function, points)
        if self.error is not None:
            raise self.error

        def call(x: Any) -> Any:
            a, b = x[..., 0], x[..., 1]
            slope = np.stack([1 / a + b, a - np.cos(b)], axis=-1)
            return np.log(a) + a * b - np.sin(b), slope * self.spoil

        return CallAdapter(call, lambda x: [np.array(x)], lambda result: result)


def doubles(monkeypatch: pytest.MonkeyPatch, base: Double, other: Double) -> dict[str, Way]:
    known = {
        "base": Way("base", "double", "define-by-run", base, "base"),
        "other": Way("other", "double", "compiled", other, "base"),
    }
    monkeypatch.setattr(execution, "WAYS", known)
    return known


def test_break_even_is_the_first_number_of_calls_that_takes_no_longer() -> None:
    draw = np.random.default_rng(0)
    for prepare, base_prepare in draw.uniform(0, 3, (200, 2)).tolist():
        call, base = sorted(draw.uniform(0.1, 1.0, 2).tolist())
        calls = np.arange(1, 10_000)
        repaid = prepare + (calls - 1) * call <= base_prepare + (calls - 1) * base
        expected = int(calls[np.argmax(repaid)]) if repaid.any() else None
        if expected is not None:
            assert break_even(prepare, call, base_prepare, base) == expected
        assert break_even(prepare, base, base_prepare, call) == math.inf


def test_the_row_holds_ratio_and_break_even(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 1.0, 10.0, 13.0] * 2)  # the first prepares in 1 s, the second in 3 s
    monkeypatch.setattr("difflab.bench.peers.bench.perf_counter", lambda: next(ticks, 0.0))
    monkeypatch.setattr(
        execution, "paired", lambda *_, **__: Pairs((0.5, 0.5, 0.5), (0.1, 0.1, 0.1))
    )
    chosen = doubles(monkeypatch, Double(), Double())
    case = seed()
    warm = set(chosen)
    known: dict[str, Any] = {}
    ready = execution.partial(execution._prepared, case, 1, 1.0, known, warm)
    base, other = (execution._measured(way, 1.0, ready) for way in chosen.values())
    assert (base["prepare_seconds"], base.get("break_even")) == (1.0, None)
    assert (other["prepare_seconds"], other["baseline_prepare_seconds"]) == (3.0, 1.0)
    assert other["ratio"] == pytest.approx(0.2)
    # 3 + 0.1 (N - 1) <= 1 + 0.5 (N - 1) from N = 6 on.
    assert other["break_even"] == 6.0


def test_a_wrong_answer_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = measured(tmp_path, seed(), doubles(monkeypatch, Double(), Double(spoil=1.5)))
    assert [row["status"] for row in rows] == ["ok", "disagree"] * 2
    assert "where the derivative is" in str(rows[1]["message"])
    assert rows[1]["call_seconds"] is rows[1]["break_even"] is None


@pytest.mark.parametrize("base", [Double(spoil=1.5), Double(error=UnsupportedError("no log"))])
def test_without_a_baseline_there_is_a_time_and_no_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: Double
) -> None:
    rows = measured(tmp_path, seed(), doubles(monkeypatch, base, Double()))
    assert [row["status"] for row in rows[1::2]] == ["ok", "ok"]
    assert float(rows[1]["call_seconds"] or 0) > 0
    assert rows[1]["ratio"] is rows[1]["break_even"] is None


def test_caches_of_compiled_code_are_empty_and_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIFFLAB_CACHE", str(tmp_path / "own"))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    with cold():
        assert os.environ["DIFFLAB_CACHE"] == os.environ["TORCHINDUCTOR_CACHE_DIR"]
        assert not list(Path(os.environ["DIFFLAB_CACHE"]).iterdir())
    assert os.environ["DIFFLAB_CACHE"] == str(tmp_path / "own")
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ


def test_unknown_packages_are_named() -> None:
    with pytest.raises(InputError, match="no execution of 'numdifftools'"):
        contenders(["numdifftools"])
    assert {way.package for way in contenders(["torch"]).values()} == {"difflab", "torch"}


def row(way: str, **cells: str | float | None) -> SweepRow:
    shown: SweepRow = dict.fromkeys(LAYOUT.columns)
    shown |= {"expression": "x\x1b[2J^2", "point": "x = 3", "points": 1, "way": way}
    shown |= {"package": "double", "execution": "compiled", "version": "1", "status": "ok"}
    shown |= {"prepare_seconds": 0.25, "call_seconds": 3e-6, "ulps": 0.5, "baseline": "base"}
    return shown | {"cpu": "A CPU", "threads": 2, "message": ""} | cells


ROWS = [
    row("base", execution="define-by-run", ratio=1.0),
    row("fast", ratio=0.25, break_even=1200.0),
    row("once", execution="traced", ratio=0.5, break_even=1.0),
    row("slow", ratio=2.0, break_even=math.inf),
    row("alone", package="alone", baseline="difflab tensors", ratio=0.001, break_even=7.0),
    row("wrong", status="disagree", message="6, not 5", prepare_seconds=None, call_seconds=None),
]


def test_the_table_has_every_row() -> None:
    lines = table(ROWS).splitlines()
    found = {line.split()[0]: line.split()[2:] for line in lines if "compiled" in line}
    assert found["fast"] == ["0.5", "250", "ms", "3.00", "µs", "4.00×", "1200"]
    assert found["slow"][-2:] == ["0.50×", "never"]
    assert found["wrong"][-1] == "disagree"
    assert any(line.startswith("alone *") for line in lines)
    assert "wrong: 6, not 5" in lines
    assert "\x1b" not in "".join(lines)
    assert max(map(len, lines)) <= 80


def test_the_picture_has_every_row() -> None:
    check_picture(draw, ROWS)
    shown = texts(draw(ROWS))
    assert "3.00 µs · pays after 1,200 calls" in shown
    assert "3.00 µs · pays at once" in shown
    assert "3.00 µs · never pays" in shown
    assert "wrong result: not timed" in shown
