"""What the peers share: being absent, refusing a function, and the door that is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.optional import fault, installed, load
from difflab.errors import DifflabError, MethodTimeout, UnsupportedError, printable
from difflab.methods.protocol import Estimate, Family, Prepared, Problem, Size

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["Array", "CallAdapter", "Peer", "PeerCall", "PeerDerivative", "refusals"]

Array = NDArray[float64]
PeerCall = Callable[[Array], Any]

PATIENCE = 4.0
"""How many times the time limit an estimate may exceed before preparing is not begun."""


@dataclass(frozen=True)
class CallAdapter:
    """Value and gradient as a user of the package would compute them, ready to be timed.

    Attributes
    ----------
    call : callable
        Takes the arguments that `taken` made; both results are there when it returns.
    taken : callable
        Points ``(n,)`` or ``(N, n)`` to the arguments, in the package's own arrays.
    given : callable
        What `call` returned to value ``()`` or ``(N,)`` and gradient ``(n,)`` or ``(N, n)``.
    """

    call: Callable[..., Any]
    taken: Callable[[Array], Sequence[Any]]
    given: Callable[[Any], tuple[Array, Array]]


class Peer:
    """A package that differentiates, behind the protocol of every method.

    A subclass names the package and gives two things: the `derivative` at one point, which a
    comparison judges, and the `door` through which its speed is measured.

    Attributes
    ----------
    name : str
        The package, and the method.
    title : str
        How its makers write it.
    modules : tuple of str
        What else of it is used, imported with it.
    vectorised : bool
        Whether one call takes a batch of points; otherwise a batch is a loop.
    """

    name: str
    title: str
    summary: str
    family = Family.AUTOMATIC
    orders: tuple[int, ...] = (1, 2)
    modules: tuple[str, ...] = ()
    vectorised = True

    @property
    def packages(self) -> tuple[str, ...]:
        """The distributions that its answers come from."""
        return (self.name,)

    def missing(self) -> str | None:
        """Return that the package is missing or broken, and what mends it; or None.

        It is known to be broken once `start` has tried.
        """
        if not installed(self.name):
            return f"{self.name} is not installed; add it with: pip install {self.name}"
        broken = fault(self.name, *self.modules)
        if not broken:
            return None
        mend = f"mend it with: pip install --force-reinstall {self.name}"
        return f"{self.name} is installed and {broken}; {mend}"

    def start(self) -> None:
        """Import the package, so that preparing is not measured with that."""
        if self.missing() is None:
            for module in (self.name, *self.modules):
                load(module)

    def version(self) -> str:
        """Return the version that is installed, empty where none is."""
        try:
            return version(self.name)
        except PackageNotFoundError:
            return ""

    def prepare(self, problem: Problem) -> Prepared:
        """Convert the graph and build the derivative there.

        Raises
        ------
        UnsupportedError
            The package is not installed, there is no graph, or the package has no way to write
            a part of it.
        MethodTimeout
            Preparing would take far longer than ``problem.timeout``.
        """
        function = self.formula(problem.function, problem.timeout, problem.order)
        with refusals(self.title):
            call = self.derivative(function, problem.order)
        rows = problem.m if problem.order == 1 else problem.n
        return PeerDerivative(self, call, (rows, problem.n))

    def formula(self, function: Function | None, timeout: float, order: int = 1) -> Function:
        """Return the function that the package is given: user-defined rows written out."""
        self.start()
        reason = self.missing()
        if reason is not None:
            raise UnsupportedError(reason)
        if function is None:
            raise UnsupportedError(f"{self.title} needs a formula, and this is Python code")
        from difflab.graph.custom.rows import opened

        seconds = self.estimated_seconds(function, order)
        if seconds > PATIENCE * timeout:
            raise MethodTimeout(
                f"not begun: {self.title} takes about {seconds:.3g} s for {len(function.graph):,} "
                f"nodes and {function.n:,} inputs, and the limit is {timeout:g} s"
            )
        return opened(function)

    def estimated_seconds(self, function: Function, order: int) -> float:
        """Return about how many seconds it takes, for refusing what would not end."""
        return 0.0

    def derivative(self, function: Function, order: int) -> PeerCall:
        """Return the Jacobian (order 1) or the Hessian (order 2) as a call at ``(n,)``."""
        raise NotImplementedError

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient at one point (None) or at so many, for timing."""
        raise NotImplementedError

    def estimated(self, result: Any, shape: tuple[int, int]) -> Estimate:
        """Return what a call of the derivative gave, in the form of every method."""
        return Estimate(np.asarray(result, dtype=float64).reshape(shape), None, 0)


class PeerDerivative:
    """A derivative that a package has built, ready to be called at a point."""

    operations: int | None = None
    size: Size | None = None

    def __init__(self, peer: Peer, call: PeerCall, shape: tuple[int, int]) -> None:
        self._peer = peer
        self._call = call
        self._shape = shape

    def __call__(self, x: Array) -> Estimate:
        """Return the derivative at `x`."""
        try:
            return self._peer.estimated(self._call(x), self._shape)
        except (NotImplementedError, TypeError) as error:
            raise _refused(self._peer.title, error) from error


@contextmanager
def refusals(title: str) -> Iterator[None]:
    """Turn what a package says of a function that it cannot take into `UnsupportedError`.

    Examples
    --------
    >>> with refusals("JAX"):
    ...     raise NotImplementedError("no rule")
    Traceback (most recent call last):
        ...
    difflab.errors.UnsupportedError: JAX cannot take this function: no rule
    """
    try:
        yield
    except DifflabError:
        raise
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        raise _refused(title, error) from error


def _refused(title: str, error: Exception) -> UnsupportedError:
    text = printable(str(error) or type(error).__name__)
    return UnsupportedError(f"{title} cannot take this function: {text}")
