"""Python code as a function of a vector: the source of a graph, and its reference."""

from __future__ import annotations

import io
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from time import perf_counter
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.errors import InputError, MethodTimeout
from difflab.graph.arguments import Arguments
from difflab.graph.draws import restored_generators
from difflab.graph.ir import Shape, packed_slices
from difflab.graph.pytree import flatten, unflatten


@dataclass(frozen=True, eq=False)
class Code:
    """A Python function of trees of scalars and arrays, called with the leaves.

    Attributes
    ----------
    name : str
        Its name in messages.
    function : callable
        It takes one positional argument for each of `arguments`.
    arguments : Arguments
        The names and the trees of its arguments.
    shapes : tuple of Shape
        The shape of each leaf.
    single : tuple of bool
        The leaves that are float32; the others are float64.

    Examples
    --------
    >>> from difflab.graph.pytree import LEAF
    >>> code = Code.of(lambda x: x**2, Arguments(("x",), (LEAF,)), [np.ones(2)])
    >>> code.inputs, code.flat(np.array([1.0, 3.0]))
    (('x',), array([1., 9.]))
    """

    name: str
    function: Callable[..., Any]
    arguments: Arguments
    shapes: tuple[Shape, ...]
    single: tuple[bool, ...] = ()

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        arguments: Arguments,
        leaves: Sequence[Any],
        name: str = "",
    ) -> Code:
        """Return the code of a function of arguments with these leaves."""
        shapes = tuple([np.shape(leaf) for leaf in leaves])
        single = tuple([getattr(leaf, "dtype", None) == np.float32 for leaf in leaves])
        return cls(name or getattr(function, "__name__", "f"), function, arguments, shapes, single)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The name of each leaf, as a trace names its inputs."""
        return tuple(self.arguments.inputs())

    def called(self, leaves: Sequence[Any]) -> Any:
        """Call the code; it may change its arguments, so pass copies."""
        pairs = zip(self.arguments.trees, self.arguments.groups(), strict=True)
        return self.function(
            *(unflatten(tree, [leaves[k] for k in group]) for tree, group in pairs)
        )

    def leaves(self, x: NDArray[Any]) -> list[Any]:
        """Return copies of the leaves of a packed point ``(n,)``; scalars are NumPy's."""
        leaves = [
            x[part].reshape(shape).copy() if shape else x[part.start]
            for part, shape in zip(packed_slices(self.shapes), self.shapes, strict=True)
        ]
        if not any(self.single):
            return leaves
        pairs = zip(leaves, self.single, strict=True)
        return [leaf.astype(np.float32) if single else leaf for leaf, single in pairs]

    def flat(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the flattened result at a packed point."""
        return flattened(self.called(self.leaves(x)))

    def run(
        self,
        x: NDArray[Any],
        seconds: float = np.inf,
        generators_of: Callable[..., Any] | None = None,
        *,
        twice: bool = False,
    ) -> Run:
        """Return one run at a packed point, without output or warnings.

        Random generators are set back afterwards.

        Parameters
        ----------
        x : ndarray (n,)
            The packed point.
        seconds : float
            The time limit.
        generators_of : callable, optional
            The user's function, where `function` only calls it: it names the generators.
        twice : bool
            Whether to run it twice, one after the other.

        Raises
        ------
        MethodTimeout
            It takes longer than `seconds`.
        """
        began = perf_counter()
        named = generators_of or self.function
        with quietly(), restored_generators(named) as drawn, limited(seconds):
            values = self.flat(x)
            seconds = perf_counter() - began
            same = not twice or np.array_equal(values, self.flat(x), equal_nan=True)
        return Run(values, seconds, tuple(drawn), same)


@dataclass(frozen=True, eq=False)
class Run:
    """One run of code.

    Attributes
    ----------
    values : ndarray (m,)
        The flattened result.
    seconds : float
        How long it took.
    drawn : tuple of str
        The random generators that it drew from.
    repeated : bool
        Whether a second run gave the same.
    """

    values: NDArray[Any]
    seconds: float
    drawn: tuple[str, ...]
    repeated: bool = True


def flattened(result: Any) -> NDArray[Any]:
    """Return the leaves of a result as one vector, in the order of a trace's outputs.

    Raises
    ------
    InputError
        A leaf is neither a number nor a numeric array.

    Examples
    --------
    >>> flattened({"b": 1, "a": [2.0, np.ones(2)]})
    array([2., 1., 1., 1.])
    """
    parts = []
    for leaf in flatten(result)[0]:
        part = np.asarray(getattr(leaf, "_data", leaf))  # a tensor has its array as `_data`
        if part.dtype == object:
            part = np.array(part.tolist())
        if part.dtype.kind not in "fiubc":
            raise InputError(f"the code returned {type(leaf).__name__}, which is not a number")
        parts.append(part.ravel())
    return np.concatenate(parts) if parts else np.zeros(0)


@contextmanager
def quietly() -> Iterator[None]:
    """Discard the output and the warnings of code that has run, and printed, before."""
    with (
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        # NumPy only warns when code drops imaginary parts, as `math.sin` does.
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        yield


class _TimeIsUp(BaseException):
    """The time limit; no handler of `Exception` in the user's code catches it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stop the body of a `with` statement after a time limit.

    It is stopped by a signal, in the main thread of a system that has them and where no other
    timer is set. Elsewhere it runs to its end, and the limit is checked then.

    Raises
    ------
    MethodTimeout
        It took longer.
    """
    began = perf_counter()
    fault = MethodTimeout(f"one run of the code takes longer than {seconds:g} s")
    timer = getattr(signal, "setitimer", None)
    main = threading.current_thread() is threading.main_thread()
    if timer is None or not main or seconds == np.inf or any(signal.getitimer(signal.ITIMER_REAL)):
        yield
    else:

        def stop(number: int, frame: FrameType | None) -> None:
            raise _TimeIsUp

        before = signal.signal(signal.SIGALRM, stop)
        timer(signal.ITIMER_REAL, seconds)
        try:
            yield
        except _TimeIsUp:
            raise fault from None
        finally:
            timer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    if perf_counter() - began > seconds:
        raise fault
