"""Whether code does nothing but arithmetic: no side effects, no branches, no other functions."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from difflab.execute.jit.code import chains, instructions
from difflab.execute.targets.llvm.libraries import NUMPY

_PLAIN = frozenset(
    re.findall(
        r"\w+",
        """
        BINARY_SUBSCR BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_TUPLE CACHE CALL COMPARE_OP
        COPY COPY_FREE_VARS EXTENDED_ARG LOAD_ATTR LOAD_CONST LOAD_DEREF LOAD_FAST
        LOAD_FAST_BORROW LOAD_FAST_CHECK LOAD_GLOBAL LOAD_METHOD LOAD_SMALL_INT NOP NOT_TAKEN
        POP_TOP PRECALL PUSH_NULL RESUME RETURN_CONST RETURN_VALUE STORE_FAST SWAP
        UNARY_NEGATIVE UNPACK_SEQUENCE
        """,
    )
)
"""Instructions that compute, and change nothing but local variables."""
_Name = tuple[str, str, tuple[str, ...]]
_OPERATORS = frozenset({"+", "-", "*", "/", "[]"})
_FUNCTIONS: frozenset[Any] = frozenset(
    (abs, np.absolute, np.negative, np.sqrt, np.square, np.where, *NUMPY.values())
)
_NUMBERS = (float, int, np.float64)
_ODD = CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_HARMLESS = {1, 3}
"""Numbers of arguments of calls beside universal functions, which write to a second one."""


class Arithmetic(NamedTuple):
    """The key of functions that consist of arithmetic, and the arrays that they read.

    Attributes
    ----------
    key : tuple
        Equal for functions of equal code that read equal scalars, and arrays of equal shapes.
    arrays : list
        The arrays that they read.
    """

    key: tuple[Any, ...]
    arrays: list[Any]


def arithmetic(functions: Sequence[Any]) -> Arithmetic | None:
    """Return the key and arrays of functions that consist of arithmetic; None if one does not.

    Neither they nor the functions that they call do anything but ``+ - * /``, comparisons, `abs`
    and a few of NumPy's functions on their arguments, and on scalars and float64 arrays that they
    read.

    Examples
    --------
    >>> arithmetic([lambda x: x * np.sqrt(x)]) is None, arithmetic([lambda x: print(x)]) is None
    (False, True)
    """
    todo, index_of = [*reversed(functions)], dict[int, int]()
    key, arrays = list[Any](), list[Any]()
    calls, writes = set[int](), False
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind in (FunctionType, np.ndarray) and id(value) in index_of:
            key.append(index_of[id(value)])
            continue
        if kind is FunctionType:
            reads = _reads(value.__code__)
            if reads is None:
                return None
            calls |= reads.calls
            todo += [*_values(value, reads.names), *_defaults(value)]
            key.append(value.__code__)
        elif kind is np.ndarray and value.dtype == np.float64:
            arrays.append(value)
            key.append(value.shape)
        elif kind in _NUMBERS:
            key.append((kind, repr(value)))
        elif callable(value) and _is_known(value):
            writes |= kind is np.ufunc
            key.append(value)
        else:
            return None
        index_of[id(value)] = len(key)
    return None if writes and not calls <= _HARMLESS else Arithmetic(tuple(key), arrays)


def _is_known(value: Any) -> bool:
    try:
        return value in _FUNCTIONS
    except TypeError:  # it has no hash
        return False


class _Reads(NamedTuple):
    """The free and global names that code reads, and the argument counts of its calls."""

    names: tuple[_Name, ...]
    calls: frozenset[int]


@lru_cache(1024)
def _reads(code: CodeType) -> _Reads | None:
    """Return the free and global names that code reads; None if it does more than arithmetic."""
    if code.co_cellvars or code.co_flags & _ODD:
        return None
    attributes, calls = 0, set[int]()
    for one in instructions(code):
        if one.opname == "BINARY_OP":
            if one.argrepr not in _OPERATORS:
                return None
        elif one.opname not in _PLAIN:
            return None
        attributes += one.opname in ("LOAD_ATTR", "LOAD_METHOD")
        if one.opname == "CALL":
            calls.add(one.arg or 0)
    reads = [(chain.kind, chain.root, chain.attributes) for chain in chains(code, None)]
    if attributes != sum(len(names) for _, _, names in reads):
        return None  # of a local value
    return _Reads(tuple(reads), frozenset(calls))


def _values(fn: FunctionType, names: tuple[_Name, ...]) -> Iterator[Any]:
    """Yield the values of variables and of module attributes; None where they are not defined."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    for kind, root, attributes in names:
        if kind == "around":
            try:
                value = cells[root].cell_contents
            except ValueError:  # it is not bound yet
                value = None
        else:
            value = fn.__globals__.get(root, getattr(builtins, root, None))
        for name in attributes:
            value = vars(value).get(name) if type(value) is ModuleType else None
        yield value


def _defaults(fn: FunctionType) -> Iterator[Any]:
    yield from fn.__defaults__ or ()
    yield from (fn.__kwdefaults__ or {}).values()
