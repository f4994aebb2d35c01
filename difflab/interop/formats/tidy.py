"""Functions as SymPy's expressions in the form in which a paper prints them.

A product is one fraction with its powers collected, decimals such as 0.5 are fractions, and
trigonometric functions have their usual derivatives. How such a form computes in float64 does not
matter here; that it is equal is checked with many digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from difflab.core.optional import require
from difflab.errors import UnsupportedError
from difflab.graph.counts import count
from difflab.graph.evaluate import fold
from difflab.graph.function import Function
from difflab.graph.interpreters import MpmathInterpreter
from difflab.interop.formats.algebra import DYADIC, attempted, expressions

__all__ = ["TREE_LIMIT", "TidyFunction", "tidied"]

TREE_LIMIT = 3000
"""Nodes of a function's tree beyond which it is printed as it is computed."""
CANCELLED = 120
"""Operations of SymPy up to which a term is cancelled and factored."""
SIMPLIFIED = 40
"""Operations up to which all of SymPy's simplifications are tried."""
FRACTION = 12
"""Digits of a fraction beyond which it is the float64 of a decimal, and written as that."""
EXPONENT = 6
"""The largest power of a sum that is expanded in search of common factors."""
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


def tidied(function: Function) -> TidyFunction:
    """Return a function as expressions that a paper would print.

    Each is the shortest of the forms that SymPy finds and whose value is that of the function at
    random points, to 30 digits.

    Parameters
    ----------
    function : Function
        Any function of which SymPy has the operations.

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
    >>> found = tidied(dl.partial(dl.parse("sqrt(x^2 + y^2)*cot(y)"), "x"))
    >>> {str(symbol): name for symbol, name in found.names.items()}
    {'v0_': 'x', 'v1_': 'y'}
    >>> found.outputs[0]
    v0_*cot(v1_)/sqrt(v0_**2 + v1_**2)
    """
    size = count(function).tree
    if size > TREE_LIMIT:
        raise UnsupportedError(f"it has more than {TREE_LIMIT:,} nodes when written out")
    symbols, names = _symbols(function)
    originals = expressions(function, symbols, exact=True)
    values = _Values(function, names)
    chosen = [values.first_equal(_sorted_forms(e), k) for k, e in enumerate(originals)]
    outputs, start = [], 0
    for shape in function.output_shapes:
        part = np.empty(shape, dtype=object)
        part.flat = chosen[start : start + part.size]
        start += part.size
        outputs.append(part if shape else part.item())
    return TidyFunction(tuple(outputs), names)


def _symbols(function: Function) -> tuple[list[Any], dict[Any, str]]:
    """Return a symbol for each input, or an array of them, and what each is called.

    SymPy sorts the symbols as the inputs appear in the formula.
    """
    sympy = require("sympy")
    order = np.argsort(np.argsort(function.input_nodes))
    width = len(str(len(order)))
    found: list[Any] = []
    names: dict[Any, str] = {}
    for k, (name, shape) in enumerate(zip(function.inputs, function.input_shapes, strict=True)):
        part = np.empty(shape, dtype=object)
        for position, index in enumerate(np.ndindex(shape)):
            label = f"v{order[k]:0{width}}_" + (f"{position:06}_" if shape else "")
            part[index] = sympy.Symbol(label, real=True)
            names[part[index]] = "_".join(filter(None, (name, ",".join(map(str, index)))))
        found.append(part if shape else part.item())
    return found, names


def _sorted_forms(expression: Any) -> list[Any]:
    """Return forms of an expression, of its own functions only, the shortest first."""
    masked, exponents = _without_large_exponents(expression)
    found = [masked, *_forms(masked)]
    found += [form for each in found if (form := _own_functions(each)) != each]
    whole = dict.fromkeys(form.xreplace(exponents) for form in found)
    return sorted((form for form in whole if _kinds(form) <= _kinds(expression)), key=_cost)


def _kinds(expression: Any) -> set[Any]:
    """Return the functions in an expression, with one of a family all of them."""
    sympy = require("sympy")
    found = {type(call) for call in expression.atoms(sympy.Function)}
    return found.union(*(family for family in _families() if found.intersection(family)))


def _without_large_exponents(expression: Any) -> tuple[Any, dict[Any, Any]]:
    """Return an expression with symbols for the exponents that SymPy must not multiply out.

    Those are 99 of a sum, and 0.1, which as a float64 is a fraction with a large denominator.
    """
    sympy = require("sympy")
    found: dict[Any, Any] = {}
    for power in expression.atoms(sympy.Pow):
        exponent = power.exp
        if exponent.is_Rational and (
            exponent.q > DYADIC or abs(exponent) > (EXPONENT if power.base.is_Add else DYADIC)
        ):
            found.setdefault(exponent, sympy.Dummy(real=True, integer=exponent.is_Integer))
    masked = expression.replace(
        lambda e: e.is_Pow and e.exp in found, lambda e: e.base ** found[e.exp]
    )
    return masked, {symbol: exponent for exponent, symbol in found.items()}


def _forms(expression: Any) -> list[Any]:
    """Return forms of an expression, those of its parts if it is too large for a search."""
    sympy = require("sympy")
    size = sympy.count_ops(expression)
    if size > CANCELLED:
        parts = _by_variables(expression) if expression.is_Add else [expression]
        if len(parts) == 1:
            return list(attempted(expression, [sympy.factor_terms]))
        return [sympy.Add(*(_shortest(part) for part in parts))]
    ways = [sympy.factor_terms, sympy.together, sympy.cancel, sympy.factor]
    if expression.has(*sum(_families(), ())):
        ways.append(sympy.trigsimp)
    if size <= SIMPLIFIED:
        ways += [sympy.simplify, lambda e: sympy.powsimp(sympy.cancel(e))]
    return list(attempted(expression, ways))


