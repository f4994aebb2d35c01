"""What a differentiation method is: prepare once, then call at points.

A method is any object with the attributes of `Method`; nothing has to be
inherited. Give one to difflab from another package by an entry point of the
group ``difflab.methods``, whose value is the object (or a class that makes it
without arguments). One that calls other packages names their distributions in
a tuple `packages`, so that a bench measures anew what other versions gave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from numpy import float64
from numpy.typing import NDArray

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.methods.deadline import Deadline

__all__ = ["Estimate", "Family", "Method", "Prepared", "Problem", "Size"]


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
        Packed points of shape ``(N, n)`` to values of shape ``(N, m)``. Where the
        function is analytic, complex points give complex values. A point outside
        the domain gives nan or inf, not an exception.
    n, m : int
        The number of flattened inputs and outputs.
    function : Function or None
        The graph, when there is one. Numeric methods may ask it what it consists
        of; they never take a derivative from it.
    order : int
        1 asks for the Jacobian ``(m, n)``; 2 for the Hessian ``(n, n)``, where ``m == 1``.
    timeout : float
        Seconds that `Method.prepare` may take.
    memory_bytes : int
        Memory that the method may take.
    target : str
        What a method that runs on difflab's graphs compiles them to; see `difflab.compile`.
    often : bool
        Whether the derivative will be called many times, so that compiling for it pays.
    deadline : Deadline or None
        When preparing and calling must be over, both together; None where each may take
        ``timeout`` seconds.
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

    def seconds_left(self) -> float:
        """Return how long the next step may take."""
        return self.timeout if self.deadline is None else self.deadline.remaining()


@dataclass(frozen=True)
class Estimate:
    """A derivative, how far off it may be, and what it took.

    Attributes
    ----------
    value : ndarray
        ``(m, n)`` for order 1, ``(n, n)`` for order 2.
    error : ndarray or None
        The method's own bound on ``|value - truth|``, entry by entry; None where
        the method has none to give.
    evaluations : int
        Points at which the function's values were taken by this call.
    """

    value: NDArray[float64]
    error: NDArray[float64] | None
    evaluations: int


@dataclass(frozen=True)
class Size:
    """Sizes of a derivative as an expression; None where a method has no such notion."""

    tree: int | None = None
    dag: int | None = None
    simplified_tree: int | None = None
    simplified_dag: int | None = None


@runtime_checkable
class Prepared(Protocol):
    """A derivative that is ready to be called at points."""

    @property
    def size(self) -> Size | None:
        """The derivative's size as an expression, where it is one."""

    @property
    def operations(self) -> int | None:
        """Arithmetic operations of one call, where they are known."""

    def __call__(self, x: NDArray[float64]) -> Estimate:
        """Return the derivative at the point `x` of shape ``(n,)``."""


@runtime_checkable
class Method(Protocol):
    """One way to differentiate."""

    @property
    def name(self) -> str:
        """The name by which users ask for the method."""

    @property
    def family(self) -> Family:
        """Which of the three families it belongs to."""

    @property
    def summary(self) -> str:
        """One line on how it works."""

    @property
    def orders(self) -> tuple[int, ...]:
        """The orders of derivative it can give."""

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
        """Return why the method cannot run here and the command that adds it, or None."""
