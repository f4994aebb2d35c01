"""`compare_domain`: judge every method at many points of a domain, and search for its worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE, FloatFormat, formats
from difflab.core.progress import Progress
from difflab.core.progress import shown as in_view
from difflab.core.strict_json import strict
from difflab.core.system import require_memory
from difflab.errors import InputError, MethodTimeout
from difflab.execute import check_target
from difflab.graph.function import Function
from difflab.lab import engine
from difflab.lab.code import CodeSubject
from difflab.lab.compare import (
    NO_GRAPH,
    Problems,
    check_request,
    described,
    environment_of,
    parsed,
    start,
)
from difflab.lab.domain.answers import Candidate, EachTime, prepared
from difflab.lab.domain.box import Box, box_of, evenly
from difflab.lab.domain.judging import JudgedPoints, block_of, gathered
from difflab.lab.domain.record import DomainComparison
from difflab.lab.domain.referees import Referees
from difflab.lab.domain.rows import Suspects, in_range_over, losing_node, row_of
from difflab.lab.domain.search import Search
from difflab.lab.engine import Work
from difflab.lab.judge import ROUNDED, DeclaredRules, rounded_point
from difflab.lab.measure import Effort
from difflab.lab.options import DomainOptions, stated
from difflab.lab.provenance import source
from difflab.lab.store import Record, Store, digest, kept, packed_json, unpacked_json
from difflab.methods.in_dtype import InDtype
from difflab.methods.protocol import Problem
from difflab.methods.registry import select

Points = NDArray[float64]

BLOCK = 500
"""Points that are judged together, at most."""
_NUMBERS = 1 << 22  # of all methods' derivatives in a block
SCAN = 3
"""The sample and the scan of the search have at least so many points as the sample."""


@stated(DomainOptions)
def compare_domain(
    expression: str | Function | Callable[..., Any] | CodeSubject,
    over: Mapping[str, Any],
    at: Mapping[str, Any] | None = None,
    *,
    notify: Callable[[str], None] | None = None,
    **options: Unpack[DomainOptions],
) -> DomainComparison:
    """Differentiate a function by every method at many points of a domain, and judge each.

    Parameters
    ----------
    expression, over, at, **options
        As for `difflab.compare`.
    progress : callable, optional
        Called as ``progress(done, total, label)`` before each block of points; by default a line
        on standard error shows it, if the comparison takes more than two seconds.
    notify : callable, optional
        Called with a line of text if finished blocks were found in `resume`.

    Returns
    -------
    DomainComparison
        One row per method: the share of each verdict, the errors, the worst point.

    Raises
    ------
    InputError
        The text, the domain, the names of the methods, the order or the target are invalid.
    GraphMismatchError
        The graph of Python code has another value than the code at a point.
    ResourceError
        The points need more memory than is available.

    Examples
    --------
    >>> comparison = compare_domain("sin(x)", {"x": (0, 3)}, points=50, methods=["forward"])
    >>> comparison.methods[0].shares["agree"], comparison.agreed
    (1.0, True)
    """
    dtypes = formats(options["dtype"])
    if len(dtypes) > 1:
        return _joined(
            [
                compare_domain(expression, over, at, notify=notify, **_in_dtype(options, dtype))
                for dtype in dtypes
            ]
        )
    (dtype,) = dtypes
    points, seed, resume = options["points"], options["seed"], options["resume"]
    order, timeout, target = options["order"], options["timeout"], options["target"]
    verify = options["verify"]
    check_target(target)
    if isinstance(points, bool) or not isinstance(points, int) or points < 1:
        raise InputError(f"the number of points must be a positive integer, not {points!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"the seed must be a non-negative integer, not {seed!r}")
    chosen = select(options["methods"])
    subject = code_over(expression, over, at)
    if subject is None:
        function, evidence = parsed(expression, order, timeout, over, at), ""
    else:
        function, evidence = _run_once(subject, timeout, verify)
        check_request(function.m, subject.n, order, timeout)
        at = {name: value for name, value in subject.point.items() if name not in over}
    box = box_of(function, over, at, options["scale"])
    unit = evenly(len(box.moving), SCAN * points, seed)
    sample = rounded_point(dtype, box.points(unit[:points]))
    start(chosen)
    settings: dict[str, Any] = {"order": order, "timeout": timeout, "target": target, "often": True}
    if subject is None:
        problems = Problems(Problem.of(function, **settings))
    else:
        values, limit = subject.called(function.m), EachTime(timeout)
        problems = Problems.of_code(subject, values, function.m, deadline=limit, **settings)
        if verify and subject.function is not None and not evidence:
            evidence = subject.verified_over(sample, timeout)
    if dtype is not DOUBLE:
        chosen = [InDtype(each, dtype) for each in chosen]
    elif problems.graph.function is not None:
        effort = Effort(problems.graph, sample[0])
        chosen = [
            effort.stoppable(each) if problems.of(each) is problems.graph else each
            for each in chosen
        ]
    start(chosen)
    shown = {"target": target, "timeout": f"{timeout:g} s", "seed": seed}
    shown |= {"code": evidence} if evidence else {}
    shown |= {"dtype": f"{dtype}; {ROUNDED}"} if dtype is not DOUBLE else {}
    environment = environment_of(chosen, **shown)
    question = _question(function, box, points, order, [m.name for m in chosen], environment)
    if subject is not None:
        question["python"] = subject.digest
    path = None if resume is None else Path(resume)
    rules = DeclaredRules(problems.graph)
    with (
        in_view(options["progress"]) as progress,
        kept(path, notify) as store,
        Referees(problems.graph, points) as referees,
    ):
        work = _Work(function, box, sample, problems.graph, progress)
        work.prepare([prepared(method, problems.of(method), rules) for method in chosen])
        judged = gathered(work.sample_all(referees, store, question, notify))
        suspects, searched = work.search(referees, unit[points:], seed)
        return work.comparison(judged, suspects, searched, environment)


def _in_dtype(options: Mapping[str, Any], dtype: FloatFormat) -> Any:
    """Return the options of the comparison in one format; it resumes from a file of its own."""
    resume = options["resume"]
    if resume is not None:
        path = Path(resume)
        resume = path.with_name(f"{path.name}.{dtype}")
    return {**options, "dtype": [dtype.name], "resume": resume}


def _joined(parts: Sequence[DomainComparison]) -> DomainComparison:
    """Return comparisons in several formats as one; regularity and points are of the first."""
    first = parts[0]
    dtypes = [part.environment.get("dtype", "float64").partition("; ") for part in parts]
    note = next(text for _, _, text in dtypes if text)
    names = ", ".join(name for name, _, _ in dtypes)
    return replace(
        first,
        judged=[each for part in parts for each in part.judged],
        methods=tuple(row for part in parts for row in part.methods),
        contradiction=next((p.contradiction for p in parts if p.contradiction), ""),
        environment={**first.environment, "dtype": f"{names}; {note}"},
    )


def _run_once(subject: CodeSubject, timeout: float, verify: bool) -> tuple[Function, str]:
    """Run code at its point; return a function of its shapes, and evidence about its graph.

    Raises
    ------
    MethodTimeout
        There is no graph, and the code takes longer than the time limit.
    """
    if subject.function is None:
        return subject.shaped(subject.verified(timeout).values.size), NO_GRAPH
    if verify:
        try:
            subject.verified(timeout)
        except MethodTimeout as error:
            return subject.function, f"the graph was not compared with the code: {error}"
    return subject.function, ""


def code_over(
    expression: Any, over: Mapping[str, Any], at: Mapping[str, Any] | None
) -> CodeSubject | None:
    """Return Python code traced at a point of a domain; None for a formula or a graph.

    The arguments that vary are scalars, unless `at` gives them a shape.
    """
    if isinstance(expression, CodeSubject):
        return expression
    if isinstance(expression, str | Function) or not callable(expression):
        return None
    return CodeSubject.of(expression, {**middle_of(over), **(at or {})})


def middle_of(over: Mapping[str, Any]) -> dict[str, float]:
    """Return the middle of every valid interval; `box_of` refuses the others.

    Examples
    --------
    >>> middle_of({"x": (1, 3), "y": "no interval"})
    {'x': 2.0, 'y': 1.5}
    """
    middle = {}
    for name, ends in over.items() if isinstance(over, Mapping) else ():
        try:
            low, high = map(float, ends)
            middle[str(name)] = low + (high - low) / 2
        except (TypeError, ValueError):
            middle[str(name)] = 1.5
    return middle


def _question(
    function: Function,
    box: Box,
    points: int,
    order: int,
    methods: Sequence[str],
    environment: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the identifier of the blocks of a comparison."""
    from difflab.language.printers import text

    made = {name: each for name, each in environment.items() if name not in ("date", "code")}
    return {
        "domain": {"ranges": box.ranges, "fixed": box.fixed, "points": points},
        "function": text(function, whole=True, calls=True),
        "order": order,
        "methods": list(methods),
        "code": source().get("code"),
        "environment": made,
    }


