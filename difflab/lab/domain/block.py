"""A finished block of points: the verdicts, and the time and the silence of each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.core.strict_json import strict
from difflab.lab.domain.judging import Judged, MethodJudged, Referred
from difflab.lab.outcomes import Outcome
from difflab.lab.record import Status

__all__ = ["Block", "MethodBlock"]


@dataclass(frozen=True, eq=False)
class MethodBlock:
    """One method at a block of points.

    Attributes
    ----------
    judged : MethodJudged
        The verdicts.
    silent : mapping of int to Outcome
        The points without an answer, and why.
    seconds : float
        The time of all points.
    evaluations : int
        How many points the function was evaluated at.
    """

    judged: MethodJudged
    silent: Mapping[int, Outcome]
    seconds: float
    evaluations: int


@dataclass(frozen=True, eq=False)
class Block:
    """Results of a block of points."""

    referred: Referred
    methods: Sequence[MethodBlock]

    @classmethod
    def of(cls, judged: Judged, answers: Sequence[Any]) -> Block:
        """Return the block of the methods' derivatives and their verdicts."""
        methods = [
            MethodBlock(found, answer.silent, answer.seconds, answer.evaluations)
            for found, answer in zip(judged.methods, answers, strict=True)
        ]
        return cls(judged.referred, methods)

    def to_dict(self) -> dict[str, Any]:
        """Return the block as JSON types, every number in full."""
        return {"referred": strict(self.referred), "methods": [strict(m) for m in self.methods]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Block:
        """Return the block of `to_dict`."""
        referred = record["referred"]
        return cls(
            Referred(
                list(map(str, referred["status"])),
                np.array(referred["proved"], dtype=bool),
                {int(index): text for index, text in referred["contradictions"].items()},
            ),
            [_method(each) for each in record["methods"]],
        )


def _method(record: Mapping[str, Any]) -> MethodBlock:
    found = record["judged"]
    absolute, relative, ulps = (
        np.array([float(size) for size in found[name]]) for name in ("absolute", "relative", "ulps")
    )
    return MethodBlock(
        MethodJudged(
            np.array(found["verdicts"], dtype=np.int64),
            absolute,
            relative,
            ulps,
            {int(index): text for index, text in found["reasons"].items()},
        ),
        {
            int(index): Outcome(Status(status), message)
            for index, (status, message) in record["silent"].items()
        },
        float(record["seconds"]),
        int(record["evaluations"]),
    )
