"""Identities that a simplifying builder applies as nodes are emitted.

Every one is exact in floating point (up to the sign of a zero), except that a factor that is
the constant 0 annihilates, unless the builder says otherwise: in a derivative it stands for "no
dependence". Operations on constants fold where that is exact: 2·3, but neither 1/7 nor 0.1 - 1,
which a target rounds, as precisely as it computes, before its first call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.core.primitive import Primitive, elementwise
from difflab.primitives import (
    add,
    broadcast,
    constant_array,
    cos,
    cosh,
    divide,
    dpower,
    exp,
    expm1,
    index,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    multiply,
    negative,
    power,
    reshape,
    sech,
    sin,
    sinh,
    sqrt,
    subtract,
    sum_,
    tan,
    tanh,
    transpose,
    where,
)

if TYPE_CHECKING:
    from difflab.graph.builder import Builder
    from difflab.graph.ir import Number, Shape


Identity = Callable[..., "int | None"]
"""``(builder, *args, **params)`` gives the node that an operation reduces to, or None."""

_LEAF = Primitive(name="leaf", arity=0, rule=elementwise())
"""In place of the row of an input or a constant, which apply none: no sum and no product."""


def simplified(
    builder: Builder, primitive: Primitive, args: tuple[int, ...], params: Any
) -> int | None:
    """Return the node that ``primitive(*args)`` reduces to, or None."""
    identity = _IDENTITIES.get(primitive)
    if params:
        return None if identity is None else identity(builder, *args, **dict(params))
    node = None if identity is None else identity(builder, *args)
    if node is None and builder.folds:
        node = _exactly(builder, primitive, args)
    return None if node is None else _whole(builder, node, args)


def _exactly(builder: Builder, primitive: Primitive, args: tuple[int, ...]) -> int | None:
    """Fold an operation on constants whose result is exact; None if it would be rounded."""
    if args and builder.number(args[-1]) is None:  # mostly
        return None
    if primitive is log and len(args) == 1:
        value, name = builder.constants.get(args[0], (0, None))
        if name == "e" or value == 1:
            return builder.constant(1 if name else 0)
    numbers = []
    for node in args:
        number, (_, name) = builder.number(node), builder.constants.get(node, (0, None))
        if number is None or name is not None or not math.isfinite(number):
            return None
        numbers.append(number)
    if primitive is power or (primitive.unbatched is not None and primitive.shape is None):
        exact = _rational(primitive, *numbers)
        return None if exact is None else _number(builder, exact)
    if primitive.ulps and (any(numbers) or primitive not in _EXACT_AT_ZERO):
        return None
    return folded(builder, primitive, args)


@lru_cache(maxsize=1024)
def _rational(primitive: Primitive, *numbers: Number) -> float | None:
    """Return the rational result of an operation if it is a float64, else None."""
    try:
        operator = _whole_power if primitive.unbatched is None else primitive.unbatched(np)
        exact = operator(*map(Fraction, numbers))
        return float(exact) if Fraction(float(exact)) == exact else None
    except (ArithmeticError, ValueError):
        return None


def _whole_power(base: Fraction, exponent: Fraction) -> Fraction:
    """Return a power with a small whole exponent; others are not rational, or large."""
    if exponent.denominator != 1 or abs(exponent) > LARGEST_POWER:
        raise ValueError
    return base**exponent.numerator


def folded(builder: Builder, primitive: Primitive, args: tuple[int, ...]) -> int | None:
    """Fold an operation on constants, with rounding; None if the result is not finite."""
    of_truths = primitive.boolean or len(primitive.truths) == primitive.arity
    if of_truths or primitive.shape is not None:
        return None
    numbers = []
    for node in args:
        number = builder.number(node)
        if number is None:
            return None
        numbers.append(float(number))
    with np.errstate(all="ignore"):
        return _constant(builder, float(primitive.computer(np)(*numbers)), args)


def _constant(builder: Builder, value: float, args: tuple[int, ...]) -> int | None:
    """Return the value of an operation on constants, of its shape; None if it is not finite."""
    node = _number(builder, value)
    return None if node is None else _whole(builder, node, args)


def _whole(builder: Builder, node: int, args: tuple[int, ...]) -> int | None:
    """Broadcast the node that an operation reduces to, to the shape of the operation.

    None if the arguments' shapes do not fit: the emitter raises the error.
    """
    if builder.shape_ids.keys().isdisjoint(args):
        return node
    try:
        return builder.spread(node, np.broadcast_shapes(*map(builder.shape, args)))
    except ValueError:
        return None


def _number(builder: Builder, value: float) -> int | None:
    """Return a number as a constant, an integer where it is one; None where it is not finite."""
    if not math.isfinite(value):
        return None
    return builder.constant(int(value) if value.is_integer() and abs(value) < 2**53 else value)


def _picked(builder: Builder, node: int, *, key: tuple[Any, ...], rank: int) -> int | None:
    """Return the element that an index selects from a constant array."""
    if builder.primitive(node) is not constant_array or any(type(part) is tuple for part in key):
        return None
    params = builder.params(node)
    numbers = np.frombuffer(params["values"]).reshape(params["shape"])
    return _number(builder, float(numbers[key]))


def _reshaped(builder: Builder, node: int, *, shape: Shape, rank: int) -> int | None:
    """Merge two reshapes, drop one that changes nothing, pick an only number."""
    own = builder.shape(node)
    source = _operand(builder, node, reshape)
    if source is not None:
        merged = (("rank", len(builder.shape(source))), ("shape", shape))
        return builder.emit(reshape, (source,), merged)
    if shape == () != own:
        return _picked(builder, node, key=(0,) * len(own), rank=rank)
    return node if shape == own else None


def _transposed(builder: Builder, node: int, *, axes: tuple[int, ...]) -> int | None:
    """Merge two transposes, drop one that changes nothing."""
    source = _operand(builder, node, transpose)
    if source is not None:
        inner = builder.params(node)["axes"]
        merged = (("axes", tuple(inner[axis] for axis in axes)),)
        return builder.emit(transpose, (source,), merged)
    return node if axes == tuple(range(-len(axes), 0)) else None


def _operand(builder: Builder, node: int, primitive: Primitive) -> int | None:
    """Return the operand of a node that applies a row of one argument; else None."""
    return builder.arguments(node)[0] if builder.primitive(node) is primitive else None


def _sum_of_one(builder: Builder, node: int, *, axes: tuple[int, ...], rank: int) -> int | None:
    """Reshape where every sum has one term."""
    shape = builder.shape(node)
    if any(shape[axis] != 1 for axis in axes):
        return None
    rest = tuple(size for axis, size in enumerate(shape) if axis - rank not in axes)
    return builder.emit(reshape, (node,), (("rank", rank), ("shape", rest)))


def _add(builder: Builder, a: int, b: int) -> int | None:
    if builder.number(a) == 0:
        return b
    if builder.number(b) == 0:
        return a
    of_a, of_b = builder.primitive(a) or _LEAF, builder.primitive(b) or _LEAF
    if of_a.signs == (-1,) == of_b.signs:
        terms = builder.arguments(a) + builder.arguments(b)
        return builder.emit(negative, (builder.emit(add, terms),))
    if of_b.signs == (-1,):
        return builder.emit(subtract, (a, *builder.arguments(b)))
    if of_a.signs == (-1,):
        return builder.emit(subtract, (b, *builder.arguments(a)))
    for row, term, other in ((of_a, a, b), (of_b, b, a)):
        reverse = _turned(builder, term) if row.signs == (1, -1) else None
        if reverse is not None:
            return builder.emit(subtract, (other, reverse))
    return None


def _turned(builder: Builder, node: int) -> int | None:
    """Return an earlier node y - x for the difference x - y."""
    reverse = builder.existing(subtract, builder.arguments(node)[::-1])
    return reverse if reverse is not None and reverse < node else None


def _subtract(builder: Builder, a: int, b: int) -> int | None:
    if builder.number(b) == 0:
        return a
    if builder.number(a) == 0:
        return builder.emit(negative, (b,))
    of_a, of_b = builder.primitive(a) or _LEAF, builder.primitive(b) or _LEAF
    if of_a.signs == (1, -1) and b in builder.constants and builder.fixed(a):
        first, second = builder.arguments(a)
        total = _exactly(builder, add, (second, b))
        if first in builder.constants and total is not None:
            return builder.emit(subtract, (first, total))
    if of_b.signs == (-1,):
        return builder.emit(add, (a, *builder.arguments(b)))
    if of_a.signs == (-1,):
        return builder.emit(negative, (builder.emit(add, (*builder.arguments(a), b)),))
    reverse = _turned(builder, b) if of_b.signs == (1, -1) else None
    return None if reverse is None else builder.emit(add, (a, reverse))


def _multiply(builder: Builder, a: int, b: int) -> int | None:
    for factor, other in ((a, b), (b, a)):
        number, row = builder.number(factor), builder.primitive(factor) or _LEAF
        if number == 1:
            return other
        if number == -1:
            return builder.emit(negative, (other,))
        if number == 0 and builder.annihilates:
            return builder.constant(0)
        if number is not None and (builder.primitive(other) or _LEAF).degrees == (1, 1):
            scaled = _scaled(builder, factor, other)
            if scaled is not None:
                return scaled
        if row.degrees == (1, -1) and builder.fixed(factor):
            one, divisor = builder.arguments(factor)
            if builder.number(one) == 1:
                return builder.emit(divide, (other, divisor))
        if row.signs == (-1,):
            product = builder.emit(multiply, (*builder.arguments(factor), other))
            return builder.emit(negative, (product,))
    return None


def exponent_of(number: float) -> int | None:
    """Return k where a number is 2^k, by which it is exact to multiply; else None.

    Examples
    --------
    >>> exponent_of(0.25), exponent_of(3.0), exponent_of(-2.0)
    (-2, None, None)
    """
    mantissa, exponent = math.frexp(number)
    return exponent - 1 if mantissa == 0.5 else None


def _scaled(builder: Builder, constant: int, node: int) -> int | None:
    """Return c·(2^k·a) as (c·2^k)·a for |c| ≥ 1 and k > 0, where rounding does not change."""
    number, name = builder.constants.get(constant, (0, None))
    if abs(number) < 1 or name is not None:
        return None
    for factor, other in (args := builder.arguments(node), args[::-1]):
        scale = builder.number(factor)
        if scale is not None and scale > 1 and exponent_of(scale):
            product = _exactly(builder, multiply, (constant, factor))
            return None if product is None else builder.emit(multiply, (product, other))
    return None


def _divide(builder: Builder, a: int, b: int) -> int | None:
    if builder.number(b) == 1:
        return a
    if builder.number(a) == 0 and builder.annihilates:
        return builder.constant(0)
    if (builder.primitive(a) or _LEAF).signs == (-1,):
        return builder.emit(negative, (builder.emit(divide, (*builder.arguments(a), b)),))
    if (builder.primitive(b) or _LEAF).signs == (-1,):
        return builder.emit(negative, (builder.emit(divide, (a, *builder.arguments(b))),))
    return None


def _negative(builder: Builder, a: int) -> int | None:
    row = builder.primitive(a) or _LEAF
    if row.signs == (1, -1):
        return builder.emit(subtract, builder.arguments(a)[::-1])
    return builder.arguments(a)[0] if row.signs == (-1,) else None


def _power(builder: Builder, base: int, exponent: int) -> int | None:
    number = builder.number(exponent)
    if number == 1:
        return base
    if number == 0:
        return builder.constant(1)
    return None


def _dpower(builder: Builder, base: int, exponent: int) -> int | None:
    """p·xᵖ⁻¹ in basic operations if p is constant."""
    number = builder.number(exponent)
    if number is None and not builder.fixed(exponent):
        return None
    if number == 0:
        return builder.constant(0)
    one = builder.constant(1)
    lowered = builder.emit(power, (base, builder.emit(subtract, (exponent, one))))
    return builder.emit(multiply, (exponent, lowered))


def _where(builder: Builder, condition: int, a: int, b: int) -> int | None:
    if a == b:
        return a
    opposite = _operand(builder, condition, logical_not)
    return None if opposite is None else builder.emit(where, (opposite, b, a))


def _idempotent(builder: Builder, a: int, b: int) -> int | None:
    return a if a == b else None


def _not(builder: Builder, a: int) -> int | None:
    return _operand(builder, a, logical_not)


_IDENTITIES: dict[Primitive, Identity] = {
    add: _add,
    subtract: _subtract,
    multiply: _multiply,
    divide: _divide,
    negative: _negative,
    power: _power,
    dpower: _dpower,
    where: _where,
    logical_and: _idempotent,
    logical_or: _idempotent,
    logical_not: _not,
    index: _picked,
    reshape: _reshaped,
    sum_: _sum_of_one,
    transpose: _transposed,
}

LARGEST_POWER = 64
"""The largest whole exponent with which a constant is folded."""

_EXACT_AT_ZERO = frozenset({cos, cosh, exp, expm1, log1p, sech, sin, sinh, sqrt, tan, tanh})
"""Rows whose result at 0 is 0 or 1."""

REDUCIBLE = frozenset({negative, subtract, broadcast, constant_array, logical_not})
"""Rows whose result, like a constant, as an argument can make an identity apply."""

REDUCIBLE_OF_CONSTANTS = frozenset({divide, subtract})
"""Rows of which the same holds where they operate on constants, as in 1/7."""

ALWAYS_TRIED = frozenset({where, logical_and, logical_or, reshape, sum_, transpose})
"""Rows whose identities look at more than whether an argument is reducible."""
