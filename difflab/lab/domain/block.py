"""Finished blocks of points, which a file keeps as JSON: read again, and joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy import float64

from difflab.lab.domain.judging import Judged, MethodJudged, Referred
from difflab.lab.outcomes import Outcome
from difflab.lab.record import Status

Part = TypeVar("Part", Referred, MethodJudged)


def block_of(record: Mapping[str, Any]) -> Judged:
    """Return the block of a record, which `difflab.core.strict_json.strict` returned."""
    methods = [MethodJudged(**_read(each)) for each in record["methods"]]
    return Judged(Referred(**_read(record["referred"])), methods)


def _read(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _READERS.get(name, _same)(content) for name, content in record.items()}


def _same(content: Any) -> Any:
    return content


def _by_point(content: Mapping[str, str]) -> dict[int, str]:
    return {int(index): text for index, text in content.items()}


def _outcomes(content: Mapping[str, tuple[str, str]]) -> dict[int, Outcome]:
    return {int(index): Outcome(Status(name), text) for index, (name, text) in content.items()}


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "proved": partial(np.array, dtype=bool),
    "contradictions": _by_point,
    "verdicts": partial(np.array, dtype=np.int64),
    **dict.fromkeys(("absolute", "relative", "ulps"), partial(np.array, dtype=float64)),
    "reasons": _by_point,
    "silent": _outcomes,
}


def gathered(blocks: Sequence[Judged]) -> Judged:
    """Return consecutive blocks as one."""
    starts = np.cumsum([0, *(len(block.referred.status) for block in blocks)]).tolist()
    methods = zip(*(block.methods for block in blocks), strict=True)
    return Judged(
        _joined([block.referred for block in blocks], starts),
        [_joined(parts, starts) for parts in methods],
    )


def _joined(parts: Sequence[Part], starts: Sequence[int]) -> Part:
    """Return the parts of blocks that begin at the points `starts` as one."""
    made = {
        each.name: _together([getattr(part, each.name) for part in parts], starts)
        for each in fields(parts[0])
    }
    return type(parts[0])(**made)


def _together(contents: Sequence[Any], starts: Sequence[int]) -> Any:
    """Return what a field holds of all points: indices of points are counted from the first."""
    if isinstance(contents[0], np.ndarray):
        return np.concatenate(contents)
    if isinstance(contents[0], Mapping):
        return {
            start + index: content
            for start, part in zip(starts, contents, strict=False)
            for index, content in part.items()
        }
    return reduce(add, contents)
