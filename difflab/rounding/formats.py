"""Floating-point formats, and the evaluation of a graph with a format for every operation.

An operation is computed in the widest format of its result and its operands, which are cast to it,
and its result is rounded to its own. Numbers of the graph take the format of the operation, as
Python's numbers do in NumPy (NEP 50).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.optional import require
from difflab.errors import InputError
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT, Graph

__all__ = ["FORMATS", "Format", "computing_format", "evaluated", "format_of"]

BRAIN_BITS = 16
"""Of bfloat16, in which nothing is computed: NumPy's functions take float32."""
FORMATS = ("float16", "bfloat16", "float32", "float64")
"""The names of formats, the narrowest first."""


@dataclass(frozen=True)
class Format:
    """A binary floating-point format of NumPy.

    Attributes
    ----------
    name : str
    dtype : dtype
    digits : int
        The significand's bits p, so that the unit roundoff is 2^-p.
    least : int
        The exponent of the smallest subnormal number.
    largest : float
    bits : int
        Of one number in memory.
    """

    name: str
    dtype: np.dtype[Any]
    digits: int
    least: int
    largest: float
    bits: int

    @property
    def roundoff(self) -> float:
        """The unit roundoff: half the distance from 1 to the next number."""
        return 2.0**-self.digits

    def spacing(self, x: Any) -> NDArray[np.float64]:
        """Return the unit in the last place at numbers.

        Examples
        --------
        >>> float(format_of("float64").spacing(1.0)) == 2.0**-52
        True
        >>> float(format_of("float16").spacing(0.0)) == np.spacing(np.float16(0)).item()
        True
        """
        size = np.abs(np.asarray(x, np.float64))
        exponent = np.where(size > 0, np.frexp(size)[1] - self.digits, self.least)
        found: NDArray[np.float64] = np.ldexp(1.0, np.maximum(exponent, self.least))
        return found

    @property
    def width(self) -> tuple[int, int]:
        """Sorts formats, the narrowest first."""
        return self.bits, self.digits

    def cast(self, x: Any) -> Any:
        """Return numbers rounded to the format; truth values are unchanged."""
        x = np.asarray(x)
        if x.dtype == self.dtype or x.dtype == np.bool_:
            return x[()]
        with np.errstate(all="ignore"):
            return x.astype(self.dtype)[()]


def format_of(name: str) -> Format:
    """Return a format by its name.

    Raises
    ------
    InputError
        There is no such format.
    MissingDependencyError
        ``bfloat16`` without the package ``ml_dtypes``.
    """
    if not isinstance(name, str) or name not in FORMATS:
        raise InputError(f"unknown dtype {name!r}", hint=f"one of: {', '.join(FORMATS)}")
    return _format(name)


@cache
def _format(name: str) -> Format:
    if name == "bfloat16":
        dtype = np.dtype(require("ml_dtypes").bfloat16)
        return Format(name, dtype, 8, -133, 2.0**127 * (2 - 2.0**-7), 16)
    dtype = np.dtype(name)
    info = np.finfo(dtype)
    least = int(info.minexp) - info.nmant
    return Format(name, dtype, info.nmant + 1, least, float(info.max), info.bits)


def computing_format(own: Format | None, operands: Sequence[Format | None]) -> Format:
    """Return the format in which an operation computes; None stands for constants."""
    known = [each for each in operands if each is not None]
    if own is None or (operands and not known):
        return format_of("float64")
    widest = max([own, *known], key=lambda each: (each.bits, each.digits))
    brain = any(each.name == "bfloat16" for each in (own, *known))
    return format_of("float32") if brain and widest.bits == BRAIN_BITS else widest


def evaluated(
    graph: Graph, inputs: Mapping[int, Any], formats: Sequence[Format | None]
) -> list[Any]:
    """Return the value of every node, each computed and rounded in its format.

    Parameters
    ----------
    graph : Graph
    inputs : mapping of int to array
        The values of inputs, or of any other nodes, with leading batch axes.
    formats : sequence of Format or None
        One for each node; None for what is computed from constants alone, in float64.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x/3")
    >>> single = [format_of("float32")] * len(f.graph)
    >>> evaluated(f.graph, {f.input_nodes[0]: 1.0}, single)[-1]
    np.float32(0.33333334)
    """
    values: list[Any] = [None] * len(graph)
    weak: list[Format | None] = list(formats)
    for node in graph.constants:
        weak[node] = None
    kernels = [row.computer(np) for row in graph.primitives]
    double = all(form is None or form.name == "float64" for form in formats)
    with np.errstate(all="ignore"):
        for node, (opcode, args) in enumerate(graph.rows()):
            own = formats[node]
            if node in inputs:
                values[node] = inputs[node] if own is None else own.cast(inputs[node])
            elif opcode == CONSTANT:
                values[node] = np.float64(graph.constants[node][0])
            elif opcode != INPUT:
                kernel, params = kernels[opcode - FIRST_ROW], graph.params(node)
                if double:  # all values are float64 already
                    values[node] = kernel(*[values[arg] for arg in args], **params)
                    continue
                computing = computing_format(own, [weak[arg] for arg in args])
                result = kernel(*[computing.cast(values[arg]) for arg in args], **params)
                values[node] = computing.cast(result) if own is None else own.cast(result)
    return values
