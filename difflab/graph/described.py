"""Description in words of a loop or a branch, and of its execution at a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from difflab.core.wording import counted
from difflab.graph.control import Branches, Control, Loop, WhileLoop, WhileLoopVjp
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.function import Function
from difflab.graph.names import shortened


def roles(control: Control) -> list[tuple[str, Function]]:
    """Return the functions that a row holds, each with its role.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda x: dl.fori_loop(0, 3, lambda i, y: y * x, 1.0), 2.0)
    >>> [(role, str(step)) for role, step in roles(f.graph.primitive(len(f.graph) - 2).holds)]
    [('step', '[x1 + 1.0, x2*captured1]')]
    """
    return list(zip(control.roles.values(), control.functions, strict=True))


def arguments(control: Control | None) -> str:
    """Return which inputs of a loop's step are carried, come from arrays or stay constant.

    It is empty where there is no loop.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda x: dl.fori_loop(0, 3, lambda i, y: y * x, 1.0), 2.0)
    >>> arguments(f.graph.primitive(len(f.graph) - 2).holds)
    'carried: x1, x2 · constant: captured1'
    """
    if isinstance(control, Loop):
        ends = [control.carries, control.carries + control.arrays]
    elif isinstance(control, WhileLoop):
        ends = [len(control.output_shapes)] * 2
    else:
        return ""
    names = control.body.inputs
    groups = {
        "carried": names[: ends[0]],
        "from arrays": names[ends[0] : ends[1]],
        "constant": names[ends[1] :],
    }
    return " · ".join(f"{label}: {shortened(group)}" for label, group in groups.items() if group)


def length(control: Control | None) -> str:
    """Return the number of iterations in words; empty if it is unknown, or there is no loop."""
    return counted(control.steps, "turn") if isinstance(control, Loop) else ""


def taken(control: Control, values: Sequence[Any]) -> str:
    """Return the number of iterations of a loop, or the selected branch, in words.

    Parameters
    ----------
    control : Control
        The loop or branch of a row.
    values : sequence
        The values of the row's arguments, at one point.
    """
    if isinstance(control, Branches):
        return "true" if values[0] else "false"
    if isinstance(control, WhileLoopVjp):
        return taken(control.loop, values[: len(control.output_shapes)])
    if isinstance(control, WhileLoop):
        iterations = sum(1 for _ in control.visited(ArrayInterpreter(), values, ())) - 1
        return counted(iterations, "turn")
    return length(control)
