"""``difflab derive``: the derivative of a formula as text, for print, or as code of a language."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from difflab.cli.functions import Subject
from difflab.cli.options import (
    DerivativeKind,
    ExpressionArgument,
    OutputOption,
    PlotOption,
    ShapesOption,
)
from difflab.cli.output import deliver, say, screen
from difflab.cli.program_text import LatexOption, formula
from difflab.core.wording import without_comments
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.graph.function import Function

_COMMA = re.compile(r",(?![^\[]*\])")
_NAME = re.compile(r"[^\W\d]\w*")


DerivativeFormat = Literal[
    "text",
    "latex",
    "python",
    "c",
    "javascript",
    "fortran",
    "rust",
    "cuda",
    "matlab",
    "julia",
    "r",
    "stan",
    "numpy",
    "jax",
    "torch",
    "mathml",
    "onnx",
]
"""The output format of a derivative."""


_PRINTED = ("latex", "mathml")
_FOR_READERS = ("text", *_PRINTED)


FormatOption = Annotated[
    DerivativeFormat,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help=f"The output format: {', '.join(get_args(DerivativeFormat))}.",
    ),
]


Simplification = Literal["proved", "anyway"]
"""Which simplified forms are used."""


def derive(
    expression: ExpressionArgument,
    /,
    at: ShapesOption = None,
    wrt: str | None = None,
    order: Annotated[int, typer.Option(min=0)] = 1,
    of: DerivativeKind | None = None,
    value: bool = False,
    form: FormatOption = "text",
    name: str | None = None,
    sparsity: bool = False,
    plot: PlotOption = None,
    destination: OutputOption = None,
    latex: LatexOption = False,
    simplify: Simplification | None = None,
) -> int:
    """Write the derivative of EXPR as text, LaTeX or code, or its sparsity.

    Parameters
    ----------
    wrt : NAME[,NAME…]
        Differentiate by this variable only, such as x1 or w[3]; x,y,y for ∂³/∂x∂y².
    order
        The order of the derivative; 0 is the function.
    of
        By default the gradient; the Jacobian for several outputs.
    value
        The value, before the derivative.
    name : NAME
        What the function is called in code.  [default: f]
    sparsity
        Show the sparsity pattern of the Jacobian (of the Hessian for one output).
    simplify : [=anyway]
        Collect, cancel and order by SymPy, if that is proved to keep every value;
        --simplify=anyway also where it computes less accurately. LaTeX and MathML are
        simplified always.

    Examples
    --------
    difflab derive "ln(x1)+x1*x2-sin(x2)"
    difflab derive "x^2*sin(y)" --wrt x --order 2 --format latex
    difflab derive "x*exp(x*y)" --wrt x,y,y
    difflab derive "exp(-q*V/(k*T))" --wrt T --simplify
    difflab derive "[x*y, x+y]" --of jacobian --format python
    difflab derive "x: [9]; x[1:]*x[:-1]" --sparsity --plot spy.svg
    difflab derive "x: [9]; w: [9]; x*w" --sparsity --wrt w
    difflab derive "x*exp(x*y)" --value --format fortran --name energy
    difflab derive "x*exp(x*y)" --value --format onnx -o gradient.onnx
    difflab derive model:loss --at "w=[0.5,1],x=2" --format c
    """
    if form == "onnx" and destination is None:
        raise InputError("a model in ONNX's format is a binary file", hint="add -o FILE.onnx")
    expression = formula(expression, latex=latex)
    if name is not None and form in _FOR_READERS:
        raise InputError("--name is the name of a function in code", hint="add --format c")
    if sparsity:
        if (
            order > 2
            or form != "text"
            or of is DerivativeKind.GRADIENT
            or order == 0
            or value
            or simplify is not None
        ):
            raise InputError(
                "--sparsity shows the pattern of a Jacobian or Hessian",
                hint="combine it only with --wrt, --of, --order 2, --plot and -o",
            )
        hessian = of is DerivativeKind.HESSIAN or order == 2 or None
        return show_sparsity(
            _subject(expression, at, wrt),
            False if of is DerivativeKind.JACOBIAN else hessian,
            None if wrt is None else [name.strip() for name in _COMMA.split(wrt)],
            destination,
            plot,
        )
    if plot is not None:
        raise InputError("--plot draws the sparsity of a derivative", hint="add --sparsity")
    function = _subject(expression, at, wrt).function
    derived = derivative(function, wrt, order, of)
    if value and order:
        derived = after_value(function, derived)
    if simplify is not None and form not in _PRINTED:
        derived = _simplified(derived, simplify)
    if form == "onnx":
        from difflab.interop.formats.onnx import to_onnx

        deliver(to_onnx(derived, name or "f").SerializeToString(), destination)
    else:
        deliver(_written(derived, form, name or "f"), destination)
    return 0


_ARRAY_CODE = "difflab.methods.peers.array_code"
_HOMES = {
    "numpy": (_ARRAY_CODE, "numpy_code"),
    "jax": (_ARRAY_CODE, "jax_code"),
    "torch": (_ARRAY_CODE, "torch_code"),
}
"""The module and the function of the formats that are no printers of the language."""


def _written(derived: Function, form: DerivativeFormat, name: str) -> str:
    """Return a function as text, for print, or as code of a language."""
    if form in _PRINTED:
        return _printed(_without_unused_inputs(derived), form) + "\n"
    module, writer = _HOMES.get(form, ("difflab.language.printers", form))
    write = getattr(import_module(module), writer)
    if form in _FOR_READERS:
        text: str = write(_without_unused_inputs(derived))
    elif form in _HOMES:
        text = write(derived, name)
    else:
        from difflab.graph.repetition import rolled

        text = write(rolled(derived), name)
    return text.rstrip("\n") + "\n"


def _printed(derived: Function, form: DerivativeFormat) -> str:
    """Return a function for print, tidy if that is possible; say why if it is not."""
    from difflab.errors import UnsupportedError
    from difflab.interop.formats.mathml import mathml
    from difflab.interop.formats.tidy_latex import tidy_latex
    from difflab.language.printers import latex

    is_latex = form == "latex"
    try:
        return tidy_latex(derived) if is_latex else mathml(derived)
    except UnsupportedError as error:
        text = latex(derived) if is_latex else mathml(derived, tidy=False)
        say(f"note: written as it is computed, not collected: {error.args[0]}")
        return text


def after_value(function: Function, derived: Function) -> Function:
    """Return the function of the outputs of `function`, then those of its derivative."""
    from difflab.autodiff import value_and_gradient
    from difflab.graph.rewritten import joined

    if derived.output_names == ("gradient",):
        return value_and_gradient(function)
    return joined([function, derived])


def _simplified(function: Function, which: Simplification) -> Function:
    """Return the function as SymPy simplifies it; say where it has a value only now."""
    from difflab.interop.simplification import simplified

    result = simplified(function, anyway=which == "anyway")
    for point in dict.fromkeys(result.extended):
        say(f"note: the simplified form has a value at {point}, where the original has none")
    return result.function


def _subject(expression: str, at: list[str] | None, wrt: str | None) -> Subject:
    subject = Subject.of(expression, at, _NAME.findall(wrt or ""))
    if subject.point is not None and subject.traced is None:
        raise InputError(
            "--at gives the shapes of the arguments of module:function",
            hint="omit it: the derivative of a formula does not depend on a point",
        )
    return subject


def derivative(
    function: Function, wrt: str | None, order: int, of: DerivativeKind | None
) -> Function:
    """Return the derivative that the options name.

    Raises
    ------
    InputError
        The options contradict each other or the function.
    """
    if order == 0:
        if of is not None or wrt is not None:
            raise InputError("--order 0 is the function itself", hint="omit --of and --wrt")
        return function
    if function.n == 0:
        raise InputError("the expression has no variable to differentiate by")
    if of is not None and wrt is not None:
        raise InputError("--wrt and --of exclude each other", hint="omit one of them")
    if wrt is None and order > 2 and function.n == 1:
        wrt = _names(function)[0]
    if wrt is not None:
        return _partial(function, wrt, order)
    if of is None:
        second = function.m == 1 and order > 1
        of = DerivativeKind.HESSIAN if second else DerivativeKind.first(function)
    elif order not in (1, 1 + (of is DerivativeKind.HESSIAN)):
        raise InputError(f"the {of} is not a derivative of order {order}", hint="omit --order")
    return _whole(function, of, order)


def _partial(function: Function, wrt: str, order: int) -> Function:
    """Return the derivative by one variable, or by a list of them."""
    from difflab.autodiff.functions.flat import element_index
    from difflab.autodiff.transforms.partial import mixed_derivative

    columns = [element_index(function, name.strip(), "--wrt ") for name in _COMMA.split(wrt)]
    if len(columns) > 1 and order > 1:
        raise InputError(
            f"--wrt {wrt} gives the order by its length, {len(columns)}", hint="omit --order"
        )
    return mixed_derivative(function, columns * order)


def _whole(function: Function, of: DerivativeKind, order: int) -> Function:
    """Return the derivative by all variables."""
    if order > 2 or (function.m > 1 and order > 1):
        several = "several outputs" if function.m > 1 else "several variables"
        raise InputError(
            f"order {order} with {several} needs a variable", hint="name it with --wrt x"
        )
    return of.derivative(function)


def _names(function: Function) -> list[str]:
    return [
        name if shape == () else f"{name}[{','.join('0' * len(shape))}]"
        for name, shape in zip(function.inputs, function.input_shapes, strict=True)
    ]


def _without_unused_inputs(function: Function) -> Function:
    """Return the function without the inputs that it does not depend on."""
    used = {*function.graph.args.tolist(), *function.outputs}
    kept = tuple([node for node in function.input_nodes if node in used])
    return replace(function, input_nodes=kept)


def show_sparsity(
    subject: Subject,
    hessian: bool | None,
    wrt: list[str] | None,
    destination: Path | None,
    plot: Path | None,
) -> int:
    """Write the pattern of the Jacobian or Hessian and the savings; return the exit code.

    Parameters
    ----------
    subject : Subject
        The function.
    hessian : bool, optional
        Whether to show the Hessian; by default it is shown for a scalar output.
    wrt : list of str, optional
        The inputs and elements that are differentiated by, by default all.
    destination : Path, optional
        The file of the text, by default standard output.
    plot : Path, optional
        The file of the picture.
    """
    from difflab.autodiff.sparsity import sparse_hessian, sparse_jacobian
    from difflab.report import spy

    function = subject.function
    if function.n == 0:
        raise InputError("the expression has no variable to differentiate by")
    second = function.m == 1 if hessian is None else hessian
    derivative = sparse_hessian(function, wrt=wrt) if second else sparse_jacobian(function, wrt=wrt)
    title = f"{'Hessian' if second else 'Jacobian'} of {without_comments(subject.text).strip()}"
    if wrt is not None:
        title += f" by {', '.join(wrt)}"
    files = {plot: spy.picture(derivative, title, plot.suffix[1:].lower())} if plot else {}
    width = screen(to_file=destination is not None, usual=88)["width"]
    deliver(spy.text(derivative, title, width), destination, files)
    return 0
