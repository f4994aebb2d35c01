"""A program as NumPy universal functions on numbered values.

The code of a row is derived from its kernel, run once on recording values: the guards of a kernel
at the edge of its domain are kept, and a row needs no second definition. A target implements only
the universal functions, each once: in LLVM IR, or in CUDA C++.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute.lower.record import BOOL, FLOAT, KernelTape, RecordedValue, Unrecordable
from difflab.execute.lower.schedule import ScalarProgram

__all__ = ["ALIASES", "UfuncCode", "UfuncForm", "UfuncStep", "as_ufuncs", "ufunc_form"]

ALIASES = {
    "abs": "absolute",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "invert": "logical_not",
    "mod": "remainder",
    "select_into": "where",
    "true_divide": "divide",
}
"""Names of universal functions that are synonyms."""


class UfuncStep(NamedTuple):
    """One call of a universal function by its name: it computes the value `result`."""

    result: int
    name: str
    args: tuple[int, ...]


@dataclass
class UfuncCode:
    """Operations on values 0, 1, …, of which the first are the inputs.

    Attributes
    ----------
    inputs : int
        The number of inputs.
    operations : list of UfuncStep
        The operations, in order.
    constants : dict of int to float or bool
        The values of the constants.
    truths : set of int
        The values that are truth values.
    outputs : list of int
        The values of all outputs, flattened.
    """

    inputs: int
    operations: list[UfuncStep] = field(default_factory=list)
    constants: dict[int, Any] = field(default_factory=dict)
    truths: set[int] = field(default_factory=set)
    outputs: list[int] = field(default_factory=list)


def as_ufuncs(
    program: ScalarProgram, spelled: Container[str], truths: Collection[int] = ()
) -> UfuncCode:
    """Return the program's operations as universal functions, each computed once.

    Parameters
    ----------
    program : ScalarProgram
        The program.
    spelled : container of str
        The universal functions that the target implements.
    truths : collection of int, optional
        The inputs that are truth values.

    Raises
    ------
    UnsupportedError
        A row's kernel uses a function that the target does not implement.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.execute.lower.schedule import Schedule
    >>> program = ScalarProgram.of(Schedule.of(dl.parse("softplus(x)*y")))
    >>> code = as_ufuncs(program, {"logaddexp", "multiply"})
    >>> [operation.name for operation in code.operations], code.outputs
    (['logaddexp', 'multiply'], [4])
    """
    lowering = _UfuncLowering(program, spelled)
    lowering.code.truths.update(truths)
    for step in program.steps:
        lowering.add(step.node, step.row, step.args)
    values = lowering.values
    lowering.code.outputs += [values[int(c)] for cells in program.outputs for c in cells.ravel()]
    return lowering.code


class UfuncForm(NamedTuple):
    """The calls of a kernel as entries ``(name, args, truth)``, and the value that it returns.

    The arguments are the values 0, 1, …, followed by the results of the entries; a literal is
    a tuple of one.
    """

    entries: tuple[tuple[str, tuple[Any, ...], bool], ...]
    result: Any


class _UfuncLowering:
    """Instantiates the forms of rows."""

    def __init__(self, program: ScalarProgram, spelled: Container[str]) -> None:
        self.spelled = spelled
        self.code = UfuncCode(program.inputs)
        self.next = program.inputs
        self.literals: dict[tuple[type, str], int] = {}
        self.found: dict[Any, int] = {}
        self.forms: dict[Any, UfuncForm] = {}
        self.values: dict[int, int] = {cell: cell for cell in range(program.inputs)}
        for cell, value in program.known.items():
            self.values[cell] = self._literal(value)

    def _literal(self, value: Any) -> int:
        """Return the value of a constant."""
        value = bool(value) if isinstance(value, bool | np.bool_) else float(value)
        key = (type(value), repr(value))
        number = self.literals.get(key)
        if number is None:
            number = self.literals[key] = self._fresh(truth=isinstance(value, bool))
            self.code.constants[number] = value
        return number

    def _fresh(self, *, truth: bool) -> int:
        if truth:
            self.code.truths.add(self.next)
        self.next += 1
        return self.next - 1

    def add(self, cell: int, row: Primitive, args: tuple[int, ...]) -> None:
        """Append the operations that compute the program's `cell`."""
        local = [self.values[arg] for arg in args]
        truths = tuple([value in self.code.truths for value in local])
        form = self.forms.get((row, truths))
        if form is None:
            form = self.forms[row, truths] = ufunc_form(row, truths, self.spelled)
        for name, reads, truth in form.entries:
            operands = tuple([self._operand(local, read) for read in reads])
            key = (name, operands)
            number = self.found.get(key)
            if number is None:
                number = self.found[key] = self._fresh(truth=truth)
                self.code.operations.append(UfuncStep(number, name, operands))
            local.append(number)
        self.values[cell] = self._operand(local, form.result)

    def _operand(self, local: list[int], read: Any) -> int:
        return local[read] if isinstance(read, int) else self._literal(read[0])


def ufunc_form(row: Primitive, truths: tuple[bool, ...], spelled: Container[str]) -> UfuncForm:
    """Return the calls of a row's kernel, found by running it on recording values."""
    tape = KernelTape()
    args = [RecordedValue(tape, BOOL if t else FLOAT, index) for index, t in enumerate(truths)]
    try:
        result = tape.run(row, tuple(args))
    except Unrecordable:
        raise UnsupportedError(f"'{row.name}' has no machine code") from None
    entries = []
    for index, (function, operands, made) in enumerate(tape.entries, len(args)):
        made.number = index
        name = ALIASES.get(function.__name__, function.__name__)
        if name not in spelled or made.dtype not in (FLOAT, BOOL):
            raise UnsupportedError(f"'{row.name}' has no machine code")
        entries.append((name, tuple([_read(arg) for arg in operands]), made.dtype == BOOL))
    return UfuncForm(tuple(entries), _read(result))


def _read(value: Any) -> Any:
    return value.number if isinstance(value, RecordedValue) else (value,)
