"""A formula as SymPy collects, cancels and orders it, if that is proved and computes as well."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from difflab.core.optional import require
from difflab.errors import DifflabError, UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.checks import require_function
from difflab.graph.exactly import exact_elements
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.rewritten import inlined
from difflab.interop.formats.forms import equal_forms, expressions, ordered_symbols
from difflab.interop.formats.sympy_text import sympy_text
from difflab.language import parse
from difflab.primitives import pack, reshape

POINTS = 64
"""Random points at which both forms are evaluated."""
ULPS = 8.0
"""Units in the last place that a form's error may exceed twice that of the original."""
WITNESSES = 8
"""Points with too large an error among which the one with the fewest values to name is chosen."""
DIGITS = 60
SEED = 1


@dataclass(frozen=True)
class Simplified:
    """A simplified function, and where it has a value and the original has none.

    Attributes
    ----------
    function : Function
        With the inputs and outputs of the original.
    extended : tuple of str
        A point for each output element that is nan or infinite there in the original only.
    """

    function: Function
    extended: tuple[str, ...] = ()


def simplified(function: Function, *, anyway: bool = False) -> Simplified:
    """Return a function whose elements SymPy has simplified, each by the shortest proved form.

    A form is used only if SymPy proves that its difference from the original is zero, for real
    inputs, and, unless `anyway`, if at random points its error, found by mpmath to 60 digits, is at
    most 8 ULP more than twice that of the original.

    Parameters
    ----------
    function : Function
        With inputs that are numbers.
    anyway : bool
        Whether a form is used that computes less accurately in float64.

    Returns
    -------
    Simplified

    Raises
    ------
    UnsupportedError
        An input is an array, SymPy cannot express an operation, or no form of an element
        fulfils both conditions; the message says why.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("-(1/(k*T)*(q*phi/(k*T))*k)")
    >>> print(simplified(f).function)
    -q*phi/(k*T^2)
    """
    require_function(function, "simplified")
    symbols = ordered_symbols(function)
    originals = expressions(function, symbols)
    truth = _OriginalValues(function)
    chosen = [
        _best(expression, symbols, truth, element, anyway=anyway)
        for element, expression in enumerate(originals)
    ]
    extended = tuple(point for k, form in enumerate(chosen) if (point := truth.extended(form, k)))
    return Simplified(_assembled(function, chosen), extended)


def to_sympy(function: Function) -> Any:
    """Return the formula as an expression of SymPy, with a symbol for each input.

    The symbols are real and have the inputs' names.

    Returns
    -------
    sympy.Expr or list of sympy.Expr
        The elements of the outputs in order; the only one alone.

    Raises
    ------
    UnsupportedError
        An input is an array, or SymPy cannot express the function.

    Examples
    --------
    >>> import difflab as dl
    >>> dl.parse("x*sin(y)/2").to_sympy()
    x*sin(y)/2
    """
    sympy = require("sympy")
    if any(function.input_shapes):
        raise UnsupportedError("SymPy has formulas of numbers; an input is an array")
    formulas = expressions(function, [sympy.Symbol(name, real=True) for name in function.inputs])
    return formulas[0] if len(formulas) == 1 else formulas


def _best(
    expression: Any, symbols: Sequence[Any], truth: _OriginalValues, element: int, *, anyway: bool
) -> Function:
    """Return the shortest form that fulfils both conditions."""
    sympy = require("sympy")
    forms = sorted(
        dict.fromkeys(equal_forms(expression)),
        key=lambda form: (sympy.count_ops(form), len(sympy_text(form))),
    )
    reason, accurate = "", True
    for form in forms:
        if form != expression and (form - expression).equals(0) is not True:
            fault = "SymPy does not prove it equal"
        else:
            try:
                function = _parsed(form, symbols)
            except DifflabError as error:
                fault = f"the language has no words for it ({error.args[0]})"
            else:
                fault = "" if anyway else truth.fault(function, element)
                accurate = accurate and not fault
        if not fault:
            return function
        reason = reason or f"{sympy_text(form)} is refused: {fault}"
    for symbol, name in zip(symbols, truth.function.inputs, strict=True):
        reason = reason.replace(str(symbol), name)
    advice = "" if accurate else "; --simplify=anyway uses it nevertheless"
    raise UnsupportedError(f"no form of SymPy keeps the value: {reason}{advice}")


def _parsed(form: Any, symbols: Sequence[Any]) -> Function:
    """Return an expression as a function of all symbols, in their order."""
    declared = "".join(f"{symbol}: []\n" for symbol in symbols)
    function = parse(declared + sympy_text(form))
    nodes = dict(zip(function.inputs, function.input_nodes, strict=True))
    return replace(function, input_nodes=tuple(nodes[symbol.name] for symbol in symbols))


