"""Names of values, by which checkpoint policies select residuals."""

from __future__ import annotations

from typing import Any

from difflab.core.place import at_users_line
from difflab.errors import InputError
from difflab.graph.node import Node
from difflab.graph.pytree import flatten


def name(value: Any, name: str) -> Any:
    """Return `value`, named for checkpoint policies; several values may have one name.

    Parameters
    ----------
    value : tree
        What is named: traced values in it. Others, such as arrays, are returned as they are.
    name : str
        A name as Python's variables have. Graphs that are printed or drawn show it, too.

    Raises
    ------
    InputError
        The name is not an identifier.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> print(dl.trace(lambda x: np.sin(dl.name(x * x, "h")) + x * x, 2.0))
    h = x*x
    sin(h) + h
    """
    require_names([name], "name")
    for leaf in flatten(value)[0]:
        if isinstance(leaf, Node):
            leaf.builder.labels[leaf.id] = name
    return value


def require_names(names: Any, what: str) -> None:
    """Raise `InputError` unless all of some names are identifiers."""
    for each in names:
        if not isinstance(each, str) or not each.isidentifier():
            raise at_users_line(
                InputError,
                f"{what} takes names such as 'h', not {each!r}",
                "a name consists of letters, digits and _, as Python's names do",
            )
