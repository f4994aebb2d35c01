"""A function of several arguments as a function of one tree, a dict of them by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from difflab.core.conversions import host_reals
from difflab.core.wording import counted
from difflab.errors import InputError
from difflab.graph.pytree import flatten, unflatten
from difflab.testing.components.message import GradientMismatch
from difflab.testing.trees.arguments import Point, is_module, is_tree


def named_arguments(f: Callable[..., Any], values: Sequence[Any]) -> dict[str, Any]:
    """Return the positional arguments of a call of `f` by the names of its parameters.

    Raises
    ------
    difflab.errors.InputError
        `f` does not take so many arguments.

    Examples
    --------
    >>> named_arguments(lambda width, height: width * height, (2.0, 3.0))
    {'width': 2.0, 'height': 3.0}
    >>> named_arguments(lambda *sides: sum(sides), (2.0, 3.0))
    {'sides0': 2.0, 'sides1': 3.0}
    """
    from difflab.graph.function import Function

    if isinstance(f, Function) and len(values) == len(f.inputs):
        return dict(zip(f.inputs, values, strict=True))
    numbered = {f"x{i}": value for i, value in enumerate(values)}
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # code written in C may have none
        return numbered
    try:
        bound = signature.bind(*values)
    except TypeError as error:
        raise InputError(
            f"f cannot be called with {counted(len(values), 'argument')}: {error}",
            hint="check_gradient(f, gradient, x) has one argument of f, or all of them in turn",
        ) from None
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            named |= {f"{name}{i}": each for i, each in enumerate(value)}
        else:
            named[name] = value
    return named


@dataclass(frozen=True)
class OfSeveral:
    """A function of several arguments, called with a dict of them.

    Attributes
    ----------
    function : callable
        The function.
    names : tuple of str
        The names of its arguments, in order.
    """

    function: Callable[..., Any]
    names: tuple[str, ...]

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The function whose state is watched."""
        return self.function

    def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """Return the result for the arguments."""
        return self.function(*(arguments[name] for name in self.names))

    def gradient(self, given: Any) -> Any:
        """Return the gradient under test, of a part for each argument, as one of the dict."""
        __tracebackhide__ = True
        if given is None:
            return None
        if not callable(given):
            return self._parts(given)

        def parts(arguments: Mapping[str, Any]) -> dict[str, Any]:
            __tracebackhide__ = True
            return self._parts(given(*(arguments[name] for name in self.names)))

        return parts

    def _parts(self, result: Any) -> dict[str, Any]:
        __tracebackhide__ = True
        expected = f"it must return {len(self.names)}, for {', '.join(self.names)}"
        if not isinstance(result, list | tuple):
            raise GradientMismatch(
                f"the gradient is one {type(result).__name__}, not a part for each argument;"
                f" {expected}"
            )
        if len(result) != len(self.names):
            raise GradientMismatch(f"the gradient has {counted(len(result), 'part')}; {expected}")
        return dict(zip(self.names, result, strict=True))


def of_several(
    f: Callable[..., Any], gradient: Any, values: Sequence[Any]
) -> tuple[OfSeveral, Any, Point]:
    """Return a function of several arguments, its gradient and the point, as ones of a dict.

    Raises
    ------
    difflab.errors.InputError
        `f` does not take so many arguments, or is a module, which takes one.
    """
    __tracebackhide__ = True
    if is_module(f):
        raise InputError(
            "a module is checked at one argument", hint="put the arguments into one tree"
        )
    point = named_arguments(f, list(map(numbers_of, values)))
    whole = OfSeveral(f, tuple(point))
    return whole, whole.gradient(gradient), Point(point, "")


def of_chosen(
    f: Callable[..., Any], gradient: Any, values: Sequence[Any], argnums: int | Sequence[int]
) -> tuple[Callable[..., Any], Any, tuple[Any, ...]]:
    """Return a function of some arguments, its gradient, and these; the others stay as given.

    Parameters
    ----------
    f, gradient : callable
        The function and its gradient, both of all arguments.
    values : sequence
        All arguments.
    argnums : int or sequence of int
        Those that the gradient is by, as for `difflab.grad`.

    Raises
    ------
    difflab.errors.InputError
        There is no such argument.
    """
    single = isinstance(argnums, int)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for k in numbers:
        if not isinstance(k, int) or not -len(values) <= k < len(values):
            raise InputError(
                f"argnums={argnums!r} names no argument: there are {len(values)}, from 0"
            )
    chosen = [k % len(values) for k in numbers]
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"argnums={argnums!r} must name each argument once, and at least one")
    names = list(named_arguments(f, values))

    def whole(given: Sequence[Any]) -> list[Any]:
        arguments = [_copied(value) for value in values]
        for k, value in zip(chosen, given, strict=True):
            arguments[k] = value
        return arguments

    @wraps(f, updated=())
    def function(*given: Any) -> Any:
        return f(*whole(given))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(names[k], kind) for k in chosen]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]

    def one(result: Any) -> Any:
        """Return the only part of a gradient by a tuple of one argument."""
        __tracebackhide__ = True
        if single or len(chosen) > 1:
            return result
        if not isinstance(result, list | tuple) or len(result) != 1:
            raise GradientMismatch(
                f"the gradient must be a tuple of one part, for {names[chosen[0]]}, because"
                f" argnums is {argnums!r}; for an array alone, give argnums={chosen[0]}"
            )
        return result[0]

    def slope(*given: Any) -> Any:
        __tracebackhide__ = True
        return one(gradient(*whole(given)))

    derivative = slope if callable(gradient) else None if gradient is None else one(gradient)
    return function, derivative, tuple(values[k] for k in chosen)


def _copied(value: Any) -> Any:
    """Return a copy of the NumPy arrays of an argument, which `f` may write to."""
    leaves, structure = flatten(value)
    return unflatten(
        structure, [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    )


def numbers_of(value: Any) -> Any:
    """Return an argument as `f` is called with it: a list of numbers as an array."""
    if not isinstance(value, list | tuple) or is_tree(value):
        return value
    return host_reals(value, "an argument")
