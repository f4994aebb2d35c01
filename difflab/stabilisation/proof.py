"""`stabilise`: rewrite expressions that overflow or cancel; each rewrite is proved numerically.

A rewrite asserts that two graphs are the same function of real numbers. Both are evaluated in
mpmath with extra digits at points of the function's domain; a rewrite that disagrees is rejected.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from difflab.errors import DomainError, InputError
from difflab.graph.builder import Builder
from difflab.graph.checks import require_function
from difflab.graph.function import Function, evaluate_all
from difflab.graph.interpreters import MpmathInterpreter
from difflab.graph.rewrite import rewrite
from difflab.stabilisation.matching import Rule
from difflab.stabilisation.rewriting import Rewrite, stabilised
from difflab.stabilisation.rules import RULES

ENOUGH = 30
"""Decimal digits to which a rewrite must agree, too many for agreement by chance."""

PRECISIONS = (60, 120, 480, 1920)
"""Working digits, increased until `ENOUGH` agree, since the plain form cancels."""

SEEDS = (0, 1, 2)
SHOWN = 60
DESCRIBED = 400
_DECLARATION = re.compile(r"\w+: \[[\d, ]*\]")


@dataclass(frozen=True)
class ProvedRewrite:
    """A rewrite, its location, and the digits to which both forms agree.

    Attributes
    ----------
    rule, why : str
        The rule in one line, and what fails in the plain form.
    before, after : str
        The subexpression before and after the rewrite.
    span : (int, int) or None
        The position of the subexpression in the source text.
    line, column : int or None
        Line and column of that position, counted from 1.
    where : str
        File and line, for a function traced from Python.
    digits : int or None
        The decimal digits to which both forms agree at every point, at least `ENOUGH`; None
        if no point was found at which the subexpression is defined.
    points : int
        The number of points at which they were compared.
    """

    rule: str
    why: str
    before: str
    after: str
    span: tuple[int, int] | None
    line: int | None
    column: int | None
    where: str
    digits: int | None
    points: int

    def to_dict(self) -> dict[str, Any]:
        """Return the rewrite as a dictionary of strict JSON values."""
        fields = asdict(self)
        del fields["span"]
        return fields

    def __str__(self) -> str:
        place = f"{self.where}  " if self.where else ""
        if self.line is not None:
            place = f"{self.line}:{self.column}  "
        return f"{place}{self.before} → {self.after}  ({self.proof})"

    @property
    def place(self) -> str:
        """The location in words; empty if unknown."""
        return self.where if self.line is None else f"line {self.line}, column {self.column}"

    @property
    def proof(self) -> str:
        """The result of the proof, in words."""
        if self.digits is None:
            return "not compared: no point found"
        return f"equal to {self.digits} digits at {self.points} points"


@dataclass(frozen=True, eq=False, repr=False)
class Stabilised:
    """A stabilised function and its rewrites.

    Attributes
    ----------
    plain, function : Function
        The function before and after.
    refused : tuple of str
        Rules whose rewrites were not confirmed; those subexpressions are unchanged.
    """

    plain: Function
    function: Function
    refused: tuple[str, ...]
    _rewrites: tuple[Rewrite, ...]
    _proofs: tuple[tuple[int | None, int], ...]

    def __len__(self) -> int:
        return len(self._rewrites)

    @cached_property
    def rewrites(self) -> tuple[ProvedRewrite, ...]:
        """Every rewrite, in the order of the program."""
        return tuple(self._described(place) for place in range(len(self)))

    def first(self, number: int) -> tuple[ProvedRewrite, ...]:
        """Return the first `number` rewrites only, since a description takes time."""
        return tuple(self._described(place) for place in range(min(number, len(self))))

    @cached_property
    def _line_starts(self) -> list[int]:
        text = self.plain.text or ""
        return [0, *(match.end() for match in re.finditer("\n", text))]

    def _described(self, place: int) -> ProvedRewrite:
        rewrite, (digits, points) = self._rewrites[place], self._proofs[place]
        span = self.plain.graph.span(rewrite.before)
        text = self.plain.text
        line = column = None
        if text is not None and span is not None:
            line = bisect_right(self._line_starts, span[0])
            column = span[0] - self._line_starts[line - 1] + 1
            before = text[slice(*span)]
            if len(before) > DESCRIBED:
                before = f"{before[: DESCRIBED - 1]}…"
        else:
            before = _written(self.plain, rewrite.before)
        after = _written(self.function, rewrite.after)
        rule = rewrite.rule
        where = self.plain.graph.place(rewrite.before).where
        return ProvedRewrite(
            rule.name, rule.why, before, after, span, line, column, where, digits, points
        )

    def __repr__(self) -> str:
        lines = [str(rewrite) for rewrite in self.first(SHOWN)]
        if len(self) > SHOWN:
            lines.append(f"… and {len(self) - SHOWN} more")
        return "\n".join(lines or ["nothing to stabilise"])


def stabilise(
    expression: str | Function,
    at: Mapping[str, Any] | None = None,
    *,
    rules: Sequence[Rule] = RULES,
) -> Stabilised:
    """Rewrite expressions that overflow or cancel, so that value and derivatives are accurate.

    ``log(exp(a) + exp(b))`` becomes ``logaddexp(a, b)``, ``1/(1 + exp(-x))`` becomes
    ``sigmoid(x)``, ``sqrt(x^2 + y^2)`` becomes ``hypot(x, y)``: the same function of real
    numbers in another form. Every rewrite is proved equal in mpmath at points of the function's
    domain; a rewrite that disagrees is undone.

    Parameters
    ----------
    expression : str or Function
        A formula or a program, or a result of `parse` or `trace`.
    at : mapping, optional
        An additional point at which to prove the rewrites.
    rules : sequence of Rule
        The rules to apply.

    Returns
    -------
    Stabilised
        The result; its `function` can be differentiated, compiled and called like any other.

    Raises
    ------
    InputError
        The text, the point or the rules are invalid.

    References
    ----------
    N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapters 1 and 2.

    Examples
    --------
    >>> import difflab as dl
    >>> stabilised = stabilise("log(exp(a) + exp(b)) - 1/(1 + exp(-a))")
    >>> print(stabilised)
    1:1  log(exp(a) + exp(b)) → logaddexp(a, b)  (equal to 60 digits at 3 points)
    1:24  1/(1 + exp(-a)) → sigmoid(a)  (equal to 60 digits at 3 points)
    >>> dl.gradient(stabilised.function)(1000.0, -1000.0).tolist()
    [1.0, 0.0]
    """
    if isinstance(expression, str):
        from difflab.language import given_names, parse

        function: Function = parse(expression, given_names(at))
    else:
        require_function(expression, "stabilise")
        function = expression
    if not isinstance(rules, list | tuple) or not all(isinstance(rule, Rule) for rule in rules):
        raise InputError(
            "rules of stabilise must be a list or tuple of rules",
            hint="see difflab.stabilisation.rules.RULES",
        )
    points = _points(function, at)
    refused: dict[int, Rule] = {}
    while True:
        stable, rewrites = stabilised(function, rules=rules, refused=refused)
        proofs = _Proof(function, stable, rewrites).at(points)
        wrong = {
            rewrite.before: rewrite.rule
            for rewrite, (digits, _) in zip(rewrites, proofs, strict=True)
            if digits is not None and digits < ENOUGH
        }
        if not wrong:
            names = tuple(dict.fromkeys(rule.name for rule in refused.values()))
            return Stabilised(function, stable, names, rewrites, tuple(proofs))
        # An inner wrong rewrite makes the outer ones wrong too: undo one rule at a time.
        first = wrong[min(wrong)]
        refused |= {before: rule for before, rule in wrong.items() if rule is first}


def _points(function: Function, at: Mapping[str, Any] | None) -> list[list[Any]]:
    """Return the points of the domain at which rewrites are compared."""
    from difflab.diagnose.point_check import checked_point
    from difflab.diagnose.points import choose_point

    points = [] if at is None else [checked_point(function, at)]
    for seed in SEEDS if function.n else ():
        try:
            points.append(choose_point(function, seed))
        except DomainError:
            break
    return [
        [point[name] for name in function.inputs] for point in points or [{}] * (not function.n)
    ]


class _Proof:
    """Comparison of the rewritten subexpressions in both graphs."""

    def __init__(self, plain: Function, stable: Function, rewrites: Sequence[Rewrite]) -> None:
        import mpmath

        self.mp = mpmath.mp
        self.plain = plain
        self.stable = stable
        self.rewrites = rewrites

    def at(self, points: Sequence[Sequence[Any]]) -> list[tuple[int | None, int]]:
        """Return for each rewrite the digits that agree at all points, and the number of points."""
        agreeing: list[list[int]] = [[] for _ in self.rewrites]
        for point in points if self.rewrites else ():
            for place, digits in self._agreement(point).items():
                agreeing[place].append(digits)
        return [(min(digits, default=None), len(digits)) for digits in agreeing]

    def _agreement(self, point: Sequence[Any]) -> dict[int, int]:
        """Return the digits that agree at one point, for the rewrites that are defined there."""
        agreed: dict[int, int] = {}
        for precision in PRECISIONS:
            with self.mp.workdps(precision):
                values = [_exactly(self.mp, value) for value in point]
                interpreter = MpmathInterpreter()
                before = evaluate_all(self.plain, values, interpreter)
                after = evaluate_all(self.stable, values, interpreter)
                for place, rewrite in enumerate(self.rewrites):
                    digits = self._digits(before[rewrite.before], after[rewrite.after])
                    if digits is not None:
                        agreed[place] = max(agreed.get(place, 0), digits)
            if all(digits >= ENOUGH for digits in agreed.values()):
                break
        return agreed

    def _digits(self, plain: Any, stable: Any) -> int | None:
        """Return the number of digits to which two values agree; None if `plain` is undefined."""
        mp, worst = self.mp, self.mp.dps
        for a, b in np.broadcast(np.asarray(plain, object), np.asarray(stable, object)):
            if not mp.isfinite(a):
                return None
            if not mp.isfinite(b):
                return 0
            if a != b:
                # If one value is exactly zero, the error of the other is absolute.
                scale = max(abs(a), abs(b)) if a and b else 1
                worst = min(worst, int(-mp.log10(abs(a - b) / scale)))
        return max(int(worst), 0)


def _exactly(mp: Any, value: Any) -> Any:
    array = np.frompyfunc(mp.mpf, 1, 1)(np.asarray(value, dtype=float))
    return array if isinstance(array, np.ndarray) else +array


def _written(function: Function, node: int) -> str:
    """Return one subexpression in the language, on one line."""
    part = _part(function, node)
    if part is None:
        return f"(more than {DESCRIBED} operations)"
    from difflab.language.printers import text

    lines = text(part).splitlines()
    return "; ".join(line for line in lines if not _DECLARATION.fullmatch(line))


def _part(function: Function, node: int) -> Function | None:
    """Return the function whose output is `node`; None if it is too long to display."""
    graph = function.graph
    needed: set[int] = set()
    pending = [node]
    while pending:
        place = pending.pop()
        if place not in needed:
            needed.add(place)
            pending += graph.arguments(place)
        if len(needed) > DESCRIBED:
            return None
    builder = Builder()
    copied = rewrite(graph, builder, nodes=sorted(needed))
    builder.labels.clear()  # a name of the program would be a line of its own
    inputs = [copied[place] for place in function.input_nodes if place in needed]
    return Function.build(builder, inputs, [copied[node]], ["y"])
