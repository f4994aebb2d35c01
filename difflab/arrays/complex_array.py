"""`ComplexArray`: complex values as two real arrays, in code whose graphs are of real values.

NumPy's Fourier transforms of tensors and of traced values return it, and so does arithmetic of
these with complex constants. Every operation is one of the real parts, so that nothing else in
difflab needs to know complex numbers: derivatives are those of real functions of the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from difflab import primitives as rows
from difflab.arrays.given import Array, as_array, mismatch, shape_of
from difflab.arrays.shaped import Shaped
from difflab.arrays.shapes import broadcast_to
from difflab.core.apply import apply
from difflab.core.place import at_users_line
from difflab.core.primitive import ByArgument, LinearMap, Primitive, Shape
from difflab.errors import TraceError
from difflab.primitives.recurrences import minus, plus

__all__ = ["ComplexArray"]

Part = Any
"""A real array; None where it is zero."""
Parts = tuple[Part, Part]

INSTEAD = (
    "compute with z.real, z.imag, np.abs(z) and np.angle(z), which are real; complex values have"
    " + - * /, integer powers, np.exp, np.conj, np.where, sums, products of matrices, indexing,"
    " functions that move elements, and np.fft"
)


def _operator(row: Primitive) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Return an operator and its reflection."""
    return (
        lambda self, other: self.__difflab_apply__(row, (self, other), {}),
        lambda self, other: self.__difflab_apply__(row, (other, self), {}),
    )


def _augmented(row: Primitive) -> Callable[[Any, Any], Any]:
    """Return the method of an augmented assignment, which changes both parts in place."""

    def augmented(self: ComplexArray, other: Any) -> ComplexArray:
        result: ComplexArray = self.__difflab_apply__(row, (self, other), {})
        if not self.shape:
            return result
        if result.shape != self.shape:
            raise mismatch(f"in-place {row.name} cannot write {result.shape} to {self.shape}")
        for name in ("real", "imag"):
            _carried(self, name)[...] = getattr(result, name)
        return self

    return augmented


