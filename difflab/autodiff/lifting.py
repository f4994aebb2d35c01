"""Calls of transforms: the variables of differentiation, and the form of a derivative.

A transform is written once, for a `Call`. Of Python code the function of a call is a recording of
one run, and derivatives are computed at its arguments; of a `Function` they are Functions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from difflab.autodiff.recording import Recording, as_real, computed, record
from difflab.core.attributes import like
from difflab.core.conversions import as_float64
from difflab.errors import InputError, ShapeError
from difflab.graph.arguments import Arguments
from difflab.graph.checks import require_callable, require_flag
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.pytree import LEAF, Structure, flatten, unflatten
from difflab.graph.rewritten import selected
from difflab.graph.values import Precision, first_carrier, in_precision, precision_of

AnyCallable = Callable[..., Any]
Argnums = int | Sequence[int]
T = TypeVar("T")
F = TypeVar("F", Function, AnyCallable)
"""What is transformed: a transform of a Function is a Function."""


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a transform.

    Attributes
    ----------
    what : str
        The transform's name, for messages.
    run : Recording
        The function.
    sources : tuple of int
        The inputs that are differentiated by.
    arguments : Structure
        The tree of the arguments that these are the leaves of.
    precisions : list of Precision
        Of `sources`.
    values : list, optional
        A value for each input; None where derivatives are Functions.
    has_aux : bool
        Whether derivatives are returned with auxiliary data.
    """

    what: str
    run: Recording
    sources: tuple[int, ...]
    arguments: Structure
    precisions: list[Precision]
    values: list[Any] | None
    has_aux: bool

    @property
    def outputs(self) -> tuple[int, ...]:
        """The outputs that are differentiated."""
        return tuple(range(self.run.results))

    @property
    def on_graphs(self) -> bool:
        """Whether a derivative becomes part of a graph or a tape, or is a Function."""
        return self.values is None or first_carrier(self.values) is not None

    def shapes(self) -> list[Shape]:
        """Return the shapes of `sources`."""
        return [self.run.function.input_shapes[i] for i in self.sources]

    def derived(self, transform: Callable[..., T], *details: Any, **more: Any) -> T:
        """Return ``transform(function, sources, *details)``; of code from the cache."""
        if self.values is None:
            return transform(self.run.function, self.sources, *details, **more)
        return self.run.derived(transform, self.sources, *details, **more)

    def returned(
        self,
        derivative: Function,
        form: Callable[[Sequence[Any]], Any],
        precisions: Sequence[Precision],
        vectors: Sequence[Any] = (),
    ) -> Any:
        """Return a derivative of the function: its value, or of a Function the derivative itself.

        Parameters
        ----------
        derivative : Function
            Its inputs are those of the function, then those of `vectors`.
        form : callable
            Returns the tree of the result, given the outputs.
        precisions : sequence of Precision
            Of the outputs.
        vectors : sequence
            Values of further inputs.
        """
        if self.values is not None:
            parts = computed(derivative, [*self.values, *vectors])
            return form(list(map(in_precision, parts, precisions)))
        order, structure = flatten(form(range(len(derivative.outputs))))
        nodes = [derivative.outputs[i] for i in order]
        names = [derivative.output_names[i] for i in order]
        whole = selected(derivative, nodes, names, None if structure == LEAF else structure)
        return replace(whole, arguments=self.run.function.arguments)

    def with_aux(self, derivative: Any) -> Any:
        """Return the value of a derivative, with the auxiliary data if these are wanted."""
        if not self.has_aux or self.values is None:
            return derivative
        return derivative, self.run.aux(self.run.typed(computed(self.run.function, self.values)))


def lifted(
    transform: Callable[[Call], Any],
    fun: F,
    argnums: Argnums,
    has_aux: bool,
    what: str,
    verify: bool = False,
) -> F:
    """Return a derivative of a function: of code a callable, of a Function a Function.

    Parameters
    ----------
    transform : callable
        Returns the derivative of a call.
    fun : callable or Function
        The user's function.
    argnums : int or sequence of int
        The positions of the arguments to differentiate by.
    has_aux : bool
        Whether `fun` returns a pair of a result and auxiliary data.
    what : str
        The transform's name, for messages.
    verify : bool
        Whether the recording is compared with `fun` at each call.
    """
    require_flag(has_aux, "has_aux", what)
    if isinstance(fun, Function):
        whole: F = transform(_call_of(fun, argnums, has_aux, what))
        return whole
    require_callable(fun, what)
    require_flag(verify, "verify", what)

    @like(fun)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        return transform(_recorded(fun, argnums, args, kwargs, has_aux, what, verify))

    return derivative


