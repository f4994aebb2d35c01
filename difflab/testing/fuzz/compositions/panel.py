"""The judgement of every package on a program under its own composition of transforms.

The true derivative is the referee's to order 2, and that of high-precision differences above.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from difflab.core.worker import RestartedWorker, WorkerDied
from difflab.errors import DifflabError, MethodTimeout, UnsupportedError
from difflab.graph.function import Function
from difflab.lab.judge import Judge
from difflab.language import parse
from difflab.methods.protocol import Family, Problem
from difflab.methods.registry import own
from difflab.referee.values import ExactValues, own_context
from difflab.referee.verdict import Verdict
from difflab.testing.fuzz.compositions.framework import Framework, Step, framework, spelled
from difflab.testing.fuzz.panel import COMMON, FuzzFinding, Program, programs

_JUDGED = ("smooth", "kink")
_DIGITS = 200
_STEP = -30  # decimal exponent
_SETTLED = 1e-15
_CLOSE, _WRONG = {"float64": 1e-6, "float32": 1e-4}, {"float64": 1e-3, "float32": 1e-2}
"""Errors, relative to the largest element, below which a result agrees and above which not."""


@dataclass(frozen=True)
class TrueDerivative:
    """A derivative at a point, and how results are judged by it.

    Attributes
    ----------
    order : int
        1 for the gradient, 2 for the Hessian, 3 for the third derivative along a direction.
    expected : ndarray
        The derivative, flattened; one number for order 3.
    """

    function: Function
    order: int
    expected: NDArray[np.float64]
    judge: Judge

    @classmethod
    def of(
        cls, function: Function, x: Sequence[float], order: int, timeout: float
    ) -> TrueDerivative | None:
        """Return the truth; None where there is none to judge by."""
        judge = Judge(function, np.array(x), min(order, 2), timeout)
        if judge.reference is None or judge.status not in _JUDGED:
            return None
        expected = judge.reference.jacobian.reshape(-1)
        if order > 2:
            third = _third(function, x) if judge.status == "smooth" else None
            if third is None:
                return None
            expected = np.array([third])
        return cls(function, order, expected, judge)

    def verdict(self, derivative: Sequence[float], dtype: str) -> tuple[str, str]:
        """Return the verdict on a derivative, and its reason."""
        result = np.array(derivative, dtype=np.float64)
        n = self.function.n
        if result.size != n**self.order:
            return str(Verdict.DISAGREE), f"{result.size} numbers instead of {n**self.order}"
        if self.order < 3 and dtype == "float64":
            judgement = self.judge.verdict(result, Family.AUTOMATIC)
            return str(judgement.verdict), judgement.reason
        if self.judge.status != "smooth":
            return str(Verdict.INCONCLUSIVE), "no derivative at this point"
        return self._by_size(result, dtype)

    def _by_size(self, result: NDArray[np.float64], dtype: str) -> tuple[str, str]:
        """Judge by the error relative to the largest element."""
        scale = float(np.max(np.abs(self.expected)))
        if self.order > 2:
            direction = _direction(self.function.n)
            terms = result.reshape((self.function.n,) * 3) * np.einsum(
                "i,j,k->ijk", direction, direction, direction
            )
            result = np.array([terms.sum()])
            scale = max(scale, float(np.abs(terms).sum())) if np.isfinite(result).all() else scale
        limit = float(np.finfo(dtype).max)
        if not 1 / limit < scale < limit:
            return str(Verdict.INCONCLUSIVE), "beyond the range of the numbers"
        error = float(np.max(np.abs(result - self.expected))) / scale
        if error <= _CLOSE[dtype]:
            return str(Verdict.AGREE), ""
        if error <= _WRONG[dtype]:
            return str(Verdict.INCONCLUSIVE), f"an error of {error:.1e}"
        return (
            str(Verdict.DISAGREE),
            f"{result.tolist()} where the derivative is {self.expected.tolist()}",
        )


def _direction(n: int) -> NDArray[np.float64]:
    return np.array([0.5**k for k in range(n)])


def _third(function: Function, x: Sequence[float]) -> float | None:
    """Return the third derivative along a direction by differences of values of 200 digits."""
    values = ExactValues(function, context=own_context())
    mp = values.mp
    v = [mp.mpf(float(step)) for step in _direction(function.n)]

    def difference(h: Any) -> Any:
        def at(k: int) -> Any:
            return values([mp.mpf(a) + k * h * b for a, b in zip(x, v, strict=True)])[0]

        return (at(2) - 2 * at(1) + 2 * at(-1) - at(-2)) / (2 * h**3)

    try:
        with mp.workdps(_DIGITS):
            one, two = (difference(mp.mpf(10) ** _STEP / k) for k in (1, 2))
            if not (mp.isfinite(one) and mp.isfinite(two)):
                return None
            if abs(one - two) > _SETTLED * max(abs(two), mp.mpf(10) ** _STEP):
                return None
            derivative = float(two)
    except (DifflabError, ArithmeticError, ValueError):
        return None
    return derivative if np.isfinite(derivative) else None


_MANY = 64  # more transforms than a package has
_DTYPES = ("float64", "float64", "float64", "float32")


@dataclass(frozen=True)
class Composed(Program):
    """A program, a point and a composition.

    Attributes
    ----------
    steps : tuple of Step
        The transforms, the innermost first; each package has its own by their positions.
    dtype : str
        In which everything is computed.
    """

    steps: tuple[Step, ...] = (Step(True, 0),)
    dtype: str = "float64"

    @property
    def order(self) -> int:
        """How often it is differentiated."""
        return sum(step.derives for step in self.steps)


def _steps(derives: bool, most: int) -> st.SearchStrategy[list[Step]]:
    one = st.builds(Step, st.just(derives), st.integers(0, _MANY - 1))
    return st.lists(one, min_size=int(derives), max_size=most)


@st.composite
def compositions(draw: st.DrawFn) -> Composed:
    """Return a program that is differentiated one to three times, with other transforms between."""
    program = draw(programs(COMMON))
    steps: list[Step] = []
    for _ in range(draw(st.sampled_from((1, 2, 2, 3)))):
        steps += draw(_steps(False, 2))
        steps += draw(_steps(True, 1))
    steps += draw(_steps(False, 1))
    return Composed(program.text, program.point, tuple(steps), draw(st.sampled_from(_DTYPES)))


_WORKER = "difflab.testing.fuzz.compositions.framework"
REFUSALS = re.compile(
    r"NotImplemented|not (?:yet )?(?:been )?(?:implemented|supported)|(?:un|n't |not |yet )support|"
    r"escaped from inside|can't apply forward-mode|saved during|"
    r"Unimplemented|no (?:gradient|rule|attribute)|[Bb]atching rule|requires_grad_?|"
    r"Reverse-mode differentiation does not work|functorch transform|Forward-mode",
)
"""Messages by which a package says that it does not support something."""
_OUTCOMES = ("agree", "convention", "inconclusive", "refused", "timeout")
_FINDINGS = ("composition", "rule", "crash", "ended")


@dataclass
class CompositionPanel:
    """Packages, each in a process of its own, and how often each had which verdict.

    A composition that disagrees where the package's plain way agrees is a finding ``composition``;
    where the plain way is wrong, too, and difflab's reverse mode is right, ``rule``. An exception
    that does not say that something is unsupported is a ``crash``; a process that ended is
    ``ended``.

    Attributes
    ----------
    names : sequence of str
        The packages.
    timeout : float
        Seconds for a package or the referee on one program.
    counts : Counter
        By ``(package, verdict)``.
    """

    names: Sequence[str]
    timeout: float = 60.0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    workers: dict[str, RestartedWorker] = field(default_factory=dict, repr=False)

    schema = "difflab.fuzz-compositions/1"
    verdicts = (*_OUTCOMES, *_FINDINGS)

    def reproduction(self, finding: FuzzFinding) -> str:
        """Return a pytest file that fails as long as the finding is there."""
        return reproduction(finding)

    def programs(self) -> st.SearchStrategy[Composed]:
        """Return the strategy of programs."""
        return compositions()

    def again(self, program: Composed, finding: FuzzFinding) -> FuzzFinding | None:
        """Return the same finding of another program, by its package only."""
        findings = self._findings_of(program, (finding.method,), Counter()) or []
        return next((new for new in findings if new.kind == finding.kind), None)

    def findings(self, program: Composed) -> list[FuzzFinding] | None:
        """Return the findings of a program; None if it has no derivative to judge by."""
        return self._findings_of(program, self.names, self.counts)

    def _findings_of(
        self, program: Composed, names: Sequence[str], counts: Counter[tuple[str, str]]
    ) -> list[FuzzFinding] | None:
        """Return the findings of some packages, and count their verdicts."""
        try:
            function = parse(program.text)
        except DifflabError:
            return None
        if function.m != 1 or not function.n or function.output_shapes[0]:
            return None
        point = {name: program.point[name] for name in function.inputs}
        x = np.array([v for name in point for v in np.ravel(point[name])], dtype=program.dtype)
        at = x.astype(np.float64).tolist()
        truth = TrueDerivative.of(function, at, program.order, self.timeout)
        if truth is None:
            return None
        small = replace(program, point=point)
        trials = [_Trial(self, name, small, function, at, truth, counts) for name in names]
        return [finding for trial in trials for finding in trial.findings()]

    def request(
        self, name: str, text: str, names: Sequence[str], x: list[float], dtype: str
    ) -> list[float]:
        """Return the result of a package's process, which is started anew after its end."""
        worker = self.workers.setdefault(name, RestartedWorker(_WORKER, name))
        derivative: list[float] = worker.request(
            "answer", text, names, x, dtype, timeout=self.timeout
        )
        return derivative


