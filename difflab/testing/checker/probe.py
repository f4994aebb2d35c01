"""The values of a function around a point: counted, and compared with those of a second call."""

from __future__ import annotations

import gc
import inspect
import pickle
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from difflab.core.progress import ProgressLine
from difflab.differences.window import Changes
from difflab.graph.pytree import flatten
from difflab.testing.checker.arguments import Outputs, Point
from difflab.testing.checker.leaves import Array, Callee
from difflab.testing.checker.message import ImpureFunction

_ROUNDINGS = 64.0
"""Units of rounding by which parallel sums may differ from call to call."""

_CLOCKS = {
    ("time", name)
    for stem in ("time", "perf_counter", "monotonic", "process_time", "thread_time")
    for name in (stem, f"{stem}_ns")
} | {("datetime", "now"), ("datetime", "utcnow"), ("date", "today"), ("datetime", "today")}


def _pure_values(f: Callee, point: Point) -> tuple[Outputs, Array]:
    """Return the result of `f` and how far two calls differ, ``(m,)``.

    Raises
    ------
    ImpureFunction
        `f` changes its argument, or two calls differ by more than rounding.
    DomainError
        The result is not finite.
    """
    first, second = (_called(f, point) for _ in range(2))
    values = first.numbers()
    if not np.isfinite(values).all():
        raise point.infinite(first)
    spread = _spread_of(f, values, second.numbers(), max(point.eps, first.eps), point.copy)
    return first, spread


def _spread_of(
    f: Callee, first: Array, second: Array, eps: float, argument: Callable[[], Any]
) -> Array:
    """Return how far two results at one point differ; raise if it is more than rounding."""
    same = first.shape == second.shape
    spread = np.abs(first - second) if same else np.array([np.inf])
    if not (spread <= _ROUNDINGS * eps * (np.abs(first).max() if same else 0.0)).all():
        here = int(spread.argmax()) if same else 0
        results = f"{float(first[here])!r} and {float(second[here])!r}" if same else "two shapes"
        raise ImpureFunction(
            f"f is not a function of its argument: two calls at the same point returned {results};"
            f" {_cause(f, argument)}"
        )
    return spread


def _called(f: Callee, point: Point) -> Outputs:
    """Return the result of a call; raise if `f` writes to its argument."""
    argument = point.copy()
    with np.errstate(all="ignore"):
        outputs = point.outputs(f(argument))
    changed = point.changed(argument)
    if changed is not None:
        line = _write(f, point.copy())
        raise ImpureFunction(
            f"f changes its argument: after the call, {changed} has other values\n"
            + (f"it is written to in {line}\n" if line else "")
            + "copy it in f before writing to it"
        )
    return outputs


def _write(f: Callee, tree: Any) -> str:
    """Return the line at which a call writes to NumPy arrays of its argument, or nothing."""
    for leaf in flatten(tree)[0]:
        if isinstance(leaf, np.ndarray):
            leaf.flags.writeable = False
    try:
        with np.errstate(all="ignore"):
            f(tree)
    except ValueError as error:
        frames = traceback.extract_tb(error.__traceback__)
        if "read-only" in str(error) and frames:
            frame = frames[-1]
            return f"{Path(frame.filename).name}, line {frame.lineno}: {frame.line}"
    except Exception:  # the call has succeeded on an array that can be written to
        pass
    return ""