def _assembled(function: Function, forms: Sequence[Function]) -> Function:
    """Return a function with the outputs of `function`, whose elements are `forms`."""
    builder = Builder()
    inputs = [Node(builder, builder.input(name)) for name in function.inputs]
    elements = [inlined(form, inputs)[0] for form in forms]
    outputs: list[Node] = []
    start = 0
    for shape in function.output_shapes:
        part = elements[start : start + math.prod(shape)]
        start += len(part)
        whole: Node = part[0] if shape == () else pack(*part, ranks=(0,) * len(part))
        outputs.append(whole if len(shape) < 2 else reshape(whole, shape=shape, rank=1))
    return Function.build(
        builder,
        [node.id for node in inputs],
        [node.id for node in outputs],
        function.output_names,
        function.structure,
        arguments=function.arguments,
    )


class _OriginalValues:
    """The values of the original at random points, in float64 and to many digits."""

    def __init__(self, function: Function) -> None:
        import mpmath

        self.function = function
        n = len(function.inputs)
        rng = np.random.default_rng(SEED)
        random = np.exp(rng.uniform(-9, 3, (POINTS, n))) * rng.choice([-1.0, 1.0], (POINTS, n))
        random[: POINTS // 2] = np.abs(random[: POINTS // 2])  # logarithms and roots
        # As many digits as messages have, so that what they say can be repeated.
        self.points = random = np.array([[float(f"{x:.6g}") for x in row] for row in random])
        self.special = np.array([[value] * n for value in (0.0, 1.0, -1.0)])
        self.special = np.concatenate([self.special, *(_with(random[k], 0.0) for k in range(4))])
        with mpmath.workdps(DIGITS):
            self.exact = [self._exactly(point) for point in self.points]
        self.values = function.values(self.points)

    def _exactly(self, point: Any) -> list[Any]:
        import mpmath

        try:
            return exact_elements(self.function, point)
        except (ArithmeticError, ValueError):
            return [mpmath.nan] * self.function.m

    def fault(self, form: Function, element: int) -> str:
        """Return the fault of a form's values as text; empty if there is none."""
        values = form.values(self.points)[:, 0]
        errors = [
            self._errors(float(value), float(own), exact[element])
            for value, own, exact in zip(values, self.values[:, element], self.exact, strict=True)
        ]
        if not any(errors):
            return "the function is finite at none of the points tried"
        wrong = [k for k, pair in enumerate(errors) if pair and _too_large(*pair)]
        witnesses = [self._witness(form, element, self.points[k]) for k in wrong[:WITNESSES]]
        return (
            self._said(form, element, min(witnesses, key=lambda point: int(np.sum(point != 1))))
            if wrong
            else ""
        )

    def _errors(self, value: float, own: float, exact: Any) -> tuple[float, float] | None:
        """Return the errors of a form's value and of the original's in ULP; None if undefined."""
        import mpmath

        if isinstance(exact, mpmath.mpc) or not mpmath.isfinite(exact) or not np.isfinite(own):
            return None
        unit = float(np.spacing(abs(float(exact)))) or 5e-324
        with mpmath.workdps(DIGITS):
            error, original = (float(abs(mpmath.mpf(one) - exact) / unit) for one in (value, own))
        return error, original

    def _errors_at(self, form: Function, element: int, point: Any) -> tuple[float, float] | None:
        import mpmath

        with mpmath.workdps(DIGITS):
            exact = self._exactly(point)[element]
        value, own = (
            float(f.values(point[None])[0, k]) for f, k in ((form, 0), (self.function, element))
        )
        return self._errors(value, own, exact)

    def _witness(self, form: Function, element: int, point: Any) -> Any:
        """Return a point with too large an error, with 1 for coordinates that do not matter."""
        point = point.copy()
        for k in range(len(point)):
            kept, point[k] = point[k], 1.0
            errors = self._errors_at(form, element, point)
            if errors is None or not _too_large(*errors):
                point[k] = kept
        return point

    def _said(self, form: Function, element: int, point: Any) -> str:
        """Return the errors at a point, of which the coordinates that are 1 are not listed."""
        errors = self._errors_at(form, element, point)
        assert errors is not None, "it is one of the points with an error"
        pairs = zip(self.function.inputs, point.tolist(), strict=True)
        listed = [f"{name} = {value:.6g}" for name, value in pairs if value != 1]
        others = (
            [] if len(listed) == len(point) else ["1 for the others" if listed else "1 for all"]
        )
        where = " and ".join([", ".join(listed)] * bool(listed) + others)
        return f"its error is {errors[0]:.3g} ULP, and was {errors[1]:.3g}, at {where}"

    def extended(self, form: Function, element: int) -> str:
        """Return a point where the form has a value and the original has none; empty if none."""
        own = self.function.values(self.special)[:, element]
        extends = np.isfinite(form.values(self.special)[:, 0]) & ~np.isfinite(own)
        return self._text(self.special[int(np.argmax(extends))]) if extends.any() else ""

    def _text(self, point: Any) -> str:
        pairs = zip(self.function.inputs, point, strict=True)
        return ", ".join(f"{name} = {value:.6g}" for name, value in pairs)


def _too_large(error: float, original: float) -> bool:
    """Whether a form's error in ULP exceeds the bound that follows from the original's."""
    return not error <= ULPS + 2 * original


def _with(point: Any, value: float) -> Any:
    """Return a copy of the point for each coordinate, with that coordinate replaced."""
    rows = np.repeat(point[None], len(point), axis=0)
    np.fill_diagonal(rows, value)
    return rows
