"""What public functions say when they are given text or Python code in place of a `Function`.

May import `function`, `errors`.
"""

from __future__ import annotations

from typing import Any

from difflab.errors import InputError
from difflab.graph.function import Function

__all__ = ["require_function"]


def require_function(subject: Any, what: str) -> None:
    """Raise an error that names `what` and the way out unless `subject` is a `Function`.

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
        kind = type(subject).__name__
        raise InputError(f"{what} takes a Function, not {kind}", hint=f"make one of {way}")
