"""Type checks of the arguments of public functions."""

from __future__ import annotations

from typing import Any

from difflab.errors import InputError
from difflab.graph.function import Function


def require_function(subject: Any, what: str, of_code: str = "") -> None:
    """Raise an error with a remedy unless `subject` is a `Function`; `what` is the caller.

    `of_code` is the call that does the same for Python code, if there is one.

    Examples
    --------
    >>> require_function("x^2", "gradient")
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: gradient takes a Function, not str
    hint: make one of text by dl.parse(text)
    """
    if not isinstance(subject, Function):
        way = "text by dl.parse(text)"
        if not isinstance(subject, str):
            way = "Python code by dl.trace(f, *example_arguments)"
            way += f", or use {of_code}" if of_code else ""
        kind = type(subject).__name__
        raise InputError(f"{what} takes a Function, not {kind}", hint=f"make one of {way}")


def require_callable(fun: Any, what: str) -> None:
    """Raise an error unless `fun` is callable; `what` is the caller.

    Examples
    --------
    >>> require_callable(3, "grad")
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: grad takes a function, not int
    """
    if not callable(fun):
        hint = "make a function of text by dl.parse(text)" if isinstance(fun, str) else None
        raise InputError(f"{what} takes a function, not {type(fun).__name__}", hint=hint)


def require_flag(value: Any, name: str, what: str) -> None:
    """Raise an error unless a setting is a bool."""
    if not isinstance(value, bool | int):
        raise InputError(f"{name} of {what} is True or False, not {type(value).__name__}")


def require_timeout(timeout: Any) -> None:
    """Raise an error unless a time limit is a positive number; it may be infinite.

    Examples
    --------
    >>> require_timeout(0)
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: the time limit must be a positive number of seconds, not 0
    """
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not timeout > 0:
        raise InputError(f"the time limit must be a positive number of seconds, not {timeout!r}")
