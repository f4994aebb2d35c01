"""The pipeline of passes: every step, as a table of sizes before and after, and its changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Unpack

from difflab.core.table import Cell, Column, Table, facts
from difflab.core.wording import count, counted
from difflab.errors import UnsupportedError
from difflab.graph.counts import Counts
from difflab.graph.counts import count as sizes_of
from difflab.graph.function import Function
from difflab.graph.passes.exact import common, dead, fold, simplify
from difflab.graph.passes.fusion import fusion_groups
from difflab.graph.passes.layout import layout
from difflab.graph.repetition import rolled
from difflab.report import html
from difflab.report.summary import READABLE
from difflab.report.terminal import WIDTH, Part, Screen, clean, draw, shorten
from difflab.stabilisation.rewriting import stabilised

if TYPE_CHECKING:
    from difflab.execute.lower.plan import BufferPlan
    from difflab.stabilisation.proof import ProvedRewrite, Stabilised


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
        return sizes_of(self.before), sizes_of(self.after)

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


SHOWN_REWRITES = 20
SHOWN_TEXT = 240


class PassesReport(tuple[PassStep, ...]):
    """The steps of the pipeline, with a display.

    Its `repr` is the table; as the result of a notebook's cell it is shown as HTML.
    """

    __slots__ = ()

    def table(self, *, width: int = WIDTH) -> str:
        """Return the table that ``difflab graph --passes`` prints."""
        return passes_table(self, width=width)

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks display."""
        changes = [part for step in self if _is_readable(step) for part in _change_html(step)]
        body = ["<main>", html.table(_table(self)), html.table(_plans(self[-1].after)), *changes]
        return html.fragment([*body, "</main>"])


def passes(function: Function) -> PassesReport:
    """Return the changes by each pass of the pipeline, as ``difflab graph --passes`` prints them.

    Returns
    -------
    PassesReport
        A sequence of steps, each with the pass (``done``), the function ``before`` and
        ``after``, and their ``sizes``. Its `str` is the table, and it shows itself in a
        notebook.

    Examples
    --------
    >>> import difflab as dl
    >>> [step.done.name for step in dl.parse("x^1 + 2*3").passes() if step.changed]
    ['constant folding', 'simplification']
    >>> [str(step.after) for step in passes(dl.parse("x*1 + 2*3")) if step.changed]
    ['x*1 + 6', 'x + 6']
    """
    return PassesReport(run(function))


def passes_table(
    steps: Sequence[PassStep],
    stabilised: Stabilised | None = None,
    **screen: Unpack[Screen],
) -> str:
    """Return a table of the passes, and below it the changes of each.

    Parameters
    ----------
    steps : sequence of PassStep
        The result of `difflab.report.passes.run`; at least one.
    stabilised : Stabilised, optional
        The rewrites of a stabilisation among the steps.
    colour, width, plain
        As for `difflab.report.terminal.draw`.
    """
    parts: list[Part] = [_table(steps), _plans(steps[-1].after)]
    parts += [_change(step) for step in steps if _is_readable(step)]
    if stabilised is not None:
        parts.append(rewrites_text(stabilised))
    return draw(parts, **screen)


def _table(steps: Sequence[PassStep]) -> Table:
    columns = (
        *(Column("pass"), Column("what it does", wrap=True)),
        *(Column("nodes", right=True), Column("operations", right=True)),
    )
    rows = []
    for step in steps:
        before, after = step.sizes
        name = step.done.name if step.done.exact else f"{step.done.name} *"
        sizes = ((before.dag, after.dag), (before.operations, after.operations))
        texts = [Cell(" → ".join(map(count, pair)), "label") for pair in sizes]
        if not step.changed:
            texts = [Cell(count(pair[1]), "note") for pair in sizes]
        rows.append((Cell(name, "label" * step.changed), step.done.summary, *texts))
    return Table(columns, rows, gap=2)


def _plans(function: Function) -> Table:
    """Return the fusion groups of the result, and its buffers."""
    groups = fusion_groups(function)
    operations = sum(map(len, groups))
    longest = f", the longest of {max(map(len, groups))}" if len(groups) > 1 else ""
    plan = _planned(function)
    loops = f"{counted(operations, 'elementwise operation')} in {counted(len(groups), 'loop')}"
    memory = (
        f"{counted(len(plan.slots), 'value')} between inputs and results in "
        f"{counted(len(plan.buffers), 'buffer')}: at most {sum(plan.buffers):,} bytes "
        f"a point at once, {plan.apart:,} without reuse"
    )
    return facts([("fusion groups", loops + longest), ("memory planning", memory)])


def _planned(function: Function) -> BufferPlan:
    """Return the plan of the target ``numpy``."""
    from difflab.execute.lower.plan import planned
    from difflab.execute.lower.schedule import ScalarProgram, Schedule

    try:
        return planned(ScalarProgram.of(function))
    except UnsupportedError:
        return planned(Schedule.of(function))


def _is_readable(step: PassStep) -> bool:
    """Whether a pass changed something, in a graph whose text is shown."""
    return step.changed and max(len(step.before.graph), len(step.after.graph)) <= READABLE


def _change(step: PassStep) -> Part:
    """Return the program before and after a pass."""
    return [Cell(step.done.name, "label"), _programs(step, "  ")]


def _programs(step: PassStep, indent: str = "") -> Table:
    from difflab.language.printers import text

    pairs = [
        (Cell(f"{indent}{sign}"), shorten(clean(text(function)), SHOWN_TEXT))
        for sign, function in (("-", step.before), ("+", step.after))
    ]
    return Table((Column(), Column(wrap=True)), pairs)


def _change_html(step: PassStep) -> list[str]:
    return [f"<h2>{escape(step.done.name)}</h2>", html.table(_programs(step))]


def rewrites_text(stabilised: Stabilised) -> str:
    """Return a list of the rewrites, each with its position, its reason and its proof."""
    lines = []
    if len(stabilised):
        lines.append("* changes how values are rounded, not the function of real numbers:")
    for item in stabilised.first(SHOWN_REWRITES):
        lines.append(f"{position(item)}{clean(item.before)} → {clean(item.after)}")
        lines += [f"  {item.why}", f"  {item.proof}"]
    return "\n  ".join(lines + remarks(stabilised))


def position(item: ProvedRewrite) -> str:
    """Return where a rewrite was applied, as the beginning of its line."""
    return f"{item.place}: " if item.place else ""


def remarks(stabilised: Stabilised) -> list[str]:
    """Return the lines after the rewrites: how many more there are, and the refused rules."""
    left = len(stabilised) - SHOWN_REWRITES
    lines = [f"… and {left:,} more"] if left > 0 else []
    if not len(stabilised):
        lines = ["nothing to stabilise"]
    return lines + [f"not applied, values differ: {rule}" for rule in stabilised.refused]
