"""The one interception point: every difflab operation passes through `apply`.

Values of a *carrier* type (a graph's `Node`, an eager tensor) define how to record an operation in
a method `__difflab_apply__(primitive, arguments, params)`; scalars and arrays are computed
immediately, by the array module of the arrays: NumPy on the host, CuPy and other libraries on a
device. It is chosen from the values, only in this module, and nothing is converted: arrays on
different devices raise an error that names the device of each. Scalars are accepted everywhere:
Python's, NumPy's, and arrays without axes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.core.optional import require
from difflab.core.place import at_users_line
from difflab.errors import DeviceError, DifflabError, InputError, ShapeError, TraceError

if TYPE_CHECKING:
    from difflab.core.primitive import Primitive


HOST = frozenset({np.ndarray, np.float64, np.float32, np.bool_, float, int, bool})
"""Types whose array module is known to be NumPy."""
JAX = "jax.numpy"
"""The array module of JAX's arrays."""
PYTORCH = "difflab.core.pytorch"
"""The array module of PyTorch's tensors."""
TAKE_SCALARS = frozenset({"numpy", JAX, PYTORCH})
"""Array modules whose functions take scalars of the host of every type; CuPy refuses some."""


def module_of(value: Any) -> Any:
    """Return the array module that a number or array belongs to.

    Known libraries are found by name, others by the method ``__array_namespace__`` of the Python
    array API standard.

    Examples
    --------
    >>> module_of(np.ones(3)).__name__
    'numpy'
    """
    kind = type(value)
    if kind in HOST:
        return np
    package = kind.__module__.partition(".")[0]
    if package == "cupy":
        return sys.modules[package]
    if package == "torch":
        return import_module(PYTORCH)
    if package in ("jax", "jaxlib"):
        return sys.modules["jax.numpy"]
    namespace = getattr(kind, "__array_namespace__", None)
    return np if namespace is None else namespace(value)


def array_module(values: Sequence[Any], doing: str, names: Sequence[str] = ()) -> Any:
    """Return the one array module of all values.

    Parameters
    ----------
    values : sequence
        Numbers and arrays.
    doing : str
        The operation, for the error.
    names : sequence of str, optional
        The names of the values in that operation; "argument 1" and so on by default.

    Raises
    ------
    DeviceError
        Arrays lie on different devices.
    """
    xp: Any = np
    for value in values:
        if type(value) not in HOST:
            module = module_of(value)
            xp = xp if module is np else module
    if xp is not np:
        arrays = [value for value in values if getattr(value, "ndim", 0)]
        libraries = {module_of(value).__name__ for value in arrays}
        # JAX's tracers, such as the arguments that `jax.grad` differentiates by, have no device.
        places = {device_name(value) for value in arrays if hasattr(value, "device")}
        if len(libraries) > 1 or len(places) > 1:
            raise device_mismatch(values, doing, names)
    return xp


def device_mismatch(values: Sequence[Any], doing: str, names: Sequence[str] = ()) -> DeviceError:
    """Return the error that names the device of each value."""
    known = names or [f"argument {position + 1}" for position in range(len(values))]
    places = ", ".join(
        f"{name} is on {device_name(value)}"
        for name, value in zip(known, values, strict=True)
        if hasattr(value, "ndim")
    )
    return DeviceError(
        f"{doing} takes arrays of one device, but {places}",
        hint="move one of them explicitly: cupy.asarray(array) copies a NumPy array to the"
        " device, and array.get() copies it back",
    )


def device_name(value: Any) -> str:
    """Return the device of an array, in words."""
    module = module_of(value)
    if module is np:
        return "the host (numpy)"
    return f"{getattr(value, 'device', 'a device')} ({library_name(module)})"


TITLES = {PYTORCH: "PyTorch", JAX: "JAX"}


def library_name(module: Any) -> str:
    """Return the name of the library that an array module belongs to.

    Examples
    --------
    >>> library_name(np)
    'numpy'
    """
    name: str = module.__name__
    return TITLES.get(name, name)


def device_module(device: Any) -> Any:
    """Return the array module that a device names: ``"cpu"``, ``"cuda"``, or an array module.

    Raises
    ------
    InputError
        It is neither.
    MissingDependencyError
        The device is ``"cuda"``, and CuPy is missing.

    Examples
    --------
    >>> device_module("cpu").__name__
    'numpy'
    """
    if device == "cuda":
        return require("cupy")
    if device == "cpu" or device is np:
        return np
    if isinstance(device, ModuleType) and hasattr(device, "asarray"):
        return device
    raise at_users_line(
        InputError,
        f"a device is 'cpu', 'cuda' or an array module, not {device!r:.40}",
        "NumPy's arrays are on 'cpu', CuPy's on 'cuda'",
    )


def sent_to(home: Any, array: Any) -> Any:
    """Return an array copied to the device of an array module, on the user's explicit request."""
    held = on_host(array)
    return held if home is np else home.asarray(held)


