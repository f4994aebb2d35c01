"""Functions as SymPy's expressions in the form in which a paper prints them.

A product is one fraction with its powers collected, decimals such as 0.5 are fractions, and
trigonometric functions have their usual derivatives. How such a form computes in float64 does not
matter here; that it is equal is checked with many digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.core.optional import require
from difflab.errors import UnsupportedError
from difflab.graph.counts import count
from difflab.graph.exactly import exact_elements
from difflab.graph.function import Function
from difflab.graph.ir import Graph, packed_slices
from difflab.interop.formats.forms import FAILURES, expressions, sorted_forms
from difflab.primitives import multiply, negative, power

TREE_LIMIT = 3000
"""Nodes of a function's tree beyond which it is printed as it is computed."""
FRACTION = 12
"""Digits of a fraction beyond which it is the float64 of a decimal, and written as that."""
POINTS = 48
"""Random points, of which some lie in the domain of most functions."""
COMPARED = 4
"""Points of the domain at which both forms are evaluated."""
DIGITS = 60
AGREE = 1e-30
"""The largest relative difference of equal values."""
SMALL = 1e-9
"""Values below this are compared as if they were as large as it."""
SEED = 1


@dataclass(frozen=True)
class TidyFunction:
    """The outputs of a function as expressions.

    Attributes
    ----------
    outputs : tuple
        An expression of SymPy for each output, or an array of them.
    names : mapping of sympy.Symbol to str
        What the symbols stand for: the name of an input or of an element, such as ``w_0,1``.
    """

    outputs: tuple[Any, ...]
    names: Mapping[Any, str]


def tidied(function: Function, limit: int = TREE_LIMIT) -> TidyFunction:
    """Return a function as expressions that a paper would print.

    Each is the shortest of the forms that SymPy finds and whose value is that of the function at
    random points, to 30 digits.

    Parameters
    ----------
    function : Function
        Any function of which SymPy has the operations.
    limit : int
        Nodes of its tree beyond which it is refused.

    Returns
    -------
    TidyFunction

    Raises
    ------
    UnsupportedError
        The function is too large, SymPy cannot express it, or a form is not found to be equal;
        the message says which.

    Examples
    --------
    >>> import difflab as dl
    >>> formula = tidied(dl.partial(dl.parse("sqrt(x^2 + y^2)*cot(y)"), "x"))
    >>> {str(symbol): name for symbol, name in formula.names.items()}
    {'v0_': 'x', 'v1_': 'y'}
    >>> formula.outputs[0]
    v0_*cot(v1_)/sqrt(v0_**2 + v1_**2)
    """
    size = count(function).tree
    if size > limit:
        raise UnsupportedError(f"written out it has more than {limit:,} nodes")
    symbols, names = _symbols(function)
    originals = expressions(function, symbols, exact=True)
    values = _SymbolicValues(function, names)
    chosen: list[Any] = []
    for element, expression in enumerate(originals):
        same = values.earlier(element)
        if same is None:
            chosen.append(values.first_equal(_forms(expression), element))
        else:
            chosen.append(chosen[same])
    flat, shapes = np.fromiter(chosen, dtype=object), function.output_shapes
    parts = zip(packed_slices(shapes), shapes, strict=True)
    return TidyFunction(tuple(flat[part].reshape(shape)[()] for part, shape in parts), names)


def _forms(expression: Any) -> list[Any]:
    try:
        return sorted_forms(expression)
    except FAILURES:
        return [expression]


def _symbols(function: Function) -> tuple[list[Any], dict[Any, str]]:
    """Return a symbol, or an array of symbols, for each input, and the names of the symbols.

    SymPy sorts the symbols as the formula has the inputs.
    """
    sympy = require("sympy")
    ordered = _order(function)
    order = [ordered.index(node) for node in function.input_nodes]
    width = len(str(len(order)))
    symbols: list[Any] = []
    names: dict[Any, str] = {}
    for k, (name, shape) in enumerate(zip(function.inputs, function.input_shapes, strict=True)):
        part = np.empty(shape, dtype=object)
        for position, index in enumerate(np.ndindex(shape)):
            label = f"v{order[k]:0{width}}_" + (f"{position:06}_" if shape else "")
            part[index] = sympy.Symbol(label, real=True)
            names[part[index]] = "_".join(filter(None, (name, ",".join(map(str, index)))))
        symbols.append(part if shape else part.item())
    return symbols, names


