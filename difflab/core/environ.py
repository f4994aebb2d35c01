"""Environment variables that are set within a context."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def environment_variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, and restore their former values at the end.

    Examples
    --------
    >>> with environment_variables({"DIFFLAB_EXAMPLE": "1"}):
    ...     print(os.environ["DIFFLAB_EXAMPLE"])
    1
    >>> "DIFFLAB_EXAMPLE" in os.environ
    False
    """
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
