"""The planted faults are there to be planted, in every package, and the tests find them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.planted.planting import ROOT, Fault, copied, faults, finder, planted
from tests.test_tiers import exists

FAULTS = faults()


def test_every_fault_fits_its_file():
    gone = [fault.name for fault in FAULTS if not fault.fits]
    assert not gone, "these texts do not occur once in their files: " + ", ".join(gone)


def test_every_package_has_a_fault():
    paths = [ROOT / "benchmarks", *(ROOT / "difflab").iterdir()]
    packages = {path.name for path in paths if (path / "__init__.py").exists()}
    assert packages - {fault.package for fault in FAULTS} == set()


def test_names_and_changes_are_distinct():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 60
    assert all(fault.old != fault.new for fault in FAULTS)


def test_the_tests_that_find_the_faults_exist():
    assert not [fault.found_by for fault in FAULTS if not exists(fault.found_by)]


def test_three_of_four_faults_are_found_by_the_quick_tier():
    tiers = Counter(fault.tier for fault in FAULTS)
    assert tiers["quick"] >= max(45, 0.75 * len(FAULTS)), tiers


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    return copied(tmp_path_factory.mktemp("copy"))


# One fault of each package; `python -m tests.planted` plants all of them.
@pytest.mark.parametrize(
    "fault", {fault.package: fault for fault in FAULTS}.values(), ids=lambda fault: fault.name
)
def test_the_fault_is_found(fault: Fault, copy: Path):
    with planted(fault, copy):
        assert finder(copy, [fault.found_by]) == fault.found_by
