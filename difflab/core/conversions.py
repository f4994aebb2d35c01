"""The conversion of all input to numeric values, or an error that names what would be lost.

Input of a user (arguments, arrays that traced code reads, points, gradients under test) is
converted here. The rule is that nothing is dropped: a value is converted only if all of it
survives. A mask, labels, a unit, the meaning of ``*``, digits and imaginary parts are parts of a
value, so a value that has them is refused, and the message says how to convert it deliberately.

The functions differ in their result: `as_numbers` keeps every type that has arithmetic, `as_reals`
the real arrays of NumPy and of libraries with NumPy's functions, `as_float64` makes them float64,
and `host_numbers` makes an array of NumPy of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.core.apply import JAX, PYTORCH, library_name, module_of
from difflab.core.place import at_users_line
from difflab.errors import DifflabError, InputError

FLOAT, SINGLE = np.dtype(np.float64), np.dtype(np.float32)
KINDS = frozenset("fiub")
"""NumPy's dtype kinds of real numbers."""
SCALARS = frozenset({float, bool, complex, np.float64, np.float32, np.bool_})
"""Types of numbers that are exact in float64 or complex128."""
LISTS = frozenset({list, tuple})
RANGE = 2**1024 - 2**970
"""Integers from this magnitude on round to infinity."""
EXACT = 2**53
"""Integers up to this magnitude are exact in float64."""


class Refusal(NamedTuple):
    """The reason why a value is refused: its description, and a hint."""

    description: str
    hint: str


MASKED = Refusal(
    "a masked array, whose mask would be lost",
    "array.filled(value) gives the masked elements a value, array.compressed() leaves them out",
)
MATRIX = Refusal(
    "a numpy.matrix, whose * is the product of matrices",
    "np.asarray(matrix) is an array; the product of arrays is a @ b",
)
UNIT = Refusal(
    "a quantity with a unit, which would be lost",
    "pass its magnitude in the unit of the formula: quantity.to(unit).magnitude",
)
SPARSE = Refusal("a sparse array", "array.toarray() makes it dense")
ROUNDED = Refusal("a {0}, which float64 rounds", "float(x) is the nearest float64")
LABELS = Refusal("a {0}, whose labels would be lost", "its values alone are .to_numpy()")
MISSING = Refusal(
    "a {0} of {1}, whose values may be missing", "its values alone are .to_numpy(float)"
)
MORE = Refusal(
    "a {0}, an array that holds more than its elements",
    "its elements alone are np.asarray(array)",
)
TOO_LARGE = Refusal("too large for a float64", "scale it, or pass its logarithm")
TEXT = Refusal("not a number, but text", "convert it: float(text)")
NOTHING = Refusal("not a number, but None", "pass a number or an array")
HALF = Refusal("{0}, in which nothing is computed", "convert it: array.astype(np.float32)")
DATES = Refusal(
    "{0}, which has a unit of time", "divide it by one: (t - start) / np.timedelta64(1, 's')"
)
RECORDS = Refusal("records with the fields {0}", "pass the fields one by one: array['name']")
DIGITS = Refusal(
    "{0} with digits that float64 does not hold", "round them: array.astype(np.float64)"
)
DERIVATIVE = Refusal(
    "a tensor of PyTorch that requires grad, whose derivative would be lost",
    "pass tensor.detach(), or differentiate through difflab.interop.torch.wrap(f)",
)
TENSOR = Refusal(
    "a tensor of PyTorch",
    "pass tensor.detach().numpy(), or make an operation of PyTorch by"
    " difflab.interop.torch.wrap(f)",
)

WITH_PARTS = frozenset({"masked", "matrix", "subclass", "series", "labels", "unit", "sparse"})
"""What arrays can be that are more than their elements."""
_CLASSES = {
    ("decimal", "Decimal"): "rounded",
    ("fractions", "Fraction"): "rounded",
    ("numpy.ma", "MaskedArray"): "masked",
    ("numpy", "matrix"): "matrix",
    ("pandas", "Series"): "series",
    ("pandas", "DataFrame"): "labels",
    ("pandas", "Index"): "labels",
    ("pandas", "ExtensionArray"): "labels",
    ("xarray", "DataArray"): "labels",
    ("xarray", "Dataset"): "labels",
    ("xarray", "Variable"): "labels",
}
"""Classes, by package and name, that need no import to be known."""


