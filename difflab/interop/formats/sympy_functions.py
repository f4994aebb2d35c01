"""The functions of SymPy that a row of the table, or a composition of rows, is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np

from difflab import arrays
from difflab import primitives as rows
from difflab.arrays import trigonometric
from difflab.errors import InputError
from difflab.graph.node import Node
from difflab.primitives import TABLE

Rule = Callable[..., Any]
"""Called with the reader, an expression and the values of its arguments."""


def function_rules(sympy: Any) -> Iterator[tuple[type, Rule]]:
    """Yield classes of SymPy and how they are read."""
    for row in TABLE.values():
        kind = getattr(sympy, row.sympy, None) if isinstance(row.sympy, str) else None
        if isinstance(kind, type):
            folded = issubclass(kind, sympy.core.operations.LatticeOp)
            yield kind, _folded(row) if folded else _of(row, row.arity)
    for symbol, name in _RELATIONS.items():
        yield getattr(sympy, symbol), _of(TABLE[name], 2)
    for name in trigonometric.__all__:
        yield getattr(sympy, name), _of(getattr(arrays, name), 1)
    for module, functions in _compositions(sympy):
        for name, (compute, *counts) in functions.items():
            if hasattr(module, name):  # some are in later versions only
                yield getattr(module, name), _of(compute, *counts)


_RELATIONS = {
    "Eq": "equal",
    "Ne": "not_equal",
    "Lt": "less",
    "Le": "less_equal",
    "Gt": "greater",
    "Ge": "greater_equal",
}


def _folded(function: Callable[..., Node]) -> Rule:
    """Return the rule that applies a function to one pair after another."""
    return lambda reader, _, *values: reduce(function, values)


def _of(function: Callable[..., Any], *counts: int | None) -> Rule:
    """Return the rule that applies a function with one of several arities."""

    def rule(reader: Any, expression: Any, *values: Node) -> Any:
        if len(values) not in counts:
            raise InputError(
                f"difflab has no counterpart of SymPy's {type(expression).__name__} "
                f"with {len(values)} arguments: {expression}"
            )
        return function(*values)

    return rule


def _exponential_integral(order: Node, x: Node) -> Any:
    """Return E1; those of other orders have no row."""
    value, _ = order.builder.constants.get(order.id, (None, None))
    if value != 1:
        raise InputError("difflab reads SymPy's expint of the order 1", hint="expand_func(…)")
    return rows.e1(x)


def _regularized(a: Node, b: Node, low: Node, high: Node) -> Any:
    """Return the integral of the beta distribution's density between two limits."""
    value, _ = low.builder.constants.get(low.id, (None, None))
    upper = rows.betainc(a, b, high)
    return upper if value == 0 else upper - rows.betainc(a, b, low)


def _spherical(bessel: Rule) -> Rule:
    return lambda n, x: rows.sqrt(np.pi / (2 * x)) * bessel(n + 0.5, x)


_SPECIAL: Mapping[str, tuple[Any, ...]] = {
    "betainc": (lambda a, b, low, high: rows.beta(a, b) * _regularized(a, b, low, high), 4),
    "betainc_regularized": (_regularized, 4),
    "conjugate": (lambda x: x, 1),
    "dirichlet_eta": (lambda s: -rows.expm1((1 - s) * np.log(2.0)) * rows.zeta(s, 1), 1),
    "erf2": (lambda x, y: rows.erf(y) - rows.erf(x), 2),
    "erfcinv": (rows.erfcinv, 1),
    "expint": (_exponential_integral, 2),
    "frac": (lambda x: x - rows.floor(x), 1),
    "harmonic": (lambda n: rows.digamma(n + 1) + np.euler_gamma, 1),
    "im": (lambda x: 0 * x, 1),
    "jn": (_spherical(rows.besselj), 2),
    "li": (lambda x: rows.ei(rows.log(x)), 1),
    "lowergamma": (lambda s, x: rows.gamma(s) * rows.gammainc(s, x), 2),
    "re": (lambda x: x, 1),
    "sinc": (lambda x: rows.cos_remainder(1, 0, x), 1),
    "trigamma": (lambda x: rows.polygamma(1, x), 1),
    "UnevaluatedExpr": (lambda x: x, 1),
    "uppergamma": (lambda s, x: rows.gamma(s) * rows.gammaincc(s, x), 2),
    "Xor": (np.logical_xor, 2),
    "yn": (_spherical(rows.bessely), 2),
    "zeta": (lambda s, q=1: rows.zeta(s, q), 1, 2),
}
"""Functions of real numbers, and their numbers of arguments."""
_C99: Mapping[str, tuple[Any, ...]] = {
    "Cbrt": (rows.cbrt, 1),
    "Sqrt": (rows.sqrt, 1),
    "exp2": (rows.exp2, 1),
    "expm1": (rows.expm1, 1),
    "hypot": (rows.hypot, 2),
    "isinf": (np.isinf, 1),
    "isnan": (np.isnan, 1),
    "log10": (rows.log10, 1),
    "log1p": (rows.log1p, 1),
    "log2": (rows.log2, 1),
}
_NUMPY: Mapping[str, tuple[Any, ...]] = {
    "logaddexp": (rows.logaddexp, 2),
    "logaddexp2": (np.logaddexp2, 2),
}
_SCIPY: Mapping[str, tuple[Any, ...]] = {"cosm1": (lambda x: -rows.versine(x), 1)}


def _compositions(sympy: Any) -> Iterator[tuple[Any, Mapping[str, tuple[Any, ...]]]]:
    """Yield modules of SymPy, some for its code printers, and the rules for their functions."""
    from sympy.codegen import cfunctions, numpy_nodes, scipy_nodes

    yield sympy, _SPECIAL
    yield cfunctions, _C99
    yield numpy_nodes, _NUMPY
    yield scipy_nodes, _SCIPY
