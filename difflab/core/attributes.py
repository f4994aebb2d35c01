"""Attributes of objects as they are stored: none of the object's own code runs.

``getattr`` and ``hasattr`` call ``__getattr__``, which answers whatever its author chose: a mock
object has every attribute, each of which is another mock object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS, partial, update_wrapper
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the dictionary of an object's attributes, the object's own; empty if it has none.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> attributes_of(SimpleNamespace(rate=2.0)), attributes_of(3.0)
    ({'rate': 2.0}, {})
    """
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return {}
    return attributes if isinstance(attributes, dict) else {}


def defines(kind: type, name: str) -> bool:
    """Whether a class or a base of it defines an attribute; its descriptors are not run.

    Examples
    --------
    >>> defines(list, "append"), defines(list, "rate")
    (True, False)
    """
    return any(name in vars(base) for base in kind.__mro__)


def like(function: Callable[..., Any]) -> Callable[[F], F]:
    """Give a function the name and the documentation of another, as `functools.wraps` does.

    Attributes that are no text, such as those of a mock object, are left out.

    Examples
    --------
    >>> @like(abs)
    ... def magnitude(x): return x
    >>> magnitude.__name__, magnitude.__wrapped__
    ('abs', <built-in function abs>)
    """
    kept = [name for name in WRAPPER_ASSIGNMENTS if _is_usual(function, name)]
    return partial(update_wrapper, wrapped=function, assigned=kept, updated=())  # type: ignore[return-value]


def _is_usual(function: Any, name: str) -> bool:
    usual = {"__annotations__": dict, "__type_params__": tuple, "__doc__": str | None}
    try:
        return isinstance(getattr(function, name), usual.get(name, str))
    except AttributeError:
        return False


def wrapped_by(value: Any) -> Any:
    """Return the function that `functools.wraps` stored in an object, or None.

    Examples
    --------
    >>> from functools import lru_cache
    >>> wrapped_by(lru_cache(abs)), wrapped_by(abs)
    (<built-in function abs>, None)
    """
    return attributes_of(value).get("__wrapped__")
