"""The status and message of a benchmark row whose measurement raised an exception."""

from __future__ import annotations

from difflab.errors import DifflabError, MethodTimeout, UnsupportedError, printable
from difflab.lab.record import Status
from difflab.lab.sweep import Cell

__all__ = ["outcome"]


def outcome(error: BaseException) -> dict[str, Cell]:
    """Return the status and the message of a row whose measurement raised `error`.

    Examples
    --------
    >>> outcome(MethodTimeout("stopped after 5 s"))
    {'status': 'timeout', 'message': 'stopped after 5 s'}
    >>> outcome(ZeroDivisionError("division by zero"))
    {'status': 'failed', 'message': 'ZeroDivisionError: division by zero'}
    """
    status = Status.FAILED
    if isinstance(error, MethodTimeout):
        status = Status.TIMEOUT
    elif isinstance(error, UnsupportedError):
        status = Status.UNSUPPORTED
    text = str(error) if isinstance(error, DifflabError) else f"{type(error).__name__}: {error}"
    return {"status": str(status), "message": printable(text)}
