"""Comparison of a function with its stabilised form at one point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from difflab.core.strict_json import dumps
from difflab.graph.function import Function
from difflab.lab.compare import compare
from difflab.lab.options import CompareOptions
from difflab.lab.record import Comparison
from difflab.stabilisation.proof import Stabilised, stabilise

SCHEMA = "difflab.stabilisation/1"


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Two comparisons of one real function.

    Attributes
    ----------
    plain, stabilised : Comparison
        The function as written, and stabilised: compared at the same point, against the same
        referee, which evaluates the plain function.
    rewriting : Stabilised
        The rewrites, their locations, and the digits to which both forms agree.
    """

    plain: Comparison
    stabilised: Comparison
    rewriting: Stabilised

    @property
    def agreed(self) -> bool:
        """Whether no method has the verdict ``disagree`` for the stabilised function."""
        return self.stabilised.agreed

    def to_dict(self) -> dict[str, Any]:
        """Return the schema ``difflab.stabilisation/1``.

        Its `plain` and `stabilised` are comparisons of the schema ``difflab.comparison/5``.
        """
        return {
            "schema": SCHEMA,
            "rewrites": [rewrite.to_dict() for rewrite in self.rewriting.rewrites],
            "refused": list(self.rewriting.refused),
            "plain": self.plain.to_dict(),
            "stabilised": self.stabilised.to_dict(),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return `to_dict` as strict JSON text, with integers of any length."""
        return dumps(self.to_dict(), indent)


def compare_stabilised(
    expression: str | Function,
    at: Mapping[str, Any] | None = None,
    **options: Unpack[CompareOptions],
) -> SideBySide:
    """Compare a function as written with its stabilised form.

    Parameters
    ----------
    expression, at, progress, **options
        As for `compare`.

    Raises
    ------
    InputError
        As raised by `compare`.

    Examples
    --------
    >>> both = compare_stabilised(
    ...     "1/(1 + exp(-x))", {"x": -700}, methods=["reverse"], timing=False
    ... )
    >>> both.plain.methods[0].verdict, both.stabilised.methods[0].verdict
    ('disagree', 'agree')
    """
    plain = compare(expression, at, **options)
    rewriting = stabilise(expression, plain.point)
    stable = compare(rewriting.function, plain.point, truth=rewriting.plain, **options)
    return SideBySide(plain, stable, rewriting)