def _order(function: Function) -> list[int]:
    """Return the input nodes as the formula has them: g before t in ``t + g*t^2``.

    That is the order of their first appearance, but for the factors of products.
    """
    graph, ordered = function.graph, sorted(function.input_nodes)
    seen: set[frozenset[int]] = set()
    for node in np.flatnonzero(graph.applies(multiply)).tolist():
        first, second = (_base(graph, factor) for factor in graph.arguments(node))
        pair = frozenset((first, second))
        if pair not in seen and len(pair.intersection(ordered)) == 2:
            seen.add(pair)
            if ordered.index(first) > ordered.index(second):
                ordered.remove(first)
                ordered.insert(ordered.index(second), first)
    return ordered


def _base(graph: Graph, node: int) -> int:
    """Return the base of a power, the operand of a negation, and any other node itself."""
    return graph.arguments(node)[0] if graph.primitive(node) in (negative, power) else node


def _with_decimals(form: Any) -> Any:
    """Return an expression with decimals for the fractions that no one would write."""
    sympy = require("sympy")
    decimals = {
        number: sympy.Float(_decimal(float(number)))
        for number in form.atoms(sympy.Rational)
        if len(f"{abs(number.p)}{number.q}") > FRACTION
    }
    return form.xreplace(decimals)


def _decimal(number: float) -> float:
    """Return the decimal of few digits that a number is but for rounding, as of 1.3 - 1."""
    digits = f"{number:.15g}"
    return float(digits) if sum(map(str.isdigit, digits)) <= FRACTION else number


class _SymbolicValues:
    """The values of a function at random points, to many digits."""

    def __init__(self, function: Function, names: Mapping[Any, str]) -> None:
        import mpmath

        self.symbols = list(names)
        rng = np.random.default_rng(SEED)
        points = rng.uniform(0.1, 3.0, (POINTS, len(names)))
        points[POINTS // 4 : POINTS // 2] /= 3.2  # arcsines, probabilities
        points[POINTS // 2 :] *= rng.choice([-1.0, 1.0], (POINTS // 2, len(names)))
        # Neighbouring points lie in different parts of the domain.
        self.points = (
            points.reshape(4, POINTS // 4, len(names)).swapaxes(0, 1).reshape(points.shape)
        )
        self.function = function
        self._exact: dict[int, list[Any]] = {}
        self._mpmath = mpmath

    def first_equal(self, forms: Sequence[Any], element: int) -> Any:
        """Return the first form that has the values of an element.

        Raises
        ------
        UnsupportedError
            None has, or the function has no value at the points.
        """
        with self._mpmath.workdps(DIGITS):
            for form in forms:
                if self._equal(form, element):
                    return _with_decimals(form)
        raise UnsupportedError("no form of it is found to have the same values")

    def earlier(self, element: int) -> int | None:
        """Return an element before this one that has the same values, as of a symmetric matrix."""
        with self._mpmath.workdps(DIGITS):
            for other in range(element):

                def value(k: int, other: int = other) -> Any:
                    return self._at(k)[other]

                if self._same(value, element):
                    return other
        return None

    def _equal(self, form: Any, element: int) -> bool:
        mpf = self._mpmath.mpf
        try:  # it may contain an infinity, or have no value
            compute = require("sympy").lambdify(self.symbols, form, "mpmath")
            return self._same(lambda k: compute(*map(mpf, self.points[k].tolist())), element)
        except FAILURES:
            return False

    def _same(self, value: Callable[[int], Any], element: int) -> bool:
        """Return whether the values at the points by number are those of an element."""
        kinds, compared = (int, self._mpmath.mpf), 0
        for k in range(POINTS):
            exact = self._at(k)[element]
            if not (isinstance(exact, kinds) and self._mpmath.isfinite(exact)):
                continue
            if not abs(value(k) - exact) <= AGREE * max(abs(exact), SMALL):
                return False
            compared += 1
            if compared == COMPARED:
                return True
        return False

    def _at(self, k: int) -> list[Any]:
        """Return the exact elements of the outputs at a point."""
        if k not in self._exact:
            try:
                self._exact[k] = exact_elements(self.function, self.points[k])
            except (ArithmeticError, ValueError):
                self._exact[k] = [self._mpmath.nan] * self.function.m
        return self._exact[k]
