"""Base class of the peers: availability, errors, and the adapter for timing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE, FloatFormat
from difflab.core.optional import absence, conflict, fault, load, repair
from difflab.errors import DifflabError, MethodTimeout, UnsupportedError, printable
from difflab.methods.protocol import Estimate, Family, Prepared, Problem, Size
from difflab.methods.timer import PATIENCE, LoopCall

if TYPE_CHECKING:
    from difflab.graph.function import Function


Array = NDArray[np.float64]
PeerCall = Callable[[Array], Any]


@dataclass(frozen=True)
class CallAdapter:
    """Value and gradient through the usual calling convention of a package, for timing.

    Attributes
    ----------
    call : callable
        Takes the arguments that `arguments` returns; both results are computed on return.
    arguments : callable
        Converts points ``(n,)`` or ``(N, n)`` to the arguments of `call`.
    result : callable
        Converts the result of `call` to value ``()`` or ``(N,)`` and gradient, shaped as the
        points.
    form : str
        The call as its users write it; empty for the usual one.
    around : callable
        Returns the context of a loop of calls; the first call has it too.
    faster : callable or None
        From the arguments to a call of a loop that is faster than the first ones, if there is one.
    """

    call: Callable[..., Any]
    arguments: Callable[[Array], Sequence[Any]]
    result: Callable[[Any], tuple[Array, Array]]
    form: str = ""
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    faster: Callable[[Sequence[Any]], LoopCall] | None = None

    def first(self, arguments: Sequence[Any]) -> tuple[Array, Array]:
        """Return value and gradient by the first call."""
        with self.around():
            return self.result(self.call(*arguments))

    def loop(self, arguments: Sequence[Any]) -> LoopCall:
        """Return the call of a loop."""
        if self.faster is not None:
            return self.faster(arguments)
        return LoopCall(self.form, partial(self.call, *arguments), self.around)


class Peer:
    """A package that differentiates, behind the protocol of every method.

    A subclass names the package and defines the `derivative` at one point, which comparisons
    use, and the `adapter` for timing.

    Attributes
    ----------
    name : str
        The method; the package too, unless `package` says otherwise.
    title : str
        The name as its authors write it.
    modules : tuple of str
        Submodules that are imported with the package.
    vectorised : bool
        Whether one call accepts a batch of points; otherwise a batch is a loop.
    extra : str
        The extra of difflab that installs the package; by default the method's name.
    python : tuple of int
        The oldest version of Python for which the package exists.
    dtype : str
        The dtype in which it computes.
    dtypes : tuple of str
        The others in which comparisons let it compute.
    codes : mapping
        Code over the package's own functions by formula, for the conventions; that of packages
        with NumPy's names is in the tables of `difflab.lab.conventions.cases`.
    """

    name: str
    title: str
    summary: str
    family = Family.AUTOMATIC
    orders: tuple[int, ...] = (1, 2)
    modules: tuple[str, ...] = ()
    vectorised = True
    extra = ""
    python: tuple[int, ...] = ()
    codes: Mapping[str, str] = {}
    dtype = "float64"
    dtypes: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """The module that is imported."""
        return self.name

    @property
    def packages(self) -> tuple[str, ...]:
        """The distributions that determine its results, the one to install first."""
        return (self.package,)

    @property
    def requirement(self) -> str:
        """The requirement by which ``pip install`` adds the package."""
        return f"'difflab[{self.extra or self.name}]'"

    def missing(self) -> str | None:
        """Return that the package is missing or broken, with the command to repair it, or None.

        A broken package is detected only after `start`.
        """
        distribution = self.packages[0]
        if needs := self.too_old():
            return f"{distribution} {needs}"
        reason = absence(self.package, extra=self.extra or self.name, package=distribution)
        broken = "" if reason else fault(self.package, *self.modules)
        clash = conflict(distribution, unusable=bool(reason or broken))
        if clash or not broken:
            return clash or reason
        return f"{distribution} is installed and {broken}; {repair(distribution)}"

    def too_old(self) -> str:
        """Return that this version of Python is too old for the package, or an empty string."""
        if sys.version_info >= self.python:
            return ""
        return f"needs Python {'.'.join(map(str, self.python))}"

    def start(self) -> None:
        """Import the package, so that the import is not measured with preparing."""
        if self.missing() is None:
            for module in (self.package, *self.modules):
                load(module)

    def version(self) -> str:
        """Return the installed version, or an empty string."""
        for distribution in self.packages:
            with suppress(PackageNotFoundError):
                return version(distribution)
        return ""

    def prepare(self, problem: Problem) -> Prepared:
        """Convert the graph and build the derivative there.

        Raises
        ------
        UnsupportedError
            The package is not installed, there is no graph, or the package does not
            support an operation.
        MethodTimeout
            Preparing would take far longer than ``problem.timeout``.
        """
        if problem.dtype is not DOUBLE:
            return self._in(problem.dtype).prepare(replace(problem, dtype=DOUBLE))
        if problem.function is None:
            self.ready()
            with refusals(self.title):
                return PeerDerivative(self, self.of_code(problem), problem.shape)
        function = self.formula(problem.function, problem.timeout, problem.order)
        with refusals(self.title):
            call = self.derivative(function, problem.order)
        return PeerDerivative(self, call, problem.shape)

    def _in(self, dtype: FloatFormat) -> Peer:
        """Return the peer that computes in a format."""
        peer = copy(self)
        peer.__dict__.pop("spelling", None)
        peer.dtype = dtype.name
        return peer

    def ready(self) -> None:
        """Import the package.

        Raises
        ------
        UnsupportedError
            It is missing or broken.
        """
        self.start()
        reason = self.missing()
        if reason is not None:
            raise UnsupportedError(reason)

    def of_code(self, problem: Problem) -> PeerCall:
        """Return the Jacobian or the Hessian of Python code, which has no graph.

        Raises
        ------
        UnsupportedError
            The package cannot run Python code, by default.
        """
        raise UnsupportedError(f"{self.title} needs a formula, and this is Python code")

    def formula(self, function: Function | None, timeout: float, order: int = 1) -> Function:
        """Return the function to convert, with user-defined operations expanded."""
        self.ready()
        if function is None:
            raise UnsupportedError(f"{self.title} needs a formula, and this is Python code")
        from difflab.graph.custom.rows import opened

        seconds = self.estimated_seconds(function, order)
        if seconds > PATIENCE * timeout:
            raise MethodTimeout(
                f"not started: {self.title} takes about {seconds:.3g} s for "
                f"{len(function.graph):,} nodes and {function.n:,} inputs, "
                f"and the limit is {timeout:g} s"
            )
        return opened(function)

    def estimated_seconds(self, function: Function, order: int) -> float:
        """Return the estimated seconds of preparing and one call, to refuse in advance."""
        return 0.0

    def derivative(self, function: Function, order: int) -> PeerCall:
        """Return the Jacobian (order 1) or the Hessian (order 2) as a function of ``(n,)``."""
        raise NotImplementedError

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of `difflab.lab.conventions` with code for the package, the first one."""
        return (self.name,)

    def names(self) -> Mapping[str, Any]:
        """Return the modules by the names that code over the package's own functions uses."""
        raise UnsupportedError(f"{self.title} has no functions of its own")

    def own(self, code: str, inputs: Sequence[str], order: int) -> PeerCall:
        """Return value (order 0), gradient or Hessian of an expression of the package's functions.

        Parameters
        ----------
        code : str
            An expression over the inputs and `names`. It is evaluated as Python code, so it must
            come from difflab's own tables.
        inputs : sequence of str
            The names of the inputs, which are scalars.
        order : int
            0, 1 or 2.

        Returns
        -------
        callable
            Maps a point ``(n,)`` to one number, or to n or n·n of them.

        Raises
        ------
        UnsupportedError
            The package is missing, or cannot differentiate the expression.
        """
        self.ready()
        function = eval(f"lambda {', '.join(inputs)}: {code}", dict(self.names()))  # noqa: S307
        with refusals(self.title):
            return self.expressed(function, len(inputs), order)

    def expressed(self, code: Callable[..., Any], n: int, order: int) -> PeerCall:
        """Return the same of `code`, from n scalars of the package to one."""
        raise UnsupportedError(f"{self.title} does not run code over its own functions")

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient at one point (None) or `points` points, for timing."""
        raise NotImplementedError

    def one_by_one(self, function: Function, points: int | None, call: PeerCall) -> CallAdapter:
        """Return the adapter of a `call` from ``(n,)`` to value and gradient, called per point."""
        shape = (function.n,) if points is None else (points, function.n)

        def unpack(result: Any) -> tuple[Array, Array]:
            values, slopes = zip(*result, strict=True)
            return np.array(values).reshape(shape[:-1]), np.array(slopes).reshape(shape)

        return CallAdapter(
            lambda rows: [call(x) for x in rows],
            lambda x: [list(x.reshape(-1, function.n))],
            unpack,
        )

    def estimated(self, result: Any, shape: tuple[int, int]) -> Estimate:
        """Return the result of a call of the derivative as an `Estimate`."""
        return Estimate(np.asarray(result, dtype=np.float64).reshape(shape), None, 0)


class PeerDerivative:
    """A derivative prepared by a package."""

    operations: int | None = None
    size: Size | None = None

    def __init__(self, peer: Peer, call: PeerCall, shape: tuple[int, int]) -> None:
        self._peer = peer
        self._call = call
        self._shape = shape

    def in_loop(self, x: Array) -> LoopCall:
        """Return the package's fastest call at `x`: the attribute `loop` of the call, if any."""
        loop: Callable[[Array], LoopCall] | None = getattr(self._call, "loop", None)
        return LoopCall("", partial(self._call, x)) if loop is None else loop(x)

    def __call__(self, x: Array) -> Estimate:
        """Return the derivative at `x`."""
        try:
            return self._peer.estimated(self._call(x), self._shape)
        except (NotImplementedError, TypeError) as error:
            raise _refused(self._peer.title, error) from error


@contextmanager
def refusals(title: str) -> Iterator[None]:
    """Convert the exceptions of a package for unsupported functions to `UnsupportedError`.

    Examples
    --------
    >>> with refusals("JAX"):
    ...     raise NotImplementedError("no rule")
    Traceback (most recent call last):
        ...
    difflab.errors.UnsupportedError: JAX does not support this function: no rule
    """
    try:
        yield
    except DifflabError:
        raise
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        raise _refused(title, error) from error


def _refused(title: str, error: Exception) -> UnsupportedError:
    text = printable(str(error) or type(error).__name__)
    return UnsupportedError(f"{title} does not support this function: {text}")
