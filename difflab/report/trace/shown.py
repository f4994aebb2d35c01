"""The result of `Function.trace`: an evaluation trace that displays itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from difflab.diagnose.point_check import checked_point
from difflab.graph.function import Function
from difflab.report.terminal import WIDTH
from difflab.report.trace import text
from difflab.report.trace.steps import EvaluationTrace
from difflab.report.trace.trace import ModeName
from difflab.report.trace.trace import trace as traced

__all__ = ["ShownTrace", "trace"]


@dataclass(frozen=True, eq=False, repr=False)
class ShownTrace(EvaluationTrace):
    """A `difflab.report.trace.steps.EvaluationTrace` with a display.

    Its `repr` is the table; as the result of a notebook's cell it is shown as HTML.
    """

    def table(self, *, width: int = WIDTH) -> str:
        """Return the table that ``difflab trace`` prints; from 120 columns on with values."""
        return text.as_table(self, width=width)

    def markdown(self) -> str:
        """Return the tables in Markdown."""
        return text.as_markdown(self)

    def html(self) -> str:
        """Return a whole page, which needs no network."""
        return text.as_html(self)

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks display."""
        return text.as_fragment(self)


def trace(
    function: Function,
    at: Mapping[str, Any] | None = None,
    *,
    mode: ModeName = "both",
    seed: str | None = None,
    open: str | Iterable[str] | None = None,
) -> ShownTrace:
    """Return the evaluation trace of a function at a point: `Function.trace`.

    Examples
    --------
    >>> import difflab as dl
    >>> print(trace(dl.parse("x*y"), {"x": 2, "y": 3}, mode="reverse").table())
    f   x*y
    at  x = 2, y = 3
    <BLANKLINE>
    Forward evaluation trace
    ...
    """
    point = checked_point(function, None) if at is None else at
    steps = traced(function, point, mode=mode, seed=seed, open=open)
    return ShownTrace(**{item.name: getattr(steps, item.name) for item in fields(steps)})
