"""Which arguments of a call are differentiated, flattened; what every transform asks first."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from difflab.autodiff.recording import Recording, as_real, record
from difflab.errors import InputError
from difflab.graph.checks import require_flag
from difflab.graph.node import Node
from difflab.graph.pytree import Structure, flatten, unflatten

__all__ = ["Argnums", "ActiveArguments", "composed", "places"]

Argnums = int | Sequence[int]


def places(argnums: Argnums, count: int, what: str) -> tuple[tuple[int, ...], bool]:
    """Return the positions that `argnums` names, and whether it was a single one.

    Raises
    ------
    InputError
        A position is no integer, outside the arguments, or named twice.

    Examples
    --------
    >>> places((0, -1), 3, "grad")
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
                f"argnums of {what} is an integer or a tuple of them, not {argnums!r}"
            ) from None
        if not -count <= number < count:
            raise InputError(
                f"{what} was asked for argument {number}, but {count} "
                f"{'was' if count == 1 else 'were'} given by position",
                hint="argnums counts positional arguments from 0",
            )
        found.append(number % count)
    if not found or len(set(found)) < len(found):
        raise InputError(f"argnums of {what} names {'an argument twice' if found else 'nothing'}")
    return tuple(found), single


class ActiveArguments:
    """The arguments of one call that a derivative is taken by, and how to run the function.

    Parameters
    ----------
    fun : callable
        The user's function.
    argnums : int or sequence of int
        The positions of the arguments.
    args, kwargs
        What the derivative was called with; the other arguments are passed on as they are.
    what : str
        The transform, for messages.
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
        self.positions, self.single = places(argnums, len(args), what)
        leaves, self.structure = flatten(tuple(args[position] for position in self.positions))
        self.values = [as_real(leaf, f"what {what} differentiates by") for leaf in leaves]

    def record(self, has_aux: bool) -> Recording:
        """Run the function once on traced values in place of these arguments."""
        require_flag(has_aux, "has_aux", self.what)

        def call(nodes: list[Node]) -> Any:
            args = list(self.args)
            trees = unflatten(self.structure, nodes)
            for position, tree in zip(self.positions, trees, strict=True):
                args[position] = tree
            return self.fun(*args, **self.kwargs)

        return record(call, [value.shape for value in self.values], has_aux)

    def tree(self, leaves: Sequence[Any]) -> Any:
        """Return values shaped like the arguments, as `argnums` asks: one, or a tuple."""
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
