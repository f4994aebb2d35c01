"""``difflab derive``: the derivative of a formula as text, LaTeX, Python or C."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from math import prod
from typing import TYPE_CHECKING, Annotated

import typer

from difflab.cli.options import Expression, Kind, Output, Plot, one_of, read_expression
from difflab.cli.output import check_destination, deliver
from difflab.cli.sparsity import show_sparsity
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.graph.builder import Builder
    from difflab.graph.function import Function

__all__ = ["EXAMPLES", "Notation", "derive"]

EXAMPLES = """\b
difflab derive "ln(x1)+x1*x2-sin(x2)"
difflab derive "x^2*sin(y)" --wrt x --order 2 --format latex
difflab derive "[x*y, x+y]" --of jacobian --format python
difflab derive "x: [9]; x[1:]*x[:-1]" --sparsity --plot spy.svg
"""

_PART = re.compile(r"(?P<name>[^\[\]]+)\[(?P<places>[0-9, ]+)\]")


class Notation(StrEnum):
    """What a derivative is written in."""

    TEXT = "text"
    LATEX = "latex"
    PYTHON = "python"
    C = "c"


Wrt = Annotated[
    str | None, typer.Option(metavar="NAME", help="By this variable alone, such as x1 or w[3].")
]
Of = Annotated[
    Kind | None,
    typer.Option("--of", help="By default the gradient; with several outputs the Jacobian."),
]
InNotation = Annotated[Notation, typer.Option("--format", help="What it is written in.")]
Sparsity = Annotated[
    bool,
    typer.Option(
        "--sparsity",
        help="Show where the Jacobian (of one output: the Hessian) can be nonzero instead.",
    ),
]


def derive(
    expression: Expression,
    wrt: Wrt = None,
    order: Annotated[int, typer.Option(min=1, help="How often.")] = 1,
    of: Of = None,
    form: InNotation = Notation.TEXT,
    sparsity: Sparsity = False,
    plot: Plot = None,
    output: Output = None,
) -> int:
    """Write the derivative of EXPR as text, LaTeX, Python or C, or its sparsity."""
    destination = None if output is None else check_destination(output)
    if sparsity:
        if wrt is not None or order > 2 or form is not Notation.TEXT or of is Kind.GRADIENT:
            raise InputError(
                "--sparsity shows a whole Jacobian or Hessian, as it is",
                hint="of the other options it goes with --of, --order 2, --plot and -o",
            )
        hessian = of is Kind.HESSIAN or order == 2 or None
        return show_sparsity(
            expression, False if of is Kind.JACOBIAN else hessian, destination, plot
        )
    if plot is not None:
        raise InputError("--plot draws the sparsity of a derivative", hint="add --sparsity")
    text = read_expression(expression)
    from difflab.language import parse, printers

    derived = derivative(parse(text), wrt, order, of)
    if form in (Notation.TEXT, Notation.LATEX):
        derived = _of_used(derived)
    write: Callable[[Function], str] = getattr(printers, form.value)
    result = write(derived).rstrip("\n") + "\n"
    deliver(result, destination)
    return 0


def derivative(function: Function, wrt: str | None, order: int, of: Kind | None) -> Function:
    """Return the derivative that the options ask for.

    Raises
    ------
    InputError
        The options contradict each other or the function.
    """
    if function.n == 0:
        raise InputError("the expression has no variable, so there is nothing to differentiate by")
    if of is not None and wrt is not None:
        raise InputError("--wrt and --of exclude each other", hint="leave one of them out")
    if wrt is None and order > 2 and function.n == 1:
        wrt = _names(function)[0]
    if wrt is not None:
        return _repeated(function, wrt, order)
    if of is None:
        of = Kind.JACOBIAN if function.m > 1 else Kind.GRADIENT if order == 1 else Kind.HESSIAN
    elif order not in (1, 1 + (of is Kind.HESSIAN)):
        raise InputError(f"the {of} is not a derivative of order {order}", hint="leave --order out")
    return _whole(function, of, order)


def _whole(function: Function, of: Kind, order: int) -> Function:
    """Return the derivative by all variables."""
    from difflab.autodiff import gradient, hessian, jacobian

    if order > 2 or (function.m > 1 and order > 1):
        several = "several outputs" if function.m > 1 else "several variables"
        raise InputError(
            f"order {order} with {several} needs a variable", hint="name it with --wrt x"
        )
    if of is Kind.GRADIENT:
        return gradient(function)
    return jacobian(function) if of is Kind.JACOBIAN else hessian(function)


def _repeated(function: Function, wrt: str, order: int) -> Function:
    """Return ∂ᵏf/∂xᵏ for one variable x."""
    from difflab.autodiff import gradient, jacobian
    from difflab.graph.names import output_names

    place = _place(function, wrt)
    m = function.m
    names = function.output_names if m == len(function.outputs) else output_names([None] * m)
    for _ in range(order):
        whole = gradient(function) if m == 1 else jacobian(function)
        places = [row * function.n + place for row in range(m)]
        function = _entries(whole, places, names)
    return function


def _names(function: Function) -> list[str]:
    return [
        name if shape == () else f"{name}[{','.join('0' * len(shape))}]"
        for name, shape in zip(function.inputs, function.input_shapes, strict=True)
    ]


def _place(function: Function, wrt: str) -> int:
    """Return where the variable stands among the flattened inputs."""
    part = _PART.fullmatch(wrt)
    name = one_of(part["name"].strip() if part else wrt, function.inputs, "variable")
    shapes = dict(zip(function.inputs, function.input_shapes, strict=True))
    shape = shapes[name]
    places = tuple(int(place) for place in part["places"].split(",")) if part else ()
    fits = len(places) == len(shape) and all(
        place < size for place, size in zip(places, shape, strict=True)
    )
    if not fits:
        example = f"{name}[{','.join('0' * len(shape))}]" if shape else name
        raise InputError(
            f"{wrt!r} is not one number of {name!r}, whose shape is {list(shape)}",
            hint=f"--wrt {example}",
        )
    start = sum(prod(shapes[other]) for other in function.inputs[: function.inputs.index(name)])
    within = 0
    for place, size in zip(places, shape, strict=True):
        within = within * size + place
    return start + within


def _entries(derivative: Function, places: list[int], names: tuple[str, ...]) -> Function:
    """Return some entries of a derivative as a function with an output for each."""
    from difflab.graph.builder import Builder
    from difflab.graph.function import Function, inline

    builder = Builder()
    inputs = [
        builder.input(name, shape)
        for name, shape in zip(derivative.inputs, derivative.input_shapes, strict=True)
    ]
    (output,) = inline(derivative, builder, inputs)
    return Function.build(
        builder, inputs, [_entry(builder, output, place) for place in places], names
    )


def _entry(builder: Builder, node: int, place: int) -> int:
    """Return one number of a flattened node: what was put there, where that can be seen."""
    from difflab.graph.node import Node
    from difflab.primitives import index

    while (row := builder.primitive(node)) is not None and row.name in ("reshape", "pack"):
        for part in builder.arguments(node):
            node, size = part, prod(builder.shape(part))
            if place < size:
                break
            place -= size
    shape = builder.shape(node)
    if not shape:
        return node
    key: tuple[int, ...] = ()
    for size in reversed(shape):
        place, within = divmod(place, size)
        key = (within, *key)
    if row is not None and row.name == "scatter":
        keys = builder.params(node)["keys"]
        if keys.count(key) == 1 and all(isinstance(part, int) for other in keys for part in other):
            position: int = keys.index(key)
            return builder.arguments(node)[position]
    entry: int = index(Node(builder, node), key=key, rank=len(key)).id
    return entry


def _of_used(function: Function) -> Function:
    """Return the function of the inputs that it depends on: others would only be declared."""
    from difflab.graph.builder import Builder
    from difflab.graph.function import Function, inline

    used = {*function.graph.args.tolist(), *function.outputs}
    builder = Builder()
    nodes = [
        builder.input(name, shape)
        for name, shape in zip(function.inputs, function.input_shapes, strict=True)
    ]
    kept = [new for new, old in zip(nodes, function.input_nodes, strict=True) if old in used]
    return Function.build(builder, kept, inline(function, builder, nodes), function.output_names)
