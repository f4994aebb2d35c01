"""A share of every family in each run of the tests; failures are shrunk to a small program."""

from __future__ import annotations

import pytest

from tests.differential.search import FAMILIES, family, search, share

PARTS = [(name, part) for name, parts in FAMILIES.items() for part in range(parts)]


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_programs_of_a_fixed_seed_agree(name: str, part: int, full: bool) -> None:
    if part and not full:
        pytest.skip("the share of the quick tier is not divided: --full checks all parts")
    found = family(name)
    count = found.fixed // FAMILIES[name] if full else share(found.fixed, full)
    assert search(found, count, part) >= count // 2  # Hypothesis may exhaust small chunks


@pytest.mark.parametrize("name", FAMILIES)
def test_programs_of_this_code_agree(name: str, seed_of_the_code: int, full: bool) -> None:
    found = family(name)
    count = share(found.fresh, full)
    print(f"DIFFLAB_SEED={seed_of_the_code}")
    assert search(found, count, seed_of_the_code) >= count // 2