@lru_cache(maxsize=512)
def _category(kind: type) -> str:
    """Return the category of a class's instances; empty if it is unknown."""
    for base in kind.__mro__:
        for (package, name), category in _CLASSES.items():
            if base.__name__ == name and f"{base.__module__}.".startswith(f"{package}."):
                return category
    if issubclass(kind, np.ndarray):
        return "array" if kind in (np.ndarray, np.memmap) else "subclass"
    if issubclass(kind, np.generic):
        return "array"
    if issubclass(kind, str | bytes | bytearray):
        return "text"
    if hasattr(kind, "toarray") and hasattr(kind, "tocsc"):
        return "sparse"
    if hasattr(kind, "magnitude") and hasattr(kind, "units"):
        return "unit"
    return "integer" if issubclass(kind, int) and kind is not bool else ""


def refused(why: Refusal, what: str, kind: type[DifflabError] = InputError) -> DifflabError:
    """Return the error, of a kind, for a value that is refused.

    Examples
    --------
    >>> print(refused(TEXT, "the value of 'x'"))
    the value of 'x' is not a number, but text ...
    hint: convert it: float(text)
    """
    message = f"{what} is {why.description}"
    if issubclass(kind, InputError):
        return at_users_line(kind, message, why.hint)
    return kind(f"{message}: {why.hint}")


def as_numbers(value: Any, what: str, kind: type[DifflabError] = InputError) -> Any:
    """Return a value with all that it is, for computing with it.

    Parameters
    ----------
    value : Any
        The user's value; lists are arrays.
    what : str
        Its name in messages: "the value of 'x'".
    kind : type
        Of the error.

    Returns
    -------
    Any
        A scalar, or an array of NumPy, of float64, float32, complex numbers, integers, truth
        values or objects; everything else that is not refused, unchanged: arrays of other
        libraries, traced values, mpmath values.

    Raises
    ------
    DifflabError
        Something of it would be lost.

    Examples
    --------
    >>> as_numbers([1.0, 2.0], "x"), as_numbers(np.longdouble(0.5), "x")
    (array([1., 2.]), np.float64(0.5))
    >>> as_numbers(np.ma.array([1.0, 2.0], mask=[True, False]), "the value of 'x'")
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: the value of 'x' is a masked array, whose mask would be lost ...
    """
    own: Any = type(value)
    if own in SCALARS or (own is np.ndarray and value.dtype in (FLOAT, SINGLE)):
        return value
    if own is list or own is tuple:
        return _of_sequence(value, what, kind)
    category = _category(own)
    if not category:
        if value is None:
            raise refused(NOTHING, what, kind)
        return value
    converted = _converted(value, category)
    if isinstance(converted, Refusal):
        raise refused(converted, what, kind)
    return converted


def require_range(value: int, what: str, kind: type[DifflabError] = InputError) -> None:
    """Raise an error if an integer is beyond the range of float64.

    Examples
    --------
    >>> require_range(2**1000, "x")
    """
    if not -RANGE < value < RANGE:
        raise refused(TOO_LARGE, what, kind)


def without_parts(value: Any, what: str, kind: type[DifflabError] = InputError) -> Any:
    """Return a leaf of a tree; an array with more than its elements is refused.

    A series with no labels of its own, and a masked array without masked elements, are arrays.
    Settings, such as text, and arrays of every dtype are returned unchanged.

    Examples
    --------
    >>> without_parts("a setting", "x")
    'a setting'
    """
    own: Any = type(value)
    category = _category(own)
    wide = category == "array" and value.dtype.kind in "fc" and value.dtype.itemsize > 8
    if category in WITH_PARTS or (wide and value.dtype != np.complex128):
        return as_numbers(value, what, kind)
    return value


def _converted(value: Any, category: str) -> Any:
    """Return a value of a known class as scalars or arrays of NumPy; else why not."""
    name = type(value).__name__
    if category == "integer":
        return _integer(value)
    if category == "masked":
        return MASKED if np.ma.is_masked(value) else _array(np.asarray(value))
    if category == "series":
        return _series(value)
    if category == "array":
        return _array(value if isinstance(value, np.generic) else np.asarray(value))
    known = {"text": TEXT, "matrix": MATRIX, "unit": UNIT, "sparse": SPARSE}
    if category in known:
        return known[category]
    why = {"rounded": ROUNDED, "labels": LABELS, "subclass": MORE}[category]
    return Refusal(why.description.format(name), why.hint)


def _integer(value: int) -> Any:
    """Return an integer that float64 holds."""
    try:
        exact = int(float(value)) == value
    except OverflowError:
        return TOO_LARGE
    if exact:
        return value
    return Refusal(f"{value}, which float64 rounds to {float(value):.0f}", "float(x) rounds it")


