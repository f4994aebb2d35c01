"""Random numbers of a key: `key`, `split`, `normal`, `uniform`, `bernoulli`, `dropout`.

A key is an array of two integers. The same key gives the same numbers, eagerly, in a trace,
under `jit`, when a checkpoint is computed again, and under every target that computes arrays. No
state is kept: draw with a key once, and make the next keys by `split`. As an argument of a compiled
function a key is a value like any other, so each call can draw other numbers without a new trace.

Under `vmap`, a key that is mapped draws other numbers for every example, and one that is not draws
the same numbers for all. A batch of keys at the inputs of a Function is the same.

The signatures and, for float64 and `jax_threefry_partitionable`, the numbers are those of
`jax.random`; normal numbers to the accuracy of the inverse of the error function.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from difflab import primitives as rows
from difflab.arrays.given import Array, as_array, as_integer, as_integers, brief_repr, mismatch
from difflab.arrays.given import shape_of as _shape_of
from difflab.arrays.shapes import fits, reshape
from difflab.core.apply import apply
from difflab.core.place import at_users_line
from difflab.errors import InputError

__all__ = ["bernoulli", "dropout", "key", "normal", "split", "uniform"]

MOST = 2**32
"""Numbers that one key may draw."""
ASKS_FOR_A_KEY = "make one by dl.random.key(0), or several by dl.random.split(key)"


def key(seed: int) -> NDArray[np.float64]:
    """Return the key of a seed: its upper and its lower 32 bits.

    Parameters
    ----------
    seed : int
        Of at most 64 bits; a negative one counts as in two's complement.

    Raises
    ------
    InputError
        The seed is not an integer, or has more bits.

    Examples
    --------
    >>> key(42).tolist()
    [0.0, 42.0]
    """
    try:
        number = operator.index(seed)
    except TypeError:
        number = 2**64
    if not -(2**63) <= number < 2**64:
        raise at_users_line(
            InputError, f"the seed of a key is an integer of 64 bits, not {brief_repr(seed)}"
        )
    return np.array(divmod(number % 2**64, 2**32), dtype=np.float64)


def _as_key(name: str, given: Array) -> Array:
    """Return a key after checking its shape and, if they are known, its words."""
    words = as_array(given)
    if _shape_of(words) != (2,):
        raise mismatch(f"{name} takes a key of shape (2,), not {_shape_of(words)}", ASKS_FOR_A_KEY)
    known = isinstance(words, np.ndarray)
    if known and not all(word % 1 == 0 and 0 <= word < 2**32 for word in words.tolist()):
        raise at_users_line(InputError, f"{words.tolist()} is not a key", ASKS_FOR_A_KEY)
    return words


def _as_shape(name: str, shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = as_integers(name, "shape", shape)
    if min(sizes, default=0) < 0 or np.prod(sizes, dtype=float) > MOST:
        raise mismatch(f"{name} cannot draw an array of the shape {sizes}")
    return sizes


def split(key: Array, num: int | Sequence[int] = 2) -> Array:
    """Return `num` new keys, whose draws are independent of each other and of those of `key`.

    Parameters
    ----------
    key : (2,) array
    num : int or sequence of int
        How many, or the shape of an array of keys, which are the same in row-major order.

    Returns
    -------
    (num, 2) array, or num + (2,) for a shape
        One key in each row.

    Examples
    --------
    >>> key1, key2 = split(key(0))
    >>> key1.tolist()
    [1797259609.0, 2579123966.0]
    """
    shape = tuple(num) if isinstance(num, tuple | list) else (num,)
    shape = tuple([as_integer("split", "num", entry, 1) for entry in shape])
    count = math.prod(shape)
    if count > MOST:
        raise mismatch(f"split makes at most {MOST} keys, not {count}")
    keys = apply(rows.random_keys, _as_key("split", key), count=count)
    return keys if len(shape) == 1 else reshape(keys, (*shape, 2))


def uniform(
    key: Array, shape: int | Sequence[int] = (), minval: Array = 0.0, maxval: Array = 1.0
) -> Array:
    """Draw from the uniform distribution on the interval from `minval`, included, to `maxval`.

    Draws are ``minval + u·(maxval − minval)`` with u one of 2⁵² values, so derivatives by the
    bounds exist; the derivative by the key is 0.

    Parameters
    ----------
    key : (2,) array
    shape : int or sequence of int
    minval, maxval : number or array
        They broadcast to `shape`.

    Raises
    ------
    ShapeError
        `key` is not of shape (2,), or a bound does not broadcast to `shape`.

    Examples
    --------
    >>> uniform(key(42), 2)
    array([0.42672757, 0.01501007])
    """
    sizes = _as_shape("uniform", shape)
    drawn = apply(rows.random_uniform, _as_key("uniform", key), shape=sizes)
    low, high = (_fitting("uniform", bound, sizes) for bound in (minval, maxval))
    return _shifted(drawn, low, high - low)


def normal(
    key: Array, shape: int | Sequence[int] = (), loc: Array = 0.0, scale: Array = 1.0
) -> Array:
    """Draw from the normal distribution of mean `loc` and standard deviation `scale`.

    Draws are ``loc + scale·z``, so derivatives by `loc` and `scale` exist (the reparametrisation of
    Kingma & Welling, arXiv:1312.6114); the derivative by the key is 0.

    Parameters
    ----------
    key : (2,) array
    shape : int or sequence of int
    loc, scale : number or array
        They broadcast to `shape`.

    Raises
    ------
    ShapeError
        `key` is not of shape (2,), or a parameter does not broadcast to `shape`.

    Examples
    --------
    >>> normal(key(42), 2)
    array([-0.18471175, -2.16982456])
    >>> import difflab as dl
    >>> float(dl.grad(lambda scale: normal(key(42), (), 5.0, scale))(2.0) - normal(key(42)))
    0.0
    """
    sizes = _as_shape("normal", shape)
    drawn = apply(rows.random_normal, _as_key("normal", key), shape=sizes)
    mean, deviation = (_fitting("normal", given, sizes) for given in (loc, scale))
    return _shifted(drawn, mean, deviation)


def bernoulli(key: Array, p: Array = 0.5, shape: int | Sequence[int] | None = None) -> Array:
    """Return truth values that are true with probability `p`; derivative 0.

    Parameters
    ----------
    key : (2,) array
    p : number or array
    shape : int or sequence of int, optional
        That of `p` when None.

    Examples
    --------
    >>> bernoulli(key(42), 0.5, 3).tolist()
    [True, True, False]
    """
    chance = as_array(p)
    sizes = _shape_of(chance) if shape is None else _as_shape("bernoulli", shape)
    drawn = apply(rows.random_uniform, _as_key("bernoulli", key), shape=sizes)
    return rows.less(drawn, _fitting("bernoulli", chance, sizes))


def dropout(key: Array, x: Array, p: float = 0.5) -> Array:
    """Return x with elements set to 0 with probability `p`, and the others divided by 1 − p.

    So the mean is preserved (Srivastava et al., 2014, in the inverted form of PyTorch). An
    element that is set to 0 passes no derivative on, whatever its value.

    Parameters
    ----------
    key : (2,) array
    x : array
    p : float
        From 0 to 1.

    Examples
    --------
    >>> dropout(key(42), np.array([1.0, 2.0, 3.0])).tolist()
    [0.0, 0.0, 6.0]
    """
    x = as_array(x)
    if not isinstance(p, int | float | np.number) or not 0 <= p <= 1:
        raise at_users_line(
            InputError, f"p of dropout is a number from 0 to 1, not {brief_repr(p)}"
        )
    dropped = bernoulli(key, float(p), _shape_of(x))
    return rows.where(dropped, 0.0, rows.divide(x, 1.0 - p) if p < 1 else x)


def _shifted(drawn: Array, shift: Array, scale: Array) -> Array:
    """Return ``drawn·scale + shift``, without the operations that change nothing."""
    scaled = drawn if _is(scale, 1.0) else rows.multiply(drawn, scale)
    return scaled if _is(shift, 0.0) else rows.add(scaled, shift)


def _is(given: Array, number: float) -> bool:
    return isinstance(given, float) and given == number


def _fitting(name: str, given: Array, shape: tuple[int, ...]) -> Array:
    """Return a parameter that broadcasts to the shape of the sample."""
    parameter = as_array(given)
    if not fits(_shape_of(parameter), shape):
        raise mismatch(f"{name} of the shape {shape} takes no parameter of {_shape_of(parameter)}")
    return parameter
