"""Preparation, repetition and timing of a function, the same for every eval."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from time import perf_counter_ns
from typing import Any

import difflab as dl
from difflab.core.optional import installed
from difflab.execute import workers

__all__ = ["FASTEST", "FunctionsByName", "Prepared", "compiled", "repeated"]


FASTEST = "native" if installed("llvmlite") else "auto"
"""The target of code that is called often: `auto` considers a single call."""


@dataclass(frozen=True)
class Prepared:
    """A function that is ready to be evaluated at its input.

    Attributes
    ----------
    evaluate : callable
        The timed call, without arguments. It computes everything each time.
    output : callable
        From the result of `evaluate` to values of JSON; not timed, as in GradBench's own tools.
    rehearsals : int
        How often it is evaluated before, as a part of preparing. The only evaluation of a short
        function would otherwise measure cold caches, and code that is not yet machine code.
    """

    evaluate: Callable[[], Any]
    output: Callable[[Any], Any]
    rehearsals: int = 0


_WARM = 32
"""Evaluations after which caches hold what an evaluation reads."""

FunctionsByName = Mapping[str, Callable[[Any], Prepared]]
"""The functions of an eval: each prepares one for an input."""


def compiled(
    f: Callable[..., Any],
    *arguments: Any,
    output: Callable[[Any], Any],
    target: str = FASTEST,
    rehearsals: int = 0,
) -> Prepared:
    """Trace a function at its arguments and compile it, on one thread.

    Parameters
    ----------
    f : callable
        Python code written with NumPy, a derivative of such code for example.
    *arguments : floats, arrays and trees of them
        The values of its inputs. Everything else that it reads is constant.
    output : callable
        From its result to values of JSON.
    target : str
        The target of `difflab.compile`.
    rehearsals : int
        As in `Prepared`.

    Examples
    --------
    >>> import difflab as dl
    >>> prepared = compiled(dl.grad(lambda x: x * x), 3.0, output=float, target="python")
    >>> prepared.output(prepared.evaluate())
    6.0
    """
    fast = dl.compile(dl.trace(f, *arguments), target, threads=1)
    return Prepared(partial(fast, *arguments), output, rehearsals)


def repeated(prepare: Callable[[Any], Prepared], question: Any) -> dict[str, Any]:
    """Prepare a function, evaluate it as often as its input asks, and report all times.

    Parameters
    ----------
    prepare : callable
        From the input of an evaluation to the function, ready.
    question : JSON value
        The input. With ``min_runs`` and ``min_seconds`` it is repeated until both are reached.

    Returns
    -------
    dict
        The ``output``, and the ``timings`` in nanoseconds: one ``prepare``, which is all that
        precedes the first evaluation (conversion to arrays, tracing, compilation), and one
        ``evaluate`` for each evaluation.

    Examples
    --------
    >>> import difflab as dl
    >>> square = lambda x: compiled(lambda x: x * x, x, output=float, target="python")
    >>> found = repeated(square, 3.0)
    >>> found["output"], [timing["name"] for timing in found["timings"]]
    (9.0, ['prepare', 'evaluate'])
    """
    limits = question if isinstance(question, Mapping) else {}
    least, seconds = limits.get("min_runs", 1), limits.get("min_seconds", 0)
    start = perf_counter_ns()
    prepared = prepare(question)
    for _ in range(prepared.rehearsals):
        prepared.evaluate()
    workers.finish()  # machine code is made beside the calls
    gc.collect()
    preparing = perf_counter_ns() - start
    warming = _WARM if prepared.rehearsals else 0
    result, times = _evaluated(prepared.evaluate, warming, least, seconds)
    timings = [_timing("prepare", preparing + sum(times[:warming]))]
    timings += [_timing("evaluate", elapsed) for elapsed in times[warming:]]
    return {"output": prepared.output(result), "timings": timings}


def _evaluated(
    evaluate: Callable[[], Any], warming: int, least: int, seconds: float
) -> tuple[Any, list[int]]:
    """Return the last result and the nanoseconds of each evaluation.

    After some for `warming`, there are as many as it takes to reach both limits.
    """
    clock, times, total = perf_counter_ns, list[int](), 0
    for runs in count(1 - warming):
        start = clock()
        result = evaluate()
        elapsed = clock() - start
        times.append(elapsed)
        total += elapsed if runs > 0 else 0
        if runs >= least and total >= seconds * 1e9:
            return result, times
    raise AssertionError


def _timing(name: str, nanoseconds: int) -> dict[str, Any]:
    return {"name": name, "nanoseconds": nanoseconds}
