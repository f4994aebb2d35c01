"""The result of `Function.trace`: an evaluation trace that displays itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from difflab.diagnose.point_check import checked_point
from difflab.graph.function import Function
from difflab.report.terminal import Displayed
from difflab.report.trace import text
from difflab.report.trace.steps import EvaluationTrace
from difflab.report.trace.trace import ModeName
from difflab.report.trace.trace import trace as traced


@dataclass(frozen=True, eq=False, repr=False)
class ShownTrace(Displayed, EvaluationTrace):
    """A `difflab.report.trace.steps.EvaluationTrace` with a display.

    Its `repr` is the table; as the result of a notebook's cell it is shown as HTML.
    """

    _reports: ClassVar[Any] = text

    def markdown(self) -> str:
        """Return the tables in Markdown."""
        return text.view(self).markdown()

    def html(self) -> str:
        """Return a whole page, which needs no network."""
        return text.view(self).page()


def trace(
    function: Function,
    at: Mapping[str, Any] | None = None,
    *,
    mode: ModeName = "both",
    seed: str | None = None,
    open: str | Iterable[str] | None = None,
) -> ShownTrace:
    """Return the evaluation trace of value and derivative that ``difflab trace`` prints.

    Parameters
    ----------
    at : mapping, optional
        A value for every input; by default a point inside the domain is chosen.
    mode : {"both", "forward", "reverse"}
        Which derivatives to show: tangents, cotangents, or both.
    seed : str, optional
        In forward mode the input to differentiate by, in reverse mode the output to
        differentiate; an element of an array as ``x[3]``. The first one by default.
    open : str or iterable of str, optional
        What is opened: names, ``"all"`` or ``"none"``, as of `draw`. A composition that is not
        opened has one step for each of its results, and one contribution to each argument. An
        opened loop has the steps of all of its turns, an opened branch those of the function
        that is chosen at the point. By default compositions are open, and loops closed. Custom
        functions keep their own derivative and stay closed.

    Returns
    -------
    ShownTrace
        Its `str` is the table, and it shows itself in a notebook; ``table()``,
        ``markdown()``, ``html()`` and ``to_dict()`` are its forms. If the traced code calls
        functions or layers, a column names the call that each step belongs to.

    Raises
    ------
    InputError
        `mode` or `seed` is unknown, nothing has a name in `open`, or a loop in it has too many
        turns.
    PointError
        A value is missing, unknown, not finite or of the wrong shape.
    DomainError
        The function is undefined at the point.

    Examples
    --------
    >>> import difflab as dl
    >>> steps = dl.parse("x*sin(y)").trace({"x": 2, "y": 0})
    >>> dict(steps.gradient)
    {'x': 0.0, 'y': 2.0}
    >>> f = dl.parse("iterate(y = x; 2 times; y*y)")
    >>> [step.formula for step in f.trace({"x": 3}, open="all").primal]
    ['x', 'v₀ × v₀', 'v₁ × v₁']
    >>> print(trace(dl.parse("x*y"), {"x": 2, "y": 3}, mode="reverse").table())
    f   x*y
    at  x = 2, y = 3
    <BLANKLINE>
    Forward evaluation trace
    ...
    """
    point = checked_point(function, None) if at is None else at
    steps = traced(function, point, mode=mode, seed=seed, open=open)
    return ShownTrace.of(steps)
