"""What others have worked out about a function, kept as long as it."""

from __future__ import annotations

from typing import Any

__all__ = ["DerivedCache"]


class DerivedCache(dict[str, Any]):
    """Notes by name, which are not copied or stored with what they are about.

    Examples
    --------
    >>> import copy
    >>> notes = DerivedCache(calls=3)
    >>> copy.deepcopy(notes)
    {}
    """

    def __reduce__(self) -> tuple[type[DerivedCache], tuple[()]]:
        return DerivedCache, ()
