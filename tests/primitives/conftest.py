"""Giving a row of the table another rule, to see that the tests notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from difflab.core.primitive import Primitive


@pytest.fixture
def replace_rule() -> Iterator[Callable[[Primitive, Any], None]]:
    """Give a row another rule until the test is over."""
    changed: list[tuple[Primitive, Any]] = []

    def replace(row: Primitive, rule: Any) -> None:
        changed.append((row, row.rule))
        object.__setattr__(row, "rule", rule)

    yield replace
    for row, rule in reversed(changed):
        object.__setattr__(row, "rule", rule)
