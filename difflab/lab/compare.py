"""`compare`: judge and then time every method on one function at one point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.machine import require_memory
from difflab.errors import DifflabError, InputError, MethodTimeout
from difflab.execute import check_target
from difflab.execute.long_loops import interpreter_of, values_of
from difflab.lab.conditioning import lost_value
from difflab.lab.effort import Effort
from difflab.lab.outcomes import outcome
from difflab.lab.record import Comparison, Expression, MethodRow, ReferenceRow, Status, Variable
from difflab.lab.sweep import Progress
from difflab.methods.protocol import Method, Problem
from difflab.methods.registry import select

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.lab.measure import MethodCall
    from difflab.referee.referee import Referee, Reference

__all__ = [
    "CompareOptions",
    "Judge",
    "compare",
    "described",
    "environment_of",
    "parsed",
    "start",
]

Packed = NDArray[float64]


class CompareOptions(TypedDict, total=False):
    """The optional arguments of a comparison, as `difflab.compare` documents them."""

    methods: Sequence[str] | None
    timing: bool
    order: int
    timeout: float
    seed: int
    target: str


def compare(
    expression: str | Function,
    at: Mapping[str, Any] | None = None,
    *,
    methods: Sequence[str] | None = None,
    timing: bool = True,
    order: int = 1,
    timeout: float = 10.0,
    seed: int = 0,
    target: str = "auto",
    progress: Progress | None = None,
    truth: Function | None = None,
    often: bool | None = None,
    reported: Callable[[MethodRow], None] | None = None,
) -> Comparison:
    """Differentiate a function by every method, judge the results and measure the cost.

    Parameters
    ----------
    expression, at, methods, timing, order, timeout, seed, target
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
    check_target(target)
    chosen = select(methods)
    start(chosen)
    function = parsed(expression, order, timeout, at)
    _require_room(function, order, len(chosen))
    from difflab.diagnose.point_check import checked_point, packed

    point = checked_point(function, at, seed, on=interpreter_of(function))
    x = packed(function, point)
    judge = Judge(truth or function, x, order, timeout)
    many = timing if often is None else often
    problem = Problem.of(function, order=order, timeout=timeout, target=target, often=many)
    effort = Effort(problem, x)
    chosen = [effort.stoppable(method) for method in chosen]
    start(chosen)
    rows = _rows(chosen, problem, x, judge, timing, progress, reported)
    return Comparison(
        expression=described(function, None if truth else function.text),
        point=point,
        point_chosen=at is None,
        order=order,
        value=np.asarray(problem.values(x), dtype=float64),
        reference=judge.row(),
        methods=tuple(rows),
        environment=environment_of(
            chosen,
            target=target,
            timeout=f"{timeout:g} s",
            seed=seed if at is None else None,
            **_dtype(function),
        ),
    )


def _dtype(function: Function) -> dict[str, str]:
    """Return what is to be said about the dtype in which code is evaluated, if anything is."""
    if not function.traced_in:
        return {}
    return {"dtype": f"float64; the code was traced for {function.traced_in}, which rounds more"}


def environment_of(methods: Sequence[Method], **settings: Any) -> dict[str, Any]:
    """Return the environment of the comparison: the machine, versions, and settings."""
    from difflab.lab.environment import environment, now
    from difflab.lab.provenance import packages

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
    expression: str | Function, order: int, timeout: float, *points: Mapping[str, Any] | None
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
            f"expected a formula or a Function, not a {type(expression).__name__}",
            hint="record Python code with difflab.trace(callable, *example_arguments)",
        )
    if function.n == 0:
        raise InputError(
            "the expression has no input to differentiate with respect to", text=function.text
        )
    if order not in (1, 2):
        raise InputError(f"order must be one of the orders 1 and 2, not {order!r}")
    if order == 2 and function.m != 1:
        raise InputError(f"order 2 requires one output number, and the expression has {function.m}")
    if not timeout > 0:
        raise InputError(f"the time limit must be a positive number of seconds, not {timeout!r}")
    return function


