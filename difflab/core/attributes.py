"""Attributes of objects as they are stored: none of the object's own code runs.

``getattr`` and ``hasattr`` call ``__getattr__``, which answers whatever its author chose: a mock
object has every attribute, each of which is another mock object.
"""

from __future__ import annotations

from typing import Any

__all__ = ["attributes_of", "defines", "wrapped_by"]


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the dictionary of an object's attributes, the object's own; empty if it has none.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> attributes_of(SimpleNamespace(rate=2.0)), attributes_of(3.0)
    ({'rate': 2.0}, {})
    """
    try:
        found = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def defines(kind: type, name: str) -> bool:
    """Whether a class or a base of it defines an attribute; its descriptors are not run.

    Examples
    --------
    >>> defines(list, "append"), defines(list, "rate")
    (True, False)
    """
    return any(name in vars(base) for base in kind.__mro__)


def wrapped_by(value: Any) -> Any:
    """Return the function that `functools.wraps` stored in an object, or None.

    Examples
    --------
    >>> from functools import lru_cache
    >>> wrapped_by(lru_cache(abs)), wrapped_by(abs)
    (<built-in function abs>, None)
    """
    return attributes_of(value).get("__wrapped__")
