"""Parts of a JSON document with checks: of their types, their sizes and their ranges.

A document may come from an untrusted source, so every part is checked before use; the message of
an error names the path of the invalid part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import InputError

_WORDS = ("nan", "inf", "-inf")
_LARGEST = 10**15  # for every count except the sizes of a tree
_MAX_RANK = 64  # the largest rank of a NumPy array

T = TypeVar("T")


class FaultError(InputError):
    """A part that violates the schema."""


class RecordPart:
    """A part of a document, its path and the version of the schema, with checks of its type."""

    def __init__(self, value: Any, path: str, version: int) -> None:
        self.value = value
        self.path = path
        self.version = version

    def fault(self, wanted: str) -> FaultError:
        """Return the error of an unexpected part."""
        shown = repr(self.value)[:40] if isinstance(self.value, str | float) else _kind(self.value)
        return FaultError(f"{self.path} is {shown}, not {wanted}")

    def __getitem__(self, name: str) -> RecordPart:
        path = f"{self.path}.{name}".lstrip(".")
        if not isinstance(self.value, Mapping):
            raise self.fault("an object")
        if name not in self.value:
            raise FaultError(f"{path} is missing")
        return RecordPart(self.value[name], path, self.version)

    def items(self) -> list[tuple[str, RecordPart]]:
        """Return the parts of an object by their names."""
        if not isinstance(self.value, Mapping):
            raise self.fault("an object")
        return [(str(name), self[name]) for name in self.value]

    def each(self) -> list[RecordPart]:
        """Return the elements of a list."""
        if not isinstance(self.value, list | tuple):
            raise self.fault("a list")
        return [
            RecordPart(value, f"{self.path}[{i}]", self.version)
            for i, value in enumerate(self.value)
        ]

    def text(self) -> str:
        """Return a text."""
        if not isinstance(self.value, str):
            raise self.fault("text")
        return self.value

    def flag(self) -> bool:
        """Return a boolean."""
        if not isinstance(self.value, bool):
            raise self.fault("true or false")
        return self.value

    def one_of(self, allowed: Sequence[str]) -> str:
        """Return a text that is one of those allowed."""
        if not isinstance(self.value, str) or self.value not in allowed:
            raise self.fault(f"one of {', '.join(allowed)}")
        return self.value

    def integer(self, least: int = 0, most: int | None = _LARGEST) -> int:
        """Return an integer in a range."""
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.fault(f"an integer from {least}")
        if most is not None and value > most:
            raise self.fault(f"an integer up to {most:,}")
        return value

    def number(self) -> float:
        """Return a number; those that are not finite are texts."""
        value = self.value
        if isinstance(value, str) and value in _WORDS:
            return float(value)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.fault("a number")
        try:
            return float(value)
        except OverflowError:
            raise self.fault("within the range of float64") from None

    def magnitude(self) -> float:
        """Return an error or a bound: a non-negative number or nan."""
        value = self.number()
        if value < 0:
            raise self.fault("a non-negative number")
        return value

    def seconds(self) -> float:
        """Return a number of seconds."""
        value = self.number()
        if not 0 <= value <= _LARGEST:
            raise self.fault("a number of seconds")
        return value

    def maybe(self, read: Callable[[RecordPart], T]) -> T | None:
        """Return the value by `read`, or None for null."""
        return None if self.value is None else read(self)

    def array(self, rank: int | None = None) -> NDArray[float64]:
        """Return a regular numeric array, checked axis by axis."""
        shape: list[int] = []
        first = self.value
        while isinstance(first, list | tuple) and len(shape) <= _MAX_RANK:
            shape.append(len(first))
            first = first[0] if first else None
        if len(shape) > _MAX_RANK or rank not in (None, len(shape)):
            raise self.fault("an array of numbers" if rank is None else f"one of rank {rank}")
        level = [self]
        for extent in shape:
            inner: list[RecordPart] = []
            for part in level:
                parts = part.each()
                if len(parts) != extent:
                    raise FaultError(f"{part.path} has {len(parts)} elements instead of {extent}")
                inner += parts
            level = inner
        return np.array([part.number() for part in level], dtype=float64).reshape(shape)

    def matrix(self) -> NDArray[float64]:
        """Return an array of two axes; that without elements may have one."""
        return self.array(rank=2) if self.value != [] else np.zeros((0, 0))

    def shape(self) -> tuple[int, ...]:
        """Return the shape of an array."""
        extents = tuple(part.integer() for part in self.each())
        if len(extents) > _MAX_RANK or math.prod(extents) > _LARGEST:
            raise self.fault("the shape of an array")
        return extents


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", int: "an integer", list: "a list"}
    return names.get(type(value), "an object" if isinstance(value, Mapping) else "something else")
