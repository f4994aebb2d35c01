"""The tables of `docs/explanation/conventions.md` are the output of ``difflab conventions``.

``python -m tests.docs.test_conventions [PEER ...]`` measures the peers that are installed, or those
that are named, keeps what was recorded of the others (SymEngine and SymForce exclude each other),
and writes the record, `tests/data/conventions.json`, and the page anew.
"""

from __future__ import annotations

import json
import math
import sys

import pytest

from difflab.lab.conventions.cases import cases
from difflab.lab.conventions.measure import (
    EXACT,
    OWN,
    CaseResult,
    Conventions,
    measure,
    measured_version,
)
from difflab.methods.peers.peer import Peer
from difflab.methods.registry import peers
from difflab.report.conventions import markdown
from tests.support.documents import ROOT

PAGE = ROOT / "docs" / "explanation" / "conventions.md"
RECORD = ROOT / "tests" / "data" / "conventions.json"
START = "<!-- `python -m tests.docs.test_conventions` writes this part. -->\n"
END = "<!-- Here it ends. -->"
COMMAND = "python -m tests.docs.test_conventions writes it anew"
NOISE = 1e-14


def recorded() -> Conventions:
    return Conventions.from_dict(json.loads(RECORD.read_text("utf-8")))


def page(found: Conventions) -> str:
    before, start, rest = PAGE.read_text("utf-8").partition(START)
    assert start
    return f"{before}{start}\n{markdown(found)}\n{END}{rest.partition(END)[2]}"


def test_the_page_shows_the_record() -> None:
    assert PAGE.read_text("utf-8") == page(recorded()), COMMAND


def test_the_record_has_every_case_of_every_package() -> None:
    record = recorded()
    wanted = [(case.formula, repr(case.at)) for case in cases()]
    for package in record.packages:
        if package.name == EXACT:  # of smooth cases only
            continue
        found = [(r.formula, repr(r.at)) for r in record.results if r.package == package.name]
        assert found == wanted, f"{package.name}: {COMMAND}"


def test_difflab_chooses_what_is_recorded() -> None:
    assert_same(measure([]).results, OWN)


@pytest.mark.parametrize("name", [name for name in peers() if name != "torch-compile"])
def test_a_peer_of_the_recorded_version_chooses_what_is_recorded(name: str) -> None:
    peer = peers()[name]
    assert isinstance(peer, Peer)
    if peer.missing():
        pytest.skip(str(peer.missing()))
    version = {package.name: package.version for package in recorded().packages}.get(name)
    if version != measured_version(peer):
        pytest.skip(f"{name} {measured_version(peer)} is not the recorded version, {version}")
    found = measure([name])
    own = [result for result in found.results if result.package == name]
    if all(isinstance(answer, str) for result in own for answer in result.answers):
        pytest.skip(str(own[0].answers[0]))  # as tinygrad without a compiler
    assert_same(found.results, name)


def assert_same(fresh: list[CaseResult], name: str) -> None:
    record = recorded()
    for result in fresh:
        if result.package != name:
            continue
        (wanted,) = (r for r in record.of(result.formula, result.at) if r.package == name)
        where = f"{name}: {result.formula} at {result.at}"
        assert (result.code, result.own) == (wanted.code, wanted.own), f"{where}: {COMMAND}"
        for one, other in zip(result.answers, wanted.answers, strict=True):
            assert isinstance(one, str) == isinstance(other, str), where
            if not isinstance(one, str) and not isinstance(other, str):
                tolerance = 1e-3 if name in ("numdifftools", "jacobi") else 1e-6
                assert all(near(*pair, tolerance) for pair in zip(one, other, strict=True)), where


def near(one: float, other: float, tolerance: float) -> bool:
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    # Of a 0 that cancellation leaves only the size is known; 1e-201 is none.
    small = max(abs(one), abs(other)) < max(NOISE, 1e-6 if tolerance > 1e-4 else 0.0)
    return math.isclose(one, other, rel_tol=tolerance) or (
        small and not 0 < max(abs(one), abs(other)) < 1e-30
    )


def ordered(found: Conventions) -> Conventions:
    """Return a record in the order of `difflab methods`, whatever was measured last."""
    names = [OWN, EXACT, *peers()]
    packages = sorted(found.packages, key=lambda package: names.index(package.name))
    return Conventions(packages, sorted(found.results, key=lambda r: names.index(r.package)))


def write(found: Conventions) -> None:
    RECORD.write_text(found.to_json(), encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    older = recorded() if RECORD.exists() else Conventions([], [])
    chosen = sys.argv[1:] or None
    measured = measure(chosen, progress=lambda done, total, label: print(f"{done}/{total} {label}"))
    write(ordered(measured.merged(older)))
