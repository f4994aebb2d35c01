"""``difflab explain``: what fails at a point, and where two methods diverge."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from difflab.cli.functions import Subject, verified
from difflab.cli.options import ExpressionArgument, PointOption, parse_names
from difflab.cli.output import emit, say
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.diagnose.divergence import Derivative
    from difflab.graph.function import Function


def explain(
    expression: ExpressionArgument,
    /,
    at: PointOption = None,
    between: str | None = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    no_verify: bool = False,
) -> int:
    """Name the operations that fail at a point, or the first at which two methods differ.

    Without --between: those that produce nan, infinity, overflow or cancellation, and
    the inputs without a gradient. With it: the first operation whose value, or whose
    derivative, differs beyond rounding and the methods' own error estimates.

    Parameters
    ----------
    between : A,B
        Name the first operation at which these two methods differ.
    seed
        Seed for choosing the point.
    no_verify
        Do not run module:function to compare its values with its graph's.

    Examples
    --------
    difflab explain "1 + log(x - 3)" --at x=2
    difflab explain --between reverse,jax "relu(x) + abs(y)" --at x=0,y=1
    """
    from difflab.diagnose.point_check import checked_point, packed

    subject = Subject.of(expression, at)
    function = subject.function
    if subject.code is not None and not no_verify:
        verified(subject.text, subject.code)
    if between is None:
        from difflab.diagnose import explain as explained

        chosen_point = subject.point_or_start  # which may lie outside the domain
        report = explained(
            function, checked_point(function, None, seed) if chosen_point is None else chosen_point
        )
        emit(f"{report}\n")
        return 0 if report.ok else 1
    names = parse_names(between) or []
    if len(names) != 2:
        raise InputError(
            f"--between takes two methods, not {len(names)}", hint="--between reverse,jax"
        )
    point = checked_point(function, subject.point_or_start, seed)
    return _between(function, packed(function, point), (names[0], names[1]))


def _between(function: Function, point: Any, names: tuple[str, str]) -> int:
    """Report where two methods diverge; return 1 if they do."""
    from difflab.diagnose.divergence import first_divergence

    first, second = (partial(_derivative, name) for name in names)
    divergence = first_divergence(function, point, first, second)
    if divergence is None:
        emit(f"{names[0]} and {names[1]} agree: value and derivative are equal within rounding\n")
        return 0
    emit(f"{divergence.render(names)}\n")
    return 1


def _derivative(name: str, function: Function, point: Any) -> Derivative:
    """Return the Jacobian of a method, and its estimate of the error."""
    import numpy as np

    from difflab.diagnose.divergence import Derivative
    from difflab.methods.differentiate import differentiate

    estimate = differentiate(function, point, method=name)
    shape = (function.m, function.n)
    value = np.asarray(estimate.value, dtype=np.float64).reshape(shape)
    error = np.zeros(shape) if estimate.error is None else np.reshape(estimate.error, shape)
    return Derivative(value, np.nan_to_num(error, nan=np.inf))


ExplainNan = Annotated[
    bool,
    typer.Option(
        "--explain-nan",
        help="First name the operations that produce nan, inf, overflow or cancellation, and"
        " the inputs without a gradient.",
    ),
]


def explain_point(function: Function, point: Mapping[str, Any], *, aside: bool) -> None:
    """Report anomalies in the value and the gradient of a function at a point.

    The report goes to standard output ahead of the result or, with `aside`, to standard error,
    where standard output is machine-readable.
    """
    from difflab.diagnose import explain

    report = f"{explain(function, point)}\n"
    if aside:
        say(report)
    else:
        emit(f"{report}\n")
