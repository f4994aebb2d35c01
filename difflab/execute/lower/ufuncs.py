"""A program of scalars as NumPy's universal functions, for targets in other languages.

A target implements only the universal functions, each once: in LLVM IR, or in CUDA C++.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import Any

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute.lower.ops import BOOL, FLOAT, NumpyProgram
from difflab.execute.lower.record import StepRecorder, kernel_form
from difflab.execute.lower.schedule import ScalarProgram

__all__ = ["as_ufuncs", "spelled_form"]


def as_ufuncs(
    program: ScalarProgram, spelled: Container[str], truths: Collection[int] = ()
) -> NumpyProgram:
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
    >>> [op.name for op in code.ops], code.outputs
    (['logaddexp', 'multiply'], [4])
    """
    recorder = StepRecorder(program, truths)
    code = recorder.program
    forms: dict[Any, NumpyProgram] = {}
    for cell, row, args, _ in program.steps:
        local = [recorder.read(arg) for arg in args]
        key = row, tuple([arg in code.truths for arg in local])
        if key not in forms:
            forms[key] = spelled_form(*key, spelled)
        recorder.numbers[cell] = recorder.inline(forms[key], local)
    for cells in program.outputs:
        code.outputs += recorder.read_all(cells).ravel().tolist()
    return code


def spelled_form(row: Primitive, truths: Sequence[bool], spelled: Container[str]) -> NumpyProgram:
    """Return the kernel of an elementwise row in universal functions that a target implements.

    Raises
    ------
    UnsupportedError
        It calls others.
    """
    form = kernel_form(row, tuple(["truth" if truth else "number" for truth in truths]))
    if form is None or not all(op.name in spelled and op.dtype in (FLOAT, BOOL) for op in form.ops):
        raise UnsupportedError(f"'{row.name}' has no machine code")
    return form
