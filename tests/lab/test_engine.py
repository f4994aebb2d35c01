"""The engine of measurements: what it reports, and what it costs to know."""

from __future__ import annotations

from typing import Any

import pytest

from difflab.lab import engine
from difflab.lab.engine import Work, run
from difflab.lab.store import PARTIAL, Record, Store


def computed(store: Store, count: int) -> list[tuple[int, int]]:
    """Compute as many works of one record each; return what was reported, without the labels."""
    works = [Work(k, str(k), f"row {k}", {"row": f"{k}"}) for k in range(count)]
    reports: list[tuple[int, int]] = []

    def record(work: Work[int], missing: Any) -> Any:
        return lambda: [Record(key=key, content="1") for key in missing.values()]

    run(store, works, record, lambda done, total, label: reports.append((done, total)))
    return reports


def test_every_report_of_few_works_is_exact() -> None:
    with Store(None, PARTIAL, alone=True) as store:
        assert computed(store, 4) == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
        assert computed(store, 5) == [(4, 5), (5, 5)]


@pytest.mark.parametrize(("seconds", "looks"), [(0.0, 2), (2.0, 42)])
def test_many_works_are_looked_for_once_a_second_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch, seconds: float, looks: int
) -> None:
    """By a clock that is `seconds` later at each look: as it stands still, and as rows are long."""
    count, looked = 40, []
    known, clock = Store.known, (seconds * k for k in range(10_000))

    def counted(store: Store, keys: Any) -> set[str]:
        looked.append(type(keys) is set)  # a claim looks for a list
        return known(store, keys)

    monkeypatch.setattr(Store, "known", counted)
    monkeypatch.setattr(engine, "_FEW", 0)
    monkeypatch.setattr(engine, "monotonic", lambda: next(clock))
    with Store(None, PARTIAL, alone=True) as store:
        reports = computed(store, count)
    assert reports[0] == (0, count)
    assert reports[-1] == (count, count)
    assert sum(looked) == looks
