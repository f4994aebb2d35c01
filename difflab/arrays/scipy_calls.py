"""Errors for calls of SciPy's numeric functions, which suggest a replacement."""

from __future__ import annotations

import warnings
from types import FrameType
from typing import TypeVar

from difflab.arrays.numpy_names import alternative_to
from difflab.core.place import (
    NOWHERE,
    SourceLocation,
    frame_position,
    is_users,
    python_frame,
)
from difflab.errors import InputError

Error = TypeVar("Error", bound=InputError)

_SOLVERS = ("scipy.integrate", "scipy.optimize")
_SOLVED = (
    "use dl.solve.root, fixed_point, minimize, linear, quad or ivp, whose solutions have"
    " derivatives; or call SciPy in the forward of a difflab.CustomFunction, whose backward states"
    " the derivative (of a root z of g(z, a) = 0 it is -(dg/dz)^-1 dg/da)"
)
_IN_C = "scipy.optimize._zeros_py"
"""SciPy's module whose code in C replaces the error of a conversion by one of its own."""
_BRACKETING = "scipy.optimize._optimize"
"""SciPy's minimizers in Python, whose points depend on the function by comparisons alone."""
_WRAPPERS = ("inner", "wrapper")
"""Names of functions that SciPy's decorators make."""


def _running_function() -> tuple[str, str, SourceLocation] | None:
    """Return module and name of the SciPy function that runs, and the line that called it."""
    frame, module, name = python_frame(), "", ""
    while frame is not None and _computes_numbers(_module(frame)):
        if not (name and _wraps(frame)):
            name, module = frame.f_code.co_name, ".".join(_module(frame).split(".")[:2])
        frame = frame.f_back
        while frame is not None and not is_users(frame):
            frame = frame.f_back
    if not name:
        return None
    return module, name, NOWHERE if frame is None else frame_position(frame).read()


def _wraps(frame: FrameType) -> bool:
    """Whether a decorator of SciPy's made the function that a frame executes."""
    return frame.f_code.co_name in _WRAPPERS or _module(frame).startswith("scipy._lib.")


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _computes_numbers(module: str) -> bool:
    """Whether a module is SciPy's, other than those of the sparse arrays."""
    return module.startswith("scipy.") and not module.startswith("scipy.sparse._")


def not_through_scipy(kind: type[Error]) -> Error | None:
    """Return the error for a value whose derivative would be lost inside of SciPy, if it runs.

    Examples
    --------
    >>> from difflab.errors import TraceError
    >>> not_through_scipy(TraceError) is None
    True
    """
    running = _running_function()
    if running is None:
        return None
    module, name, place = running
    called = f"a function of {module}" if name in _WRAPPERS else f"{module}.{name}"
    part, hint = ("solvers", _SOLVED) if module in _SOLVERS else ("functions", alternative_to(name))
    message = f"derivatives do not flow through SciPy's {part}: {called} computes with numbers only"
    return place.error(kind, message, hint)


def not_by_comparisons(kind: type[Error]) -> Error | None:
    """Return the same error where one of SciPy's minimizers compares values.

    `golden` and its kin can be recorded, and the recorded derivative would be that of a point that
    the values never touched: zero.
    """
    frame = python_frame()
    compares = frame is not None and _module(frame) == _BRACKETING
    return not_through_scipy(kind) if compares else None


def warn_of_scipy() -> None:
    """Warn with the error's text where SciPy's code in C would drop it: the limits of `bisect`."""
    frame = python_frame()
    if frame is not None and _module(frame) == _IN_C:
        warnings.warn(str(not_through_scipy(InputError)), stacklevel=5)
