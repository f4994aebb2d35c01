"""Forms of users' arguments: an array or a tree, one or several, a function or a module."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.conversions import host_numbers, host_reals
from difflab.core.wording import counted
from difflab.errors import DifflabError, DomainError, InputError, PointError
from difflab.graph.pytree import LEAF, flatten, unflatten
from difflab.testing.checker.arguments import Outputs, Point
from difflab.testing.checker.leaves import EPSILON, Array, dtype_name, library_of
from difflab.testing.checker.message import GradientMismatch

__tracebackhide__ = True  # pytest shows the message and the test, no frame of this module


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

    def gradient(self, gradient: Any) -> Any:
        """Return the gradient under test, of a part for each argument, as one of the dict."""
        if gradient is None:
            return None
        if not callable(gradient):
            return self._parts(gradient)

        def parts(arguments: Mapping[str, Any]) -> dict[str, Any]:
            return self._parts(gradient(*(arguments[name] for name in self.names)))

        return parts

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
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for k in positions:
        if not isinstance(k, int) or not -len(values) <= k < len(values):
            raise InputError(
                f"argnums={argnums!r} names no argument: there are {len(values)}, from 0"
            )
    chosen = [k % len(values) for k in positions]
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"argnums={argnums!r} must name each argument once, and at least one")
    names = list(named_arguments(f, values))

    def whole(args: Sequence[Any]) -> list[Any]:
        arguments = [_copied(value) for value in values]
        for k, value in zip(chosen, args, strict=True):
            arguments[k] = value
        return arguments

    @wraps(f, updated=())
    def function(*args: Any) -> Any:
        return f(*whole(args))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(names[k], kind) for k in chosen]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]

    def one(result: Any) -> Any:
        """Return the only part of a gradient by a tuple of one argument."""
        if single or len(chosen) > 1:
            return result
        if not isinstance(result, list | tuple) or len(result) != 1:
            raise GradientMismatch(
                f"the gradient must be a tuple of one part, for {names[chosen[0]]}, because"
                f" argnums is {argnums!r}; for an array alone, give argnums={chosen[0]}"
            )
        return result[0]

    def slope(*args: Any) -> Any:
        return one(gradient(*whole(args)))

    derivative = slope if callable(gradient) else None if gradient is None else one(gradient)
    return function, derivative, tuple(values[k] for k in chosen)


def _copied(value: Any) -> Any:
    """Return a copy of the NumPy arrays of an argument, which `f` may write to."""
    leaves, structure = flatten(value)
    return unflatten(
        structure, [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    )


def numbers_of(value: Any) -> Any:
    """Return an argument as `f` is called with it: a list of scalars as an array."""
    if not isinstance(value, list | tuple) or is_tree(value):
        return value
    return host_reals(value, "an argument")


def is_tree(x: Any) -> bool:
    """Whether `x` is passed to the function as it is, rather than as one float64 array.

    Trees, arrays of frameworks, and arrays of another floating or complex dtype are.
    A list of numbers is an array.

    Examples
    --------
    >>> is_tree([1.0, 2.0]), is_tree(np.ones(3)), is_tree(np.ones(3, dtype=np.float32))
    (False, False, True)
    >>> is_tree({"w": np.ones(3)}), is_tree([np.ones(3), 1.0])
    (True, True)
    """
    leaves, structure = flatten(x)
    if structure == LEAF:
        value = leaves[0]
        if library_of(value) == "numpy":
            return dtype_name(value) != "float64" and dtype_name(value) in EPSILON
        return bool(library_of(value)) or type(value) is complex
    if any(token[0] not in (list, tuple, "leaf") for token in structure.tokens):
        return True
    return any(library_of(leaf) and np.ndim(leaf) > 0 for leaf in leaves)


def is_module(f: Any) -> bool:
    """Whether `f` is a ``torch.nn.Module``, without importing PyTorch."""
    return any(kind.__module__.startswith("torch.nn.modules") for kind in type(f).__mro__)


def parameter_name(f: Callable[..., Any]) -> str:
    """Return the name of the first parameter of `f`; "x" if it has none.

    Examples
    --------
    >>> parameter_name(lambda params: params["w"])
    'params'
    """
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return "x"
    named = parameters and parameters[0].kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    return parameters[0].name if named else "x"


class ArrayPoint(Point):
    """One array, whose function and gradient may return any value that NumPy converts to arrays.

    The function is called with a float, or an array of float64.
    """

    def __init__(self, x: Any, root: str) -> None:
        super().__init__(_argument(point_of(x)), root)
        self.shape = self.leaves[0].shape

    def of_number(self, outputs: Outputs) -> bool:
        """Whether the result is no array."""
        return not outputs.shape

    def at(self, elements: NDArray[Any]) -> Any:
        """Return the argument of other elements ``(n,)``, real or complex."""
        return _argument(elements.reshape(self.shape))

    def outputs(self, result: Any) -> Outputs:
        """Return the real result of the function."""
        values = real_array(result, "f does not return real numbers", PointError)
        if not values.size:
            raise PointError("f returns an empty array: there is nothing to differentiate")
        return Outputs(values)

    def infinite(self, outputs: Outputs) -> DomainError:
        """Return the error for a result that is not finite."""
        x, y = (np.asarray(vector.values[0]).tolist() for vector in (self, outputs))
        return DomainError(f"f is not finite at {x}: it returns {y}")

    def rows(self, gradient: Any, outputs: Outputs) -> Array:
        """Return a gradient under test, of any of the usual shapes, as the Jacobian ``(m, n)``."""
        fault = "the gradient is not an array of real numbers"
        array = real_array(gradient, fault, GradientMismatch)
        m, n, out = outputs.m, self.n, outputs.shape
        allowed = {out + self.shape, (m, n)}
        if m == 1:
            allowed |= {self.shape, (n,)}
        if n == 1:
            allowed |= {out, (m,)}
        if array.shape not in allowed:
            raise GradientMismatch(
                f"the gradient has shape {array.shape}; f takes {self.shape} and returns "
                f"{out}, so the shape must be {out + self.shape}"
            )
        return array.reshape(m, n)


def _argument(point: NDArray[Any]) -> Any:
    """Return an array as an argument of a function: a copy, or a number."""
    return point.copy() if point.ndim else point.item()


def point_of(x: Any) -> Array:
    """Return the point as an array of float64."""
    point = real_array(x, "the point is not an array of real numbers", PointError).copy()
    if not np.isfinite(point).all():
        raise PointError(f"the point has an element that is not finite: {point.tolist()}")
    if point.size == 0:
        raise PointError("the point is empty: there is no input to differentiate with respect to")
    return point


def real_array(value: Any, fault: str, kind: type[DifflabError]) -> Array:
    """Return an array of float64; raise an error of the given kind otherwise.

    Imaginary parts of 0 are no part of the value; all others are.
    """
    try:
        array = host_numbers(value, "it")
        if array.dtype.kind == "c" and not array.imag.any():
            array = array.real
        return host_reals(array, "it")
    except DifflabError as error:
        raise kind(f"{fault}: {getattr(error, 'message', error)}") from error


def prepared(f: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Point]:
    """Return a function and its arguments; those of a module are its parameters and `x`.

    A list of numbers is an array of float64.
    """
    if not (is_tree(x) or isinstance(x, float)):
        x = point_of(x)
    if not is_module(f):
        return f, Point(x, parameter_name(f))
    from torch.func import functional_call

    module: Any = f
    parameters = dict(module.named_parameters())

    def called(tree: Any) -> Any:
        buffers = {name: value.clone() for name, value in module.named_buffers()}
        return functional_call(module, {**tree["parameters"], **buffers}, (tree["x"],))

    return called, Point({"parameters": parameters, "x": x}, "")
