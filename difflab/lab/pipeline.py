"""The pipeline: the passes in order, and a run that records every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from difflab.graph.counts import Counts, count
from difflab.graph.function import Function
from difflab.graph.passes.exact import common, dead, fold, simplify
from difflab.graph.passes.layout import layout
from difflab.graph.repetition import rolled
from difflab.stabilisation.rewriting import stabilised


@dataclass(frozen=True)
class Pass:
    """A named rewrite of a whole graph.

    Attributes
    ----------
    name, summary : str
        Its name and a one-line description.
    exact : bool
        Whether every value stays the same, bit for bit up to the sign of a zero. A pass that
        is not exact is applied only on request.
    apply : callable
        Map a function to a function of the same inputs.
    """

    name: str
    summary: str
    exact: bool
    apply: Callable[[Function], Function]


@dataclass(frozen=True)
class PassStep:
    """A pass and the function before and after it."""

    done: Pass
    before: Function
    after: Function

    @property
    def sizes(self) -> tuple[Counts, Counts]:
        """The sizes before and after."""
        return count(self.before), count(self.after)

    @property
    def changed(self) -> bool:
        """Whether the pass changed anything."""
        smaller = len(self.after.graph) != len(self.before.graph)
        return smaller or self.after != self.before


FOLD = Pass("constant folding", "evaluate constant expressions", True, fold)
SIMPLIFY = Pass("simplification", "exact identities: x^1 = x", True, simplify)
COMMON = Pass("common subexpressions", "compute equal expressions once", True, common)
LAYOUT = Pass("layout", "merge transposes", True, layout)
DEAD = Pass("dead nodes", "remove nodes without effect", True, dead)
REPETITION = Pass("repetition", "repeated terms as vectors", True, rolled)
STABILISE = Pass(
    "stabilisation",
    "rewrite what overflows or cancels",
    False,
    lambda function: stabilised(function)[0],
)

EXACT: tuple[Pass, ...] = (FOLD, SIMPLIFY, COMMON, LAYOUT, DEAD, REPETITION)
"""The passes that keep every value, in order."""


def run(function: Function, passes: Sequence[Pass] = EXACT) -> list[PassStep]:
    """Apply passes in order and return every step.

    Parameters
    ----------
    function : Function
        The function to rewrite.
    passes : sequence of Pass
        `EXACT`, or with `STABILISE` before them.

    Returns
    -------
    list of PassStep
        One for each pass; the last one's `after` is the result.

    Examples
    --------
    >>> import difflab as dl
    >>> steps = run(dl.parse("x^1 + 2*3"))
    >>> [(step.done.name, step.sizes[1].operations) for step in steps if step.changed]
    [('constant folding', 2), ('simplification', 1)]
    """
    steps = []
    for item in passes:
        after = item.apply(function)
        steps.append(PassStep(item, function, after))
        function = after
    return steps
