"""CasADi's functions, by the instructions of their virtual machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from difflab import arrays
from difflab import primitives as rows
from difflab.core.optional import require
from difflab.errors import InputError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.names import FreshNames
from difflab.graph.node import Node
from difflab.interop.formats.readers import ReaderSource, cleaned_name, verified
from difflab.language.placing import listed

EXTRA = "peers"
"""The extra of difflab that installs CasADi."""
_WITHOUT_CALLS = "difflab reads functions without solvers, integrators and interpolants"


def from_casadi(f: Any, *, verify: bool = True) -> Function:
    """Return the function that a ``casadi.Function`` computes.

    It is read instruction by instruction, as CasADi's virtual machine runs it on scalars; one over
    MX is expanded first. Elements that are structural zeros in CasADi are constants 0.

    Parameters
    ----------
    f : casadi.Function
        Over SX, or over MX of operations that CasADi can expand: no solvers and integrators.
    verify : bool
        Whether to compare values with CasADi's, at a few points.

    Returns
    -------
    Function
        Its inputs and outputs have CasADi's names. A 1 × 1 matrix is a scalar, a column a vector,
        and every other matrix an array of two axes.

    Raises
    ------
    InputError
        `f` is no such function, or has free variables, or an instruction has no counterpart; the
        message names it.
    GraphMismatchError
        What was read has another value than CasADi computes.
    MissingDependencyError
        CasADi is not installed.

    Examples
    --------
    >>> import casadi, difflab as dl  # doctest: +SKIP
    >>> x = casadi.SX.sym("x", 2)  # doctest: +SKIP
    >>> f = from_casadi(casadi.Function("f", [x], [casadi.sin(x[0]) * x[1]]))  # doctest: +SKIP
    >>> dl.gradient(f)([0.0, 3.0]).tolist()  # doctest: +SKIP
    [3.0, 0.0]
    """
    casadi = require("casadi", EXTRA)
    if not isinstance(f, casadi.Function):
        raise InputError(
            f"from_casadi takes a casadi.Function, not {type(f).__name__}",
            hint='an expression is one by casadi.Function("f", [x], [expression])',
        )
    read = _InstructionReader(casadi, _of_scalars(f)).function()

    def call(values: list[Any]) -> list[Any]:
        outputs = f.call([casadi.DM(value) for value in values])
        pairs = zip(outputs, read.output_shapes, strict=True)
        return [value.full().reshape(shape) for value, shape in pairs]

    return verified(read, ReaderSource("CasADi", call)) if verify else read


def _of_scalars(f: Any) -> Any:
    """Return the function over SX."""
    if f.has_free():
        raise InputError(f"the function has the free variables {', '.join(f.get_free())}")
    if f.is_a("SXFunction"):
        return f
    try:
        return f.expand()
    except RuntimeError as error:
        raise InputError(
            f"CasADi cannot expand {f.name()} ({f.class_name()}) to operations on scalars",
            hint=_WITHOUT_CALLS,
        ) from error


class _InstructionReader:
    """The values of CasADi's work vector, as nodes."""

    def __init__(self, casadi: Any, f: Any) -> None:
        self.casadi = casadi
        self.f = f
        self.builder = Builder()
        self.inputs: list[int] = []
        self.elements = [self._input(k, name) for k, name in enumerate(self._names(f.name_in()))]
        self.work: list[Any] = [None] * f.sz_w()
        self.results: list[list[Any]] = [[None] * f.nnz_out(k) for k in range(f.n_out())]

    def function(self) -> Function:
        """Return the function of all instructions."""
        casadi, f, work = self.casadi, self.f, self.work
        rules = _rules()
        for k in range(f.n_instructions()):
            code, to = f.instruction_id(k), f.instruction_output(k)
            operands = f.instruction_input(k)
            if code == casadi.OP_INPUT:
                work[to[0]] = self.elements[operands[0]][operands[1]]
            elif code == casadi.OP_CONST:
                work[to[0]] = self._constant(f.instruction_constant(k))
            elif code == casadi.OP_OUTPUT:
                self.results[to[0]][to[1]] = work[operands[0]]
            elif code in rules:
                work[to[0]] = rules[code](*[work[slot] for slot in operands])
            else:
                raise InputError(
                    f"difflab does not read CasADi's {_name(casadi, code)}", hint=_WITHOUT_CALLS
                )
        outputs = [self._output(k).id for k in range(f.n_out())]
        labels = self._names(f.name_out(), self.builder.names.values())
        return Function.build(self.builder, self.inputs, outputs, labels)

    def _names(self, given: Any, reserved: Any = ()) -> list[str]:
        names = FreshNames(reserved)
        return [names.fresh(cleaned_name(name)) for name in given]

    def _constant(self, value: float) -> Node:
        exact = int(value) if value.is_integer() and abs(value) < 2**53 else value
        return Node(self.builder, self.builder.constant(value if value == 0 else exact))

    def _input(self, index: int, name: str) -> list[Node]:
        """Return the nodes of the elements that CasADi stores, column by column."""
        sparsity = self.f.sparsity_in(index)
        shape = _shape(sparsity)
        self.inputs.append(self.builder.input(name, shape))
        whole = Node(self.builder, self.inputs[-1])
        if not shape:
            return [whole] * sparsity.nnz()
        return [whole[cell[: len(shape)]] for cell in _cells(sparsity)]

    def _output(self, index: int) -> Node:
        sparsity = self.f.sparsity_out(index)
        shape = _shape(sparsity)
        zero = self._constant(0.0)
        if not shape:
            return self.results[index][0] if sparsity.nnz() else zero
        if 0 in shape:
            raise InputError(f"the output {self.f.name_out(index)} has no elements")
        _, columns = sparsity.shape
        listing = [zero] * (sparsity.shape[0] * columns)
        for (row, column), value in zip(_cells(sparsity), self.results[index], strict=True):
            listing[row * columns + column] = value
        output: Node = arrays.reshape(listed(listing), shape)
        return output


