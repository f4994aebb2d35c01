"""Functions as expressions of SymPy, and equal forms: of them the one that a paper prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from difflab.core.optional import require
from difflab.errors import UnsupportedError
from difflab.graph.evaluate import fold
from difflab.graph.function import Function
from difflab.graph.interpreters import SympyInterpreter
from difflab.graph.ir import Number

DYADIC = 1024
"""The largest denominator of a decimal constant that becomes a fraction, which is exact."""
LARGEST = 300
"""Operations of SymPy beyond which its costly searches are not tried."""

FAILURES = (
    *(ArithmeticError, AttributeError, LookupError, NameError, NotImplementedError),
    *(RecursionError, TypeError, ValueError),
)
"""What SymPy raises where it has no result."""


def ordered_symbols(function: Function) -> list[Any]:
    """Return a symbol for each input, which SymPy sorts as the inputs appear in the formula.

    Raises
    ------
    UnsupportedError
        An input is an array, or there is none.
    """
    sympy = require("sympy")
    for name, shape in zip(function.inputs, function.input_shapes, strict=True):
        if shape:
            raise UnsupportedError(
                f"SymPy simplifies formulas of numbers, and {name!r} is an array"
            )
    if not function.inputs:
        raise UnsupportedError("the formula has no variable")
    nodes = sorted(function.input_nodes)
    width = len(str(len(nodes)))
    # Names that SymPy and the language have no meaning for.
    return [
        sympy.Symbol(f"v{nodes.index(node):0{width}}_", real=True) for node in function.input_nodes
    ]


def expressions(function: Function, symbols: Sequence[Any], *, exact: bool = False) -> list[Any]:
    """Return the flattened outputs as expressions of SymPy, with fractions for 0.5 and its like.

    Parameters
    ----------
    function : Function
    symbols : sequence
        A symbol for each input, or an array of symbols.
    exact : bool
        Whether every decimal becomes a fraction, of the float64 it is.

    Raises
    ------
    UnsupportedError
        SymPy cannot express an operation.
    """
    sympy = require("sympy")
    outputs = outputs_of(function, symbols, _Fractions() if exact else SympyInterpreter())
    flat = [entry for output in outputs for entry in np.asarray(output, dtype=object).ravel()]
    return [_with_fractions(sympy.sympify(entry)) for entry in flat]


def outputs_of(
    function: Function, symbols: Sequence[Any], interpreter: SympyInterpreter
) -> list[Any]:
    """Return the outputs as SymPy's expressions, or arrays of them; see `expressions`."""
    environment = dict(zip(function.input_nodes, symbols, strict=True))
    try:
        return fold(function.graph, environment, function.outputs, interpreter)
    except FAILURES as error:
        why = str(error)
        if "truth value of Relational" in why:
            why = "the number of steps of a loop depends on a variable"
        raise UnsupportedError(f"SymPy cannot express this function: {why}") from error


class _Fractions(SympyInterpreter):
    """Interpreter whose finite constants are the exact fractions of their float64 values."""

    def constant(self, value: Number, name: str | None) -> Any:
        if name or not math.isfinite(value):
            return super().constant(value, name)
        return self.sympy.Rational(*float(value).as_integer_ratio())


def _with_fractions(expression: Any) -> Any:
    """Return an expression with constants such as 0.5 as fractions, which SymPy can cancel."""
    sympy = require("sympy")
    fractions = {
        number: sympy.Rational(*ratio)
        for number in expression.atoms(sympy.Float)
        if number.is_finite and (ratio := float(number).as_integer_ratio())[1] <= DYADIC
    }
    return expression.xreplace(fractions)


def equal_forms(expression: Any) -> Iterator[Any]:
    """Yield forms of an expression, the costly ones only of a small one."""
    sympy = require("sympy")
    ways: list[Callable[[Any], Any]] = [sympy.factor_terms, sympy.cancel, sympy.together]
    if sympy.count_ops(expression) <= LARGEST:
        ways += [sympy.factor, sympy.simplify, lambda e: sympy.powsimp(sympy.cancel(e))]
    yield expression
    yield from attempted(expression, ways)


def attempted(expression: Any, ways: Sequence[Callable[[Any], Any]]) -> Iterator[Any]:
    """Yield the expression rewritten by each of the functions that do not fail."""
    sympy = require("sympy")
    for way in ways:
        try:
            yield way(expression)
        except (sympy.PolynomialError, *FAILURES):
            continue


# --- the shortest of equal forms --------------------------------------------------------------

