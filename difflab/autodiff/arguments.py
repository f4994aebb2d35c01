"""The flattened arguments of a call that a transform differentiates with respect to."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from difflab.autodiff.recording import Recording, as_real, record
from difflab.core.conversions import as_float64
from difflab.errors import InputError, ShapeError
from difflab.graph.checks import require_callable, require_flag
from difflab.graph.ir import Shape
from difflab.graph.precision import in_precision, precision_of
from difflab.graph.pytree import Structure, flatten, unflatten

__all__ = [
    "ActiveArguments",
    "Argnums",
    "all_arguments",
    "argument_positions",
    "composed",
    "vectors",
]

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
        self.precisions = list(map(precision_of, leaves))
        self.values = [as_real(leaf, f"a differentiated argument of {what}") for leaf in leaves]

    def record(self, has_aux: bool, verify: bool = False) -> Recording:
        """Run the function once on traced values in place of these arguments.

        With `verify` it runs once more, and near the point, on the arguments themselves.
        """
        require_flag(has_aux, "has_aux", self.what)
        require_flag(verify, "verify", self.what)

        def call(leaves: Sequence[Any]) -> Any:
            args = list(self.args)
            trees = unflatten(self.structure, leaves)
            for position, tree in zip(self.positions, trees, strict=True):
                args[position] = tree
            return self.fun(*args, **self.kwargs)

        shapes = [value.shape for value in self.values]
        found = record(call, shapes, has_aux, self.values, self.precisions)
        if verify:
            from difflab.autodiff.verified import verified

            verified(found, self.fun, call, self.values, has_aux=has_aux)
        return found

    def tree(self, leaves: Sequence[Any]) -> Any:
        """Return cotangents, in the structure and dtypes of the arguments.

        One for an integer `argnums`, else a tuple.
        """
        trees = unflatten(self.structure, list(map(in_precision, leaves, self.precisions)))
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


def all_arguments(fun: Callable[..., Any], primals: Sequence[Any], what: str) -> ActiveArguments:
    """Return all arguments of a call, as the differentiated ones."""
    require_callable(fun, what)
    if not isinstance(primals, tuple | list):
        raise InputError(
            f"the primals of {what} must be a tuple or list of arguments, not "
            f"{type(primals).__name__}",
            hint="write (x,) for a single argument",
        )
    if not primals:
        raise InputError(f"{what} needs at least one argument")
    return ActiveArguments(fun, tuple(range(len(primals))), primals, {}, what)


def vectors(tree: Any, structure: Structure, like: Sequence[Any], what: str) -> list[Any]:
    """Return the leaves of tangents or cotangents, checked against structure and shapes."""
    vectors = tuple(tree) if isinstance(tree, list) and structure.tokens[0][0] is tuple else tree
    leaves, found = flatten(vectors)
    if found != structure:
        raise InputError(f"{what} have the structure {found} instead of {structure}")
    values = [as_float64(leaf, what) for leaf in leaves]
    for value, model in zip(values, like, strict=True):
        shape: Shape = model if isinstance(model, tuple) else model.shape
        if value.shape != shape:
            raise ShapeError(f"{what} have the shape {value.shape} where {shape} is needed")
    return values