def _require_room(function: Function, order: int, methods: int) -> None:
    """Raise `ResourceError` if the derivatives of all methods and the referee exceed memory."""
    rows, columns = (function.m if order == 1 else function.n), function.n
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
    problem: Problem,
    x: Packed,
    judge: Judge,
    timing: bool,
    progress: Progress | None,
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
    for done, index in enumerate(order):
        if progress is not None:
            progress(done, len(methods), methods[index].name)
        method = methods[index]
        rows[index] = MethodRow(name=method.name, family=method.family, status=Status.OK)
        try:
            with np.errstate(all="ignore"):
                rows[index], ready[index] = _judged(method, problem, x, judge, rows[index])
        except (Exception, SystemExit) as error:  # a method of another package may raise anything
            rows[index] = _failed(rows[index], error)
        if reported is not None:
            reported(rows[index])
    if timing:
        rows |= _timed({index: rows[index] for index in ready}, ready)
    return [rows[index] for index in range(len(methods))]


def _failed(row: MethodRow, error: BaseException) -> MethodRow:
    """Return the row of a method that raised `error`."""
    return MethodRow(name=row.name, family=row.family, **outcome(error)._asdict())


def _timed(rows: Mapping[int, MethodRow], calls: Mapping[int, MethodCall]) -> dict[int, MethodRow]:
    """Return rows with the times of their calls, which are sampled in turns."""
    from difflab.lab.measure import CallCost, in_turns

    with np.errstate(all="ignore"):
        costs = in_turns([calls[index] for index in rows])
    found: dict[int, MethodRow] = {}
    for (index, row), cost in zip(rows.items(), costs, strict=True):
        if isinstance(cost, CallCost):
            found[index] = replace(
                row,
                message=cost.noted(row.message),
                call_seconds=cost.seconds,
                samples=cost.samples,
                peak_bytes=cost.peak_bytes,
            )
        else:
            found[index] = _failed(row, cost)
    return found


def _judged(
    method: Method, problem: Problem, x: Packed, judge: Judge, blank: MethodRow
) -> tuple[MethodRow, MethodCall]:
    """Return the row of a method without times, and its call for timing."""
    from difflab.lab.measure import answer

    found = answer(method, problem, x)
    estimate, prepared = found.estimate, found.call.prepared
    value = np.array(estimate.value, dtype=float64)
    if value.shape != problem.shape:
        raise DifflabError(
            f"it returned an array of shape {value.shape} instead of {problem.shape}"
        )
    row = replace(
        judge.judged(blank, replace(estimate, value=value)),
        jacobian=value,
        error_estimate=None if estimate.error is None else _largest(estimate.error),
        function_evaluations=estimate.evaluations,
        prepare_seconds=min(found.prepare_samples),
        prepare_samples=found.prepare_samples,
        operations=prepared.operations,
        size=prepared.size,
    )
    return row, found.call


def _largest(errors: NDArray[float64]) -> float | None:
    """Return the largest error estimate; nan if one is nan."""
    return float(np.max(errors)) if np.size(errors) else None


@dataclass
class Judge:
    """The referee at one point, called once; if it fails, every verdict is inconclusive."""

    function: Function
    x: Packed
    order: int
    timeout: float

    def __post_init__(self) -> None:
        from difflab.referee.referee import Referee

        self._referee: Referee = Referee.of(
            self.function, self.x.tolist(), order=self.order, timeout=self.timeout
        )
        self._reference: Reference | None = None
        self._reason = ""
        try:
            self._reference = self._referee.reference()
        except (DifflabError, ArithmeticError, ValueError, MemoryError) as error:
            self._reason = f"the referee gave up: {error}"
            if isinstance(error, MethodTimeout):
                lost = lost_value(values_of(self.function), self.x)
                self._reason += f"; {lost}" if lost else ""

    def row(self) -> ReferenceRow:
        """Return the referee's result as a row of the record."""
        found = self._reference
        if found is None:
            return ReferenceRow(None, 0, None, self._reason)
        return ReferenceRow(
            found.jacobian,
            found.digits,
            found.error_bound,
            found.status,
            proved=bool(found.proved.all()),
            contradiction=found.contradiction,
        )

    def judged(self, row: MethodRow, estimate: Any) -> MethodRow:
        """Return the row with its verdict and errors."""
        if self._reference is None:
            return replace(row, verdict="inconclusive", message=self._reason)
        from difflab.referee.verdict import judge

        found = judge(estimate, self._reference, row.family, sensitivity=self._referee.sensitivity)
        return replace(
            row,
            verdict=str(found.verdict),
            message=found.reason,
            max_abs_error=found.max_abs_error,
            max_rel_error=found.max_rel_error,
            max_ulp_error=found.max_ulp_error,
        )
