"""Random programs and points, the judgement of every method on one, and its findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from difflab.core.primitive import Primitive
from difflab.errors import DifflabError, described
from difflab.graph.function import Function
from difflab.lab.environment import package_version
from difflab.lab.judge import Judge
from difflab.language import parse
from difflab.methods.protocol import Family, Method, Problem
from difflab.primitives import TABLE
from difflab.referee.referee import Reference
from difflab.referee.verdict import Verdict
from difflab.testing.strategies import mapped, spelled, usable

_CONSTANTS = ("2", "1", "0.5", "3", "0", "(-1)", "1.5", "(-0.5)", "10", "1e-8", "40", "1e8", "pi")
_COORDINATES = (1.0, 2.0, 0.5, 0.0, -1.0, 3.0, -2.0, 10.0, -0.5, 1e-8, 40.0, -40.0, 1e8, 1e-160)
_REDUCTIONS = ("sum", "prod", "mean", "norm", "max", "min", "logsumexp")
_OPERATIONS = 7


@dataclass(frozen=True)
class Program:
    """A program of the language and a point.

    Attributes
    ----------
    text : str
        The program.
    point : dict
        A float, or a list of three, for each name; unused names are left out when it runs.
    """

    text: str
    point: dict[str, Any]


_ROWS = [
    row
    for row in TABLE.values()
    # The first argument of a row such as polygamma is a whole number, not an expression.
    if usable(row) and row.shape is None and row.samples[0][0] < row.samples[0][1]
]
_PICKS = 32
"""Numbers below it stand for an operand: a name, a constant or an earlier result."""
_NAMES, _NUMBERS = 8, 14
_STEP = st.tuples(
    st.integers(0, len(_ROWS) - 1), st.integers(0, _PICKS - 1), st.integers(0, _PICKS - 1)
)
_COORDINATE = st.sampled_from(_COORDINATES) | st.floats(-4.0, 4.0).map(lambda v: round(v, 6))


COMMON = tuple(
    row
    for row in _ROWS
    if hasattr(np, row.name) or row.name in ("erf", "relu", "sigmoid", "softplus", "xlogy")
)
"""The rows that nearly every package has."""


@st.composite
def programs(draw: st.DrawFn, rows: Sequence[Primitive] = tuple(_ROWS)) -> Program:
    """Return a program of some rows in x and y, or in an array v of three elements and x.

    Some operands are mapped into the domain of their operation and others are not, so that a
    point may also lie on a kink, close to an edge or where intermediate results are extreme. The
    operations are drawn as integers, which shrink in few steps.
    """
    reduction = draw(st.sampled_from((*[""] * len(_REDUCTIONS), *_REDUCTIONS)))
    values = ["v", "x"] if reduction else ["x", "y"]
    for which, first, second in draw(st.lists(_STEP, min_size=1, max_size=_OPERATIONS)):
        row = rows[which % len(rows)]
        picks = (first, second, (first + second) % _PICKS)  # rows have at most three operands
        operands = [_operand(pick, values) for pick in picks]
        if (first + second) % 2:
            sides = zip(operands, row.samples, strict=False)
            operands = [mapped(text, low, high) for text, (low, high) in sides]
        values.append(spelled(row, tuple(operands[: len(row.samples)])))
    point = {
        "x": draw(_COORDINATE),
        "y": draw(_COORDINATE),
        "v": draw(st.lists(_COORDINATE, min_size=3, max_size=3)),
    }
    text = f"v: [3]; {reduction}({values[-1]} + 0*v)" if reduction else values[-1]
    return Program(text, point)


def _operand(pick: int, values: list[str]) -> str:
    if pick < _NAMES:
        return values[pick % 2]
    if pick < _NUMBERS:
        return _CONSTANTS[pick % len(_CONSTANTS)]
    return values[-1 - pick % min(len(values), 3)]


_JUDGED = ("smooth", "kink")
_CRASH, _REFUSED = "crash", "refused"
_DIGITS = 25


@dataclass(frozen=True)
class FuzzFinding:
    """A method that disagrees with the referee, or crashes, where another method agrees.

    Attributes
    ----------
    method : str
        Its name.
    kind : str
        ``disagree`` for a wrong derivative, ``crash`` for an exception that is no refusal; of
        compositions, see `CompositionPanel`.
    program : Program
        The program, with the point of the inputs that it uses.
    operations : frozenset of str
        The names of its primitives.
    reason : str
        The referee's reason, or the exception.
    witness : str
        The name of an exact method that agrees.
    actual : tuple of str
        The method's derivative.
    expected : tuple of str
        The referee's, to 25 digits.
    """

    method: str
    kind: str
    program: Program
    operations: frozenset[str]
    reason: str
    witness: str
    actual: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()


@dataclass
class Panel:
    """The methods, and how often each had which verdict.

    Attributes
    ----------
    methods : mapping of str to Method
        All that can run.
    timeout : float
        Seconds for a method or the referee on one program.
    counts : Counter
        By ``(method, verdict)``; a verdict is also ``refused`` or ``crash``.
    """

    methods: Mapping[str, Method]
    timeout: float = 5.0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    schema = "difflab.fuzz/1"
    verdicts = ("agree", "convention", "inconclusive", "refused", "disagree", "crash")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the methods."""
        return tuple(self.methods)

    def programs(self) -> st.SearchStrategy[Program]:
        """Return the strategy of programs."""
        return programs()

    def reproduction(self, finding: FuzzFinding) -> str:
        """Return a pytest file that fails as long as the finding is there."""
        return reproduction(finding)

    def again(self, program: Program, finding: FuzzFinding) -> FuzzFinding | None:
        """Return the same finding of another program, by its method and its witness only."""
        methods = {name: self.methods[name] for name in (finding.method, finding.witness)}
        findings = Panel(methods, self.timeout).findings(program) or []
        same = (
            new for new in findings if new.method == finding.method and new.kind == finding.kind
        )
        return next(same, None)

    def findings(self, program: Program) -> list[FuzzFinding] | None:
        """Return the findings of a program; None if it has no derivative to judge by.

        A method's disagreement is a finding only where an exact method agrees: if none does,
        the program overflows or cancels in float64, and no method is at fault.
        """
        try:
            function = parse(program.text)
            point = {name: program.point[name] for name in function.inputs}
            packed = np.array(
                [v for name in point for v in np.ravel(point[name])], dtype=np.float64
            )
            if not packed.size:
                return None
        except DifflabError:
            return None
        judge = Judge(function, packed, timeout=self.timeout)
        if judge.reference is None or judge.status not in _JUDGED:
            return None
        small, expected = Program(program.text, point), _texts(judge.reference)
        judged = list(self._judged(function, judge))
        witnesses = [
            name
            for name, verdict, _, _ in judged
            if verdict == Verdict.AGREE and self.methods[name].family is not Family.NUMERIC
        ]
        if not witnesses:
            return []
        rows = frozenset(row.name for row in function.graph.primitives)
        return [
            FuzzFinding(name, verdict, small, rows, reason, witnesses[0], derivative, expected)
            for name, verdict, reason, derivative in judged
            if verdict in (Verdict.DISAGREE, _CRASH)
        ]

    def _judged(
        self, function: Function, judge: Judge
    ) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
        """Yield the name, verdict, reason and derivative of every method."""
        problem = Problem.of(function, timeout=self.timeout)
        for name, method in self.methods.items():
            verdict, reason = _CRASH, ""
            derivative: tuple[str, ...] = ()
            try:
                with np.errstate(all="ignore"):
                    estimate = method.prepare(problem)(judge.x.copy())
                judgement = judge.verdict(estimate, method.family)
                verdict, reason = str(judgement.verdict), judgement.reason
                derivative = tuple(repr(float(value)) for value in np.ravel(estimate.value))
            except DifflabError as error:
                verdict, reason = _REFUSED, str(error)
            except Exception as error:  # another package may fail in any way
                reason = described(error)
            self.counts[name, verdict] += 1
            yield name, verdict, reason, derivative


