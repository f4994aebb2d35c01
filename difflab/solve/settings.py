"""Checks of the settings that solvers share."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from difflab.errors import InputError


def require_choice(value: Any, known: Collection[str], name: str, what: str) -> None:
    """Raise `InputError` unless a setting is one of some words; `what` is the solver.

    Examples
    --------
    >>> require_choice("adjoint", ("implicit", "unrolled"), "derivative", "root")
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: derivative of root is one of implicit, unrolled, not 'adjoint'
    """
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} of {what} is one of {', '.join(known)}, not {value!r}")


def require_tolerances(what: str, **tolerances: Any) -> None:
    """Raise `InputError` unless all are finite numbers of at least 0."""
    for name, value in tolerances.items():
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not 0 <= value < math.inf:
            raise InputError(f"{name} of {what} is a number of at least 0, not {value!r}")


def require_count(value: Any, name: str, what: str, most: int = 2**53) -> None:
    """Raise `InputError` unless a setting is an integer from 1 to `most`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 1 <= value <= most:
        raise InputError(f"{name} of {what} is an integer from 1 to {most:,}, not {value!r}")
