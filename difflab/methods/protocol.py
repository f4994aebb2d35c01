"""Protocol of differentiation methods: prepare once, then call at points.

A method is any object with the attributes of `Method`; nothing has to be
inherited. Another package registers a method by an entry point of the group
``difflab.methods``, whose value is the object (or a class whose constructor
without arguments returns it). A method that calls other packages names their
distributions in a tuple `packages`, so that a bench does not reuse results of
other versions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from difflab.core.dtypes import DOUBLE, FloatFormat

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from difflab.graph.function import Function
    from difflab.methods.timer import Deadline


class Family(StrEnum):
    """The three ways to differentiate that difflab compares."""

    SYMBOLIC = "symbolic"
    NUMERIC = "numeric"
    AUTOMATIC = "automatic"


@dataclass(frozen=True)
class Problem:
    """One function to differentiate, as every method sees it.

    Attributes
    ----------
    values : callable
        Maps packed points of shape ``(N, n)`` to values of shape ``(N, m)``. Where the
        function is analytic, complex points give complex values. A point outside
        the domain gives nan or inf, not an exception.
    n, m : int
        The number of flattened inputs and outputs.
    function : Function or None
        The graph, if there is one. Numeric methods may inspect its operations; they
        never differentiate it.
    order : int
        1 for the Jacobian ``(m, n)``; 2 for the Hessian ``(n, n)``, where ``m == 1``.
    timeout : float
        Time limit of `Method.prepare`, in seconds.
    memory_bytes : int
        Memory limit of the method, in bytes.
    target : str
        The target for which methods compile difflab's graphs; see `difflab.compile`.
    often : bool
        Whether the derivative will be called many times, so that compiling for it pays.
    deadline : Deadline or None
        Common time limit of preparing and calling; None if each may take ``timeout``
        seconds.
    untraceable : str
        Why there is no graph, if that is known.
    dtype : FloatFormat
        The format in which the method computes; those that it offers beside float64 are named in
        its attribute `dtypes`.
    """

    values: Callable[[NDArray[Any]], NDArray[Any]]
    n: int
    m: int
    function: Function | None = None
    order: int = 1
    timeout: float = 10.0
    memory_bytes: int = 2 << 30
    target: str = "auto"
    often: bool = False
    deadline: Deadline | None = None
    untraceable: str = ""
    dtype: FloatFormat = DOUBLE

    @classmethod
    def of(cls, function: Function, **settings: Any) -> Problem:
        """Return the problem of a graph, whose long loops are machine code."""
        from difflab.execute.long_loops import values_of

        return cls(values_of(function), function.n, function.m, function, **settings)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the derivative: ``(m, n)``, or ``(n, n)`` for order 2."""
        return (self.m if self.order == 1 else self.n), self.n

    def seconds_left(self) -> float:
        """Return the time limit of the next call, in seconds."""
        return self.timeout if self.deadline is None else self.deadline.remaining()


@dataclass(frozen=True)
class Estimate:
    """A derivative, an estimate of its error, and its cost.

    Attributes
    ----------
    value : ndarray
        ``(m, n)`` for order 1, ``(n, n)`` for order 2.
    error : ndarray or None
        The method's elementwise bound on ``|value - truth|``; None if the method
        gives none.
    evaluations : int
        Number of points at which this call evaluated the function.
    """

    value: NDArray[float64]
    error: NDArray[float64] | None
    evaluations: int


def stacked(estimates: Sequence[Estimate]) -> Estimate:
    """Return the estimates at one point or more as one: a value and an error for each.

    Examples
    --------
    >>> import numpy as np
    >>> stacked([Estimate(np.eye(2), None, 3), Estimate(np.eye(2), None, 4)]).value.shape
    (2, 2, 2)
    """
    import numpy as np  # here: processes of methods start before NumPy is imported

    errors = [estimate.error for estimate in estimates if estimate.error is not None]
    return Estimate(
        np.stack([estimate.value for estimate in estimates]),
        np.stack(errors) if len(errors) == len(estimates) else None,
        sum(estimate.evaluations for estimate in estimates),
    )


@dataclass(frozen=True)
class Size:
    """Sizes of a derivative as an expression; None if not applicable to the method."""

    tree: int | None = None
    dag: int | None = None
    simplified_tree: int | None = None
    simplified_dag: int | None = None


@runtime_checkable
class Prepared(Protocol):
    """A derivative that can be evaluated at points."""

    @property
    def size(self) -> Size | None:
        """The size of the derivative as an expression, or None."""

    @property
    def operations(self) -> int | None:
        """The number of arithmetic operations of one call, or None if unknown."""

    def __call__(self, x: NDArray[float64]) -> Estimate:
        """Return the derivative at the point `x` of shape ``(n,)``."""


@runtime_checkable
class Batched(Protocol):
    """A derivative that is evaluated at many points in one call."""

    def batch(self, points: NDArray[float64]) -> Estimate:
        """Return the derivatives at the points ``(N, n)``, up to rounding those of a call at each.

        The value and the error have the shape ``(N, m, n)``; the evaluations are those of all
        points.
        """


class AlwaysAvailable:
    """Base class of methods that require nothing beyond difflab."""

    def missing(self) -> str | None:
        """Return None: nothing is missing."""
        return None


@runtime_checkable
class Method(Protocol):
    """A differentiation method."""

    @property
    def name(self) -> str:
        """The name by which users select the method."""

    @property
    def family(self) -> Family:
        """The family to which it belongs."""

    @property
    def summary(self) -> str:
        """A one-line description."""

    @property
    def orders(self) -> tuple[int, ...]:
        """The supported orders of derivative."""

    def prepare(self, problem: Problem) -> Prepared:
        """Do the work that does not depend on the point.

        Raises
        ------
        difflab.errors.UnsupportedError
            The method cannot differentiate this function.
        difflab.errors.MethodTimeout
            Preparing took longer than ``problem.timeout``.
        """

    def missing(self) -> str | None:
        """Return why the method cannot run and the command that installs it, or None."""
