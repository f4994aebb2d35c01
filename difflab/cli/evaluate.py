"""``difflab evaluate``: values or derivatives at the points of a file, written to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from difflab.cli.functions import Subject
from difflab.cli.options import DerivativeKind, ExpressionArgument, ShapesOption
from difflab.cli.output import CommandProgressLine, say
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.graph.function import Function


def evaluate(
    expression: ExpressionArgument,
    /,
    points: str,
    output: str,
    at: ShapesOption = None,
    value: bool = False,
    gradient: bool = False,
    jacobian: bool = False,
    hessian: bool = False,
    target: str = "auto",
    threads: Annotated[int | None, typer.Option(min=1)] = None,
    chunk: Annotated[int | None, typer.Option(min=1)] = None,
) -> int:
    """Evaluate EXPR, or a derivative of it, at the points of a file of any size.

    An interrupted run goes on if the same command is started again.

    Parameters
    ----------
    points : FILE
        The points: .npy or .zarr, a row each; .csv or .parquet, a column for each input.
    output : FILE
        The results: .npy, .zarr, .csv or .parquet.
    value
        The value, alone or before the gradient.
    gradient
        The gradient.
    jacobian
        The Jacobian.
    hessian
        The Hessian.
    target : NAME
        auto, python, numpy, native or exact.
    threads
        By default all processors.
    chunk : N
        Points computed at a time by a thread.

    Examples
    --------
    difflab evaluate "ln(x1)+x1*x2-sin(x2)" --points in.npy --gradient -o out.npy
    difflab evaluate "x^2*sin(y)" --points in.csv --value --gradient -o out.csv
    difflab evaluate "[x*y, x+y]" --points in.parquet --jacobian -o out.zarr
    difflab evaluate model:loss --at "w=[0.5,1],x=2" --points in.npy -o out.npy
    """
    from difflab.execute import compile
    from difflab.interop.large import apply

    requested = {
        DerivativeKind.GRADIENT: gradient,
        DerivativeKind.JACOBIAN: jacobian,
        DerivativeKind.HESSIAN: hessian,
    }
    kinds = [kind for kind, wanted in requested.items() if wanted]
    function = _result(Subject.of(expression, at).function, kinds, value)
    compiled = compile(function, target, threads, packed=True)
    with CommandProgressLine(stopped="the same command goes on where this one stops") as progress:
        apply(compiled, points, output, chunk, progress=progress)
    say(f"wrote {output}")
    return 0


def _result(function: Function, kinds: list[DerivativeKind], value: bool) -> Function:
    """Return the function of the values that the options name."""
    if len(kinds) > 1 or (value and kinds not in ([], [DerivativeKind.GRADIENT])):
        names = ", ".join(f"--{kind}" for kind in kinds)
        raise InputError(
            f"one file holds one result, not {names}{' and --value' if value else ''}",
            hint="choose one of them, or --value with --gradient",
        )
    if not kinds:
        return function
    if value:
        from difflab.autodiff import value_and_gradient

        return value_and_gradient(function)
    return kinds[0].derivative(function)