def in_library_of(value: Any, array: np.ndarray[Any, Any]) -> Any:
    """Return a constant array in the array library of a value, or of a carrier's value.

    Examples
    --------
    >>> in_library_of(1.0, np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return sent_to(home_of(value), array)


def device_context(values: Sequence[Any]) -> AbstractContextManager[Any]:
    """Return the context in which PyTorch creates tensors on the device of those given."""
    for value in values:
        if module_of(value).__name__ == PYTORCH and value.device.type != "cpu":
            context: AbstractContextManager[Any] = value.device
            return context
    return nullcontext()


def home_of(value: Any) -> Any:
    """Return the array module of a scalar or array, or of a carrier's value."""
    held = getattr(value, "__difflab_held__", None)
    return module_of(value if held is None else held())


def as_floats(value: Any) -> Any:
    """Return integers and truth values of another library as floats, as NumPy's functions do.

    PyTorch's functions would make float32 of them.
    """
    dtype: Any = getattr(value, "dtype", None)
    if getattr(dtype, "kind", "O") in "biu":
        return value * 1.0
    if getattr(dtype, "is_floating_point", True) or dtype.is_complex:
        return value
    return value.double()


def on_host(value: Any) -> Any:
    """Return an array copied to the host, on the user's explicit request."""
    return np.asarray(value.get() if hasattr(value, "get") else value)


def with_scalars(xp: Any, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that takes NumPy's arrays without axes, and truth values of the host."""
    if xp.__name__ in TAKE_SCALARS:
        return kernel

    def converted(arg: Any) -> Any:
        scalar = arg[()] if type(arg) is np.ndarray and arg.ndim == 0 else arg
        return xp.asarray(scalar) if isinstance(scalar, bool | np.bool_) else scalar

    return lambda *args, **params: kernel(*map(converted, args), **params)


class OtherCarrierError(TraceError):
    """An operand belongs to another kind of carrier, which records the operation."""

    def __init__(self, carrier: Any) -> None:
        super().__init__(
            "a traced or complex value cannot be written into a tensor",
            hint="compute a new value: np.where(mask, new, t), or t + x for t += x",
        )
        self.carrier = carrier


def apply(primitive: Primitive, *args: Any, **params: Any) -> Any:
    """Apply `primitive` to `args`: a carrier records the operation, arrays compute it.

    Parameters
    ----------
    primitive : Primitive
        A row of the table.
    *args : carrier, number or array
        The operands. The first carrier among them handles the operation.
    **params
        Static parameters, such as the key of an indexing.

    Returns
    -------
    carrier or array
        The recorded operation, or the computed value.

    Examples
    --------
    >>> from difflab.primitives import add
    >>> float(apply(add, 1.0, 2.0))
    3.0
    """
    for argument in args:
        take = getattr(argument, "__difflab_apply__", None)
        if take is not None:
            return take(primitive, args, params)
    try:
        return primitive.computer(array_module(args, primitive.name))(*args, **params)
    except (TypeError, ValueError, ArithmeticError, LookupError, MemoryError) as error:
        if isinstance(error, DifflabError):
            raise
        raise computation_error(primitive.name, args, error) from error


def constant(number: float, like: Any, name: str | None = None) -> Any:
    """Return a number whose functions a carrier records, as in ``log(constant(10, x))``.

    A derivative rule that called a function of a Python number would hold its rounded value.

    Parameters
    ----------
    number : int or float
        The number.
    like : carrier, number or array
        An operand of the rule; where it is no carrier, the number itself is returned.
    name : {"pi", "e"}, optional
        The constant that `number` is rounded from.

    Examples
    --------
    >>> constant(10, 2.0)
    10
    """
    make = getattr(like, "__difflab_constant__", None)
    return number if make is None else make(number, name)


def computation_error(name: str, args: tuple[Any, ...], error: Exception) -> DifflabError:
    """Return the error for operands that an operation cannot be applied to."""
    shapes = [getattr(arg, "shape", None) for arg in args]
    if any(shapes):
        listed = " and ".join(str(shape or ()) for shape in shapes)
        return at_users_line(
            ShapeError, f"{name} cannot be computed for the shapes {listed}: {error}"
        )
    types = " and ".join(type(arg).__name__ for arg in args)
    return at_users_line(InputError, f"{name} cannot be computed for {types}: {error}")


SPECIAL = {
    "numpy": "scipy.special",
    "cupy": "cupyx.scipy.special",
    "jax.numpy": "jax.scipy.special",
}
"""The module of special functions for each array module; by default its own `special`."""


@cache
def special_functions(xp: ModuleType) -> ModuleType:
    """Return the special functions that belong to the array module `xp`."""
    owner = SPECIAL.get(xp.__name__)
    module: ModuleType = xp.special if owner is None else import_module(owner)
    return module