def _cause(f: Callee, argument: Callable[[], Any]) -> str:
    """Return why calls of `f` differ, in words: a clock, random draws, or state.

    Examples
    --------
    >>> import time
    >>> _cause(lambda x: x * time.perf_counter(), lambda: 1.0)
    'it reads a clock: time.perf_counter'
    >>> calls = []
    >>> _cause(lambda x: (calls.append(x), len(calls))[1], lambda: 1.0)
    'it keeps state: the call changed calls'
    """
    tree = argument()
    clocks: set[str] = set()
    generators, before = _generators(), _watched(f)

    def listen(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call":
            owner = getattr(function, "__self__", None)
            name = getattr(function, "__name__", "")
            module = getattr(owner, "__name__", "") or getattr(function, "__module__", "") or ""
            if (module.rpartition(".")[2], name) in _CLOCKS:
                clocks.add(f"{module}.{name}")

    previous, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # others' callbacks of the collector may read clocks
    sys.setprofile(listen)
    try:
        f(tree)
    except Exception:  # whatever it was called for, the reason is still the one observed
        pass
    finally:
        sys.setprofile(previous)
        if collects:
            gc.enable()
    if clocks:
        return f"it reads a clock: {', '.join(sorted(clocks))}"
    drawn = [name for name, state in _generators().items() if state != generators[name]]
    if drawn:
        mode = ": it is in training mode, call .eval()" if getattr(f, "training", False) else ""
        return f"it draws random numbers from {', '.join(drawn)}{mode}"
    after = _watched(f)
    changed = [name for name in after if after[name] != before.get(name)]
    if changed:
        return f"it keeps state: the call changed {', '.join(changed)}"
    return "it keeps state, or reads something that changes"


def check_repeatable(first: Array, again: Array, eps: float) -> None:
    """Raise `ImpureFunction` if a gradient differs after `f` was called at other points."""
    gap = np.abs(first - again)
    if not (gap <= _ROUNDINGS * eps * np.abs(first).max())[np.isfinite(first)].all():
        raise ImpureFunction(
            "the gradient is not a function of its argument: after calls of f at other points it"
            f" differs by {float(np.nanmax(gap)):.3g}; likely a stale value, kept from the last"
            " call of f"
        )


def remembered(first: Array, again: Array, away: Array) -> str:
    """Return whether a wrong gradient keeps values, in words; empty if it does not.

    Parameters
    ----------
    first, again : ndarray
        The gradient at the point, before and after a call of f at another point.
    away : ndarray
        The gradient at that other point.

    Examples
    --------
    >>> remembered(np.ones(2), np.ones(2), np.ones(2))
    'likely a stale value: the gradient is the same at another point'
    """
    if not np.array_equal(first, again, equal_nan=True):
        return "likely a stale value: the gradient differs after a call of f at another point"
    if first.any() and np.array_equal(first, away):
        return "likely a stale value: the gradient is the same at another point"
    return ""


def _generators() -> dict[str, Any]:
    """Return the states of the global random generators that are loaded."""
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002 - the state that f may draw from
    states: dict[str, Any] = {
        "random": random.getstate(),
        "np.random": (kind, np.asarray(keys).tobytes(), *rest),
    }
    if "torch" in sys.modules:
        states["torch's generator"] = sys.modules["torch"].get_rng_state().numpy().tobytes()
    return states


def _watched(f: Any) -> dict[str, bytes]:
    """Return fingerprints of a function's state: captured variables, globals, attributes."""
    state: dict[str, Any] = {}
    f = inspect.unwrap(f)
    function = f
    if isinstance(f, MethodType):
        state |= {f"self.{name}": value for name, value in _attributes(f.__self__).items()}
        function = f.__func__
    elif not isinstance(f, FunctionType):
        state |= {f"self.{name}": value for name, value in _attributes(f).items()}
        function = vars(type(f)).get("__call__")
    if isinstance(function, FunctionType):
        code = function.__code__
        state |= {f"{code.co_name}.{name}": value for name, value in vars(function).items()}
        for name in code.co_names:
            if name in function.__globals__:
                state[name] = function.__globals__[name]
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                state[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        for i, value in enumerate(function.__defaults__ or ()):
            state[code.co_varnames[code.co_argcount - len(function.__defaults__ or ()) + i]] = value
    return {name: _fingerprint(value) for name, value in state.items()}


def _attributes(owner: Any) -> dict[str, Any]:
    return dict(getattr(owner, "__dict__", {}))


def _fingerprint(value: Any) -> bytes:
    """Return bytes that differ if the value differs; empty if that is unknown."""
    if isinstance(value, ModuleType | type | FunctionType):
        return b""
    try:
        return pickle.dumps(value)
    except Exception:  # not everything can be pickled, and pickling may raise anything
        return b""


class Probe:
    """The values of `f` at displaced arguments.

    Attributes
    ----------
    outputs : Outputs
        The result at the point.
    center : ndarray (m,)
        Its elements.
    rounding : ndarray (m,)
        The error of one value: the spacing of its dtype, or the difference of two calls.
    eps : float
        The spacing at 1 of the coarsest dtype of arguments and results.
    count : int
        Evaluations of `f`.
    """

    def __init__(self, f: Callee, point: Point) -> None:
        self.f = f
        self.point = point
        self.count = 2
        outputs, spread = _pure_values(f, point)
        self.outputs = outputs
        self.center = outputs.numbers()
        self.eps = max(point.eps, outputs.eps)
        self.rounding = np.maximum(self.eps * np.abs(self.center), spread)

    def __call__(self, tree: Any) -> Array:
        """Return the values ``(m,)``; nan if the code raises an exception."""
        self.count += 1
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                outputs = self.point.outputs(self.f(tree))
        except Exception:  # user code may raise anything away from the given point
            return np.full(self.center.size, np.nan)
        same = outputs.structure == self.outputs.structure and outputs.n == self.center.size
        return outputs.numbers() if same else np.full(self.center.size, np.nan)

    def residual(
        self,
        along: Array,
        weights: Array,
        cotangent: Array | None = None,
        start: int = 0,
        stop: int | None = None,
    ) -> Changes:
        r"""Return the function of t :math:`f(x + d) - f(x) - W d`, with d = t `along`, rounded.

        Its derivative at 0 is zero if the rows of W are the derivatives of f.

        Parameters
        ----------
        along : ndarray (n,)
            The direction.
        weights : ndarray (m, n), or (1, n) with a cotangent
            The derivatives under test.
        cotangent : ndarray (m,), optional
            Weights whose sum of the values is compared.
        start, stop : int
            The part of the arguments that moves.
        """

        def change(t: float) -> Array:
            tree, linear = self.point.displaced(along, t, weights, start, stop)
            increment = self(tree) - self.center
            if cotangent is not None:
                increment = np.array([cotangent @ increment])
            difference: Array = increment - linear
            return difference

        return lambda moves: np.array([change(float(t)) for t in moves])

    def rounding_of(self, cotangent: Array | None) -> Array:
        """Return the error of the weighted sum of the values, ``(1,)``."""
        weights = np.ones(1) if cotangent is None else cotangent
        return np.array([float(np.linalg.norm(weights * self.rounding))])


@contextmanager
def evaluations_shown(
    f: Callable[..., Any], components: int, name: str = "check_gradient"
) -> Iterator[Callable[..., Any]]:
    """Give a function that counts its calls, which a terminal or a notebook shows.

    Elsewhere `f` itself is given, so that nothing is added to a check.
    """
    with ProgressLine() as progress:
        if not progress.live:
            yield f
            return
        count = 0

        @wraps(f, updated=())
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            progress.count(f"{name}: {components:,} components, {count:,} evaluations")
            return f(*args, **kwargs)

        yield counted