def _texts(reference: Reference) -> tuple[str, ...]:
    import mpmath

    texts = []
    for value, left, right in zip(
        reference.exact.flat, reference.left.flat, reference.right.flat, strict=True
    ):
        sides = [mpmath.nstr(side, _DIGITS) for side in (left, right)]
        smooth = bool(mpmath.isfinite(value))
        texts.append(mpmath.nstr(value, _DIGITS) if smooth else " to ".join(sides))
    return tuple(texts)


def reproduction(finding: FuzzFinding) -> str:
    """Return a pytest file that fails as long as the finding is there."""
    version = package_version(finding.method)
    package = f"{finding.method} {version}" if version else finding.method
    skip = f'    pytest.importorskip("{finding.method}")\n' if version else ""
    name = finding.method.replace("-", "_")
    return f'''"""{package}: {finding.reason}.

Found by `difflab fuzz`; it passes once the derivative is right.

the derivative of {package}: {", ".join(finding.actual) or "none"}
the referee's, from values: {", ".join(finding.expected)}
"""

{"import pytest" + chr(10) * 2 if skip else ""}import difflab

TEXT = {finding.program.text!r}
AT = {finding.program.point!r}


def test_{name}_agrees_with_the_referee():
{skip}    comparison = difflab.compare(TEXT, AT, methods=["{finding.method}"], timing=False)
    (row,) = comparison.methods
    assert row.status == "ok", row.message
    assert row.verdict != "disagree", row.message
'''
