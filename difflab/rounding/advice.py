"""The worst contributions of a budget in words: causes and rewrites.

Cancellation magnifies the errors of its operands by |a|/|a - b|, and a function by its condition
number |x f'(x)/f(x)| (N. J. Higham, Accuracy and Stability of Numerical Algorithms, ch. 1 and 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from difflab.core.dtypes import format_of
from difflab.core.place import SourceLocation
from difflab.core.wording import significant
from difflab.diagnose.findings import call_text
from difflab.errors import DifflabError
from difflab.graph.ir import Graph
from difflab.rounding.budget import Budget, Contribution, ErrorBudget, error_budget
from difflab.rounding.local import is_sum
from difflab.rounding.sweeps import evaluated
from difflab.stabilisation.proof import stabilise

WORST = 3
REWRITTEN = 20_000
"""Nodes up to which the function is stabilised."""
LARGE = 8.0
"""Units in the last place from which a contribution is explained."""
CANCELS = 4.0
"""How much larger than its result an operand of a sum is that cancels."""
MAGNIFIES = 16.0
STEEP = frozenset(("exp", "exp2", "power", "sinh", "cosh", "gamma", "sin", "cos", "tan"))
REWRITES = {  # the first that applies
    "sqrt": "multiply by the conjugate: √p - q = (p - q²)/(√p + q)",
    "hypot": "multiply by the conjugate: hypot(q, a) - q = a²/(hypot(q, a) + q)",
    "cbrt": "∛a - ∛b is (a - b)/(∛a² + ∛a ∛b + ∛b²)",
    "cos": "1 - cos x is 2 sin²(x/2), versine(x); "
    "cos a - cos b is -2 sin((a + b)/2) sin((a - b)/2)",
    "cosh": "cosh x - 1 is 2 sinh²(x/2)",
    "exp": "exp(x) - 1 is expm1(x)",
    "log": "log a - log b is log(a/b), and log1p((a - b)/b) where a is near b",
    "sin": "sin a - sin b is 2 cos((a + b)/2) sin((a - b)/2); "
    "x - sin x is its series x³/6 - x⁵/120 + … where x is small",
    "tan": "tan a - tan b is sin(a - b)/(cos a cos b)",
    "atan": "atan a - atan b is atan2(a - b, 1 + a b)",
    "tanh": "1 - tanh x is 2/(exp(2 x) + 1)",
    "erf": "1 - erf x is erfc(x)",
    "sum": "subtract the mean or another shift from the data before they are summed",
}
"""What to write instead of a difference, by an operand that cancels."""
FACTOR = (
    "factor the difference, as a² - b² = (a - b)(a + b), or compute its operands in more digits"
)
COMPENSATE = "sum with compensation (math.fsum), or subtract a shift first"
SPLIT = "split the argument, or reduce it exactly"
DERIVED = "rewrite the value: its derivative is then another sum; or differentiate in more digits"


def advised(result: ErrorBudget) -> ErrorBudget:
    """Return a budget with its worst contributions and the effect of `stabilise` in words."""
    lines = [line for part in result.parts for line in _explained(part, result)]
    return replace(result, advice=tuple(lines), stable=tuple(_stabilised(result)))


def _explained(part: Budget, result: ErrorBudget) -> Iterator[str]:
    """Yield a sentence for each of the worst contributions of a part."""
    function = part.function
    inputs = [result.point[name] for name in function.inputs]
    form = format_of(result.dtype)
    known = dict(zip(function.input_nodes, inputs, strict=True))
    values = evaluated(function.graph, known, [form] * len(function.graph))
    worst = [each for each in part.contributions[:WORST] if each.worst > LARGE]
    if not worst:
        yield f"{part.kind}: every operation contributes at most {_units(_most(part))}"
    users, written = _Users(function.graph, values), _operations(result.value.function.graph)
    for each in worst:
        cause = users.magnifier(each.node)
        text = f"{part.kind}: {_named(each, written)} contributes {_units(each.worst)}"
        yield f"{text}{_because(function.graph, values, cause, each, written)}"


Key = tuple[tuple[int, int] | None, str, str]
"""Where an operation is written, and which one it is."""


def _key(site: SourceLocation, operation: str) -> Key:
    return site.span, site.where, operation


def _operations(graph: Graph) -> set[Key]:
    """Return the operations of the value: those of a derivative were written by a rule."""
    rows = map(graph.primitive, range(len(graph)))
    return {_key(graph.place(node), row.name) for node, row in enumerate(rows) if row is not None}


def _most(part: Budget) -> float:
    return max((each.worst for each in part.contributions), default=0.0)


def _units(ulps: float) -> str:
    digits = f", {_digits(ulps)}" if ulps >= LARGE else ""
    return f"{significant(ulps, 3)} ULP{digits}"


def _digits(ulps: float) -> str:
    return f"{math.log10(ulps):.1f} decimal digits"


def _named(each: Contribution, written: set[Key]) -> str:
    site = f" ({each.site})" if str(each.site) else ""
    if each.operation != "constant" and _key(each.site, each.operation) not in written:
        return f"{each.operation} in the derivative of {each.text}{site}"
    head = "" if each.operation in each.text else f"{each.operation} in "
    return f"{head}{each.text}{site}"


class _Users:
    """The operations that use each node, with how much they magnify relative errors."""

    def __init__(self, graph: Graph, values: Sequence[Any]) -> None:
        self.graph, self.values = graph, values
        self.starts, self.users = graph.users()

    def magnifier(self, node: int) -> int | None:
        """Return the operation behind a node that magnifies its error most; None if none does."""
        steepest, largest = None, MAGNIFIES
        pending, seen = [node], {node}
        while pending:
            current = pending.pop()
            for user in self.users[self.starts[current] : self.starts[current + 1]]:
                size = self.condition(user, current)
                if size > largest:
                    steepest, largest = user, size
                if user not in seen:
                    seen.add(user)
                    pending.append(user)
        own = self.own(node)
        return node if own > largest else steepest

    def condition(self, user: int, operand: int) -> float:
        """Return how much an operation magnifies the relative error of an operand."""
        row = self.graph.primitive(user)
        if row is None:
            return 0.0
        x, y = _size(self.values[operand]), _least(self.values[user])
        if len(row.signs) == 2:
            return x / y if y else math.inf if x else 0.0
        if row.name in STEEP:
            return x
        return 0.0

    def own(self, node: int) -> float:
        """Return how much larger the terms of a sum are than the sum."""
        row = self.graph.primitive(node)
        if row is None or not is_sum(row):
            return 0.0
        operands = [np.abs(np.asarray(self.values[arg])) for arg in self.graph.arguments(node)]
        terms = row.computer(np)(*operands, **self.graph.params(node))
        return float(np.max(terms)) / (_least(self.values[node]) or 5e-324)


def _size(value: Any) -> float:
    return float(np.max(np.abs(np.asarray(value, np.float64)), initial=0.0))


def _least(value: Any) -> float:
    return float(np.min(np.abs(np.asarray(value, np.float64)), initial=math.inf))


def _because(
    graph: Graph,
    values: Sequence[Any],
    cause: int | None,
    each: Contribution,
    written: set[Key],
) -> str:
    """Return the cause of an error's magnification, and a stable form."""
    if cause is None:
        return f": {significant(each.local, 3)} ULP of its own" if each.local > LARGE else ""
    row = graph.primitive(cause)
    assert row is not None
    arguments = graph.arguments(cause)
    call = call_text(row, [values[arg] for arg in arguments])
    place = graph.place(cause)
    site = f" in {place.part}" if place.part and not place.where else f" ({place})"
    if is_sum(row):
        return f": its terms cancel{site}; {COMPENSATE}"
    if row.name in STEEP:
        return f": {call}{site} magnifies relative errors by its argument; {SPLIT}"
    if _key(place, row.name) not in written:
        return f": {call} cancels in the derivative by {place.part or place}; {DERIVED}"
    names = {primitive.name for arg in arguments if (primitive := graph.primitive(arg)) is not None}
    below = {
        primitive.name
        for arg in arguments
        for inner in graph.arguments(arg)
        if (primitive := graph.primitive(inner)) is not None
    }
    known = [REWRITES[name] for name in REWRITES if name in names]
    known = known or [REWRITES[name] for name in REWRITES if name in below]
    return f": {call} cancels{site}; {(*known, FACTOR)[0]}"


def _stabilised(result: ErrorBudget) -> Iterator[str]:
    """Yield the rewrites of `stabilise` and the digits that each part gains."""
    if all(part.ulps <= LARGE for part in result.parts):
        return
    if len(result.function.graph) > REWRITTEN:
        yield "stabilise was not tried: the function is large"
        return
    stable = stabilise(result.function)
    if not len(stable):
        yield "stabilise has no rule for it"
        return
    yield from (f"stabilise: {each}" for each in stable.first(WORST))
    try:
        better = error_budget(stable.function, result.point, dtype=result.dtype, prove=False)
    except DifflabError as error:
        yield f"the stabilised function has no budget: {error}"
        return
    for before, after in zip(result.parts, better.parts, strict=True):
        gain = math.log10(max(before.ulps, 0.5) / max(after.ulps, 0.5))
        sizes = f"{significant(before.ulps, 3)} → {significant(after.ulps, 3)} ULP"
        verb = "gains" if gain >= 0 else "loses"
        yield f"{before.kind}: {verb} {abs(gain):.1f} decimal digits ({sizes})"