class _Work:
    """The blocks of the sample, the search, and their comparison."""

    def __init__(
        self,
        function: Function,
        box: Box,
        sample: Points,
        problem: Problem,
        progress: Progress,
    ) -> None:
        self._function = function
        self._box = box
        self._sample = sample
        self._problem = problem
        self._progress = progress
        self._candidates: list[Candidate] = []
        self._steps = 0

    def prepare(self, candidates: Sequence[Candidate]) -> None:
        """Set the methods, and divide the sample into blocks that fit in memory."""
        self._candidates = list(candidates)
        each = len(candidates) * int(np.prod(candidates[0].shape))
        self._block = min(BLOCK, max(1, _NUMBERS // max(each, 1)))
        require_memory(32 * each * self._block, "a block of derivatives by every method")
        blocks = -(-len(self._sample) // self._block)
        self._steps = blocks + 1 + len(candidates)

    def sample_all(
        self,
        referees: Referees,
        store: Store,
        question: Mapping[str, Any],
        notify: Callable[[str], None] | None,
    ) -> list[JudgedPoints]:
        """Evaluate the methods block by block, while the referee judges earlier ones."""
        asked, blocks = digest(strict(question)), dict[str, JudgedPoints]()
        parts = []
        for number, first in enumerate(range(0, len(self._sample), self._block)):
            points, name = self._sample[first : first + self._block], f"{asked}-{number}"
            parts.append(Work(points, name, f"points {first:,} and on", {"": name}))
        finished = len(store.known([part.name for part in parts]))
        if finished and notify is not None:
            notify(f"going on from {store.path}: {finished} blocks are finished")

        def make(part: Work[Points], _: Mapping[str, str]) -> Callable[[], list[Record]]:
            answers = [candidate.answers(part.subject) for candidate in self._candidates]
            job = referees.judge(part.subject, answers)

            def records() -> list[Record]:
                block = blocks[part.name] = job.result()
                return [{"key": part.name, "content": packed_json(strict(block))}]

            return records

        def shown(done: int, total: int, label: str) -> None:
            if label:
                self._progress(done, self._steps, label)

        ahead = 2 * referees.processes if referees.processes > 1 else 0
        engine.run(store, parts, make, shown, notify, ahead=ahead)
        if finished:
            contents = {row["key"]: unpacked_json(row["content"]) for row in store.records()}
            blocks = {name: block_of(each) for name, each in contents.items()} | blocks
        return [blocks[part.name] for part in parts]

    def search(self, referees: Referees, unit: Points, seed: int) -> tuple[Suspects, int]:
        """Return the points that the search suspects, judged, and how many it evaluated."""
        methods = self._candidates
        search = Search(self._box, [each.ranked for each in methods], referees.truths, seed)
        begun = self._steps - 1 - len(methods)
        self._progress(begun, self._steps, "search: a scan of the domain")
        search.scan(unit)
        for index, candidate in enumerate(methods):
            self._progress(begun + 1 + index, self._steps, f"search: {candidate.method.name}")
            search.climb(index)
        parts = [search.suspects(index) for index in range(len(methods))]
        points = np.unique(np.concatenate(parts), axis=0)
        answers = [candidate.answers(points) for candidate in methods]
        count = max(1, min(referees.processes, len(points)))
        jobs = [
            referees.judge(points[rows], [each.part(rows) for each in answers])
            for rows in np.array_split(np.arange(len(points)), count)
        ]
        judged = gathered([job.result() for job in jobs])
        self._progress(self._steps, self._steps, "")
        return Suspects(points, judged), search.evaluated

    def comparison(
        self,
        judged: JudgedPoints,
        suspects: Suspects,
        searched: int,
        environment: Mapping[str, Any],
    ) -> DomainComparison:
        """Return the rows of all methods."""
        rows = []
        for index, candidate in enumerate(self._candidates):
            row = row_of(self._function, candidate, index, self._sample, judged, suspects)
            row = in_range_over(row, self._problem.function, self._problem.order, candidate.dtype)
            comparable = candidate.dtype is DOUBLE and candidate.derivative is not None
            if row.worst is not None and row.worst.verdict != "declared" and comparable:
                node = losing_node(candidate.method, self._problem, row.worst)
                row = replace(row, worst=replace(row.worst, node=node))
            rows.append(row)
        referred = judged.referred
        status = Counter(referred.status)
        contradictions = {**suspects.judged.referred.contradictions, **referred.contradictions}
        return DomainComparison(
            expression=described(self._function, self._function.text),
            box=self._box,
            order=self._problem.order,
            points=self._sample,
            referred=referred,
            judged=judged.methods,
            regularity={name: number / status.total() for name, number in status.most_common()},
            proved=float(referred.proved.mean()),
            searched=searched,
            contradiction=next(iter(contradictions.values()), ""),
            methods=tuple(rows),
            environment=dict(environment),
        )
