"""A function of several arguments as a function of one tree, a dict of them by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from difflab.core.conversions import host_reals
from difflab.core.wording import counted
from difflab.errors import InputError
from difflab.testing.components.message import GradientMismatch
from difflab.testing.trees.arguments import Point, is_module, is_tree

__all__ = ["OfSeveral", "named_arguments", "of_several"]


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
        if given is None:
            return None
        if callable(given):
            return lambda arguments: self._parts(given(*(arguments[n] for n in self.names)))
        return self._parts(given)

    def _parts(self, result: Any) -> dict[str, Any]:
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
    if is_module(f):
        raise InputError(
            "a module is checked at one argument", hint="put the arguments into one tree"
        )
    point = named_arguments(f, [_numbers(value) for value in values])
    whole = OfSeveral(f, tuple(point))
    return whole, whole.gradient(gradient), Point(point, "")


def _numbers(value: Any) -> Any:
    """Return a list of numbers as an array."""
    if not isinstance(value, list | tuple) or is_tree(value):
        return value
    return host_reals(value, "an argument")