def _series(value: Any) -> Any:
    """Return the elements of a series of pandas whose labels are the positions."""
    if not isinstance(value.dtype, np.dtype):
        description = MISSING.description.format("Series", value.dtype)
        return Refusal(description, MISSING.hint)
    index, size = value.index, len(value)
    if (
        type(index).__name__ != "RangeIndex"
        or (index.start, index.step) != (0, 1)
        or len(index) != size
    ):
        return Refusal(LABELS.description.format("Series"), LABELS.hint)
    return _array(value.to_numpy())


def _array(array: Any) -> Any:
    """Return an array or a scalar of NumPy in a dtype to compute in; else why not."""
    dtype: np.dtype[Any] = array.dtype
    kind, size = dtype.kind, dtype.itemsize
    if kind == "b" or (kind == "f" and size in (4, 8)) or (kind == "c" and size in (8, 16)):
        return array
    if kind in "iu":
        return array if size < 8 or _exact_integers(array) else _digits(array)
    if kind == "f" and size == 2:
        return Refusal(HALF.description.format(dtype), HALF.hint)
    if kind in "fc":
        with np.errstate(all="ignore"):
            near = array.astype(np.float64 if kind == "f" else np.complex128)
        return near if np.all((near == array) | np.isnan(array)) else _digits(array)
    if kind == "O":
        return next((why for why in map(_object, array.flat) if why is not None), array)
    if kind in "mM":
        return Refusal(DATES.description.format(dtype), DATES.hint)
    if dtype.names:
        return Refusal(RECORDS.description.format(", ".join(dtype.names)), RECORDS.hint)
    return Refusal(HALF.description.format(dtype), HALF.hint) if kind == "V" else TEXT


def _object(entry: Any) -> Refusal | None:
    """Return why an element of an array of objects is no number."""
    if entry is None:
        return NOTHING
    own: Any = type(entry)
    category = _category(own)
    converted = _converted(entry, category) if category else None
    return converted if isinstance(converted, Refusal) else None


def _digits(array: Any) -> Refusal:
    return Refusal(DIGITS.description.format(array.dtype), DIGITS.hint)


def _exact_integers(array: Any) -> bool:
    """Whether float64 holds all elements of an array of integers."""
    large = np.ravel(array)
    large = large[(large > EXACT) | (large < -EXACT if array.dtype.kind == "i" else False)]
    return all(int(float(number)) == number for number in map(int, large))


def _of_sequence(value: Sequence[Any], what: str, kind: type[DifflabError]) -> Any:
    """Return a nested list of scalars and arrays as an array."""
    kinds: set[Any] = set(map(type, value))
    if kinds <= SCALARS:
        return np.asarray(value)
    if kinds <= LISTS and set(map(type, chain.from_iterable(value))) <= SCALARS:
        return _rows(value, what, kind)  # a matrix
    own: list[Any] = []
    pending: list[tuple[list[Any], Sequence[Any]]] = [(own, value)]
    plain = True
    while pending:
        elements, entries = pending.pop()
        if set(map(type, entries)) <= SCALARS:
            elements += entries
            continue
        for entry in entries:
            if type(entry) in (list, tuple):
                elements.append([])
                pending.append((elements[-1], entry))
                continue
            number = as_numbers(entry, f"an element of {what}", kind)
            plain &= module_of(number) is np
            elements.append(number)
    return _rows(own if plain else value, what, kind)


def _rows(value: Sequence[Any], what: str, kind: type[DifflabError]) -> Any:
    """Return a list of scalars and of lists of scalars as an array."""
    try:
        return np.asarray(value)
    except ValueError:
        why = Refusal(
            "a list with rows of different lengths", "rows of an array have equal lengths"
        )
        raise refused(why, what, kind) from None


def as_reals(value: Any, what: str, kind: type[DifflabError] = InputError) -> Any:
    """Return a value that is real: a Python number, or an array or scalar with a dtype of NumPy.

    Arrays of JAX, CuPy and their kind stay in their library, traced values and tensors of difflab
    are returned unchanged. Those of PyTorch are refused, whose functions are not NumPy's.

    Raises
    ------
    DifflabError
        Something of it would be lost, or it is not real.

    Examples
    --------
    >>> as_reals(np.array([1, 2]), "x")
    array([1, 2])
    >>> as_reals(1j, "the value of 'x'")
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: the value of 'x' is not real: 1j ...
    """
    converted = as_numbers(value, what, kind)
    if type(converted) is np.ndarray and converted.dtype.kind in KINDS:
        return converted
    if isinstance(converted, int | float) or hasattr(converted, "__difflab_apply__"):
        return converted
    if getattr(module_of(converted), "__name__", "") == PYTORCH:
        raise refused(DERIVATIVE if converted.requires_grad else TENSOR, what, kind)
    dtype: Any = getattr(converted, "dtype", None)
    if getattr(dtype, "kind", "") in KINDS:
        if dtype.kind == "f" and dtype.itemsize == 2:
            raise refused(Refusal(HALF.description.format(dtype), HALF.hint), what, kind)
        return converted
    if "float" in str(dtype):  # of a library with dtypes of its own, such as bfloat16
        raise refused(Refusal(HALF.description.format(dtype), HALF.hint), what, kind)
    raise _not_real(converted, what, kind)