@dataclass(frozen=True, eq=False, slots=True)
class ComplexArray(Shaped):
    """Complex values by their parts, two real arrays of one shape.

    It is a tree of these two: `jit`, `vmap`, `scan` and their kin take and return it. Of arrays
    without derivatives, ``np.asarray(z)`` is NumPy's complex array.

    Parameters
    ----------
    real, imag : tensor, traced value or array
        The real and the imaginary part.

    Examples
    --------
    >>> import difflab as dl
    >>> z = np.fft.rfft(dl.tensor([1.0, 2.0, 4.0]))
    >>> z
    ComplexArray(real=tensor([ 7., -2.]), imag=tensor([0.        , 1.73205081]))
    >>> np.abs(z) ** 2
    tensor([49.,  7.])
    >>> np.asarray(1j * z)
    array([ 0.        +7.j, -1.73205081-2.j])
    """

    real: Array
    imag: Array

    def __post_init__(self) -> None:
        for name in ("real", "imag"):  # an in-place change must not affect the source of a part
            alone = getattr(getattr(self, name), "__difflab_alone__", None)
            if alone is not None:
                object.__setattr__(self, name, alone())

    __difflab_tree__ = True
    __array_priority__ = 200.0
    __hash__ = None  # type: ignore[assignment]

    @property
    def shape(self) -> Shape:
        """The shape of either part."""
        return shape_of(self.real)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The complex dtype of NumPy's array of the same precision."""
        return np.result_type(getattr(self.real, "dtype", np.float64), np.complex64)

    def conj(self) -> ComplexArray:
        """Return the complex conjugates."""
        return ComplexArray(self.real, -self.imag)

    conjugate = conj

    def copy(self) -> ComplexArray:
        """Return the same values."""
        return ComplexArray(self.real.copy(), self.imag.copy())

    def filled(self, value: float) -> Array:
        """Return a real array of this shape filled with one number."""
        return _full(self.real, value)

    def __difflab_apply__(
        self, primitive: Primitive, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> Any:
        """Apply a row whose operands are real and complex, by their parts."""
        own, rule = _RULES.get(primitive), primitive.rule
        if own is not None:
            return own(*args)
        if primitive.view:
            return _view(lambda part: apply(primitive, part, **params), args[0])
        if isinstance(rule, LinearMap):
            parts = zip(*map(_filled_parts, args), strict=True)
            return ComplexArray(*(apply(primitive, *part, **params) for part in parts))
        if isinstance(rule, ByArgument) and rule.is_product and len(args) == 2:
            return _product(lambda a, b: apply(primitive, a, b, **params), *args)
        raise _unsupported(f"'{primitive.name}'")

    __add__, __radd__ = _operator(rows.add)
    __sub__, __rsub__ = _operator(rows.subtract)
    __mul__, __rmul__ = _operator(rows.multiply)
    __truediv__, __rtruediv__ = _operator(rows.divide)
    __pow__, __rpow__ = _operator(rows.power)

    def __matmul__(self, other: Any) -> Any:
        return np.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return np.matmul(other, self)

    def __neg__(self) -> ComplexArray:
        return ComplexArray(-self.real, -self.imag)

    def __pos__(self) -> ComplexArray:
        return self

    def __abs__(self) -> Any:
        return _absolute(self)

    def __getitem__(self, key: Any) -> ComplexArray:
        return _view(lambda part: part[key], self)

    def __setitem__(self, key: Any, value: Any) -> None:
        real, imag = _parts(as_array(value))
        for name, new in (("real", real), ("imag", imag)):
            _carried(self, name)[key] = 0.0 if new is None else new

    __iadd__, __isub__ = _augmented(rows.add), _augmented(rows.subtract)
    __imul__, __itruediv__ = _augmented(rows.multiply), _augmented(rows.divide)
    __ipow__ = _augmented(rows.power)

    def __bool__(self) -> NoReturn:
        raise _unsupported("a branch")

    def __lt__(self, other: Any) -> NoReturn:
        raise _unsupported("a comparison")

    __le__ = __gt__ = __ge__ = __lt__
    __eq__ = __ne__ = __lt__

    def __float__(self) -> NoReturn:
        raise _unsupported("a conversion to a number")

    __int__ = __index__ = __complex__ = __float__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return NumPy's complex array; the parts say why if they cannot be converted."""
        parts = [np.asarray(part) for part in (self.real, self.imag)]
        return np.asarray(parts[0] + 1j * parts[1], dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NEP 13: the parts know the rows of NumPy's functions, whose operands are complex."""
        carrier = next(filter(_is_carrier, (self.real, self.imag)), None)
        if carrier is None:
            return getattr(ufunc, method)(*map(_numpys, inputs), **kwargs)
        return carrier.__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        """NEP 18: the same for NumPy's array functions."""
        carrier = next(filter(_is_carrier, (self.real, self.imag)), None)
        if carrier is None:
            return function(*map(_numpys, args), **kwargs)
        return carrier.__array_function__(function, types, args, kwargs)


def is_complex(value: Any) -> bool:
    """Whether a value is complex: a number, an array, or a `ComplexArray`.

    Examples
    --------
    >>> is_complex(1j), is_complex(np.ones(2)), is_complex(np.array([1j]))
    (True, False, True)
    """
    if isinstance(value, complex | ComplexArray):
        return True
    return getattr(getattr(value, "dtype", None), "kind", "") == "c"


def _is_carrier(part: Any) -> bool:
    return hasattr(part, "__difflab_apply__")


def _numpys(value: Any) -> Any:
    """Return a complex array as NumPy's, also in a list of operands."""
    if isinstance(value, list | tuple):
        return type(value)(map(_numpys, value))
    return np.asarray(value) if isinstance(value, ComplexArray) else value


def _carried(z: ComplexArray, name: str) -> Any:
    """Return a part as a carrier, so that it can be changed; a NumPy array becomes one."""
    part = getattr(z, name)
    other = z.imag if name == "real" else z.real
    if not _is_carrier(part) and _is_carrier(other):
        part = other.filled(0.0) + part
        object.__setattr__(z, name, part)
    return part


def _view(read: Callable[[Any], Any], z: Any) -> ComplexArray:
    """Return a view of complex values, whose parts share the elements of the parts of `z`."""
    made = object.__new__(ComplexArray)
    for name in ("real", "imag"):
        object.__setattr__(made, name, read(_carried(z, name)))
    return made


def _unsupported(what: str) -> TraceError:
    return at_users_line(TraceError, f"{what} of complex values has no derivative here", INSTEAD)


# --- parts ------------------------------------------------------------------------------------


def _parts(value: Any) -> Parts:
    """Return the parts of a value; those of constants that are zero, and of real values, are None.

    So a product with an imaginary number is two products, not four and two sums.
    """
    if isinstance(value, ComplexArray):
        return value.real, value.imag
    if not is_complex(value):
        return value, None
    parts = [part if np.any(part) else None for part in (np.real(value), np.imag(value))]
    return parts[0], parts[1]


def _filled_parts(value: Any) -> Parts:
    """Return both parts as arrays of one shape."""
    real, imag = _parts(as_array(value))
    if real is None and imag is None:
        real = np.zeros(np.shape(value))
    if real is None:
        real = _full(imag, 0.0)
    return real, _full(real, 0.0) if imag is None else imag


def _full(like: Any, value: float) -> Any:
    """Return an array of another's shape filled with one number."""
    return like.filled(value) if _is_carrier(like) else np.full_like(like, value, np.float64)


def _joined(real: Part, imag: Part) -> ComplexArray:
    """Return the value of two parts, whose shapes broadcast."""
    if real is None and imag is None:
        return ComplexArray(np.zeros(()), np.zeros(()))
    if real is None:
        return ComplexArray(_full(imag, 0.0), imag)
    if imag is None:
        return ComplexArray(real, _full(real, 0.0))
    shapes = shape_of(real), shape_of(imag)
    if shapes[0] != shapes[1]:
        shape = np.broadcast_shapes(*shapes)
        real, imag = (
            part if own == shape else broadcast_to(part, shape)
            for part, own in zip((real, imag), shapes, strict=True)
        )
    return ComplexArray(real, imag)


# --- rows on complex values -------------------------------------------------------------------


def _product(times: Callable[[Any, Any], Any], p: Any, q: Any) -> ComplexArray:
    """Return the product (a + ib)(c + id) by a product of real values."""
    (a, b), (c, d) = _parts(p), _parts(q)

    def term(x: Part, y: Part) -> Part:
        return None if x is None or y is None else times(x, y)

    return _joined(minus(term(a, c), term(b, d)), plus(term(a, d), term(b, c)))


def _multiply(p: Any, q: Any) -> ComplexArray:
    return _product(lambda x, y: x * y, p, q)


def _partwise(join: Callable[[Part, Part], Part]) -> Callable[[Any, Any], ComplexArray]:
    """Return the operation that joins real parts, and likewise imaginary parts."""
    return lambda p, q: _joined(*map(join, _parts(p), _parts(q)))


def _divide(p: Any, q: Any) -> ComplexArray:
    """Return p / q; of a complex q by its conjugate over its square."""
    if not is_complex(q):
        a, b = _parts(p)
        return _joined(None if a is None else a / q, None if b is None else b / q)
    if not isinstance(q, ComplexArray):
        return _multiply(p, 1 / q)
    square = q.real * q.real + q.imag * q.imag
    return _multiply(p, ComplexArray(q.real / square, -q.imag / square))


def _power(p: Any, exponent: Any) -> ComplexArray:
    """Return an integer power, by squaring."""
    whole = isinstance(exponent, int | float | np.number) and float(exponent).is_integer()
    if not whole or not isinstance(p, ComplexArray):
        raise at_users_line(
            TraceError,
            "powers of complex values have integer exponents here",
            "write np.abs(z)**p * np.exp(1j*p*np.angle(z)), or np.exp(z*np.log(a)) for a**z",
        )
    left, product, square = abs(int(exponent)), None, p
    while left:
        if left % 2:
            product = square if product is None else _multiply(product, square)
        left //= 2
        square = _multiply(square, square) if left else square
    if product is None:
        return ComplexArray(p.filled(1.0), p.filled(0.0))
    return product if int(exponent) > 0 else _divide(1.0, product)


def _absolute(z: Any) -> Any:
    real, imag = _filled_parts(z)
    return rows.hypot(real, imag)


def _exp(z: Any) -> ComplexArray:
    real, imag = _parts(z)
    if imag is None:
        return _joined(rows.exp(real), None)
    cos, sin = rows.cos(imag), rows.sin(imag)
    if real is None:
        return ComplexArray(cos, sin)
    size = rows.exp(real)
    return _joined(size * cos, size * sin)


def _where(condition: Any, p: Any, q: Any) -> ComplexArray:
    (a, b), (c, d) = ([0.0 if x is None else x for x in _parts(value)] for value in (p, q))
    return _joined(rows.where(condition, a, c), rows.where(condition, b, d))


_RULES: Mapping[Primitive, Callable[..., Any]] = {
    rows.absolute: _absolute,
    rows.add: _partwise(plus),
    rows.divide: _divide,
    rows.exp: _exp,
    rows.multiply: _multiply,
    rows.negative: lambda z: -z,
    rows.power: _power,
    rows.subtract: _partwise(minus),
    rows.where: _where,
}
