"""Cache of objects derived from a function, with the lifetime of the function."""

from __future__ import annotations

from typing import Any


class DerivedCache(dict[str, Any]):
    """Derived objects by key, which are neither copied nor pickled with their owner.

    Examples
    --------
    >>> import copy
    >>> notes = DerivedCache(calls=3)
    >>> copy.deepcopy(notes)
    {}
    """

    def __reduce__(self) -> tuple[type[DerivedCache], tuple[()]]:
        return DerivedCache, ()
