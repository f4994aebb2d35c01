"""Expressions of SymPy as text of the language, in the order in which people write them.

A product is one fraction: its sign and its number first, then powers of symbols, then all other
factors; roots of numbers are one root. A sum begins with a term that is not subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from difflab.core.optional import require


def sympy_text(expression: Any) -> str:
    """Return an expression of SymPy as text of the language.

    Examples
    --------
    >>> import sympy
    >>> x, mu, sigma = sympy.symbols("x mu sigma")
    >>> sympy_text(sympy.exp(-(x - mu)**2/2)*(x - 1)/sympy.sqrt(2*sympy.pi)/sigma)
    '(x - 1)*exp(-(x - mu)**2/2)/(sqrt(2*pi)*sigma)'
    >>> sympy_text(2**(-x)*(6 - 2*x)*3)
    '6*2**(-x)*(3 - x)'
    >>> sympy_text(sympy.sqrt(x)*mu**2*x**(mu - 1)/sympy.sqrt(2))
    'mu**2*sqrt(x)*x**(mu - 1)/sqrt(2)'
    """
    return str(_printer().doprint(expression))


@cache
def _printer() -> Any:
    """Return SymPy's printer, with products as `fraction` orders them."""
    require("sympy")
    from sympy.printing.precedence import PRECEDENCE
    from sympy.printing.str import StrPrinter

    class LanguagePrinter(StrPrinter):  # type: ignore[misc]
        """Expressions in the language of difflab."""

        def _as_ordered_terms(self, expression: Any, order: Any = None) -> list[Any]:
            return added_first(super()._as_ordered_terms(expression, order=order))

        def _print_Mul(self, product: Any) -> str:
            negative, *sides = fraction(product)
            above, below = (
                [str(self.parenthesize(f, PRECEDENCE["Mul"])) for f in side] for side in sides
            )
            under = f"({'*'.join(below)})" if len(below) > 1 else "".join(below)
            return "-" * negative + ("*".join(above) or "1") + (f"/{under}" if under else "")

        def _print_Pow(self, power: Any, rational: bool = False) -> str:
            if power.exp.is_Rational and power.exp < 0:
                return self._print_Mul(power)
            return str(super()._print_Pow(power, rational=rational))

        def _print_Exp1(self, _: Any) -> str:
            return "e"

        def _print_Abs(self, expression: Any) -> str:
            return f"abs({self._print(expression.args[0])})"

        def _print_Float(self, number: Any) -> str:
            return repr(float(number))

        def _print_Max(self, expression: Any) -> str:
            return f"max({', '.join(map(self._print, expression.args))})"

        def _print_Min(self, expression: Any) -> str:
            return f"min({', '.join(map(self._print, expression.args))})"

        def _print_Piecewise(self, expression: Any) -> str:
            return _choice(expression, self._print)

    return LanguagePrinter()


def added_first(terms: list[Any]) -> list[Any]:
    """Return the terms of a sum, one that is not subtracted first if there is one."""
    added = (term for term in terms if not term.could_extract_minus_sign())
    first = next(added, terms[0])
    return [first, *(term for term in terms if term is not first)]


def fraction(product: Any) -> tuple[bool, list[Any], list[Any]]:
    """Return whether a product or a reciprocal is negative, and its factors above and below."""
    sympy = require("sympy")
    number, rest = product.as_coeff_Mul()
    factors, root = [], sympy.S.One
    for factor in sorted(rest.as_ordered_factors(), key=_is_compound):
        base, exponent = factor.as_base_exp()
        if abs(exponent) == sympy.S.Half and (base.is_Integer or base is sympy.pi):
            root *= base ** (2 * exponent)
        else:
            content, part = factor.primitive() if factor.is_Add else (1, factor)
            number *= content
            factors.append(part)
    above, below = _numbers(abs(number), root)
    for factor in factors:
        base, exponent = factor.as_base_exp()
        if exponent.is_Rational and exponent < 0:
            below.append(base**-exponent)
        else:
            above.append(factor)
    return bool(number < 0), above, below


def _is_compound(factor: Any) -> bool:
    """Whether a factor is no power of a symbol, and is written behind those."""
    base, exponent = factor.as_base_exp()
    return not (base.is_Atom and exponent.is_Integer)


def _numbers(number: Any, root: Any) -> tuple[list[Any], list[Any]]:
    """Return the factors of numerator and denominator of number·√root, with one root."""
    sympy = require("sympy")
    above, below = number.as_numer_denom()
    over, under = root.as_numer_denom()
    if over.is_Integer and over > 1 and below % over == 0:  # √2/2 is 1/√2
        below, over, under = below / over, sympy.S.One, under * over
    over, under = (over, under) if over == 1 else (over / under, 1)
    roots: list[Any] = [
        sympy.Pow(radicand, sympy.S.Half, evaluate=False) for radicand in (over, under)
    ]
    return (
        [above] * (above != 1) + roots[:1] * (over != 1),
        [below] * (below != 1) + roots[1:] * (under != 1),
    )


def _choice(expression: Any, write: Callable[[Any], str]) -> str:
    """Return the text of a function in pieces; ``write(part)`` is a part's text."""
    *cases, (last, condition) = expression.args
    text = write(last)
    if str(condition) != "True":  # nothing is said of the other points
        text = f"where({write(condition)}, {text}, 0/0)"
    for value, condition in reversed(cases):
        text = f"where({write(condition)}, {write(value)}, {text})"
    return text
