"""The flattened arguments of a call that a transform differentiates with respect to."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from difflab.autodiff.recording import Recording, as_real, record
from difflab.errors import InputError
from difflab.graph.checks import require_flag
from difflab.graph.node import Node
from difflab.graph.pytree import Structure, flatten, unflatten

__all__ = ["ActiveArguments", "Argnums", "argument_positions", "composed"]

Argnums = int | Sequence[int]


def argument_positions(argnums: Argnums, count: int, what: str) -> tuple[tuple[int, ...], bool]:
    """Return the positions that `argnums` names, and whether it is a single integer.

    Raises
    ------
    InputError
        A position is not an integer, out of range, or repeated.

    Examples
    --------
    >>> argument_positions((0, -1), 3, "grad")
    ((0, 2), False)
    """
    single = not isinstance(argnums, tuple | list)
    wanted: Sequence[Any] = argnums if isinstance(argnums, tuple | list) else (argnums,)
    found: list[int] = []
    for position in wanted:
        try:
            number = operator.index(position)
        except TypeError:
            raise InputError(
                f"argnums of {what} must be an integer or a tuple of them, not {argnums!r}"
            ) from None
        if not -count <= number < count:
            raise InputError(
                f"argnums of {what} names argument {number}, but only {count} positional "
                f"argument{' exists' if count == 1 else 's exist'}",
                hint="argnums counts positional arguments from 0",
            )
        found.append(number % count)
    if not found or len(set(found)) < len(found):
        raise InputError(f"argnums of {what} names {'an argument twice' if found else 'nothing'}")
    return tuple(found), single


class ActiveArguments:
    """The arguments of one call to differentiate with respect to, and how to run the function.

    Parameters
    ----------
    fun : callable
        The user's function.
    argnums : int or sequence of int
        The positions of the arguments.
    args, kwargs
        The arguments of the call; the others are passed to `fun` unchanged.
    what : str
        The transform's name, for messages.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        argnums: Argnums,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        what: str,
    ) -> None:
        self.fun, self.args, self.kwargs, self.what = fun, list(args), dict(kwargs), what
        self.positions, self.single = argument_positions(argnums, len(args), what)
        leaves, self.structure = flatten(tuple(args[position] for position in self.positions))
        self.values = [as_real(leaf, f"a differentiated argument of {what}") for leaf in leaves]

    def record(self, has_aux: bool) -> Recording:
        """Run the function once on traced values in place of these arguments."""
        require_flag(has_aux, "has_aux", self.what)

        def call(nodes: list[Node]) -> Any:
            args = list(self.args)
            trees = unflatten(self.structure, nodes)
            for position, tree in zip(self.positions, trees, strict=True):
                args[position] = tree
            return self.fun(*args, **self.kwargs)

        return record(call, [value.shape for value in self.values], has_aux, self.values)

    def tree(self, leaves: Sequence[Any]) -> Any:
        """Return values structured as the arguments: one for an integer `argnums`, else a tuple."""
        trees = unflatten(self.structure, leaves)
        return trees[0] if self.single else trees

    @property
    def shown(self) -> Structure:
        """The structure of what `tree` returns."""
        if not self.single:
            return self.structure
        return Structure(self.structure.tokens[1:])


def composed(outer: Structure, inner: Structure) -> Structure:
    """Return `outer` with the tree `inner` in place of every leaf.

    Examples
    --------
    >>> pair = flatten((1, 2))[1]
    >>> str(composed(pair, flatten([1])[1]))
    '([*], [*])'
    """
    tokens: list[Any] = []
    for token in outer.tokens:
        tokens += inner.tokens if token == ("leaf",) else (token,)
    return Structure(tuple(tokens))
