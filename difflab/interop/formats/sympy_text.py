"""Expressions of SymPy as text of the language, in the order in which people write them.

A product is one fraction: its sign and its number first, then powers of symbols, then all other
factors; roots of numbers are one root. A sum begins with a term that is not subtracted.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from difflab.core.optional import require

__all__ = ["sympy_text"]


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
    sympy = require("sympy")
    from sympy.printing.precedence import PRECEDENCE
    from sympy.printing.str import StrPrinter

    class LanguagePrinter(StrPrinter):  # type: ignore[misc]
        """Expressions in the language of difflab."""

        def _as_ordered_terms(self, expression: Any, order: Any = None) -> list[Any]:
            terms = super()._as_ordered_terms(expression, order=order)
            return sorted(terms, key=lambda term: term != self._leading(terms))

        def _leading(self, terms: list[Any]) -> Any:
            added = (t for t in terms if not t.could_extract_minus_sign())
            return next(added, terms[0])

        def _print_Mul(self, product: Any) -> str:
            number, rest = product.as_coeff_Mul()
            factors, root = [], sympy.S.One
            for factor in sorted(rest.as_ordered_factors(), key=self._is_compound):
                base, exponent = factor.as_base_exp()
                if abs(exponent) == sympy.S.Half and (base.is_Integer or base is sympy.pi):
                    root *= base ** (2 * exponent)
                else:
                    content, factor = factor.primitive() if factor.is_Add else (1, factor)
                    number *= content
                    factors.append((factor, base, exponent))
            above, below = self._numbers(abs(number), root)
            for factor, base, exponent in factors:
                if exponent.is_Rational and exponent < 0:
                    below.append(self._factor(base**-exponent))
                else:
                    above.append(self._factor(factor))
            sign, text = "-" if number < 0 else "", "*".join(above) or "1"
            if len(below) == 1 and "*" not in below[0].replace("**", ""):
                return f"{sign}{text}/{below[0]}"
            return f"{sign}{text}/({'*'.join(below)})" if below else sign + text

        def _is_compound(self, factor: Any) -> bool:
            """Whether it is no power of a symbol, and is written behind those."""
            base, exponent = factor.as_base_exp()
            return not (base.is_Atom and exponent.is_Integer)

        def _factor(self, factor: Any) -> str:
            return str(self.parenthesize(factor, PRECEDENCE["Mul"]))

        def _numbers(self, number: Any, root: Any) -> tuple[list[str], list[str]]:
            """Return the numbers above and below of number·√root, with one root."""
            above, below = number.as_numer_denom()
            over, under = root.as_numer_denom()
            part = over.as_coeff_Mul()[0]
            if part > 1 and below % part == 0:  # √2/2 is 1/√2
                below, over, under = below / part, over / part, under * part
            numbers = [above] if above != 1 else [], [below] if below != 1 else []
            roots = ([over / under], []) if over != 1 else ([], [under] if under != 1 else [])
            return tuple(
                [self._factor(n) for n in plain] + [f"sqrt({self._print(r)})" for r in rooted]
                for plain, rooted in zip(numbers, roots, strict=True)
            )

        def _print_Pow(self, power: Any, rational: bool = False) -> str:
            if power.exp.is_Rational and power.exp < 0:
                return str(self._print_Mul(power))
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
            *cases, (last, _) = expression.args
            text = str(self._print(last))
            for value, condition in reversed(cases):
                text = f"where({self._print(condition)}, {self._print(value)}, {text})"
            return text

    return LanguagePrinter()
