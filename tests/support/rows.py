"""Tests that walk a table: one item for all of its rows, which names every row that fails.

An item of pytest costs about as much as checking a row, and rows that are compiled together cost
a hundredth of rows that are compiled one by one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from difflab.autodiff.engine.argumentwise import cotangent
from difflab.core.primitive import Primitive

__all__ = ["failures", "for_each", "replaced_rule"]

LONGEST = 1500
"""Characters of one failure that are shown."""


def for_each(
    names: str | Sequence[str],
    cases: Iterable[Any],
    ids: Callable[[Any], Any] | Iterable[Any] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator by which one item checks every case; called as parametrize is.

    The item fails once, after the last case, and names every case that fails. A case that is
    skipped is left out, and the item is skipped where all are. The other parameters and fixtures
    of the test are the item's, shared by its cases; `test.__wrapped__` checks a single case.
    """
    parameters = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    listed = [case if len(parameters) > 1 else (case,) for case in cases]
    labels = labels_of(listed, ids)

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def every(*receiver: Any, **others: Any) -> None:
            skipped: list[str] = []
            with failures(len(listed)) as noted:
                for label, case in zip(labels, listed, strict=True):
                    with noted(label):
                        try:
                            test(*receiver, **dict(zip(parameters, case, strict=True)), **others)
                        except pytest.skip.Exception as reason:
                            skipped.append(str(reason))
            if len(skipped) == len(listed):
                pytest.skip(skipped[0] if skipped else "no cases")

        signature = inspect.signature(test)
        kept = [value for key, value in signature.parameters.items() if key not in parameters]
        every.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return every

    return decorated


def labels_of(cases: Sequence[tuple[Any, ...]], ids: Any) -> list[str]:
    """Return the names of cases: `ids`, or their values, functions by their names."""
    if ids is not None and not callable(ids):
        return list(map(str, ids))
    name = ids or (lambda value: getattr(value, "__name__", value))
    return [", ".join(str(name(value)) for value in case) for case in cases]


@contextmanager
def failures(number: int) -> Iterator[Callable[[str], AbstractContextManager[None]]]:
    """Give a context for each of some cases, and fail once for all that fail in theirs.

    The traceback is that of the first one.
    """
    found: list[tuple[str, Exception]] = []

    @contextmanager
    def noted(label: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            found.append((label, error))

    yield noted
    if found:
        lines = [f"{len(found)} of {number} fail: {'; '.join(label for label, _ in found)}"]
        lines += [f"{label}: {type(e).__name__}: {str(e).strip()[:LONGEST]}" for label, e in found]
        raise AssertionError("\n".join(lines)) from found[0][1]


@contextmanager
def replaced_rule(row: Primitive, rule: Any) -> Iterator[None]:
    """Give a row of the table another rule, to see that the tests notice.

    Transposes of tangent maps are remembered, also those that the rule was a part of.
    """
    own = row.rule
    object.__setattr__(row, "rule", rule)
    try:
        yield
    finally:
        object.__setattr__(row, "rule", own)
        cotangent.cache_clear()