def _shape(sparsity: Any) -> tuple[int, ...]:
    count, columns = sparsity.shape
    if columns == 1:
        return () if count == 1 else (count,)
    return count, columns


def _cells(sparsity: Any) -> list[tuple[int, int]]:
    """Return the row and the column of each stored element."""
    return list(zip(sparsity.row(), sparsity.get_col(), strict=True))


def _name(casadi: Any, code: int) -> str:
    names = (name for name in dir(casadi) if name.startswith("OP_"))
    return next((name for name in names if getattr(casadi, name) == code), f"instruction {code}")


def _same(x: Node) -> Node:
    return x


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "ADD": rows.add,
    "AND": rows.logical_and,
    "ASSIGN": _same,
    "CONSTPOW": rows.power,
    "COPYSIGN": np.copysign,
    "DIV": rows.divide,
    "EQ": rows.equal,
    "FABS": rows.absolute,
    "FMAX": rows.maximum,
    "FMIN": rows.minimum,
    "FMOD": np.fmod,
    "IF_ELSE_ZERO": lambda holds, x: rows.where(holds, x, 0),
    "INV": lambda x: 1 / x,
    "LE": rows.less_equal,
    "LIFT": lambda x, _: x,
    "LT": rows.less,
    "MUL": rows.multiply,
    "NE": rows.not_equal,
    "NEG": rows.negative,
    "NOT": rows.logical_not,
    "OR": rows.logical_or,
    "POW": rows.power,
    "REMAINDER": lambda x, y: x - y * np.round(x / y),
    "SQ": lambda x: x * x,
    "SUB": rows.subtract,
    "TWICE": lambda x: 2 * x,
}
"""CasADi's operations on scalars that are not a row of the table under its name."""


@cache
def _rules() -> Mapping[int, Callable[..., Any]]:
    """Return the operations by CasADi's opcodes."""
    casadi = require("casadi", EXTRA)
    named: dict[str, Callable[..., Any]] = {
        row.name.upper(): row for row in rows.TABLE.values() if row.shape is None
    }
    return {
        getattr(casadi, f"OP_{name}"): compute
        for name, compute in {**named, **_OPERATIONS}.items()
        if hasattr(casadi, f"OP_{name}")
    }
