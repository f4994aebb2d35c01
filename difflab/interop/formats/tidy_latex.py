r"""Functions in LaTeX as a paper prints them: ``\frac{2 x}{y}`` for ``2*(1/y)*x``.

SymPy's printer writes the parts; products are fractions with their factors in the order of
`difflab.interop.formats.sympy_text`, and names are those of `difflab.language.printers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.interop.formats.sympy_text import added_first, fraction
from difflab.interop.formats.tidy import TREE_LIMIT, tidied
from difflab.language.printers.latex import constant_name, distinct_names, latex, number

UNASKED = 1000
"""Nodes of the tree of a function up to which a notebook, which prints unasked, tidies it."""


def tidy_latex(function: Function, limit: int = TREE_LIMIT) -> str:
    r"""Return a function in LaTeX, in the form in which a paper prints it.

    Parameters
    ----------
    function : Function
        With inputs that are numbers.
    limit : int
        Nodes of its tree beyond which it is refused.

    Returns
    -------
    str
        One expression or matrix; an ``aligned`` block if there are several outputs.

    Raises
    ------
    UnsupportedError
        An input is an array, an output has more than two dimensions, or
        `difflab.interop.formats.tidy.tidied` refuses the function.

    Examples
    --------
    >>> import difflab as dl
    >>> print(tidy_latex(dl.partial(dl.parse("sqrt(x1^2 + x2^2)"), "x1")))
    \frac{x_{1}}{\sqrt{x_{1}^{2} + x_{2}^{2}}}
    """
    for name, shape in zip(function.inputs, function.input_shapes, strict=True):
        if shape:
            raise UnsupportedError(f"{name!r} is an array")
    if max(map(len, function.output_shapes)) > 2:
        raise UnsupportedError("an output has more than two dimensions")
    formula = tidied(function, limit)
    names = dict(zip(formula.names, distinct_names(list(formula.names.values())), strict=True))
    printer = _printer(names, function.inputs)
    parts = [_cells(printer, output) for output in formula.outputs]
    if len(parts) == 1:
        return parts[0]
    shown = (
        f"f{position}" if name in function.inputs else name
        for position, name in enumerate(function.output_names, 1)
    )
    lines = zip(
        distinct_names([*function.inputs, *shown])[len(function.inputs) :], parts, strict=True
    )
    body = " \\\\\n".join(f"{name} &= {part}" for name, part in lines)
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"


def readable_latex(function: Function, *, plain: bool) -> str:
    """Return a function in LaTeX, tidy if that is quickly done, else, if `plain`, as computed."""
    try:
        return tidy_latex(function, UNASKED)
    except UnsupportedError:
        if not plain:
            raise
        return latex(function)


def _cells(printer: Any, output: Any) -> str:
    """Return an expression, or an array as a column vector or a matrix."""
    if not isinstance(output, np.ndarray):
        return str(printer.doprint(output))
    if output.size == 1:
        return str(printer.doprint(output.item()))
    rows = output.reshape(len(output), -1).tolist()
    body = r" \\ ".join(" & ".join(map(printer.doprint, row)) for row in rows)
    return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"


_Printer: Any = object  # for the type checker: SymPy's printer follows as a second base


class _PaperForms(_Printer):  # type: ignore[misc]
    """SymPy's LaTeX printer with the forms that papers use."""

    names: Mapping[Any, str]
    inputs: Sequence[str]
    printmethod = None  # by which SymPy's constants would write themselves

    def _as_ordered_terms(self, expression: Any, order: Any = None) -> list[Any]:
        return added_first(super()._as_ordered_terms(expression, order=order))

    def _print_Mul(self, product: Any) -> str:
        negative, *sides = fraction(product)
        above, below = (self._side(side) for side in sides)
        if below:
            text = rf"\frac{{{above or '1'}}}{{{below}}}"
        elif negative and len(sides[0]) == 1 and sides[0][0].is_Add:
            text = rf"\left({above}\right)"
        else:
            text = above or "1"
        return "-" * negative + text

    def _side(self, factors: Sequence[Any]) -> str:
        """Return a numerator or a denominator."""
        if len(factors) == 1:
            return str(self._print(factors[0]))
        text = ""
        for position, factor in enumerate(factors, 1):
            last = position == len(factors)
            part = str(self._print(factor))
            if self._needs_mul_brackets(factor, first=position == 1, last=last):
                part = rf"\left({part}\right)"
            text += rf" \cdot {part}" if text and part[0].isdigit() else f" {part}"
        return text.strip()

    def _print_Pow(self, power: Any) -> str:
        if power.exp.is_Rational and power.exp < 0:
            return self._print_Mul(power)
        return str(super()._print_Pow(power))

    def _print_Symbol(self, symbol: Any, **_: Any) -> str:
        return self.names[symbol]

    def _print_Float(self, value: Any) -> str:
        return number(float(value))

    def _print_Pi(self, _: Any) -> str:
        return constant_name("pi", self.inputs)

    def _print_Exp1(self, _: Any, exp: Any = None) -> str:
        return constant_name("e", self.inputs)

    def _print_ExpBase(self, call: Any, exp: Any = None) -> str:
        text = f"{constant_name('e', self.inputs)}^{{{self._print(call.args[0])}}}"
        return str(self._do_exponent(text, exp))

    def _print_polygamma(self, call: Any, exp: Any = None) -> str:
        order, x = call.args
        name = r"\psi" if order == 0 else rf"\psi^{{\left({self._print(order)}\right)}}"
        text = rf"{name}\left({self._print(x)}\right)"
        return str(self._do_exponent(text, exp))

    def _print_loggamma(self, call: Any, exp: Any = None) -> str:
        text = rf"\ln\Gamma\left({self._print(call.args[0])}\right)"
        return str(self._do_exponent(text, exp))

    def _print_Heaviside(self, call: Any, exp: Any = None) -> str:
        text = rf"\operatorname{{H}}\left({self._print(call.args[0])}\right)"
        return str(self._do_exponent(text, exp))

    def _print_Piecewise(self, choice: Any) -> str:
        from sympy import true

        rows = r" \\ ".join(
            rf"{self._print(value)} & "
            + (r"\text{otherwise}" if condition is true else self._print(condition))
            for value, condition in choice.args
        )
        return rf"\begin{{cases}} {rows} \end{{cases}}"


@cache
def _kind() -> Any:
    """Return the class of the printer; SymPy is imported when it is made."""
    from sympy.printing.latex import LatexPrinter

    return type("PaperPrinter", (_PaperForms, LatexPrinter), {})


def _printer(names: Mapping[Any, str], inputs: Sequence[str]) -> Any:
    """Return the printer that writes symbols by these names."""
    printer = _kind()({"ln_notation": True})
    printer.names, printer.inputs = names, inputs
    return printer
