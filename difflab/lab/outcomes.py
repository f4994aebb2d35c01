"""The outcome of a method that raised an exception."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from difflab.errors import DifflabError, MethodTimeout, UnsupportedError, described
from difflab.lab.record import Status
from difflab.lab.sweep import Cell

__all__ = ["Outcome", "attempted", "outcome"]


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


def attempted(
    measure: Callable[[], Mapping[str, Cell]], timeouts: dict[str, str], name: str, size: str
) -> dict[str, Cell]:
    """Return the row of a measurement, or one that states why there is none.

    After the first timeout of a name nothing larger is tried.

    Parameters
    ----------
    measure : callable
        Returns the row.
    timeouts : dict
        The message of every name that timed out; extended here.
    name, size : str
        What is measured, and at which size.
    """
    if name in timeouts:
        return {"status": Status.TIMEOUT, "message": timeouts[name]}
    try:
        return {**measure()}
    except (Exception, SystemExit) as error:  # another package's method may fail in any way
        if isinstance(error, MethodTimeout):
            timeouts[name] = f"not tried: {size} it was {error}"
        return outcome(error)._asdict()
