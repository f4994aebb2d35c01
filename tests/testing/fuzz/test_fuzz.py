"""The fuzzer finds a fault that is planted in a method, shrinks it, and writes it once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import difflab
from difflab.errors import DifflabError, InputError, UnsupportedError
from difflab.graph.rewritten import rewritten
from difflab.language import parse
from difflab.methods.protocol import Method, Problem
from difflab.methods.registry import own
from difflab.primitives import erf, tanh
from difflab.testing.fuzz.campaign import Campaign
from difflab.testing.fuzz.panel import Panel, Program, programs, reproduction

REVERSE = own()["reverse"]


@dataclass
class Faulty:
    """Reverse mode with a rule of one's own for one operation."""

    operation: Any
    instead: Any
    name: str = "faulty"
    family: Any = REVERSE.family
    summary: str = ""
    orders: tuple[int, ...] = (1,)

    def missing(self) -> None:
        return None

    def prepare(self, problem: Problem) -> Any:
        def rule(builder: Any, node: int, row: Any, args: Any, params: Any) -> Any:
            if row is not self.operation:
                return None
            if isinstance(self.instead, Exception):
                raise self.instead
            return builder.emit(self.instead, args)

        function = rewritten(problem.function, rule)
        return REVERSE.prepare(
            Problem(function.values, function.n, function.m, function, timeout=problem.timeout)
        )


def panel(**methods: Method) -> Panel:
    return Panel({"reverse": REVERSE, **methods}, timeout=600.0)


def test_a_method_that_disagrees_where_another_agrees_is_a_finding() -> None:
    found = panel(faulty=Faulty(tanh, erf)).findings(
        Program("x + y*tanh(y)", {"x": 1.0, "y": 0.5, "v": [0.0] * 3})
    )
    assert found is not None
    (finding,) = found
    assert (finding.method, finding.kind) == ("faulty", "disagree")
    assert finding.program.point == {"x": 1.0, "y": 0.5}
    assert finding.operations == {"add", "multiply", "tanh"}
    exact = np.tanh(0.5) + 0.5 / np.cosh(0.5) ** 2
    assert float(finding.expected[1]) == pytest.approx(exact, rel=1e-15)


def test_where_no_method_agrees_none_is_at_fault() -> None:
    program = Program("(exp(800*x) - exp(800*x))*x + x", {"x": 2.0, "y": 0.0, "v": [0.0] * 3})
    assert panel().findings(program) == []


def test_a_refusal_is_no_finding_and_a_crash_is_one() -> None:
    program = Program("tanh(x)", {"x": 1.0, "y": 0.0, "v": [0.0] * 3})
    refusing = panel(faulty=Faulty(tanh, UnsupportedError("no tanh")))
    assert refusing.findings(program) == []
    assert refusing.counts["faulty", "refused"] == 1
    (finding,) = panel(faulty=Faulty(tanh, ZeroDivisionError("oh"))).findings(program) or []
    assert (finding.kind, finding.reason) == ("crash", "ZeroDivisionError: oh")


@pytest.mark.parametrize("text", ["log(x)", "1 + 2", "sqrt(x"])
def test_programs_without_a_derivative_are_skipped(text: str) -> None:
    assert panel().findings(Program(text, {"x": -1.0, "y": 0.0, "v": [0.0] * 3})) is None


@settings(max_examples=200)
@given(programs())
def test_programs_are_programs_of_the_language(program: Program) -> None:
    try:
        function = parse(program.text)
    except DifflabError as error:  # an operation on numbers may be undefined as such
        assert "undefined" in str(error)  # noqa: PT017
        return
    assert set(function.inputs) <= set(program.point)


def test_a_campaign_shrinks_writes_once_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hypothesis import strategies as st

    from difflab.testing.fuzz import panel as module

    texts = st.sampled_from(["x*y", "tanh(x)", "y*tanh(x + y)", "x*sin(tanh(x)*y) + tanh(y)"])
    point = st.just({"x": 1.0, "y": 0.5, "v": [0.0] * 3})
    monkeypatch.setattr(module, "programs", lambda: st.builds(Program, texts, point))
    told: list[str] = []
    first = Campaign.resumed(tmp_path / "out", panel(faulty=Faulty(tanh, erf)))
    first._batch(np.inf, told.append)
    (record,) = first.records
    assert (record.text, record.point) == ("tanh(x)", {"x": 1.0})
    assert record.operations == ("tanh",)
    assert len(told) == 1
    written = (tmp_path / "out" / record.file).read_text()
    compile(written, record.file, "exec")
    assert "'tanh(x)'" in written

    again = Campaign.resumed(tmp_path / "out", panel(faulty=Faulty(tanh, erf)))
    assert (again.batches, again.records) == (1, first.records)
    again._batch(np.inf, told.append)
    assert again.records == first.records
    assert again.repeats > first.repeats
    assert again.batches == 2
    assert again.panel.counts["reverse", "agree"] > first.panel.counts["reverse", "agree"]


def test_the_end_of_the_time_and_ctrl_c_keep_the_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = Campaign.resumed(tmp_path, panel())
    assert campaign.run(0.0) == 0
    assert json.loads((tmp_path / "fuzz.json").read_text())["programs"] == campaign.programs

    def interrupted(self: Panel, program: Program) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Panel, "findings", interrupted)
    with pytest.raises(KeyboardInterrupt):
        campaign.run(60.0)
    assert json.loads((tmp_path / "fuzz.json").read_text())["batches"] == 1


def test_a_damaged_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fuzz.json").write_text("{}")
    with pytest.raises(InputError, match="cannot read"):
        Campaign.resumed(tmp_path, panel())


def test_a_written_test_fails_while_the_method_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file asks `difflab.compare` for one method; here that answers as a faulty one would."""
    (finding,) = (
        panel(faulty=Faulty(tanh, erf)).findings(
            Program("tanh(x)", {"x": 1.0, "y": 0.5, "v": [0.0] * 3})
        )
        or []
    )
    space: dict[str, Any] = {}
    exec(reproduction(finding).replace('"faulty"', '"reverse"'), space)
    space["test_faulty_agrees_with_the_referee"]()

    class Row:
        status, verdict, message = "ok", "disagree", "wrong by far"

    class Compared:
        methods = (Row,)

    monkeypatch.setattr(difflab, "compare", lambda *args, **more: Compared)
    with pytest.raises(AssertionError, match="wrong by far"):
        space["test_faulty_agrees_with_the_referee"]()


def test_the_command_counts_verdicts_and_resumes(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from difflab.cli import main
    from difflab.testing.fuzz import campaign

    # Every program takes a second of this clock.
    clock = SimpleNamespace(monotonic=partial(next, itertools.count()))
    monkeypatch.setattr(campaign, "time", clock)

    def ran() -> str:
        with pytest.raises(SystemExit) as caught:
            main(["fuzz", "--seconds", "12", "-o", str(tmp_path / "found")])
        assert caught.value.code == 0
        shown: Mapping[str, str] = dict(zip(("out", "err"), capsys.readouterr(), strict=True))
        return shown["out"]

    assert "reverse" in ran()
    first = json.loads((tmp_path / "found/fuzz.json").read_text())["batches"]
    ran()
    assert json.loads((tmp_path / "found/fuzz.json").read_text())["batches"] > first
    with pytest.raises(SystemExit) as caught:
        main(["fuzz", "--peers", "jaks"])
    assert caught.value.code == 2
    assert "unknown peer 'jaks'" in capsys.readouterr().err
