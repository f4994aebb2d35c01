"""Sizes of SymPy's expressions, counted without walking their trees.

Imported only in the process of the symbolic method.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import sympy
from sympy.core.function import _coeff_isneg
from sympy.core.operations import LatticeOp

from difflab.methods.symbolic.method import Sizes


def sizes(expressions: list[Any], replacements: list[tuple[Any, Any]], reduced: list[Any]) -> Sizes:
    """Return the sizes of `expressions`, given the results of `sympy.cse`."""
    operations, leaves = tree_size(expressions)
    shared, shared_leaves = dag_size(replacements, reduced)
    return Sizes(operations + leaves, shared + shared_leaves, operations, shared)


def distinct(expressions: Iterable[Any]) -> Iterator[Any]:
    """Yield every distinct subexpression once."""
    seen = set(expressions)
    stack = list(seen)
    while stack:
        expression = stack.pop()
        yield expression
        fresh = set(expression.args) - seen
        seen |= fresh
        stack.extend(fresh)


def tree_size(expressions: Iterable[Any]) -> tuple[int, int]:
    """Return the operations and the leaves of all expressions written out as trees.

    The operations are `sympy.count_ops`, but found in time linear in the distinct
    subexpressions. SymPy's own function walks the tree, which may be exponentially larger than
    the expressions in memory.

    Examples
    --------
    >>> x = sympy.Symbol("x")
    >>> tree_size([x**2 - sympy.sin(x), sympy.Integer(3)])
    (3, 4)
    """
    known: dict[Any, tuple[int, int]] = {}
    parts: dict[Any, tuple[int, int, list[Any]]] = {}
    wanted = list(expressions)
    stack = list(wanted)
    while stack:
        expression = stack[-1]
        if expression in known:
            stack.pop()
            continue
        if expression not in parts:
            parts[expression] = _taken_apart(expression)
        operations, leaves, operands = parts[expression]
        waiting = [operand for operand in operands if operand not in known]
        if waiting:
            stack.extend(waiting)
            continue
        known[expression] = (
            operations + sum(known[operand][0] for operand in operands),
            leaves + sum(known[operand][1] for operand in operands),
        )
        stack.pop()
    found = [known[expression] for expression in wanted]
    return sum(operations for operations, _ in found), sum(leaves for _, leaves in found)


def dag_size(replacements: Iterable[tuple[Any, Any]], reduced: Iterable[Any]) -> tuple[int, int]:
    """Return the operations and the distinct leaves of what `sympy.cse` returned."""
    pairs = list(replacements)
    expressions = [*(shared for _, shared in pairs), *reduced]
    operations, _ = tree_size(expressions)
    temporaries = {symbol for symbol, _ in pairs}
    leaves = sum(not e.args and e not in temporaries for e in distinct(expressions))
    return operations, leaves


def _taken_apart(a: Any) -> tuple[int, int, list[Any]]:
    """Return the operations and leaves of `a` itself, and its operands.

    `sympy.count_ops` decides what an operation is: ``a - b`` is one, and so is ``1/x``.
    """
    if a.is_Rational:
        return (0 if a is sympy.S.One else int(a.p < 0) + int(a.q != 1)), 1, []
    operations = 0
    if a.is_Mul:
        if _coeff_isneg(a):
            operations += 1
            a = a.as_two_terms()[1] if a.args[0] is sympy.S.NegativeOne else -a
        top, bottom = sympy.fraction(a)
        if top.is_Integer:
            return operations + 1 + int(top.p < 0), 1, [bottom]
        if bottom is not sympy.S.One:
            return operations + 1, 0, [top, bottom]
    elif a.is_Add:
        return _sum_taken_apart(a)
    if a.is_Pow and a.exp is sympy.S.NegativeOne:
        return operations + 1, 1, [a.base]
    if a.is_Pow and a.base == sympy.S.Exp1:
        return operations + 1, 0, [a.exp]
    if not a.args:
        return operations + int(a == sympy.S.Exp1), 1, []
    if a.is_Mul or isinstance(a, LatticeOp):
        operations += len(a.args) - 1
    elif a.is_Pow or a.is_Function:
        operations += 1
    return operations, 0, list(a.args)


def _sum_taken_apart(a: Any) -> tuple[int, int, list[Any]]:
    """Count a sum's signs: ``-x - y`` is a negation and a subtraction, ``y - x`` only the last."""
    negative = [_coeff_isneg(term) for term in a.args]
    operands = [-term if below else term for term, below in zip(a.args, negative, strict=True)]
    return len(operands) - 1 + int(all(negative)), 0, operands
