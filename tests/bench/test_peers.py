"""Side by side with peers: every way a peer can go, played by doubles; no package is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflab.bench.peers import bench
from difflab.bench.peers.bench import LAYOUT, OWN, SEED, contenders, tasks
from difflab.bench.peers.ways import PeerCase
from difflab.errors import InputError, MethodTimeout, UnsupportedError
from difflab.graph.function import Function
from difflab.lab.sampling import ROUNDS, paired
from difflab.lab.sweep import SweepRow, run
from difflab.language import parse
from difflab.methods.peers.peer import CallAdapter
from difflab.methods.protocol import Family


class Double:
    """A peer that has the answer of the seed by hand, and may spoil it."""

    title = "Double"
    family = Family.AUTOMATIC
    vectorised = True

    def __init__(
        self,
        name: str = "double",
        spoil: Callable[[Any, Any], tuple[Any, Any]] = lambda value, slope: (value, slope),
        error: Exception | None = None,
        absent: str | None = None,
    ) -> None:
        self.name, self.spoil, self.error, self.absent = name, spoil, error, absent
        self.calls: list[int | None] = []
        self.started = False

    def missing(self) -> str | None:
        return self.absent

    def start(self) -> None:
        self.started = True

    def version(self) -> str:
        return "" if self.absent else "1.2"

    def formula(self, function: Function | None, timeout: float) -> Function:
        assert function is not None
        return function

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        if self.error is not None:
            raise self.error

        def call(x: Any) -> Any:
            self.calls.append(points)
            a, b = x[..., 0], x[..., 1]
            slope = np.stack([1 / a + b, a - np.cos(b)], axis=-1)
            return self.spoil(np.log(a) + a * b - np.sin(b), slope)

        return CallAdapter(call, lambda x: [np.array(x)], lambda result: result)


@pytest.fixture
def case() -> PeerCase:
    return PeerCase(parse(SEED), np.array([2.0, 5.0]), SEED, "x1 = 2, x2 = 5")


def measured(
    path: Path, case: PeerCase, *doubles: Any, points: Sequence[int] = (1, 8)
) -> list[SweepRow]:
    chosen = {double.name: double for double in doubles}
    return run(path / "peers.csv", LAYOUT, tasks(case, chosen, points, 0.02))


def test_an_honest_peer_has_times_and_ratios(tmp_path: Path, case: PeerCase) -> None:
    double = Double()
    one, many = measured(tmp_path, case, double)
    assert double.started
    for row in (one, many):
        assert (row["status"], row["message"], row["version"]) == ("ok", "", "1.2")
        low, middle, high = (float(row[name] or 0) for name in ("ratio_low", "ratio", "ratio_high"))
        assert 0 < low <= middle <= high
        assert float(row["call_seconds"] or 0) > 0 < float(row["difflab_seconds"] or 0)
        assert float(row["prepare_seconds"] or 0) > 0
        # By hand it is right to the last bit but one.
        assert float(row["ulps"] or 0) < 2
        assert int(row["threads"] or 0) >= 1
    assert set(double.calls) == {None, 8}


def wrong_rule(value: Any, slope: Any) -> Any:
    return value, slope * [1.0, 1 + 1e-6]


def wrong_value(value: Any, slope: Any) -> Any:
    return value * (1 + 1e-6), slope


def single_precision(value: Any, slope: Any) -> Any:
    return np.asarray(value, np.float32), slope.astype(np.float32)


def nan(value: Any, slope: Any) -> Any:
    return value, slope * np.nan


def transposed(value: Any, slope: Any) -> Any:
    return value, slope.T if slope.ndim == 2 else slope[None]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda value, slope: (value, slope * [1.0, 1.5]), "where the derivative is"),
        (wrong_value, "the value is"),
        (nan, "nan where the derivative is"),
        (transposed, "of shape"),
    ],
)
def test_a_wrong_answer_has_no_time(
    tmp_path: Path, case: PeerCase, spoil: Any, message: str
) -> None:
    double = Double(spoil=spoil)
    rows = measured(tmp_path, case, double)
    assert [row["status"] for row in rows] == ["disagree", "disagree"]
    assert all(message in str(row["message"]) for row in rows)
    assert all(row["ratio"] is None and row["call_seconds"] is None for row in rows)
    # Called once a size, to be judged, and never for the clock.
    assert double.calls == [None, 8]


def test_single_precision_is_no_equal_work(tmp_path: Path, case: PeerCase) -> None:
    rows = measured(tmp_path, case, Double(spoil=single_precision))
    assert [row["status"] for row in rows] == ["disagree", "disagree"]


def test_a_batch_is_judged_in_every_number(tmp_path: Path, case: PeerCase) -> None:
    def last_is_wrong(value: Any, slope: Any) -> Any:
        if np.ndim(value):
            slope = slope.copy()
            slope[-1, 1] *= 1 + 1e-6
        return value, slope

    one, many = measured(tmp_path, case, Double(spoil=last_is_wrong))
    assert (one["status"], many["status"]) == ("ok", "disagree")
    assert "1 elements differ" in str(many["message"])
    assert "derivative 2 of point 7" in str(many["message"])


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (UnsupportedError("no such function"), "unsupported", "no such function"),
        (
            NotImplementedError("no rule"),
            "unsupported",
            "Double does not support this function: no",
        ),
        (RuntimeError("out of \x1b memory"), "failed", "RuntimeError: out of \\x1b memory"),
        (SystemExit(3), "failed", "SystemExit: 3"),
        (InputError("what"), "failed", "what"),
    ],
)
def test_what_breaks_is_a_row(
    tmp_path: Path, case: PeerCase, error: Exception, status: str, message: str
) -> None:
    broken, double = Double("broken", error=error), Double()
    rows = measured(tmp_path, case, broken, double)
    assert [row["status"] for row in rows] == [status, "ok", status, "ok"]
    assert message in str(rows[0]["message"])


def test_an_absent_peer_is_a_row_with_the_command(tmp_path: Path, case: PeerCase) -> None:
    absent = Double(absent="double is not installed; add it with: pip install double")
    rows = measured(tmp_path, case, absent)
    assert {row["status"] for row in rows} == {"unsupported"}
    assert "pip install double" in str(rows[0]["message"])
    assert not absent.started


def test_what_took_too_long_is_not_tried_with_more(tmp_path: Path, case: PeerCase) -> None:
    slow = Double("slow", error=MethodTimeout("stopped"))
    rows = measured(tmp_path, case, slow, points=(1, 8, 64))
    assert [row["status"] for row in rows] == ["timeout"] * 3
    assert [str(row["message"])[:9] for row in rows] == ["stopped", "not tried", "not tried"]


def test_one_point_at_a_time_is_foretold(
    tmp_path: Path, case: PeerCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = Double()
    single.vectorised = False
    ticks = iter(range(1000))
    monkeypatch.setattr(bench, "perf_counter", lambda: float(next(ticks)))
    (row,) = measured(tmp_path, case, single, points=(64,))
    # Sixteen points in a second of that clock: four seconds where 0.02 are allowed.
    assert row["status"] == "timeout"
    assert "4 s for 64" in str(row["message"])
    assert single.calls == [16]


def test_rows_are_kept_and_not_measured_again(tmp_path: Path, case: PeerCase) -> None:
    first, again = Double(), Double()
    kept = measured(tmp_path, case, first)
    assert measured(tmp_path, case, again) == kept
    assert not again.calls


def test_difflab_takes_part_with_every_target(tmp_path: Path, case: PeerCase) -> None:
    chosen = contenders([])
    assert tuple(chosen) == OWN
    rows = measured(tmp_path, case, *chosen.values(), points=(1, 8))
    found = {(row["peer"], row["points"]): row for row in rows}
    assert all(found[name, 1]["status"] == "ok" for name in OWN[:3])
    assert found["difflab-python", 8]["message"] == "the target 'python' is for one point"
    assert found["difflab-numpy", 8]["status"] == "ok"


def test_the_peers_that_are_installed_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflab.core.optional.installed", lambda name: name == "torch")
    assert tuple(contenders()) == (*OWN, "torch", "torch-compile")
    assert tuple(contenders(["jax"])) == (*OWN, "jax")
    with pytest.raises(InputError, match="no peer 'pytorch'"):
        contenders(["pytorch"])


def test_a_batch_begins_with_the_point_and_stays_in_the_domain() -> None:
    edge = PeerCase(parse("sqrt(x)"), np.array([0.0]), "sqrt(x)", "x = 0")
    batch = edge.at(100)
    assert batch.shape == (100, 1)
    assert batch.min() == 0.0 < batch.max()
    assert edge.at(1).shape == (1,)


def test_several_outputs_are_refused() -> None:
    with pytest.raises(InputError, match="a scalar function, not 2 outputs"):
        PeerCase(parse("[x, y]"), np.ones(2), "[x, y]", "")


@pytest.mark.parametrize("name", ["jax", "torch", "autograd", "casadi", "symengine"])
def test_peers_answer_as_difflab_does(tmp_path: Path, case: PeerCase, name: str) -> None:
    pytest.importorskip(name, exc_type=ImportError)
    rows = measured(tmp_path, case, contenders([name])[name])
    assert [(row["status"], row["message"]) for row in rows] == [("ok", "")] * 2


def test_a_drift_of_the_machine_cancels() -> None:
    # The machine becomes ten times as slow while it is measured; the second call takes three
    # times as long as the first, whenever it is asked.
    now = [1.0]

    def clock(call: Callable[[], object], repeats: int) -> float:
        seconds = (0.003 if call is max else 0.001) * now[0] * repeats
        now[0] += 0.05
        return seconds

    pairs = paired(min, max, budget=100.0, clock=clock)
    assert len(pairs.ratios) == ROUNDS
    assert np.median(pairs.ratios) == pytest.approx(3.0, rel=0.02)
    apart = np.median(pairs.second[20:]) / np.median(pairs.first[:10])
    assert apart > 4
    assert len(paired(min, max, budget=0.0, clock=clock).ratios) == 1


def test_a_disturbed_sample_does_not_count() -> None:
    calls = iter(range(10_000))

    def clock(call: Callable[[], object], repeats: int) -> float:
        disturbed = 5.0 if next(calls) % 3 == 0 else 1.0
        return (0.003 if call is max else 0.001) * repeats * disturbed

    pairs = paired(min, max, budget=100.0, clock=clock)
    assert pairs.first == pytest.approx([0.001] * ROUNDS)
    assert pairs.second == pytest.approx([0.003] * ROUNDS)
