"""``difflab evaluate``: values or derivatives at the points of a file, written to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from difflab.cli.functions import Subject
from difflab.cli.options import DerivativeKind, ExpressionArgument, ShapesOption
from difflab.cli.output import ProgressLine, say
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["EXAMPLES", "evaluate"]

EXAMPLES = """\b
difflab evaluate "ln(x1)+x1*x2-sin(x2)" --points in.npy --gradient -o out.npy
difflab evaluate "x^2*sin(y)" --points in.csv --value --gradient -o out.csv
difflab evaluate "[x*y, x+y]" --points in.parquet --jacobian -o out.zarr
difflab evaluate model:loss --at "w=[0.5,1],x=2" --points in.npy -o out.npy
"""

PointsOption = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="The points: .npy or .zarr, a row each; .csv or .parquet, a column for each input.",
    ),
]
ResultOption = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The results: .npy, .zarr, .csv or .parquet."
    ),
]


def evaluate(
    expression: ExpressionArgument,
    points: PointsOption,
    output: ResultOption,
    at: ShapesOption = None,
    value: Annotated[
        bool, typer.Option("--value", help="The value, alone or before the gradient.")
    ] = False,
    gradient: Annotated[bool, typer.Option("--gradient", help="The gradient.")] = False,
    jacobian: Annotated[bool, typer.Option("--jacobian", help="The Jacobian.")] = False,
    hessian: Annotated[bool, typer.Option("--hessian", help="The Hessian.")] = False,
    target: Annotated[
        str, typer.Option(metavar="NAME", help="auto, python, numpy, native or exact.")
    ] = "auto",
    threads: Annotated[int | None, typer.Option(min=1, help="By default all processors.")] = None,
    chunk: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Points computed at a time by a thread.")
    ] = None,
) -> int:
    """Evaluate EXPR, or a derivative of it, at the points of a file of any size.

    An interrupted run goes on if the same command is started again.
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
    with ProgressLine(stopped="the same command goes on where this one stops") as progress:
        apply(compiled, points, output, chunk, progress=progress)
    say(f"wrote {output}")
    return 0


def _result(function: Function, kinds: list[DerivativeKind], value: bool) -> Function:
    """Return the function that computes what the options name."""
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
