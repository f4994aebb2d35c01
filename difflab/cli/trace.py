"""``difflab trace``: the evaluation trace of a value and its derivative."""

from __future__ import annotations

from typing import Literal

from difflab.cli.explain import ExplainNan, explain_point
from difflab.cli.functions import Subject
from difflab.cli.options import (
    ExpressionArgument,
    OutputOption,
    PointOption,
)
from difflab.cli.output import deliver, formatted, report_format, say
from difflab.cli.program_text import LatexOption, formula

TraceFormat = Literal["table", "json", "md", "latex", "html", "pdf"]
"""The output format of a trace."""


def trace(
    expression: ExpressionArgument,
    /,
    at: PointOption = None,
    mode: Literal["both", "forward", "reverse"] = "both",
    seed: str | None = None,
    opened: list[str] | None = None,
    form: TraceFormat | None = None,
    destination: OutputOption = None,
    explain_nan: ExplainNan = False,
    latex: LatexOption = False,
) -> int:
    """Show how EXPR and its derivative are evaluated, step by step.

    Parameters
    ----------
    mode
        The mode to show.
    seed : NAME
        The input to differentiate by (forward), or the output (reverse).
    opened : NAME
        Open this call, loop or branch (repeatable); all or none. By default calls are open and
        loops are closed.
    form
        By default the ending of -o's name, else a table.

    Examples
    --------
    difflab trace "ln(x1)+x1*x2-sin(x2)" --at x1=2,x2=5
    difflab trace "ln(x1)+x1*x2-sin(x2)" --at x1=2,x2=5 --mode forward --seed x2
    difflab trace "where(x>0, sqrt(x), 0)" --at x=0 -o trace.html
    difflab trace model:loss --at "w=[0.5,1],x=2" --open none
    """
    expression = formula(expression, latex=latex)
    chosen = report_format(form, destination, TraceFormat)
    subject = Subject.of(expression, at)
    from difflab.diagnose.point_check import checked_point
    from difflab.report.trace import text
    from difflab.report.trace.trace import SHOWN
    from difflab.report.trace.trace import trace as traced

    function, point = subject.function, subject.point_or_start
    limit = None if chosen == "json" else SHOWN
    if point is None:
        if function.inputs:
            say("no --at: a point inside the domain was chosen")
        point = checked_point(function, None)
    if explain_nan:
        aside = chosen != "table" or destination is not None
        explain_point(function, point, aside=aside)
    steps = traced(function, point, mode=mode, seed=seed, limit=limit, open=opened or None)
    deliver(formatted(steps, chosen, text, to_file=destination is not None), destination)
    return 0
