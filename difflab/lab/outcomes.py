"""The outcome of a method that raised an exception, and the tasks of measurements that may."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from difflab.errors import DifflabError, MethodTimeout, UnsupportedError, described
from difflab.lab.record import Status
from difflab.lab.sweep import Cell, Task

Row = dict[str, Cell]
"""The columns that a measurement gives."""
Rows = Callable[[], Mapping[str, Mapping[str, Cell]]]
"""A measurement of several rows by their names."""


class Outcome(NamedTuple):
    """The status of a row without a result, and why it has none."""

    status: Status
    message: str


def outcome(error: BaseException) -> Outcome:
    """Return the status and the message of a row whose measurement raised `error`.

    Examples
    --------
    >>> outcome(MethodTimeout("stopped after 5 s"))
    Outcome(status=<Status.TIMEOUT: 'timeout'>, message='stopped after 5 s')
    >>> outcome(ZeroDivisionError("division by zero")).message
    'ZeroDivisionError: division by zero'
    """
    status = Status.FAILED
    if isinstance(error, MethodTimeout):
        status = Status.TIMEOUT
    elif isinstance(error, UnsupportedError):
        status = Status.UNSUPPORTED
    if isinstance(error, DifflabError):
        return Outcome(status, str(error))
    return Outcome(status, described(error))


def trial(
    key: Mapping[str, Cell],
    measure: Callable[[], Mapping[str, Cell]],
    source: Mapping[str, Cell],
    *,
    timeouts: dict[str, str] | None = None,
    name: str = "",
    size: str = "",
    **known: Cell,
) -> Task:
    """Return the task of a measurement that may fail: its row then states why.

    Parameters
    ----------
    key, source : mapping
        As of `Task`.
    measure : callable
        Returns the rest of the row.
    timeouts : dict, optional
        The message of every name that timed out, after which nothing larger is tried; extended
        when the task is measured.
    name, size : str
        What is measured, and at which size, for `timeouts`.
    **known
        Columns of the row, whatever happens.

    Examples
    --------
    >>> trial({"n": 2}, lambda: {"half": 1 / 0}, {}, unit="s").measure()["message"]
    'ZeroDivisionError: division by zero'
    """
    late = {} if timeouts is None else timeouts

    def row() -> Row:
        if name in late:
            return {**known, "status": Status.TIMEOUT, "message": late[name]}
        try:
            with np.errstate(all="ignore"):
                return {**known, **measure()}
        except (Exception, SystemExit) as error:  # another package's method may fail in any way
            if isinstance(error, MethodTimeout):
                late[name] = f"not tried: {size} it was {error}"
            return {**known, **outcome(error)._asdict()}

    return Task(key, row, source)


def together(
    key: Mapping[str, Cell],
    sources: Mapping[str, Mapping[str, Cell]],
    measure: Rows,
    column: str = "method",
) -> Iterator[Task]:
    """Yield a task for every name of `sources`; the first one that runs measures all.

    The name is in the `column` of the key.

    Examples
    --------
    >>> tasks = together({"n": 2}, {"a": {}, "b": {}}, lambda: {"a": {"x": 1}, "b": {"x": 2}})
    >>> [{**task.key, **task.measure()} for task in tasks]
    [{'n': 2, 'method': 'a', 'x': 1}, {'n': 2, 'method': 'b', 'x': 2}]
    """
    measured = cache(measure)
    for name, source in sources.items():
        yield Task({**key, column: name}, partial(_part, measured, name), source)


def _part(measured: Rows, name: str) -> Mapping[str, Cell]:
    return measured()[name]
