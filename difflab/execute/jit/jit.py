"""`jit`: a Python function, traced and compiled for each kind of arguments."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from difflab.autodiff.recording import Contents, Recording, record
from difflab.core.conversions import as_float64, as_reals
from difflab.core.place import user_location
from difflab.core.wording import counted
from difflab.errors import InputError, UnsupportedError
from difflab.execute.compiled import Compiled, check_dtype, check_target, compile
from difflab.execute.jit.reads import Reads
from difflab.execute.jit.search import Search
from difflab.execute.jit.signature import MISS, Call, LeafType, matcher
from difflab.execute.lower.ops import FLOAT
from difflab.graph.checks import require_callable
from difflab.graph.draws import without_draws
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.graph.pytree import flatten, unflatten
from difflab.graph.values import SINGLE, Precision, in_precision

NOTHING = Reads(Search([]))
"""What a trace reads that is kept to be shown only."""
MOST_TRACES = 256
"""Traces of one function that are kept; the one that was used longest ago is dropped."""


def jit(
    fn: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    target: str = "auto",
    dtype: DTypeLike | None = None,
    *,
    verify: bool = False,
) -> Jitted:
    r"""Return `fn` compiled: it is traced at its first call, and again when it must be.

    The trace of a call is used again for arguments of the same trees, shapes, dtypes and static
    values, as long as nothing else that `fn` reads has changed: global variables, variables of
    enclosing functions, defaults, attributes of objects, tensors and `dl.nn` modules among them.
    Otherwise the function is traced anew, so that it computes what `fn` computes. State that
    cannot be watched, such as a file, is named in `explain()` and in a warning.

    Parameters
    ----------
    fn : callable
        Code written with NumPy. Its arguments are trees (tuples, named tuples, lists, dicts,
        dataclasses) of real numbers and arrays, and so is its result. It runs only while it is
        traced: side effects are not repeated by later calls. Random numbers are drawn by a key
        that is an argument (`difflab.random`); drawing them from `numpy.random` is an error.
    static_argnums : int or sequence of int
        The positions of arguments that are constants of a trace, such as the number of iterations
        of a loop. They need a hash.
    target : {"auto", "python", "numpy", "native", "cupy", "exact"}
        As in `compile`.
    dtype : {float64, float32}, optional
        The dtype in which values are computed, whatever that of the arguments; as in `compile`.
        By default that of the code: float32 if all that it computes is, as for float32 arguments;
        else float64, in which values that are float32 in NumPy are rounded.
    verify : bool
        Whether `fn` itself is run once more for each trace, on the arguments of the call that
        made it, and its value compared with that of the graph.

    Returns
    -------
    Jitted
        A callable with the signature of `fn`. ``explain()`` lists its traces, each with its
        cause and its unwatched reads. On tensors and traced values, `fn` itself is called,
        so that transforms go through it: ``dl.grad(dl.jit(f))`` and ``dl.jit(dl.grad(f))`` are
        the same.

    Raises
    ------
    InputError
        `fn` is not callable, the target, the dtype or a position is invalid; at a call, an
        argument is neither static nor a tree of real numbers and arrays.
    TraceError
        At a call: `fn` branches on a traced value, leaves NumPy, or draws from `numpy.random`.
    GraphMismatchError
        At a call, with `verify`: the graph is not the function of the code.

    Warns
    -----
    UserWarning
        At the first trace that reads it, once: `fn` reads state that is not watched, or changes
        what it reads itself, so that every call is a trace.

    Notes
    -----
    Results are of the dtype of the code, or of `dtype`; those of shape () are Python floats, and
    scalars among the arguments stay scalars. The values that a function can read are searched
    when it is traced, in its code and in that of the functions it can call; code of installed
    packages is assumed constant. Tensors are compared by identity and version, a count of their
    changes in place, and arrays by their elements at each call: pass large ones as arguments.
    "What `jit` watches" in the reference lists the kinds of state.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> @dl.jit
    ... def loss(params, x):
    ...     return np.sum((params["w"] * x + params["b"]) ** 2)
    >>> loss({"w": 2.0, "b": 1.0}, np.ones(3)), loss({"w": 1.0, "b": 1.0}, np.ones(3))
    (27.0, 12.0)
    >>> loss({"w": 2.0, "b": 1.0}, np.ones(4))
    36.0
    >>> [trace.cause for trace in loss.traces]
    ['first call', 'x was float64 (3,), is float64 (4,)']
    """
    require_callable(fn, "jit")
    check_target(target)
    positions = static_argnums if isinstance(static_argnums, tuple | list) else (static_argnums,)
    if not all(isinstance(position, int) for position in positions):
        raise InputError(
            f"static_argnums of jit must be an integer or a tuple of them, not {static_argnums!r}"
        )
    chosen = None if dtype is None else check_dtype("jit", dtype)
    return Jitted(fn, tuple(positions), target, chosen, verify)


@dataclass(eq=False)
class JitTrace:
    """One trace of a function, for one kind of arguments.

    Attributes
    ----------
    function : Function
        The recorded graph. Its inputs are the leaves of the arguments, then the arrays that the
        code read from elsewhere.
    compiled : Compiled
        The code that calls run.
    cause : str
        Why the function was traced: the difference from the previous trace.
    where : str
        The file and the line of that: of the call, or of the code that reads a changed value.
    unwatched : dict of str to str
        The unwatched reads of the function, and why they are not watched.
    changed : str
        The change that its own run made to a value that it reads: the next call traces again.
    calls : int
        How often it was called.
    """

    function: Function
    compiled: Compiled
    cause: str
    where: str
    arguments: dict[str, str]
    kinds: Sequence[Precision]
    captured: list[Any]
    reads: Reads
    match: Callable[[Any, Any], Any]
    precisions: Sequence[Precision] = ()
    changed: str = ""
    contents: Any = None
    calls: int = field(default=0)

    def __post_init__(self) -> None:
        # Arguments that `match` accepts need no second check, unless they are converted.
        converted = self.captured or self.precisions or SINGLE in self.kinds
        self.matched = self.run if converted else self.compiled.unchecked()
        self.unwatched = self.reads.unwatched

    def run(self, leaves: Sequence[Any]) -> Any:
        """Return the results, in the dtypes of the code."""
        results = self.compiled(*leaves, *self.captured)
        if not self.precisions:
            return results
        values, structure = flatten(results)
        return unflatten(structure, list(map(_settled, values, self.precisions)))

    def __str__(self) -> str:
        location = f" ({self.where})" if self.where else ""
        operations = int((self.function.graph.opcode >= FIRST_ROW).sum())
        inputs = ", ".join(f"{path} {kind}" for path, kind in self.arguments.items())
        lines = [
            f"{self.cause}{location}",
            inputs or "no arguments",
            f"{counted(operations, 'operation')}, {counted(self.calls, 'call')}; "
            f"{self.compiled.reason}",
            *(f"not watched: {name}: {why}" for name, why in self.unwatched.items()),
            *([f"its run changes what it reads: {self.changed}"] if self.changed else []),
        ]
        return "\n   ".join(lines)


def _settled(result: Any, precision: Precision) -> Any:
    """Return a result in its dtype; a Python float is rounded to it."""
    return (
        float(in_precision(np.float64(result), precision))
        if type(result) is float
        else in_precision(result, precision)
    )


class Jitted:
    """A function that is traced and compiled when it is called; made by `jit`.

    Attributes
    ----------
    traces : list of JitTrace
        Its traces, in the order they were made.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        static: tuple[int, ...],
        target: str,
        dtype: np.dtype[Any] | None = None,
        verify: bool = False,
    ) -> None:
        self._dtype = dtype
        self._verify = verify
        functools.update_wrapper(self, fn)
        self._fn = fn
        name = getattr(fn, "__name__", None)
        self._name = name if isinstance(name, str) else type(fn).__name__
        self._static = static
        self._target = target
        self._lock = RLock()
        self._warned: set[str] = set()
        self._by_key: dict[Any, list[JitTrace]] = {}
        self._latest: JitTrace | None = None
        self.traces: list[JitTrace] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the function, computed by compiled code."""
        latest = self._latest
        if latest is not None:
            leaves = latest.match(args, kwargs)
            if leaves is not MISS and latest.reads.unchanged():
                latest.calls += 1
                return latest.matched(leaves)
        return self._general(args, kwargs)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call any trace that fits, or make one."""
        call = self._call(args, kwargs)
        if call.is_recorded():
            return self._fn(*args, **kwargs)
        with self._lock:
            trace = self._trace_of(call)
        if trace is None:
            return self._fn(*args, **kwargs)
        self._latest = trace
        trace.calls += 1
        leaves = [
            as_reals(leaf, "an argument of jit")
            if getattr(leaf, "dtype", None) == SINGLE.dtype
            else as_float64(leaf, "an argument of jit")
            for leaf in call.leaves
        ]
        return trace.run(leaves)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        for position in self._static:
            if not -len(args) <= position < len(args):
                raise InputError(
                    f"static_argnums of jit names argument {position}, but the call has "
                    f"{counted(len(args), 'positional argument')}",
                    hint="pass static arguments by position",
                )
        return Call(self._fn, args, kwargs, self._static)

    def _trace_of(self, call: Call) -> JitTrace | None:
        """Return the trace for a call; None if the function reads values of a trace around it."""
        types = call.types()
        key = (call.structure, call.constants(), types)
        same = self._by_key.setdefault(key, [])
        search, change = None, None
        for trace in reversed(same):
            if trace.reads.unchanged():
                return trace
            search = search or self._search(call)
            difference = trace.reads.change(search)
            if difference is None:
                return trace
            change = change or difference
        cause, where = change or (self._difference(call, types), user_location().where)
        reads = Reads(search or self._search(call))
        made = self._made(call, types, cause, where, reads, same)
        if made is not None:
            self._keep(made, same)
        return made

    def _search(self, call: Call) -> Search:
        """Search the values that the function can read, static arguments included."""
        static = [(f"static argument {k}", call.args[k]) for k in call.static]
        return Search([(self._name, self._fn), *static])

    def _keep(self, made: JitTrace, same: list[JitTrace]) -> None:
        """Add a trace to those of its kind of arguments, and drop those that are not used again."""
        again = made.changed and any(trace.changed for trace in same)
        for trace in [trace for trace in same if trace.reads.is_over()]:
            self._drop(trace)
            shown = self.traces[self.traces.index(trace)] = copy(trace)
            shown.captured, shown.reads, shown.matched = [], NOTHING, shown.run
        same.append(made)
        self.traces.append(made)
        if len(self.traces) > MOST_TRACES:
            self._drop(self.traces.pop(0))
        notes = {name: f"{name}: {why}" for name, why in made.reads.unwatched.items()}
        if again:
            what = f"its run changes what it reads: {made.changed}"
            notes[""] = f"every call traces it, as {what}"
        for key in notes.keys() - self._warned:
            self._warned.add(key)
            warnings.warn(f"jit of {self._name}: {notes[key]}", stacklevel=5)

    def _made(
        self,
        call: Call,
        types: tuple[LeafType, ...],
        cause: str,
        where: str,
        reads: Reads,
        same: list[JitTrace],
    ) -> JitTrace | None:
        """Trace and compile the function for the arguments of a call.

        Other values of parameters give the same graph, whose code is used again.
        """

        def run(leaves: Sequence[Any]) -> Any:
            args, kwargs = call.with_leaves(leaves)
            return self._fn(*args, **kwargs)

        shapes, kinds = [kind.shape for kind in types], [kind.precision for kind in types]
        with reads.of_tensors():
            recording = without_draws(
                self._fn, lambda: record(run, shapes, has_aux=False, precisions=kinds)
            )
        if any(hasattr(value, "__difflab_apply__") for value in recording.captured):
            return None
        if self._verify:
            from difflab.autodiff.verified import verified

            verified(recording, self._fn, run, call.leaves, at_point=False)
        function = replace(recording.function, structure=recording.structure)
        contents = Contents(function), recording.structure, recording.precisions
        known = [trace.compiled for trace in same if trace.contents == contents]
        compiled = known[0] if known else self._compiled(function, recording)
        mixed = self._dtype is None and compiled.dtype == FLOAT
        own = None if reads.unchanged() else reads.change(self._search(call))
        return JitTrace(
            function,
            compiled,
            cause,
            where,
            call.shown(types),
            kinds,
            recording.captured,
            reads,
            matcher(call, types),
            recording.precisions if mixed and SINGLE in recording.precisions else (),
            own.message if own else "",
            contents,
        )

    def _compiled(self, function: Function, recording: Recording) -> Compiled:
        """Compile a function in the dtype that was asked for, or that of its code."""
        if self._dtype is None and not recording.in_double and SINGLE in recording.precisions:
            try:
                return compile(function, self._target, dtype=np.float32)
            except UnsupportedError:  # the target, or a function, has no float32
                pass
        return compile(function, self._target, dtype=self._dtype or FLOAT)

    def _drop(self, trace: JitTrace) -> None:
        for same in self._by_key.values():
            if trace in same:
                same.remove(trace)

    def _difference(self, call: Call, types: tuple[LeafType, ...]) -> str:
        """Return how the arguments of a call differ from those of the latest trace."""
        if not self.traces:
            return "first call"
        before, now = self.traces[-1].arguments, call.shown(types)
        for path, kind in now.items():
            if path not in before:
                return f"{path} is new"
            if before[path] != kind:
                return f"{path} was {before[path]}, is {kind}"
        gone = [path for path in before if path not in now]
        return f"{gone[0]} is gone" if gone else "arguments in other containers"

    def explain(self) -> str:
        """Return the traces as text: why each was made and where, its arguments, its calls.

        State that is not watched is named there.
        """
        lines = [f"{self._name}: {counted(len(self.traces), 'trace')}"]
        lines += [f"{number}. {trace}" for number, trace in enumerate(self.traces, 1)]
        return "\n".join(lines)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind as a method, as a function in the body of a class does."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {self._fn!r}: {counted(len(self.traces), 'trace')}>"