CANCELLED = 120
"""Operations of SymPy up to which a term is cancelled and factored."""
INNER = 5
"""Operations that a fraction inside a fraction is worth."""
FACTORED = 3
"""Operations that a fraction inside a factor is worth."""
EXPANDED = 500
"""Terms up to which an expression is multiplied out in search of common factors."""
EXPONENT = 6
"""The largest power of a sum that is expanded in search of common factors."""


def sorted_forms(expression: Any) -> list[Any]:
    """Return forms of an expression, of its own functions only, the shortest first."""
    masked, constants = _without_large_numbers(_without_squared_signs(expression))
    forms = [masked, *_forms(masked)]
    forms += list(map(_own_functions, forms))
    forms += list(map(_paired_squares, forms))
    forms += [require("sympy").powsimp(form, combine="exp") for form in forms]
    forms += list(map(_without_minus, forms))
    whole = dict.fromkeys(form.xreplace(constants) for form in forms)
    return sorted((form for form in whole if _kinds(form) <= _kinds(expression)), key=_cost)


def _kinds(expression: Any) -> set[Any]:
    """Return the functions in an expression, with one of a family all of them."""
    sympy = require("sympy")
    kinds = {type(call) for call in expression.atoms(sympy.Function)}
    return kinds.union(*(family for family in _families() if kinds.intersection(family)))


def _without_squared_signs(expression: Any) -> Any:
    """Return an expression with 1 for sign(x)², which it is but at 0."""
    sympy = require("sympy")
    return expression.replace(
        lambda e: e.is_Pow and isinstance(e.base, sympy.sign) and e.exp.is_even, lambda e: 1
    )


def _without_minus(product: Any) -> Any:
    """Return a product with y - x for x - y, if that takes a minus from it."""
    for factor in product.args if product.is_Mul and product.could_extract_minus_sign() else ():
        if factor.is_Add:
            return (-product / factor) * require("sympy").Add(*(-term for term in factor.args))
    return product


def _without_large_numbers(expression: Any) -> tuple[Any, dict[Any, Any]]:
    """Return an expression with symbols for large constants, which SymPy must not multiply out.

    Those are 99 as the exponent of a sum, and 0.1, which as a float64 is a fraction with a large
    denominator: exp(0.1*x) would be a power of that order, and common factors of such numbers are
    powers of 2 that no one wrote.
    """
    sympy = require("sympy")
    decimals = {
        abs(number): sympy.Dummy(positive=True)
        for number in expression.atoms(sympy.Rational)
        if number.q > DYADIC
    }
    signed = {sign * number: sign * decimals[number] for number in decimals for sign in (1, -1)}
    expression = expression.xreplace(signed)
    exponents: dict[Any, Any] = {}
    for power in expression.atoms(sympy.Pow):
        exponent = power.exp
        if exponent.is_Rational and abs(exponent) > (EXPONENT if power.base.is_Add else DYADIC):
            exponents.setdefault(exponent, sympy.Dummy(real=True, integer=exponent.is_Integer))
    masked = expression.replace(
        lambda e: e.is_Pow and e.exp in exponents, lambda e: e.base ** exponents[e.exp]
    )
    constants = {symbol: number for number, symbol in decimals.items()}
    return masked, constants | {symbol: exponent for exponent, symbol in exponents.items()}


def _forms(expression: Any) -> list[Any]:
    """Return forms of an expression, those of its parts if it is too large for a search."""
    sympy = require("sympy")
    size = sympy.count_ops(expression)
    if size > CANCELLED:
        parts = _by_variables(expression) if expression.is_Add else [expression]
        if len(parts) == 1:
            return list(attempted(expression, [sympy.factor_terms]))
        return [sympy.Add(*(_shortest(part) for part in parts))]
    ways = [sympy.factor_terms, sympy.together]
    if _terms(expression) > EXPANDED:
        return list(attempted(expression, ways))
    ways += [
        sympy.cancel,
        sympy.factor,
        lambda e: sympy.powsimp(sympy.cancel(e)),
        partial(sympy.expand_mul, deep=False),
    ]
    if expression.has(sympy.Piecewise):
        ways.append(_simpler_pieces)
    for family in _families():
        if expression.has(*family):
            ways += [sympy.expand_mul]
            ways += [partial(_without_squares, family=family, replaced=k) for k in (0, 1)]
    return list(attempted(expression, ways))