@dataclass
class _Trial:
    """A package on a program."""

    panel: CompositionPanel
    name: str
    program: Composed
    function: Function
    x: list[float]
    truth: TrueDerivative
    counts: Counter[tuple[str, str]]

    @property
    def package(self) -> Framework:
        """The package's transforms."""
        return framework(self.name)

    def findings(self) -> Iterator[FuzzFinding]:
        """Yield the finding of the composition, if it is one."""
        if self.program.dtype == "float32" and not self.package.single:
            return
        names = self.package.names(self.program.steps)
        kind, reason, derivative = self._outcome(names)
        plain = self.package.plain(self.program.order)
        if kind == Verdict.DISAGREE:
            other, why, value = self._outcome(plain)
            if other in (Verdict.AGREE, Verdict.CONVENTION) and names != plain:
                kind = "composition"
            elif other == Verdict.DISAGREE and self._own_agrees():
                kind, names, reason, derivative = "rule", plain, why, value
            else:
                kind = str(Verdict.INCONCLUSIVE)
        self.counts[self.name, kind] += 1
        if kind in _FINDINGS:
            yield self._finding(kind, names, reason, derivative)

    def _outcome(self, names: Sequence[str]) -> tuple[str, str, list[float]]:
        """Return the verdict on a composition, the reason, and the result."""
        try:
            derivative = self.panel.request(
                self.name, self.program.text, names, self.x, self.program.dtype
            )
        except UnsupportedError as error:
            return "refused", str(error), []
        except MethodTimeout as error:
            return "timeout", str(error), []
        except WorkerDied as error:
            return "ended", str(error), []
        except DifflabError as error:
            text = str(error)
            return ("refused" if REFUSALS.search(text) else "crash"), text, []
        return *self.truth.verdict(derivative, self.program.dtype), derivative

    def _own_agrees(self) -> bool:
        """Return whether difflab's reverse mode agrees, so that the program is well conditioned."""
        if self.truth.order > 2 or self.program.dtype != "float64":
            return False
        problem = Problem.of(self.function, order=self.truth.order)
        try:
            with np.errstate(all="ignore"):
                estimate = own()["reverse"].prepare(problem)(np.array(self.x))
        except DifflabError:
            return False
        return self.truth.verdict(np.ravel(estimate.value).tolist(), "float64")[0] == Verdict.AGREE

    def _finding(
        self, kind: str, names: Sequence[str], reason: str, derivative: Sequence[float]
    ) -> FuzzFinding:
        rows = {row.name for row in self.function.graph.primitives}
        if kind != "rule":
            rows |= {f"{name}()" for name in names}
        if self.program.dtype != "float64":
            rows.add(self.program.dtype)
        label = f"{self.program.dtype} {spelled(names)}"
        if kind == "crash":
            reason = re.sub(r"0x[0-9a-f]+|\d+", "#", reason)[:300]
        return FuzzFinding(
            self.name,
            kind,
            self.program,
            frozenset(rows),
            reason if kind == "crash" else f"{label}: {reason}",
            label,
            tuple(map(repr, derivative)),
            tuple(map(repr, self.truth.expected.tolist())),
        )


def reproduction(finding: FuzzFinding) -> str:
    """Return a pytest file that fails as long as the finding is there."""
    program = finding.program
    assert isinstance(program, Composed)
    package = f"{finding.method} {framework(finding.method).peer.version()}".strip()
    return f'''"""{package}: {finding.reason}.

Found by `difflab fuzz --compositions`; it passes once the derivative is right.

{package} computed: {", ".join(finding.actual) or "nothing"}
the truth: {", ".join(finding.expected)}
"""

import pytest

from difflab.testing.fuzz.compositions.framework import Step
from difflab.testing.fuzz.compositions.panel import Composed, CompositionPanel

PROGRAM = {program!r}


def test_{finding.method}_agrees_with_the_truth():
    pytest.importorskip("{finding.method}")
    assert not CompositionPanel(["{finding.method}"]).findings(PROGRAM)
'''
