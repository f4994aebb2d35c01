"""A share of every family in each run of the tests; failures are shrunk to a small program."""

from __future__ import annotations

import pytest

from tests.differential.search import FAMILIES, family, search


@pytest.mark.parametrize("name", FAMILIES)
def test_programs_of_a_fixed_seed_agree(name: str) -> None:
    found = family(name)
    assert search(found, found.fixed, 0) >= found.fixed // 2  # Hypothesis may exhaust small chunks


@pytest.mark.parametrize("name", FAMILIES)
def test_programs_of_a_fresh_seed_agree(name: str, fresh_seed: int) -> None:
    found = family(name)
    print(f"DIFFLAB_SEED={fresh_seed}")
    assert search(found, found.fresh, fresh_seed) >= found.fresh // 2