def _terms(expression: Any) -> int:
    """Return how many terms an expression has when it is multiplied out, at most."""
    parts = [_terms(part) for part in expression.args] if expression.args else []
    if expression.is_Add:
        return sum(parts)
    if expression.is_Mul:
        return math.prod(parts)
    if expression.is_Pow and expression.exp.is_Integer:
        return int(parts[0] ** min(abs(int(expression.exp)), EXPANDED))
    return 1


def _without_squares(expression: Any, *, family: tuple[Any, ...], replaced: int) -> Any:
    """Return a fraction whose numerator has no square of the sine, or none of the cosine."""
    sympy = require("sympy")
    replacing, other = family[replaced], family[1 - replaced]
    # sin² = 1 - cos², cos² = 1 - sin², sinh² = cosh² - 1, cosh² = 1 + sinh²
    number, sign = {sympy.sinh: (-1, 1), sympy.cosh: (1, 1)}.get(replacing, (1, -1))
    for function, (a, b) in zip(family[2:], _EXPONENTS[2:], strict=True):
        expression = expression.replace(
            function, lambda x, a=a, b=b: family[0](x) ** a * family[1](x) ** b
        )
    above, below = sympy.fraction(sympy.together(expression))
    above = sympy.expand(above).replace(
        lambda e: e.is_Pow and isinstance(e.base, replacing) and e.exp.is_Integer and e.exp > 1,
        lambda e: (
            (number + sign * other(*e.base.args) ** 2) ** (e.exp // 2) * e.base ** (e.exp % 2)
        ),
    )
    return sympy.factor(sympy.cancel(above / below))


def _simpler_pieces(expression: Any) -> Any:
    """Return an expression with one piece for two that agree where one of them is a point."""
    sympy = require("sympy")
    return expression.replace(sympy.Piecewise, lambda *pieces: sympy.Piecewise(*pieces).simplify())


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


def _cost(form: Any) -> tuple[int, int]:
    """Return the sort key of a form; the least one is printed.

    It counts operations; a power of a sine or cosine that divides once more, since tangents and
    secants stand for those; and a fraction inside a fraction as several.
    """
    sympy = require("sympy")
    sines = tuple(function for family in _families() for function in family[:2])
    penalty = 0
    for part in sympy.preorder_traversal(form):
        if part.is_Pow and _divides(part):
            penalty += isinstance(part.base, sines)
        if part.is_Mul or part.is_Pow:
            weight = INNER if _is_fraction(part) else FACTORED
            penalty += weight * sum(map(_fractions, _sums(part)))
    return sympy.count_ops(form) + penalty, len(str(form))


def _divides(factor: Any) -> bool:
    return bool(factor.is_Pow and factor.exp.is_Rational and factor.exp < 0)


def _is_fraction(product: Any) -> bool:
    """Whether a product is written as a fraction with an expression below."""
    return any(map(_divides, require("sympy").Mul.make_args(product)))


def _sums(product: Any) -> list[Any]:
    """Return the sums that are factors of a product, or below it."""
    factors = (factor.as_base_exp()[0] for factor in require("sympy").Mul.make_args(product))
    return [base for base in factors if base.is_Add]


def _fractions(total: Any) -> int:
    """Count the fractions among the terms of a sum, and in their factors."""
    return sum(
        1 if _is_fraction(term) else sum(map(_fractions, _sums(term))) for term in total.args
    )


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


def _paired_squares(expression: Any) -> Any:
    """Return an expression with a·sec² for a·tan² + a, and the other three of this kind."""
    return expression.replace(lambda e: e.is_Add, _without_pairs)


def _without_pairs(total: Any) -> Any:
    """Return a sum with one term for a square of a tangent and the term of the same factors."""
    sympy = require("sympy")
    terms = dict.fromkeys(total.args)
    for term in total.args:
        for factor in sympy.Mul.make_args(term):
            base, exponent = factor.as_base_exp()
            if exponent != 2 or type(base) not in (squares := _squares()):
                continue
            square, other, sign = squares[type(base)]
            rest = term / factor
            if term in terms and other * rest in terms:
                del terms[term], terms[other * rest]
                terms[sign * rest * square(*base.args) ** 2] = None
    return sympy.Add(*terms)


@cache
def _squares() -> dict[Any, tuple[Any, int, int]]:
    """Return f → (g, a, b) with f² + a = b·g²."""
    sympy = require("sympy")
    return {
        sympy.tan: (sympy.sec, 1, 1),
        sympy.cot: (sympy.csc, 1, 1),
        sympy.tanh: (sympy.sech, -1, -1),
        sympy.coth: (sympy.csch, -1, 1),
    }
