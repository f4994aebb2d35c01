"""Where the user's own code is, when tracing has to say that it cannot go on.

May import nothing of the package.
"""

from __future__ import annotations

import linecache
import sys
from types import FrameType

__all__ = ["users_line"]

_NOT_USERS = frozenset({"difflab", "numpy", "scipy", "functools"})


def users_line() -> str:
    r"""Return the file, line number and text of the innermost line outside the libraries.

    Returns
    -------
    str
        Such as ``" at model.py, line 12: if x > 0:"``, to go after a message; empty where
        there is no such line.

    Examples
    --------
    >>> code = compile("place = users_line()", "model.py", "exec")
    >>> names = {"__name__": "model", "users_line": users_line}
    >>> exec(code, names)
    >>> names["place"]
    ' at model.py, line 1'
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _NOT_USERS:
            name, line = frame.f_code.co_filename, frame.f_lineno
            text = linecache.getline(name, line).strip()
            return f" at {name}, line {line}" + (f": {text}" if text else "")
        frame = frame.f_back
    return ""
