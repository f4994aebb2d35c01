"""Trees of tuples, lists and dicts as a list of leaves and a structure, and back.

Nothing here recurses: a structure is its tokens in depth-first order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from difflab.errors import InputError

__all__ = ["LEAF", "Structure", "flatten", "is_container", "unflatten"]

Token = tuple[Any, ...]
_LEAF: Token = ("leaf",)
_NONE: Token = ("none",)


@dataclass(frozen=True, slots=True)
class Structure:
    """The shape of a tree without its leaves; equal and hashable by value.

    Attributes
    ----------
    tokens : tuple
        Every vertex, parents before children: a leaf, None, or a container with its keys.
    """

    tokens: tuple[Token, ...]

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return self.tokens.count(_LEAF)

    def __str__(self) -> str:
        return repr(unflatten(self, [_Star()] * self.leaves))


class _Star:
    """Stands for a leaf where a structure is shown."""

    def __repr__(self) -> str:
        return "*"


LEAF = Structure((_LEAF,))
"""The structure of a tree that is one leaf."""


def is_container(value: Any) -> bool:
    """Whether `value` is an inner vertex: a tuple, list, dict or None."""
    return value is None or isinstance(value, tuple | list) or type(value) is dict


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of `tree` in order, and its structure.

    Dicts are flattened in the order of their sorted keys, as in JAX; if keys cannot be sorted,
    in the order of insertion. None holds no leaf.

    Parameters
    ----------
    tree : Any
        Tuples (also named ones), lists, dicts and None around leaves of any other kind.

    Returns
    -------
    list, Structure
        What `unflatten` takes.

    Raises
    ------
    InputError
        A container contains itself.

    Examples
    --------
    >>> leaves, structure = flatten({"b": (1.0, None), "a": [2.0]})
    >>> leaves, str(structure)
    ([2.0, 1.0], "{'a': [*], 'b': (*, None)}")
    """
    leaves: list[Any] = []
    tokens: list[Token] = []
    open_children: list[tuple[int, Iterator[Any]]] = [(0, iter((tree,)))]
    inside: set[int] = set()
    while open_children:
        container, children = open_children[-1]
        for value in children:
            if not is_container(value):
                tokens.append(_LEAF)
                leaves.append(value)
            elif value is None:
                tokens.append(_NONE)
            else:
                if id(value) in inside:
                    raise InputError(f"a {type(value).__name__} contains itself")
                token, values = _opened(value)
                tokens.append(token)
                inside.add(id(value))
                open_children.append((id(value), iter(values)))
                break
        else:
            inside.discard(container)
            open_children.pop()
    return leaves, Structure(tuple(tokens))


def _opened(value: Any) -> tuple[Token, Iterable[Any]]:
    """Return the token and the children of a container."""
    if isinstance(value, dict):
        try:
            keys = tuple(sorted(value))
        except TypeError:
            keys = tuple(value)
        return (dict, keys), [value[key] for key in keys]
    return (type(value), len(value)), value


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """Return the tree of `structure` with these leaves.

    Examples
    --------
    >>> leaves, structure = flatten((1, [2, 3]))
    >>> unflatten(structure, "abc")
    ('a', ['b', 'c'])
    """
    built: list[Any] = []
    remaining = iter(reversed(leaves))
    for token in reversed(structure.tokens):
        kind = token[0]
        if token == _LEAF:
            built.append(next(remaining))
        elif token == _NONE:
            built.append(None)
        elif kind is dict:
            keys = token[1]
            built.append({key: built.pop() for key in keys})
        else:
            children = [built.pop() for _ in range(token[1])]
            named = hasattr(kind, "_fields")
            built.append(kind(*children) if named else kind(children))
    return built[0]
