"""Trees of tuples, lists, dicts and dataclasses as a list of leaves and a structure, and back.

Nothing here recurses: a structure is its tokens in depth-first order.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from inspect import getattr_static
from typing import Any

import numpy as np

from difflab.errors import InputError

Token = tuple[Any, ...]
_LEAF: Token = ("leaf",)
_NONE: Token = ("none",)
_DEEPEST = 50
"""Containers within containers that an expression has; Python's parser allows 100 or more."""


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


_DICTS = (dict, OrderedDict, defaultdict)


PLAIN = frozenset({float, int, bool, np.float64, np.ndarray})
"""The most frequent types of leaves, which are asked about first."""


def is_container(value: Any) -> bool:
    """Whether `value` is an inner vertex: a tuple, list, dict, dataclass or None."""
    kind = type(value)
    return kind not in PLAIN and (
        value is None
        or isinstance(value, tuple | list)
        or kind in _DICTS
        or _is_users_dataclass(kind)  # type: ignore[arg-type]  # types are hashable
    )


@lru_cache(maxsize=1024)
def _is_users_dataclass(kind: type) -> bool:
    """Whether instances are trees; difflab's own dataclasses, such as `Function`, are values.

    An exception is the one that says it is a tree, `difflab.arrays.ComplexArray`.
    """
    own = kind.__module__.startswith("difflab.") and not hasattr(kind, "__difflab_tree__")
    return hasattr(kind, "__dataclass_fields__") and not own


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of `tree` in order, and its structure.

    Dicts are flattened in the order of their sorted keys, as in JAX; if keys cannot be sorted,
    in the order of insertion. None holds no leaf.

    Parameters
    ----------
    tree : Any
        Tuples (also named ones), lists, dicts (also ``OrderedDict`` and ``defaultdict``, which are
        equal to a tree of their own type only), instances of dataclasses and None around leaves of
        any other kind.

    Returns
    -------
    list, Structure
        The leaves in order, and the structure: the arguments of `unflatten`.

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
    if not is_container(tree):
        return [tree], LEAF
    leaves: list[Any] = []
    tokens: list[Token] = []
    open_children: list[tuple[int, Iterator[Any]]] = [(0, iter((tree,)))]
    inside: set[int] = set()
    while open_children:
        container, children = open_children[-1]
        for value in children:
            if type(value) in PLAIN or not is_container(value):
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
        kept: tuple[Any, ...] = (tuple(value),) if type(value) is OrderedDict else ()
        if type(value) is defaultdict:
            kept = (value.default_factory,)
        return (type(value), keys, *kept), [value[key] for key in keys]
    if isinstance(value, tuple | list):
        return (type(value), len(value)), value
    names = tuple(field.name for field in fields(value))
    return (type(value), names), [getattr(value, name) for name in names]


def token_keys(token: Token) -> Sequence[Any]:
    """Return the keys, positions or field names of a container's children, in order.

    Examples
    --------
    >>> [list(token_keys(token)) for token in flatten({"a": (1.0, 2.0)})[1].tokens]
    [['a'], [0, 1], [], []]
    """
    if len(token) == 1:
        return ()
    keys = token[1]
    return range(keys) if isinstance(keys, int) else keys


def leaf_paths(structure: Structure) -> list[str]:
    """Return the Python expression of each leaf, to be appended to the name of the tree.

    Examples
    --------
    >>> leaf_paths(flatten({"layers": [1.0, (2.0, None)]})[1])
    ["['layers'][0]", "['layers'][1][0]"]
    """
    paths = []
    pending = [""]
    for token in structure.tokens:
        path = pending.pop()
        if token == _LEAF:
            paths.append(path)
        is_field = _is_users_dataclass(token[0]) if isinstance(token[0], type) else False
        keys = reversed(token_keys(token))
        pending += [f"{path}.{key}" if is_field else f"{path}[{key!r}]" for key in keys]
    return paths


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
            built.append({key: built.pop() for key in token[1]})
        elif kind in _DICTS:
            items = {key: built.pop() for key in token[1]}
            if kind is OrderedDict:  # in its own order
                built.append(OrderedDict((key, items[key]) for key in token[2]))
            else:
                built.append(defaultdict(token[2], items))
        elif isinstance(token[1], int):
            children = [built.pop() for _ in range(token[1])]
            named = hasattr(kind, "_fields")
            built.append(kind(*children) if named else kind(children))
        else:
            built.append(_instance(kind, {name: built.pop() for name in token[1]}))
    return built[0]


def expression(structure: Structure, leaves: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
    """Return `unflatten` as a Python expression, and the values that it names.

    None for a tree that no expression makes: with an ``OrderedDict`` or a ``defaultdict``, or too
    deep for Python's parser.

    Examples
    --------
    >>> expression(flatten({"a": 1, "b": (2, None)})[1], ["x", "y"])
    ('{k0: x, k1: (y, None, ), }', {'k0': 'a', 'k1': 'b'})
    """
    scope: dict[str, Any] = {}

    def named(value: Any) -> str:
        name = f"k{len(scope)}"
        scope[name] = value
        return name

    built: list[tuple[str, int]] = []
    remaining = iter(reversed(leaves))
    for token in reversed(structure.tokens):
        if token in (_LEAF, _NONE):
            built.append((next(remaining) if token == _LEAF else "None", 0))
            continue
        kind = token[0]
        children = [built.pop() for _ in token_keys(token)]
        depth = max((below for _, below in children), default=0) + 1
        if depth > _DEEPEST or (kind is not dict and kind in _DICTS):
            return None
        built.append((_made(kind, token[1], [code for code, _ in children], named), depth))
    return built[0][0], scope


def _made(kind: Any, keys: Any, children: list[str], named: Callable[[Any], str]) -> str:
    """Return the expression of a container of children."""
    if isinstance(keys, int):
        inner = "".join(f"{child}, " for child in children)
        whole = f"[{inner}]" if kind is list else f"({inner})"
        if kind in (list, tuple):
            return whole
        return named(kind) + (whole if hasattr(kind, "_fields") else f"({whole})")
    items = "".join(f"{named(key)}: {child}, " for key, child in zip(keys, children, strict=True))
    return f"{{{items}}}" if kind is dict else f"{named(_instance)}({named(kind)}, {{{items}}})"


def _instance(kind: type, values: dict[str, Any]) -> Any:
    """Return an instance of a dataclass, without ``__init__``: it may check or convert values."""
    instance: Any = object.__new__(kind)
    if _in_dict(kind):
        instance.__dict__.update(values)
        return instance
    for name, value in values.items():
        object.__setattr__(instance, name, value)
    return instance


@lru_cache(maxsize=1024)
def _in_dict(kind: Any) -> bool:
    """Whether instances of a dataclass hold their fields in their dict: not in slots, say."""
    return not any(
        hasattr(type(getattr_static(kind, name, None)), "__set__")
        for name in kind.__dataclass_fields__
    )
