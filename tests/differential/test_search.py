"""Programs are drawn from a seed alone, and a difference in a batch is traced to one program."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st

from tests.differential.search import Family, drawn, search, share


def test_the_quick_tier_checks_a_tenth_and_at_least_three() -> None:
    assert [share(count, full=True) for count in (1500, 24, 2)] == [1500, 24, 2]
    assert [share(count, full=False) for count in (1500, 24, 2)] == [150, 3, 2]


def test_a_difference_in_a_batch_is_shrunk_to_one_program() -> None:
    batches = []

    def finish(numbers: Sequence[int]) -> None:
        batches.append(len(numbers))
        for number in numbers:
            assert number < 50, f"{number} differs"

    def check(number: int) -> None:
        finish([number])

    numbers = st.integers(0, 1000)
    family = Family("numbers", numbers, check, 100, 10, begin=lambda n: [n], finish=finish)
    with pytest.raises(AssertionError, match="50 differs"):
        search(family, 100, 0)
    assert batches[0] >= 50
    assert set(batches[1:]) == {1}


def test_programs_do_not_depend_on_the_modules_that_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def programs() -> list[bytes]:
        found: list[bytes] = []
        drawn(st.binary(min_size=8, max_size=8), lambda code: found.append(code), 200, 3)
        return found

    before = programs()
    constants = [f"c{k} = {f'{k:08}'.encode()!r}" for k in range(100)]
    (tmp_path / "local_constants.py").write_text("\n".join(constants), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("local_constants")
    assert programs() == before