def call_at(fun: AnyCallable, primals: Any, what: str, has_aux: bool = False) -> Call:
    """Return the call of a function at `primals`, by all of which it is differentiated."""
    require_callable(fun, what)
    require_flag(has_aux, "has_aux", what)
    if not isinstance(primals, tuple | list):
        raise InputError(
            f"the primals of {what} must be a tuple or list of arguments, not "
            f"{type(primals).__name__}",
            hint="write (x,) for a single argument",
        )
    if not primals:
        raise InputError(f"{what} needs at least one argument")
    return _recorded(fun, tuple(range(len(primals))), primals, {}, has_aux, what)


def _call_of(function: Function, argnums: Argnums, has_aux: bool, what: str) -> Call:
    """Return the call of a Function; with `has_aux` its first output alone is the result."""
    groups = function.arguments or Arguments(function.inputs, (LEAF,) * len(function.inputs))
    positions, single = _argument_positions(argnums, len(groups.names), what)
    parts = groups.groups()
    sources = tuple(source for position in positions for source in parts[position])
    trees = [unflatten(groups.trees[k], parts[k]) for k in positions]
    arguments = flatten(trees[0] if single else tuple(trees))[1]
    return Call(what, Recording.of(function, has_aux), sources, arguments, [], None, has_aux)


def _recorded(
    fun: AnyCallable,
    argnums: Argnums,
    given: Sequence[Any],
    kwargs: Mapping[str, Any],
    has_aux: bool,
    what: str,
    verify: bool = False,
) -> Call:
    """Run the function once on traced values in place of the arguments to differentiate by.

    With `verify` it runs once more, and near the point, on the arguments themselves.
    """
    positions, single = _argument_positions(argnums, len(given), what)
    leaves, structure = flatten(tuple([given[position] for position in positions]))
    precisions = list(map(precision_of, leaves))
    values = [as_real(leaf, f"a differentiated argument of {what}") for leaf in leaves]

    def call(leaves: Sequence[Any]) -> Any:
        args = list(given)
        for position, tree in zip(positions, unflatten(structure, leaves), strict=True):
            args[position] = tree
        return fun(*args, **kwargs)

    run = record(call, [value.shape for value in values], has_aux, values, precisions)
    if verify:
        from difflab.autodiff.verified import verified

        verified(run, fun, call, values, has_aux=has_aux)
    sources = tuple(range(len(values)))
    arguments = Structure(structure.tokens[1:]) if single else structure
    return Call(what, run, sources, arguments, precisions, [*values, *run.captured], has_aux)


def _argument_positions(argnums: Argnums, count: int, what: str) -> tuple[tuple[int, ...], bool]:
    """Return the positions that `argnums` names, and whether it is a single integer.

    Raises
    ------
    InputError
        A position is not an integer, out of range, or repeated.

    Examples
    --------
    >>> _argument_positions((0, -1), 3, "grad")
    ((0, 2), False)
    """
    single = not isinstance(argnums, tuple | list)
    wanted: Sequence[Any] = argnums if isinstance(argnums, tuple | list) else (argnums,)
    indices: list[int] = []
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
        indices.append(number % count)
    if not indices or len(set(indices)) < len(indices):
        raise InputError(f"argnums of {what} names {'an argument twice' if indices else 'nothing'}")
    return tuple(indices), single


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


def vectors(tree: Any, structure: Structure, shapes: Sequence[Shape], what: str) -> list[Any]:
    """Return the leaves of tangents or cotangents, checked against structure and shapes."""
    vectors = tuple(tree) if isinstance(tree, list) and structure.tokens[0][0] is tuple else tree
    leaves, actual = flatten(vectors)
    if actual != structure:
        raise InputError(f"{what} have the structure {actual} instead of {structure}")
    values = [as_float64(leaf, what) for leaf in leaves]
    for value, shape in zip(values, shapes, strict=True):
        if value.shape != shape:
            raise ShapeError(f"{what} have the shape {value.shape} where {shape} is needed")
    return values