def _by_variables(total: Any) -> list[Any]:
    """Return the parts of a sum, each with the terms of the same variables."""
    sympy = require("sympy")
    groups: dict[Any, list[Any]] = {}
    for term in total.args:
        groups.setdefault(frozenset(term.free_symbols), []).append(term)
    return [sympy.Add(*terms) for terms in groups.values()]


def _shortest(expression: Any) -> Any:
    sympy = require("sympy")
    return min([expression, *_forms(expression)], key=sympy.count_ops)


def _cost(form: Any) -> tuple[int, int, int]:
    """Return what is least for the form to print: quotients of sine and cosine count twice."""
    sympy = require("sympy")
    families = _families()
    divided = [
        power
        for power in form.atoms(sympy.Pow)
        if power.exp.could_extract_minus_sign() and isinstance(power.base, sum(families, ()))
    ]
    return sympy.count_ops(form) + len(divided), len(divided), len(str(form))


@cache
def _families() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return sine and cosine, tangent and cotangent, secant and cosecant, and the hyperbolic."""
    sympy = require("sympy")
    return (
        (sympy.sin, sympy.cos, sympy.tan, sympy.cot, sympy.sec, sympy.csc),
        (sympy.sinh, sympy.cosh, sympy.tanh, sympy.coth, sympy.sech, sympy.csch),
    )


def _own_functions(expression: Any) -> Any:
    """Return an expression with tan, sec and their kin for quotients of sines and cosines."""
    for family in _families():
        expression = expression.replace(
            lambda e: e.is_Mul or e.is_Pow, partial(_quotients, family=family)
        )
    return expression


# The exponents of sine and cosine in each function of a family.
_EXPONENTS = ((1, 0), (0, 1), (1, -1), (-1, 1), (0, -1), (-1, 0))


def _quotients(product: Any, family: tuple[Any, ...]) -> Any:
    """Return a product with sineᵃ·cosineᵇ in the usual form, where an exponent is negative."""
    sine, cosine, tangent, cotangent, secant, cosecant = family
    exponents: dict[Any, list[int]] = {}
    others = []
    for factor in product.as_ordered_factors():
        base, exponent = factor.as_base_exp()
        if isinstance(base, family) and exponent.is_Integer:
            both = exponents.setdefault(base.args[0], [0, 0])
            for k, each in enumerate(_EXPONENTS[family.index(type(base))]):
                both[k] += each * int(exponent)
        else:
            others.append(factor)
    for angle, (a, b) in exponents.items():
        shared = max(min(a, -b), 0), max(min(-a, b), 0)
        a, b = a - shared[0] + shared[1], b + shared[0] - shared[1]
        others += [tangent(angle) ** shared[0], cotangent(angle) ** shared[1]]
        others += [sine(angle) ** a if a > 0 else cosecant(angle) ** -a]
        others += [cosine(angle) ** b if b > 0 else secant(angle) ** -b]
    return require("sympy").Mul(*others)


def _with_decimals(form: Any) -> Any:
    """Return an expression with decimals for the fractions that no one would write."""
    sympy = require("sympy")
    decimals = {
        number: sympy.Float(float(number))
        for number in form.atoms(sympy.Rational)
        if len(f"{abs(number.p)}{number.q}") > FRACTION
    }
    return form.xreplace(decimals)


class _Values:
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

    def _equal(self, form: Any, element: int) -> bool:
        sympy, mpmath = require("sympy"), self._mpmath
        compute = sympy.lambdify(self.symbols, form, "mpmath")
        compared = 0
        for k, point in enumerate(self.points):
            exact = self._at(k)[element]
            if not isinstance(exact, (int, mpmath.mpf)) or not mpmath.isfinite(exact):
                continue
            try:
                value = compute(*map(mpmath.mpf, map(float, point)))
            except (ArithmeticError, ValueError, TypeError, NameError, AttributeError):
                return False
            if not abs(value - exact) <= AGREE * max(abs(exact), SMALL):
                return False
            compared += 1
            if compared == COMPARED:
                return True
        return False

    def _at(self, k: int) -> list[Any]:
        """Return the exact elements of the outputs at a point."""
        mpmath, function = self._mpmath, self.function
        if k not in self._exact:
            try:
                outputs = fold(
                    function.graph, self._inputs(k), function.outputs, MpmathInterpreter()
                )
            except (ArithmeticError, ValueError):
                outputs = [np.full(shape, mpmath.nan) for shape in function.output_shapes]
            self._exact[k] = [e for out in outputs for e in np.asarray(out, dtype=object).ravel()]
        return self._exact[k]

    def _inputs(self, k: int) -> dict[int, Any]:
        """Return the value of each input node at a point: a number, or an array of numbers."""
        function, found, start = self.function, {}, 0
        numbers = np.array([self._mpmath.mpf(float(x)) for x in self.points[k]], dtype=object)
        for node, shape in zip(function.input_nodes, function.input_shapes, strict=True):
            part = numbers[start : start + math.prod(shape)]
            start += len(part)
            found[node] = part.reshape(shape) if shape else part[0]
        return found
