"""Compositions of transforms: each keeps or differentiates, and what is wrong is a finding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import difflab as dl
from difflab.core.worker import WorkerDied
from difflab.errors import DifflabError, InputError, MethodTimeout, UnsupportedError
from difflab.testing.fuzz.campaign import Campaign
from difflab.testing.fuzz.compositions.framework import (
    FRAMEWORKS,
    Framework,
    Step,
    framework,
    spelled,
)
from difflab.testing.fuzz.compositions.panel import (
    REFUSALS,
    Composed,
    CompositionPanel,
    TrueDerivative,
    compositions,
    reproduction,
)
from difflab.testing.fuzz.panel import FuzzFinding, Panel

GRADIENT, WRAPPED = Step(True, 0), Step(False, 0)
X, Y = 0.3, 0.7
# sin(x) y + exp(x y), by hand
SLOPES = [
    math.cos(X) * Y + Y * math.exp(X * Y),
    math.sin(X) + X * math.exp(X * Y),
]
CROSS = math.cos(X) + (1 + X * Y) * math.exp(X * Y)
CURVES = [
    [-math.sin(X) * Y + Y * Y * math.exp(X * Y), CROSS],
    [CROSS, X * X * math.exp(X * Y)],
]


KNOWN = {
    ("torch", "grad(linearize(f))"),  # linearize keeps the slopes at x as constants
    ("tensorflow", "recompute_grad(tape(f))"),  # nothing is recorded inside of it
}
"""What is wrong in the packages: see findings/."""


def installed(name: str) -> Framework:
    found = framework(name)
    pytest.importorskip(found.peer.package)
    found.peer.ready()
    try:
        np.asarray(found.computed(dl.parse("x*y"), found.plain(1), np.ones(2), "float64"))
    except (DifflabError, FileNotFoundError, RuntimeError) as error:
        pytest.skip(f"{name} does not run: {error}")
    return found


def computed(package: Framework, function: dl.Function, chain: Sequence[str]) -> Any:
    """Return a derivative; None where the package says that it lacks something."""
    try:
        return package.computed(function, chain, np.array([X, Y]), "float64")
    except Exception as error:
        if REFUSALS.search(f"{type(error).__name__}: {error}"):
            return None
        raise


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.filterwarnings("ignore")
def test_every_transform_gives_the_derivative(name: str) -> None:
    package, function = installed(name), dl.parse("sin(x)*y + exp(x*y)")
    plain = package.plain(1)
    chains = [(other,) for other in package.derivatives]
    chains += [(*plain, other) for other in package.derivatives]
    chains += [chain for other in package.wrappers for chain in ((other, *plain), (*plain, other))]
    for chain in chains:
        if (name, spelled(chain)) in KNOWN:
            continue
        order = sum(step in package.derivatives for step in chain)
        found = computed(package, function, chain)
        if found is None:
            continue
        np.testing.assert_allclose(
            found, [SLOPES, CURVES][order - 1], rtol=1e-6, err_msg=spelled(chain)
        )


@settings(max_examples=50)
@given(compositions())
def test_programs_are_differentiated_one_to_three_times(program: Composed) -> None:
    assert 1 <= program.order <= 3
    for name in FRAMEWORKS:
        package = framework(name)
        chain = package.names(program.steps)
        assert len(chain) == len(program.steps)
        assert sum(step in package.derivatives for step in chain) == program.order


def test_the_third_derivative_along_a_direction() -> None:
    function = dl.parse("x^3*y + sin(x)")
    truth = TrueDerivative.of(function, [X, Y], 3, 60.0)
    assert truth is not None
    # 6 y - cos(x) in xxx, 6 x in xxy; the direction is (1, 1/2)
    assert truth.expected[0] == pytest.approx(6 * Y - math.cos(X) + 3 * 6 * X / 2, rel=1e-14)
    right = np.zeros((2, 2, 2))
    right[0, 0, 0] = 6 * Y - math.cos(X)
    right[0, 0, 1] = right[0, 1, 0] = right[1, 0, 0] = 6 * X
    assert truth.verdict(right.ravel().tolist(), "float64")[0] == "agree"
    right[1, 0, 0] = 0.0
    assert truth.verdict(right.ravel().tolist(), "float64")[0] == "disagree"
    assert truth.verdict([0.0], "float64")[0] == "disagree"


def test_of_32_bits_fewer_digits_are_asked() -> None:
    truth = TrueDerivative.of(dl.parse("sin(x)*y"), [X, Y], 1, 60.0)
    assert truth is not None
    right = np.array([math.cos(X) * Y, math.sin(X)])
    assert truth.verdict(right.astype(np.float32).tolist(), "float32")[0] == "agree"
    assert truth.verdict((right * 1.002).tolist(), "float32")[0] == "inconclusive"
    assert truth.verdict((right * 1.1).tolist(), "float32")[0] == "disagree"
    assert truth.verdict(right.astype(np.float32).tolist(), "float64")[0] == "disagree"


def test_a_kink_has_no_third_derivative_to_judge_by() -> None:
    assert TrueDerivative.of(dl.parse("abs(x)"), [0.0], 3, 60.0) is None


class Answering(CompositionPanel):
    """A panel whose package answers what a test says, by the names of the transforms."""

    answers: dict[tuple[str, ...], Any]

    def request(
        self, name: str, text: str, names: Sequence[str], x: list[float], dtype: str
    ) -> list[float]:
        answer = self.answers[tuple(names)]
        if isinstance(answer, Exception):
            raise answer
        return list(answer)


PROGRAM = Composed("x*y", {"x": 2.0, "y": 5.0, "v": [0.0] * 3}, (WRAPPED, GRADIENT))
PLAIN, COMPOSED = ("jacobian",), ("checkpoint", "jacobian")
RIGHT, WRONG = [5.0, 2.0], [5.0, 3.0]


@pytest.mark.parametrize(
    ("composed", "plain", "kind"),
    [
        (RIGHT, RIGHT, "agree"),
        (WRONG, RIGHT, "composition"),
        (WRONG, WRONG, "rule"),
        (WRONG, UnsupportedError("no"), "inconclusive"),
        (WRONG[:1], RIGHT, "composition"),
        (UnsupportedError("no rule"), RIGHT, "refused"),
        (DifflabError("NotImplementedError: VJP of f"), RIGHT, "refused"),
        (DifflabError("IndexError: index 3"), RIGHT, "crash"),
        (MethodTimeout("stopped"), RIGHT, "timeout"),
        (WorkerDied("ended by signal 11"), RIGHT, "ended"),
    ],
)
def test_what_is_a_finding_of_which_kind(composed: Any, plain: Any, kind: str) -> None:
    panel = Answering(["autograd"])
    panel.answers = {COMPOSED: composed, PLAIN: plain}
    found = panel.findings(PROGRAM) or []
    assert panel.counts == {("autograd", kind): 1}
    assert [finding.kind for finding in found] == [
        kind for _ in range(kind in ("composition", "rule", "crash", "ended"))
    ]
    if kind == "composition":
        assert found[0].operations == {"multiply", "checkpoint()", "jacobian()"}
        assert found[0].program.point == {"x": 2.0, "y": 5.0}
        space: dict[str, Any] = {}
        exec(compile(reproduction(found[0]), "<written>", "exec"), space)
        assert space["PROGRAM"] == found[0].program
    if kind == "crash":
        assert found[0].reason == "IndexError: index #"


def test_a_program_that_overflows_is_nobodys_fault() -> None:
    panel = Answering(["autograd"])
    panel.answers = {COMPOSED: [math.nan, 0.0], PLAIN: [math.nan, 0.0]}
    program = Composed("(exp(800*x) - exp(800*x))*x + x + y", {"x": 2.0, "y": 1.0}, PROGRAM.steps)
    assert panel.findings(program) == []


def test_a_package_in_a_process_of_its_own_agrees() -> None:
    pytest.importorskip("autograd")
    panel = CompositionPanel(["autograd"])
    assert panel.findings(PROGRAM) == []
    assert panel.counts == {("autograd", "agree"): 1}
    panel.workers["autograd"].stop()
    assert panel.findings(PROGRAM) == []  # it is started again


def test_a_campaign_writes_a_composition_once_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hypothesis import strategies as st

    panel = Answering(["autograd"])
    panel.answers = {COMPOSED: WRONG, PLAIN: RIGHT}
    monkeypatch.setattr(Answering, "programs", lambda self: st.just(PROGRAM))
    campaign = Campaign.resumed(tmp_path, panel)
    campaign._batch(math.inf, lambda text: None)
    campaign._batch(math.inf, lambda text: None)
    (record,) = campaign.records
    assert record.kind == "composition"
    assert (tmp_path / record.file).is_file()
    again = Campaign.resumed(tmp_path, Answering(["autograd"]))
    assert (again.batches, again.records) == (2, campaign.records)
    with pytest.raises(InputError, match="another schema"):
        Campaign.resumed(tmp_path, Panel({}))


def test_compositions_of_one_program_have_files_of_their_own(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, Answering(["autograd"]))
    other = Composed(PROGRAM.text, PROGRAM.point, (*PROGRAM.steps, WRAPPED))
    for program in (PROGRAM, other):
        campaign._record(
            FuzzFinding("autograd", "composition", program, frozenset(), "wrong", "f"),
            lambda text: None,
        )
    texts = [(tmp_path / record.file).read_text("utf-8") for record in campaign.records]
    for program, text in zip((PROGRAM, other), texts, strict=True):
        assert repr(program) in text


@pytest.mark.parametrize("peers", ["casadi", "jaks"])
def test_a_package_without_transforms_is_refused(
    peers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from difflab.cli import main

    with pytest.raises(SystemExit) as caught:
        main(["fuzz", "--compositions", "--peers", peers, "-o", str(tmp_path / "f")])
    assert caught.value.code == 2
    assert not (tmp_path / "f").exists()
    assert "tinygrad" in capsys.readouterr().err
