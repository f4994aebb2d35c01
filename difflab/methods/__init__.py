"""Differentiation methods, one per file, behind the protocol of `protocol.py`.

``difflab.methods()`` lists the installed methods: the package itself is callable, because the
import system binds the name ``difflab.methods`` to the package in any case.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from difflab.methods.plugged import Description


class _Callable(ModuleType):
    """A package that lists the methods when it is called."""

    def __call__(self) -> list[Description]:
        """Return a description of every method: name, family, orders, summary, missing packages.

        Examples
        --------
        >>> import difflab as dl
        >>> [row.name for row in dl.methods()][:3]
        ['symbolic', 'finite-forward', 'finite-central']
        """
        from difflab.methods.registry import describe

        return describe()


sys.modules[__name__].__class__ = _Callable
