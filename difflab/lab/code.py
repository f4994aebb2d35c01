"""Python code as the subject of a comparison: it is run, and its graph is compared with the run."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.wording import counted, unknown_name
from difflab.errors import (
    DifflabError,
    DomainError,
    InputError,
    MethodTimeout,
    PointError,
    TraceError,
    printable,
)
from difflab.graph.arguments import Arguments
from difflab.graph.builder import Builder
from difflab.graph.code import Code, Run, limited, quietly
from difflab.graph.function import Function
from difflab.graph.parting import is_users_file
from difflab.graph.pytree import LEAF, flatten
from difflab.graph.trace import is_leaf, trace
from difflab.graph.verify import agreeing, packed, point_text, require_same
from difflab.methods.point_by_point import PointByPoint
from difflab.methods.timer import Deadline

Packed = NDArray[float64]


@dataclass(frozen=True)
class Parameters:
    """The names of a function's parameters; `positional` ones are passed by position."""

    target: str
    required: Sequence[str]
    optional: Sequence[str]
    positional: Sequence[str]

    @classmethod
    def of(cls, target: str, function: Callable[..., Any]) -> Parameters:
        """Read the signature of a function.

        Raises
        ------
        InputError
            It cannot be read, or has no named parameter.
        """
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise InputError(f"the parameters of {target} cannot be read: {error}") from error
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        required = [p.name for p in named if p.default is p.empty]
        optional = [p.name for p in named if p.default is not p.empty]
        if not required and not optional:
            raise InputError(f"{target} has no named parameter to differentiate by")
        positional = [p.name for p in named if p.kind is p.POSITIONAL_ONLY]
        return cls(target, required, optional, positional)

    def matched(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a point in the order of the parameters.

        Raises
        ------
        InputError
            A name is unknown.
        PointError
            A parameter without a default has no value.
        """
        names = (*self.required, *self.optional)
        for name in point:
            if name not in names:
                raise unknown_name(f"parameter of {self.target}", name, names)
        missing = [name for name in self.required if name not in point]
        if missing:
            raise PointError(
                f"no value for the parameter {missing[0]!r} of {self.target}",
                hint=f"--at {missing[0]}=1.5",
            )
        return {name: point[name] for name in names if name in point}

    def require_point(self, point: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Return the point.

        Raises
        ------
        PointError
            There is none.
        """
        if point is not None:
            return point
        names = [*self.required, *self.optional]
        raise PointError(
            f"{self.target} is traced at a point, which gives the shapes of its arguments",
            hint=f"--at {','.join(f'{name}=1.5' for name in names[:3])}",
        )

    def caller(self, function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
        """Return the function of these parameters, all by position; a trace has their names."""

        def call(*args: Any) -> Any:
            named = dict(zip(names, args, strict=True))
            positional = [named.pop(name) for name in self.positional if name in named]
            return function(*positional, **named)

        return named(call, names, function)


def named(
    call: Callable[..., Any], names: Sequence[str], code: Callable[..., Any]
) -> Callable[..., Any]:
    """Name the positional arguments of a function that calls code of the user, and return it."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in names]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__wrapped__ = code  # type: ignore[attr-defined]  # its state and generators are watched
    return call


class _QuietCode(PointByPoint):
    """Code whose output and warnings are discarded, since it is called many times.

    Packages that differentiate Python code find it as `code`.
    """

    def __init__(self, code: Code, out: int) -> None:
        super().__init__(code.flat, (sum(map(prod, code.shapes)),), (out,))
        self.code = code

    def __call__(self, points: NDArray[Any], deadline: Deadline | None = None) -> NDArray[Any]:
        """Return the values ``(N, m)`` at packed points ``(N, n)``."""
        with quietly():
            return super().__call__(points, deadline)


@dataclass(frozen=True, eq=False)
class CodeSubject:
    """Python code at a point, with its graph if it can be traced.

    Attributes
    ----------
    code : Code
        The code, by the leaves of its arguments.
    values : mapping
        The values of the arguments that are given.
    x : ndarray (n,)
        The same, packed.
    function : Function or None
        The graph.
    reason : str
        Why there is none.
    error : Exception or None
        The exception that tracing the code raised.
    """

    code: Code
    values: Mapping[str, Any]
    x: Packed
    function: Function | None
    reason: str = ""
    error: Exception | None = None

    @classmethod
    def of(
        cls, function: Callable[..., Any], point: Mapping[str, Any] | None, name: str = ""
    ) -> CodeSubject:
        """Trace code at a point, which names its arguments.

        Examples
        --------
        >>> subject = CodeSubject.of(lambda x: x if x > 0 else -x, {"x": 2.0})
        >>> subject.function is None, subject.reason.partition(" in a graph")[0]
        (True, 'the Python code cannot be traced: a branch on a traced value cannot be recorded')
        """
        name = name or getattr(function, "__name__", "") or type(function).__name__
        parameters = Parameters.of(name, function)
        values = parameters.matched(parameters.require_point(point))
        call = parameters.caller(function, list(values))
        leaves: list[Any] = []
        trees = []
        for value in values.values():
            flat, tree = ([value], LEAF) if is_leaf(value) else flatten(value)
            leaves += flat
            trees.append(tree)
        arrays = [_real(name, leaf) for leaf in leaves]
        code = Code.of(call, Arguments(tuple(values), tuple(trees)), arrays, name)
        graph, error = _traced(call, list(values.values()))
        return cls(code, values, packed(arrays), graph, _reason(error), error)

    @property
    def n(self) -> int:
        """The number of flattened inputs."""
        return int(self.x.size)

    def shaped(self, out: int) -> Function:
        """Return a function of the inputs of the code, and of as many outputs, for their shapes."""
        if self.function is not None:
            return self.function
        builder = Builder()
        pairs = zip(self.code.inputs, self.code.shapes, strict=True)
        inputs = [builder.input(name, shape) for name, shape in pairs]
        node = builder.spread(builder.constant(0), () if out == 1 else (out,))
        return Function.build(builder, inputs, [node], ["f"], text=self.code.name)

    def required(self) -> Function:
        """Return the graph, or raise the exception of tracing the code."""
        if self.function is None:
            assert self.error is not None
            raise self.error
        return self.function

    @property
    def digest(self) -> str:
        """Identifier of the code: its source, and the arguments."""
        try:
            source = inspect.getsource(inspect.unwrap(self.code.function))
        except (OSError, TypeError):
            source = "unknown"
        return f"{self.code.name} {sha256(source.encode()).hexdigest()[:12]} {self.code.shapes}"

    @property
    def point(self) -> dict[str, Any]:
        """The value of every leaf, by the name of the input."""
        leaves = self.code.leaves(self.x)
        named = zip(self.code.inputs, leaves, strict=True)
        return {name: leaf if np.ndim(leaf) else float(leaf) for name, leaf in named}

    def called(self, out: int) -> PointByPoint:
        """Return the code as a function of packed points with `out` values."""
        return _QuietCode(self.code, out)

    def run(self, timeout: float) -> Run:
        """Return one run of the code at the point; two, without a graph to compare with.

        Raises
        ------
        MethodTimeout
            It takes longer than the time limit.
        InputError
            The code raises an exception, or its result is not numeric.
        DomainError
            Its values are not numbers.
        """
        where = f"at {point_text(self.code, self.x)}"
        try:
            run = self.code.run(self.x, timeout, twice=self.function is None)
        except DifflabError:
            raise
        except (Exception, SystemExit) as error:
            if isinstance(self.error, InputError) and not isinstance(self.error, TraceError):
                raise self.error from error  # which marks the place
            raise InputError(
                f"{self.code.name} raised {type(error).__name__} {where}: {error}",
                hint=user_frame(error),
            ) from error
        if not run.values.size:
            raise InputError(f"{self.code.name} returns no number {where}")
        return run

    def verified(self, timeout: float) -> Run:
        """Return one run of the code, after comparing it with the graph, or with a second run.

        Raises
        ------
        MethodTimeout
            It takes longer than the time limit.
        GraphMismatchError
            The graph has another value.
        InputError
            As for `run`; or there is no graph, and two runs of the code differ.
        """
        run = self.run(timeout)
        if self.function is not None:
            require_same(self.function, self.code, self.x, run, self._trace)
            return run
        if not run.repeated:
            drawn = f": it draws random numbers from {' and '.join(run.drawn)}"
            raise InputError(
                f"two runs of {self.code.name} at {point_text(self.code, self.x)} differ"
                f"{drawn * bool(run.drawn)}",
                hint="a function of its arguments alone has a derivative: pass random numbers, "
                "times and states as arguments",
            )
        if not np.isfinite(run.values).all():
            raise DomainError(
                f"{self.code.name} is undefined at {point_text(self.code, self.x)}: its value is"
                f" {run.values[~np.isfinite(run.values)][0]}"
            )
        return run

    def verified_over(self, points: Packed, timeout: float) -> str:
        """Compare the graph with the code at points, as many as there is time for.

        Returns
        -------
        str
            At how many points they agree.

        Raises
        ------
        GraphMismatchError
            The graph has another value at one of them.
        """
        assert self.function is not None
        values, called = self.function.values(points), self.called(self.function.m)
        done = 0
        with suppress(MethodTimeout), limited(timeout):
            for x, ours in zip(points, values, strict=True):
                theirs = called(x[None])[0]
                # Where code raises an error of arithmetic there is no number to compare.
                same = agreeing(self.function, x, ours, theirs) | np.isnan(theirs)
                if not same.all():
                    require_same(self.function, self.code, x, theirs, self._trace)
                done += 1
        return f"run at {counted(done, 'point')} of {len(points):,}: its values are the graph's"

    def _trace(self) -> Function:
        return trace(self.code.function, *self.values.values())


def _real(name: str, leaf: Any) -> NDArray[float64]:
    """Return an argument as an array of float64.

    Raises
    ------
    PointError
        It is not real, or not finite.
    """
    try:
        array = np.asarray(leaf)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "fiub":
        raise PointError(f"an argument of {name} is not real: {type(leaf).__name__}")
    if not np.isfinite(array).all():
        raise PointError(f"an argument of {name} is not finite")
    return array.astype(float64)


def _traced(
    call: Callable[..., Any], values: Sequence[Any]
) -> tuple[Function | None, Exception | None]:
    """Return the graph of code, or the exception that tracing it raised."""
    try:
        return trace(call, *values), None
    except Exception as error:  # the user's code may raise anything on traced values
        return None, error


def _reason(error: Exception | None) -> str:
    if error is None:
        return ""
    text = printable(f"{type(error).__name__}: {error}")
    if isinstance(error, InputError):
        text = error.message + (f" ({error.hint})" if error.hint else "")
    return f"the Python code cannot be traced: {text}"


def user_frame(error: BaseException) -> str | None:
    """Return the line of the user's code at which an exception was raised, if there is one."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_users_file(frame.filename):
            return f"in {Path(frame.filename).name}, line {frame.lineno}: {frame.line}"
    return None