def _not_real(value: Any, what: str, kind: type[DifflabError]) -> DifflabError:
    """Return the error for a value that is no real number."""
    dtype = getattr(value, "dtype", None)
    description = f"{value!r:.50}" if dtype is None else f"{dtype} values"
    message, hint = f"{what} is not real: {description}", "use float64 scalars and arrays"
    if issubclass(kind, InputError):
        return at_users_line(kind, message, hint)
    return kind(message)


def as_float64(value: Any, what: str, kind: type[DifflabError] = InputError) -> Any:
    """Return a float64 copy of real values on their device; a NumPy scalar for a Python scalar.

    Raises
    ------
    DifflabError
        Something of it would be lost, or it is not real.

    Examples
    --------
    >>> as_float64(2, "x"), as_float64(np.array([1, 2]), "x")
    (np.float64(2.0), array([1., 2.]))
    """
    converted = as_reals(value, what, kind)
    if hasattr(converted, "__difflab_apply__"):
        return converted
    if isinstance(converted, int | float):
        return np.float64(converted)
    if module_of(converted) is np:
        floats = np.asarray(converted).astype(np.float64)
        return floats[()] if floats.ndim == 0 else floats
    module = module_of(converted)  # JAX has float64 only if its 64 bits are enabled
    wide = module.result_type(float) if module.__name__ == JAX else np.float64
    return converted.astype(wide)


def host_numbers(value: Any, what: str, kind: type[DifflabError] = InputError) -> NDArray[Any]:
    """Return a value as a NumPy array, real or complex.

    Arrays of other libraries are read if they lie in the memory of the host.

    Raises
    ------
    DifflabError
        Part of it would be lost, or it is no numeric array in the memory of the host.

    Examples
    --------
    >>> host_numbers([1, 2], "x"), host_numbers(0.5j, "x")
    (array([1, 2]), array(0.+0.5j))
    """
    converted = as_numbers(value, what, kind)
    if type(converted) is np.ndarray and converted.dtype == FLOAT:
        own: NDArray[Any] = converted
        return own
    module = module_of(converted)
    if getattr(module, "__name__", "") == PYTORCH:
        if converted.requires_grad:
            raise refused(DERIVATIVE, what, kind)
        converted = converted.resolve_conj().resolve_neg()
    try:
        array: NDArray[Any] = np.asarray(converted)
    except DifflabError:
        raise
    except (TypeError, ValueError, RuntimeError):
        raise _elsewhere(converted, what, kind) from None
    if array.dtype == object:
        if not all(isinstance(entry, int | float | np.generic) for entry in array.flat):
            raise _not_real(converted, what, kind)
        array = np.array(array.tolist()).reshape(array.shape)
    return array if module is np else np.asarray(as_numbers(array, what, kind))


def _elsewhere(value: Any, what: str, kind: type[DifflabError]) -> DifflabError:
    """Return the error for an array that NumPy cannot read."""
    dtype = getattr(value, "dtype", "")
    if "float16" in str(dtype):
        return refused(Refusal(HALF.description.format(dtype), HALF.hint), what, kind)
    library = library_name(module_of(value))
    why = Refusal(f"on a device, an array of {library}", "copy it to the host explicitly")
    return refused(why, what, kind)


def host_reals(value: Any, what: str, kind: type[DifflabError] = InputError) -> NDArray[np.float64]:
    """Return a real value as a NumPy array of float64, without a copy if it is one.

    Raises
    ------
    DifflabError
        Part of it would be lost, or it is no real array in the memory of the host.

    Examples
    --------
    >>> host_reals([1, 2], "x")
    array([1., 2.])
    """
    array = host_numbers(value, what, kind)
    if array.dtype.kind not in KINDS:
        raise _not_real(array, what, kind)
    return array.astype(np.float64, copy=False)
