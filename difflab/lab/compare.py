"""`compare`: judge and then time every method on one function at one point.

Of Python code the graph is compared with the code first. Methods that see only values are given
those of the code, not of its graph; code without a graph is compared by these methods alone, and
by the referee of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE, FloatFormat, formats
from difflab.core.progress import Progress, shown
from difflab.core.system import require_memory
from difflab.errors import DifflabError, InputError, MethodTimeout
from difflab.execute import check_target
from difflab.execute.long_loops import interpreter_of, values_of
from difflab.graph.checks import require_timeout
from difflab.lab.code import CodeSubject
from difflab.lab.judge import ROUNDED, DeclaredRules, Judge, in_range, rounded_point
from difflab.lab.measure import Effort
from difflab.lab.options import CompareOptions, stated
from difflab.lab.record import (
    Comparison,
    Expression,
    MethodRow,
    Status,
    Variable,
    outcome,
)
from difflab.methods.in_dtype import InDtype
from difflab.methods.protocol import Family, Method, Problem
from difflab.methods.registry import runs_here, select

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.lab.measure import MethodCall
    from difflab.methods.timer import Deadline


Packed = NDArray[float64]

SAME = "run at the point: its values are the graph's"
NO_GRAPH = "it has no graph: methods and referee have float64 values of it only"
"""What the environment of a comparison says of Python code."""


@stated(CompareOptions)
def compare(
    expression: str | Function | Callable[..., Any] | CodeSubject,
    at: Mapping[str, Any] | None = None,
    *,
    truth: Function | None = None,
    often: bool | None = None,
    reported: Callable[[MethodRow], None] | None = None,
    **options: Unpack[CompareOptions],
) -> Comparison:
    """Differentiate a function by every method, judge the results and measure the cost.

    Parameters
    ----------
    expression, at, **options
        As for `difflab.compare`. A method that may not end in time runs in a separate process,
        which is stopped; the time to start that process and to import packages is not counted.
    progress : callable, optional
        Called as ``progress(done, total, name)`` before each method.
    truth : Function, optional
        Another expression of the same function of real numbers, which the referee evaluates
        instead.
    often : bool, optional
        Whether methods prepare for many calls; by default if calls are timed.
    reported : callable, optional
        Called with each row once it is judged, before calls are timed.

    Returns
    -------
    Comparison
        One row per method. The row of a method that cannot differentiate the function, takes
        too long or fails states the reason.

    Raises
    ------
    InputError
        The text, the point, the names of the methods, the order or the target are invalid.
    GraphMismatchError
        The graph of Python code has another value than the code.
    ResourceError
        The derivatives need more memory than is available.

    Examples
    --------
    >>> result = compare(
    ...     "ln(x1) + x1*x2 - sin(x2)", {"x1": 2, "x2": 5}, methods=["reverse"], timing=False
    ... )
    >>> result.methods[0].jacobian
    array([[5.5       , 1.71633781]])
    >>> result.methods[0].verdict, result.agreed
    ('agree', True)
    """
    timing, order, target = options["timing"], options["order"], options["target"]
    timeout, seed = options["timeout"], options["seed"]
    check_target(target)
    dtypes = formats(options["dtype"])
    methods = chosen = select(options["methods"])
    start(chosen)
    case = _case_of(expression, at, options)
    _require_room(case, order, len(chosen))
    many = timing if often is None else often
    settings: dict[str, Any] = {"order": order, "timeout": timeout, "target": target, "often": many}
    problems = case.problems(**settings)
    if case.function is not None:
        effort = Effort(problems.graph, case.x)
        chosen = [
            effort.stoppable(each) if problems.of(each) is problems.graph else each
            for each in chosen
        ]
    start(chosen)
    rows: list[MethodRow] = []
    judges: list[Judge] = []
    with shown(options["progress"]) as progress:
        for dtype in dtypes:
            progress(0, len(chosen), "the referee")
            x = case.x if dtype is DOUBLE else rounded_point(dtype, case.x)
            judges.append(Judge(truth or case.function, x, order, timeout, case.values, dtype))
            if dtype is DOUBLE:
                rows += _rows(chosen, problems, x, judges[-1], timing, progress, reported)
                continue
            coarse = [InDtype(each, dtype) for each in methods]
            coarse_rows = _rows(coarse, problems, x, judges[-1], False, progress, None)
            rows += in_range(coarse_rows, case.function, judges[-1], reported)
    first = judges[0]
    if first.dtype is not DOUBLE and case.function is not None:
        case = case.at(first.x)
    return Comparison(
        expression=case.expression(truth is not None),
        point=case.point,
        point_chosen=at is None,
        order=order,
        value=np.asarray(case.value, dtype=float64),
        reference=first.row(),
        methods=tuple(rows),
        environment=environment_of(
            chosen,
            target=target,
            timeout=f"{timeout:g} s",
            seed=seed if at is None else None,
            **_dtype(case.function, dtypes),
            **({"code": case.evidence} if case.evidence else {}),
        ),
    )


def _dtype(function: Function | None, dtypes: Sequence[FloatFormat]) -> dict[str, str]:
    """Return the entry of the environment about the dtypes, if there is one."""
    if [*dtypes] != [DOUBLE]:
        names = ", ".join(map(str, dtypes))
        return {"dtype": f"{names}; {ROUNDED}"}
    if function is None or not function.traced_in:
        return {}
    return {"dtype": f"float64; the code was traced for {function.traced_in}, which rounds more"}


@dataclass(frozen=True, eq=False)
class Problems:
    """The problem of each method: of the graph, or of the values of the code."""

    graph: Problem
    code: Problem | None = None
    note: str = ""

    @classmethod
    def of_code(
        cls,
        subject: CodeSubject,
        values: Callable[[NDArray[Any]], NDArray[Any]],
        m: int,
        note: str = "",
        deadline: Deadline | None = None,
        **settings: Any,
    ) -> Problems:
        """Return the problems of code of `m` values: methods that see only values call the code."""
        if subject.function is None:
            settings |= {"untraceable": subject.reason, "deadline": deadline}
            bare = Problem(values, subject.n, m, **settings)
            return cls(bare, bare)
        graph = Problem.of(subject.function, **settings)
        return cls(graph, replace(graph, values=values, function=None, deadline=deadline), note)

    def of(self, method: Method) -> Problem:
        """Return the problem of a method: that of the code if it sees only values of it."""
        if self.code is None or not runs_here(method):
            return self.graph
        only_values = method.family is Family.NUMERIC or self.graph.function is None
        return self.code if only_values else self.graph


@dataclass(frozen=True, eq=False)
class _Case:
    """Subject of a comparison, at its point.

    Attributes
    ----------
    function : Function or None
        The graph; None for code that cannot be traced.
    point : mapping of str to float or ndarray
        The value of every input.
    x : ndarray (n,)
        The same, packed.
    value : ndarray (m,)
        The values of the function there.
    code : CodeSubject or None
        The code, if it is Python.
    evidence : str
        What is known of the graph and the code.
    note : str
        Why that is nothing, for the rows.
    """

    function: Function | None
    point: Mapping[str, Any]
    x: Packed
    value: NDArray[Any]
    code: CodeSubject | None = None
    evidence: str = ""
    note: str = ""

    @property
    def values(self) -> Callable[[NDArray[Any]], NDArray[Any]] | None:
        """The code as a function of packed points."""
        if self.code is None:
            return None
        if self.function is None and self.note:
            return self._too_slow
        return self.code.called(self.value.size)

    def _too_slow(self, points: NDArray[Any]) -> NDArray[Any]:
        raise MethodTimeout(self.evidence)

    def at(self, x: Packed) -> _Case:
        """Return the graph at another point."""
        assert self.function is not None
        parts = zip(self.function.inputs, self.function.split(x), strict=True)
        point = {name: part if part.ndim else float(part) for name, part in parts}
        return replace(self, x=x, point=point, value=np.asarray(values_of(self.function)(x)))

    def problems(self, **settings: Any) -> Problems:
        """Return the problems of the methods."""
        if self.code is None:
            assert self.function is not None
            return Problems(Problem.of(self.function, **settings))
        assert self.values is not None
        size = self.value.size
        return Problems.of_code(self.code, self.values, size, self.note, **settings)

    def expression(self, hidden: bool) -> Expression:
        """Return the description of the function; its text is printed again if it is hidden."""
        if self.function is not None:
            return described(self.function, None if hidden else self.function.text)
        assert self.code is not None
        code = self.code.code
        outputs = [Variable("f", () if self.value.size == 1 else (self.value.size,))]
        return Expression(code.name, _variables(code.inputs, code.shapes), tuple(outputs))


def _case_of(
    expression: str | Function | Callable[..., Any] | CodeSubject,
    at: Mapping[str, Any] | None,
    options: CompareOptions,
) -> _Case:
    """Return the subject: a formula or a graph at a point, or code that has run there."""
    from difflab.diagnose.point_check import checked_point, packed
    from difflab.graph.function import Function

    order, timeout, seed = options["order"], options["timeout"], options["seed"]
    subject = expression
    if callable(expression) and not isinstance(expression, Function):
        subject = CodeSubject.of(expression, at)
    if not isinstance(subject, CodeSubject):
        function = parsed(subject, order, timeout, at)
        point = checked_point(function, at, seed, on=interpreter_of(function))
        x = packed(function, point)
        return _Case(function, point, x, np.asarray(values_of(function)(x)))
    graph, x, note, evidence = subject.function, subject.x, "", ""
    value = None
    if options["verify"] or graph is None:
        try:
            value = subject.verified(timeout).values
            evidence = SAME if graph is not None else NO_GRAPH
        except MethodTimeout as error:
            note = evidence = f"the graph was not compared with the code: {error}"
            if graph is None:
                return _Case(None, subject.point, x, np.full(1, np.nan), subject, str(error), note)
    assert graph is not None or value is not None
    m = graph.m if graph is not None else np.asarray(value).size
    check_request(m, subject.n, order, timeout)
    if graph is not None:
        checked_point(graph, subject.point, seed, on=interpreter_of(graph))
        value = values_of(graph)(x) if value is None else value
    assert value is not None
    return _Case(graph, subject.point, x, np.asarray(value), subject, evidence, note)


def environment_of(methods: Sequence[Method], **settings: Any) -> dict[str, Any]:
    """Return the environment of the comparison: the machine, versions, and settings."""
    from difflab.lab.environment import environment, now, packages

    versions = dict.fromkeys(text for method in methods for text in packages(method))
    return {**environment(), "packages": ", ".join(versions), **settings, "date": now()}


def start(methods: Sequence[Method]) -> None:
    """Start the processes of methods that have one, without waiting for them."""
    for method in methods:
        start = getattr(method, "start", None)
        if start is not None:
            start()


def _waited(methods: Sequence[Method]) -> None:
    """Wait until the processes of methods that have one have loaded their packages."""
    for method in methods:
        wait = getattr(method, "wait", None)
        if wait is not None:
            with suppress(DifflabError):  # the method's own row reports the error
                wait()


def parsed(
    expression: Any, order: int, timeout: float, *points: Mapping[str, Any] | None
) -> Function:
    """Return the function of a comparison; names to which `points` give values are variables.

    Raises
    ------
    InputError
        The text, the order or the time limit is invalid.
    """
    from difflab.graph.function import Function

    if isinstance(expression, str):
        from difflab.language import given_names, parse

        function: Function = parse(expression, given_names(*points))
    elif isinstance(expression, Function):
        function = expression
    else:
        raise InputError(
            f"expected a formula, a Function or Python code, not a {type(expression).__name__}"
        )
    check_request(function.m, function.n, order, timeout, function.text)
    return function


def check_request(m: int, n: int, order: int, timeout: float, text: str | None = None) -> None:
    """Raise an error unless an order and a time limit suit a function of n inputs, m outputs.

    Raises
    ------
    InputError
        There is no input, or the order or the time limit is invalid.
    """
    if n == 0:
        raise InputError("the expression has no input to differentiate with respect to", text=text)
    if order not in (1, 2):
        raise InputError(f"order must be one of the orders 1 and 2, not {order!r}")
    if order == 2 and m != 1:
        raise InputError(f"order 2 requires one output number, and the expression has {m}")
    require_timeout(timeout)


def _require_room(case: _Case, order: int, methods: int) -> None:
    """Raise `ResourceError` if the derivatives of all methods and the referee exceed memory."""
    rows, columns = (case.value.size if order == 1 else case.x.size), case.x.size
    each = f"a derivative of {rows:,} × {columns:,} elements"
    require_memory(8 * rows * columns * (methods + 2), f"{each} for every method and the referee")


def described(function: Function, text: str | None) -> Expression:
    """Return the description of a function, which has a text or is printed."""
    if text is None:
        from difflab.language.printers import text as printed

        text = printed(function)
    return Expression(
        text,
        _variables(function.inputs, function.input_shapes),
        _variables(function.output_names, function.output_shapes),
    )


def _variables(names: Iterable[str], shapes: Iterable[tuple[int, ...]]) -> tuple[Variable, ...]:
    return tuple(Variable(name, shape) for name, shape in zip(names, shapes, strict=True))


def _rows(
    methods: Sequence[Method],
    problems: Problems,
    x: Packed,
    judge: Judge,
    timing: bool,
    progress: Progress,
    reported: Callable[[MethodRow], None] | None,
) -> list[MethodRow]:
    """Return one row per method, in the order of `methods`.

    Methods with a process of their own are called last, when it has had time to start. One process
    that loads in the background disturbs timings little; several are waited for first.
    """
    loading = [method for method in methods if hasattr(method, "start")]
    if timing and len(loading) > 1:
        _waited(loading)
    order = sorted(range(len(methods)), key=lambda index: hasattr(methods[index], "start"))
    rows: dict[int, MethodRow] = {}
    ready: dict[int, MethodCall] = {}
    rules = DeclaredRules(problems.graph)
    for done, index in enumerate(order):
        progress(done, len(methods), methods[index].name)
        method, problem = methods[index], problems.of(methods[index])
        rows[index] = MethodRow(name=method.name, family=method.family, status=Status.OK)
        try:
            with np.errstate(all="ignore"):
                rows[index], ready[index] = _judged(method, problem, x, judge, rows[index], rules)
        except (Exception, SystemExit) as error:  # a method of another package may raise anything
            rows[index] = _failed(rows[index], error)
        if problems.note and problem is problems.graph:
            said = "; ".join(filter(None, (rows[index].message, problems.note)))
            rows[index] = replace(rows[index], message=said)
        if reported is not None:
            reported(rows[index])
    if timing:
        rows |= _timed({index: rows[index] for index in ready}, ready)
    return [rows[index] for index in range(len(methods))]


def _failed(row: MethodRow, error: BaseException) -> MethodRow:
    """Return the row of a method that raised `error`."""
    return MethodRow(name=row.name, family=row.family, **outcome(error)._asdict())


def _timed(rows: Mapping[int, MethodRow], calls: Mapping[int, MethodCall]) -> dict[int, MethodRow]:
    """Return rows with the times of their calls, which are sampled alternately."""
    from difflab.lab.measure import CallCost, in_turns

    with np.errstate(all="ignore"):
        costs = in_turns([calls[index] for index in rows])
    timed_rows: dict[int, MethodRow] = {}
    for (index, row), cost in zip(rows.items(), costs, strict=True):
        if isinstance(cost, CallCost):
            timed_rows[index] = replace(
                row,
                message=cost.noted(row.message),
                call_seconds=cost.seconds,
                call_form=cost.form,
                samples=cost.samples,
                peak_bytes=cost.peak_bytes,
            )
        else:
            timed_rows[index] = _failed(row, cost)
    return timed_rows


def _judged(
    method: Method,
    problem: Problem,
    x: Packed,
    judge: Judge,
    blank: MethodRow,
    rules: DeclaredRules,
) -> tuple[MethodRow, MethodCall]:
    """Return the row of a method without times, and its call for timing."""
    from difflab.lab.measure import answer

    result = answer(method, problem, x)
    estimate, prepared = result.estimate, result.call.prepared
    value = np.array(estimate.value, dtype=float64)
    if value.shape != problem.shape:
        raise DifflabError(
            f"it returned an array of shape {value.shape} instead of {problem.shape}"
        )
    judged = judge.judged(blank, replace(estimate, value=value))
    if judged.verdict == "disagree" and rules.apply_to(method):
        judged = rules.judged(judged, method, x, value, judge.judged)
    error = () if estimate.error is None else estimate.error
    row = replace(
        judged,
        jacobian=value,
        error_estimate=float(np.max(error)) if np.size(error) else None,
        function_evaluations=estimate.evaluations,
        prepare_seconds=min(result.prepare_samples),
        prepare_samples=result.prepare_samples,
        operations=prepared.operations,
        size=prepared.size,
    )
    return row, result.call
