"""Judging and timing the methods of a case, and the records that both make.

Calls are timed in blocks, each prepared anew and paired with the yardstick. The record of a method
that is compared over a domain has the verdict and the errors of its worst point; the whole row is
in the column `comparison`, as in the schema ``difflab.domain/3``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from difflab.core.progress import silent
from difflab.core.strict_json import long_integers
from difflab.core.wording import percent
from difflab.errors import InputError
from difflab.execute.long_loops import interpreter_of
from difflab.lab.compare import compare
from difflab.lab.domain.compare import compare_domain
from difflab.lab.domain.record import READ, DomainRow, read_rows
from difflab.lab.environment import now
from difflab.lab.measure import FIRST_CALL, CallCost, Effort, MethodCall, answer, in_turns
from difflab.lab.options import CompareOptions, DomainOptions, chosen
from difflab.lab.provenance import MACHINE, source
from difflab.lab.record import ERRORS, STORED, Comparison, MethodRow, Outcome, Status, outcome
from difflab.lab.store import Record, digest, packed_json
from difflab.lab.study.cases import Domain, StudyCase
from difflab.lab.sweep import Cell
from difflab.methods.protocol import Method, Prepared, Problem
from difflab.methods.registry import select


@dataclass
class Times:
    """Samples of one method.

    Attributes
    ----------
    prepare : list of float
        Seconds of each preparation.
    blocks : list of (list of float, list of float)
        For each block the seconds of a call, and of the yardstick, one element per round.
    peak_bytes : int or None
        The peak memory of a call.
    first : bool
        Whether a block has the first call only, which may include compilation.
    """

    prepare: list[float] = field(default_factory=list)
    blocks: list[tuple[list[float], list[float]]] = field(default_factory=list)
    peak_bytes: int | None = None
    first: bool = False

    @property
    def spent(self) -> float:
        """Seconds of one preparation and one call in the last block."""
        return self.prepare[-1] + min(self.blocks[-1][0])


def timed(case: StudyCase, names: Sequence[str]) -> dict[str, Times]:
    """Return the times of the methods `names` of a case.

    Each of the ``case.repeats`` blocks prepares every method anew and samples all calls and the
    yardstick in turns, so that two blocks share neither code objects nor a disturbance. A method
    whose first block took a good part of its time limit has that block only; one that fails here,
    having succeeded when it was judged, has the blocks until then.
    """
    from difflab.diagnose.point_check import checked_point, packed
    from difflab.language import parse

    function = parse(case.text)
    x = packed(function, checked_point(function, case.point, on=interpreter_of(function)))
    problem = Problem.of(
        function, order=case.order, timeout=case.timeout, target=case.target, often=True
    )
    effort = Effort(problem, x)
    methods = {
        name: effort.stoppable(method) for name, method in zip(names, select(names), strict=True)
    }
    times = {name: Times() for name in methods}
    with np.errstate(all="ignore"):
        for _ in range(case.repeats):
            _block(methods, problem, x, times)
            methods = {
                name: method
                for name, method in methods.items()
                if times[name].blocks and times[name].spent * case.repeats < case.timeout
            }
            if not methods:
                break
    return times


def _block(methods: dict[str, Method], problem: Problem, x: Any, times: dict[str, Times]) -> None:
    """Add a block to the times of each method; those that fail get none."""
    calls: dict[str, MethodCall] = {}
    for name, method in list(methods.items()):
        try:
            result = answer(method, problem, x, preparations=1)
        except (Exception, SystemExit):  # a method of another package may raise anything
            del methods[name]
            continue
        times[name].prepare.extend(result.prepare_samples)
        calls[name] = result.call
    reference = MethodCall(cast(Prepared, _yardstick), x)
    costs = in_turns([*calls.values(), reference])
    yard = costs.pop()
    for name, cost in zip(calls, costs, strict=True):
        if isinstance(cost, CallCost) and isinstance(yard, CallCost):
            # Call and yardstick are sampled in every round until the call's budget is spent.
            rounds = min(len(cost.samples), len(yard.samples))
            times[name].blocks.append(([*cost.samples[:rounds]], [*yard.samples[:rounds]]))
            times[name].peak_bytes = cost.peak_bytes
            times[name].first = times[name].first or cost.first
        else:
            del methods[name]


_STEPS = 400


def _yardstick(x: Any) -> float:
    """Take 400 steps of the logistic map; `x` is ignored.

    Examples
    --------
    >>> 0 < _yardstick(None) < 1
    True
    """
    y = 0.3
    for _ in range(_STEPS):
        y = 3.9 * y * (1.0 - y)
    return y


def _judged_over(case: StudyCase, domain: Domain, names: Sequence[str]) -> dict[str, Any]:
    """Compare methods over the domain of a case; return the schema ``difflab.domain/3``."""
    over = {name: tuple(ends) for name, ends in domain.over.items()}
    settings = chosen(vars(case) | vars(domain), DomainOptions)
    options: Any = {**settings, "methods": names, "progress": silent}  # the study shows its own
    return compare_domain(case.text, over, case.point, **options).to_dict()


def read_over(text: str) -> Mapping[str, Any]:
    """Return the comparison that ``difflab compare --over --format json`` printed.

    Raises
    ------
    InputError
        The text is none.
    """
    try:
        with long_integers():
            document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("schema") not in READ:
        raise InputError("this is no comparison over a domain")
    return document


def options_over(domain: Domain) -> list[str]:
    """Return the options of ``difflab compare`` for a domain.

    Examples
    --------
    >>> options_over(Domain({"x": [0.1, 10]}, 500, {"x": "log"}))
    ['--over', 'x=0.1:10', '--points', '500', '--scale', 'x=log']
    """
    options = ["--over", domain.label, "--points", str(domain.points)]
    if domain.scale:
        options += ["--scale", ",".join(f"{name}={kind}" for name, kind in domain.scale.items())]
    return options + ["--seed", str(domain.seed)] * (domain.seed != 0)


def rows_over(document: Mapping[str, Any]) -> dict[str, MethodRow]:
    """Return each method's worst point as a row, by the method's name."""
    return {row.name: _row(row) for row in read_rows(document)}


def _row(row: DomainRow) -> MethodRow:
    status, message, worst = row.status, row.message, row.worst
    if status is Status.OK and worst is None:  # no point has an answer
        status, message = Status(row.silences[0].status), row.silences[0].reason
    shares = {name: share for name, share in row.shares.items() if share}
    if worst is not None and (set(shares) != {"agree"} or worst.verdict != "agree"):
        message = ", ".join(f"{percent(share)} {name}" for name, share in shares.items())
        message += f"; worst in the {worst.found}: {worst.message or worst.verdict}"
    errors: dict[str, Any] = {name: getattr(worst, name, None) for name in ERRORS}
    return MethodRow(
        name=row.name,
        family=row.family,
        status=status,
        message=message,
        verdict=None if worst is None else worst.verdict,
        **errors,
        function_evaluations=row.evaluations,
        prepare_seconds=row.prepare_seconds,
    )


Source = Mapping[str, Cell]


@dataclass(frozen=True)
class JudgedCase:
    """The comparison of a case, not timed; or the reason why there is none.

    Attributes
    ----------
    comparison : Comparison or None
        At a point.
    failure : Outcome or None
        Why there is none.
    domain : mapping or None
        The comparison over a domain, of the schema ``difflab.domain/3``.
    """

    comparison: Comparison | None
    failure: Outcome | None = None
    domain: Mapping[str, Any] | None = None


def sources(cases: Sequence[StudyCase]) -> dict[str, Source]:
    """Return the provenance of records by method: versions, code, processor, packages."""
    names = dict.fromkeys(name for case in cases for name in case.methods)
    methods = select([*names]) if names else []
    return {method.name: source(method) for method in methods}


def keys(case: StudyCase, provenance: Mapping[str, Source]) -> dict[str, str]:
    """Return the key of the record of each method of a case, by the method's name.

    It is a hash of what is differentiated, the settings, and what produces the record.
    """
    return {
        name: digest({"case": case.key, "method": name, "source": dict(provenance[name])})
        for name in case.methods
    }


def judged(case: StudyCase, names: Sequence[str]) -> JudgedCase:
    """Compare the methods `names` of a case, without times.

    Whatever goes wrong with a whole comparison, such as too little memory, is a result.
    """
    try:
        if case.domain is not None:
            return JudgedCase(None, domain=_judged_over(case, case.domain, names))
        settings = chosen(vars(case), CompareOptions)
        options: Any = {**settings, "methods": names, "timing": False, "progress": silent}
        return JudgedCase(compare(case.text, case.point, often=case.repeats > 0, **options))
    except Exception as error:  # packages and problems of others may raise anything
        return JudgedCase(None, outcome(error))


def to_time(case: StudyCase, result: JudgedCase) -> list[str]:
    """Return the methods of a case whose calls are timed: those that returned a derivative."""
    if result.comparison is None or not case.repeats:
        return []
    return [row.name for row in result.comparison.methods if row.status is Status.OK]


def records(
    study: str,
    case: StudyCase,
    result: JudgedCase,
    times: Mapping[str, Times],
    wanted: Mapping[str, str],
    provenance: Mapping[str, Source],
) -> list[Record]:
    """Return the records of the methods `wanted`, a mapping of names to keys."""
    rows = {} if result.comparison is None else {row.name: row for row in result.comparison.methods}
    rows |= {} if result.domain is None else rows_over(result.domain)
    shared = {**case.record(), "study": study, "date": now()}
    made = []
    for name, key in wanted.items():
        row = rows.get(name)
        comparison = result.comparison
        if row is not None and name in times:
            row = _with_times(row, times[name])
        single = None
        if comparison is not None and row is not None:
            single = packed_json(replace(comparison, methods=(row,)).to_dict())
        elif result.domain is not None:
            own = [each for each in result.domain["methods"] if each["name"] == name]
            single = packed_json({**result.domain, "methods": own})
        made.append(
            {
                "key": key,
                **shared,
                "method": name,
                **_figures(row, result.failure),
                "blocks": packed_json(times[name].blocks if name in times else []),
                "comparison": single,
                **{column: provenance[name][column] for column in MACHINE},
            }
        )
    return made


def _with_times(row: MethodRow, times: Times) -> MethodRow:
    calls = tuple(seconds for block in times.blocks for seconds in block[0])
    return replace(
        row,
        message="; ".join(filter(None, (row.message, FIRST_CALL * times.first))),
        prepare_seconds=min(times.prepare, default=None),
        prepare_samples=tuple(times.prepare),
        call_seconds=min(calls, default=None),
        samples=calls,
        peak_bytes=times.peak_bytes,
    )


def _figures(row: MethodRow | None, failure: Outcome | None) -> Record:
    """Return the columns of a method's result; inf and nan are kept by SQLite as inf and NULL."""
    if row is None:
        failure = failure or Outcome(Status.FAILED, "the comparison has no row of this method")
        return {
            **dict.fromkeys(column.name for column in STORED),
            "status": str(failure.status),
            "message": failure.message,
            "tree": None,
            "dag": None,
        }
    size = row.size
    return {
        **row.stored(),
        "status": str(row.status),
        "tree": None if size is None or size.tree is None else packed_json(size.tree),
        "dag": None if size is None or size.dag is None else packed_json(size.dag),
    }
