"""Stabilisation: rewrite expressions that overflow or cancel.

The rewrites preserve the function of real numbers and change its rounding, so this pass is applied
only on request. The derivative needs no separate rule: it is that of the stable form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Params
from difflab.graph.node import Node
from difflab.graph.rewrite import Args, rewrite
from difflab.primitives import (
    add,
    log,
    multiply,
    subtract,
)
from difflab.stabilisation.exponentials import Exponentials
from difflab.stabilisation.matching import Form, Rule, applied, negated, number
from difflab.stabilisation.rules import LOG1P, LOGARITHM, RATIO, RULES, SQUARES, VARIANCE
from difflab.stabilisation.squares import root_of_squares, variance
from difflab.stabilisation.sums import GraphSums, signed_terms, signed_total


@dataclass(frozen=True)
class Rewrite:
    """One application of a rule.

    Attributes
    ----------
    rule : Rule
        The rule.
    before : int
        The node in the plain graph.
    after : int
        The node in the stabilised graph that replaces it.
    """

    rule: Rule
    before: int
    after: int


def stabilised(
    function: Function, *, rules: Sequence[Rule] = RULES, refused: Collection[int] = ()
) -> tuple[Function, tuple[Rewrite, ...]]:
    """Return the stabilised function and its rewrites.

    The time is linear in the size of the graph: every node is visited once, and a rule examines
    only as many operands as its pattern has.

    Parameters
    ----------
    function : Function
        The function to rewrite.
    rules : sequence of Rule
        The rules; the first that applies is used.
    refused : collection of int
        Nodes of the function's graph that are not rewritten.

    Returns
    -------
    Function, tuple of Rewrite
        The function and the rewrites that it contains, in the order of the plain graph.

    Examples
    --------
    >>> import difflab as dl
    >>> stable, rewrites = stabilised(dl.parse("log(exp(a) + exp(b))"))
    >>> float(stable(1000.0, 1000.0)), rewrites[0].rule.plain
    (1000.6931471805599, 'log(Σeˣ), log(s·eˣ), log(softmax)')
    """
    return _Stabiliser(function, rules, frozenset(refused)).run()


class _Stabiliser:
    """A copy of the graph in progress; each node is rewritten after its operands."""

    def __init__(self, function: Function, rules: Sequence[Rule], refused: frozenset[int]) -> None:
        self.function = function
        self.refused = refused
        self.builder = Builder(function.graph.source)
        # √2 is exact as an operation but rounded as a constant.
        self.builder.folds = False
        self.sums = GraphSums(self.builder)
        self.exponentials = Exponentials(self.builder, self.sums)
        self.rules: dict[Primitive, list[Rule]] = {}
        self.cancelling: set[Primitive | None] = {multiply}  # `x*x` is a power
        for rule in rules:
            for row in rule.roots:
                self.rules.setdefault(row, []).append(rule)
            if rule.compiled is not None and rule.compiled.row.signs == (1, -1):
                self.cancelling |= rule.compiled.operands
        self.rewritten: list[Rewrite] = []
        self.changed: dict[int, Rule] = {}

    def run(self) -> tuple[Function, tuple[Rewrite, ...]]:
        function, builder = self.function, self.builder
        graph = function.graph
        uses = np.bincount([*graph.args, *function.outputs], minlength=len(graph))
        self.uses: list[int] = uses.tolist()
        copied = rewrite(graph, builder, self._copy)
        outputs = [copied[node] for node in function.outputs]
        inputs = [copied[node] for node in function.input_nodes]
        names, structure = function.output_names, function.structure
        stable = Function.build(
            builder, inputs, outputs, names, structure, arguments=function.arguments
        )
        numbers = builder.graph().numbers_after(outputs)
        return stable, tuple(
            Rewrite(applied.rule, applied.before, int(numbers[applied.after]))
            for applied in self.rewritten
            if numbers[applied.after] >= 0
        )

    def _copy(self, builder: Builder, node: int, row: Primitive, args: Args, params: Params) -> int:
        """Append a node of the plain graph, in stable form if a rule applies."""
        plain = builder.emit(row, args, params)
        rule, stable = self._stable(plain) if node not in self.refused else (None, plain)
        if row.signs == (-1,) and args[0] in self.changed:
            # -log(sigmoid(x)) is softplus(-x): its minus cancels the minus of the rewrite.
            stable = self._written(lambda x: -x, {"x": Node(builder, args[0])})
            rule = self.changed[args[0]] if stable != plain else None
        if rule is not None:
            self.rewritten.append(Rewrite(rule, node, stable))
            self.changed[stable] = rule
        self.sums.uses[stable] += self.uses[node]
        self.exponentials.note(stable)
        return stable

    def _stable(self, node: int) -> tuple[Rule | None, int]:
        """Return the first rule that applies and its replacement; else None and the node."""
        builder = self.builder
        row = builder.primitive(node)
        if row is None:
            return None, node
        if row.signs != (1, 1) or any(map(self._minus, builder.arguments(node))):
            for rule in self.rules.get(row, ()):
                replacement = self._applied(rule, node)
                if replacement is not None and replacement != node:
                    return rule, builder.spread(replacement, builder.shape(node))
        return self._cancelling(node) if len(row.signs) == 2 else (None, node)

    def _cancelling(self, node: int) -> tuple[Rule | None, int]:
        """Rewrite a pair that cancels in a longer sum: the last term and an earlier one."""
        builder = self.builder
        terms = signed_terms(builder, node)
        if len(terms) < 3 or not self._may_cancel(terms[-1][1]):
            return None, node
        last, final = terms.pop()
        for place, (sign, term) in enumerate(terms):
            if sign == last or not self._may_cancel(term):
                continue
            pair = (term, final) if sign > 0 else (final, term)
            rule, replacement = self._stable(builder.emit(subtract, pair))
            if rule is not None:
                rest = signed_total(builder, terms[:place] + terms[place + 1 :])
                return rule, builder.emit(add, (rest, replacement))
        return None, node

    def _may_cancel(self, node: int) -> bool:
        """Return whether a rule about differences may apply to this term."""
        return self.builder.primitive(node) in self.cancelling or number(self.builder, node) == 1

    def _minus(self, node: int) -> bool:
        """Return whether adding `node` is a subtraction; other additions match no rule."""
        return negated(self.builder, node) is not None

    def _applied(self, rule: Rule, node: int) -> int | None:
        if rule.compiled is None or rule.replacement is None:
            return _CODED[rule](self, node)
        parts = rule.compiled.match(self.builder, node)
        return None if parts is None else self._written(rule.replacement, parts)

    def _written(self, form: Form, parts: Mapping[str, Node]) -> int:
        """Append a replacement with exact simplifications, so that no -(-x) remains."""
        self.builder.simplify = True
        node = applied(form, parts).id
        self.builder.simplify = False
        return node

    def _logarithm(self, node: int) -> int | None:
        """Append ``log(scale) + exponent``, with the logarithm in stable form."""
        parts = self.exponentials.logarithm(self.builder.arguments(node)[0])
        if parts is None:
            return None
        scale, exponent = parts
        if scale is None:
            return exponent
        _, factor = self._stable(self.builder.emit(log, (scale,)))
        nodes = {name: Node(self.builder, node) for name, node in (("a", factor), ("b", exponent))}
        return self._written("a + b", nodes)

    def _squares(self, node: int) -> int | None:
        """Append a root of squares: `sqrt`, or the power 0.5."""
        first, *exponents = self.builder.arguments(node)
        if any(number(self.builder, exponent) != 0.5 for exponent in exponents):
            return None
        return root_of_squares(self.builder, self.sums, first)


_CODED: dict[Rule, Callable[[_Stabiliser, int], int | None]] = {
    LOGARITHM: _Stabiliser._logarithm,
    LOG1P: lambda its, node: its.exponentials.log1p(its.builder.arguments(node)[0]),
    RATIO: lambda its, node: its.exponentials.ratio(node),
    VARIANCE: lambda its, node: variance(its.builder, node),
    SQUARES: _Stabiliser._squares,
}
"""The rules that are no patterns."""
