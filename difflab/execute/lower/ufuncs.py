"""A program of scalars as NumPy's universal functions, for targets in other languages.

A target implements only the universal functions, each once: in LLVM IR, or in CUDA C++.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from typing import Any

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute.lower.ops import BOOL, FLOAT, NumpyProgram
from difflab.execute.lower.record import StepRecorder, kernel_form
from difflab.execute.lower.schedule import ScalarProgram
from difflab.primitives import as_number

Forms = Callable[[Primitive, tuple[str, ...]], NumpyProgram | None]


def as_ufuncs(
    program: ScalarProgram,
    spelled: Container[str],
    truths: Collection[int] = (),
    forms: Forms = kernel_form,
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
    forms : callable
        What gives the universal functions of a row: `kernel_form`, or `expression_form`.

    Raises
    ------
    UnsupportedError
        A row's kernel uses a function that the target does not implement.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.execute.lower.schedule import Schedule
    >>> program = ScalarProgram.of(dl.parse("softplus(x)*y"))
    >>> code = as_ufuncs(program, {"logaddexp", "multiply"})
    >>> [op.name for op in code.ops], code.outputs
    (['logaddexp', 'multiply'], [4])
    """
    recorder = StepRecorder(program, truths)
    code = recorder.program
    found: dict[Any, NumpyProgram | None] = {}
    for cell, row, args, _ in program.steps:
        local = [recorder.read(arg) for arg in args]
        key = row, tuple([arg in code.truths for arg in local])
        if key not in found:
            found[key] = _form(row, _kinds(key[1]), spelled, forms)
        form = found[key]
        if form is None:
            form = spelled_form(row, [recorder.kind_of(arg) for arg in local], spelled, forms)
        recorder.numbers[cell] = recorder.inline(form, local)
    for cells in program.outputs:
        code.outputs += recorder.read_all(cells).ravel().tolist()
    return code


def always_spelled(
    program: ScalarProgram, spelled: Container[str], forms: Forms = kernel_form
) -> bool:
    """Return whether each row has a form whatever its arguments are: `as_ufuncs` cannot raise.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.execute.lower.schedule import Schedule
    >>> program = ScalarProgram.of(dl.parse("softplus(x)*y"))
    >>> always_spelled(program, {"logaddexp", "multiply"}), always_spelled(program, {"multiply"})
    (True, False)
    """
    rows = {row: len(args) for _, row, args, _ in program.steps}
    return all(
        _form(row, _kinds([place in row.truths for place in range(arity)]), spelled, forms)
        for row, arity in rows.items()
        if row is not as_number
    )


def spelled_form(
    row: Primitive, kinds: Sequence[str], spelled: Container[str], forms: Forms = kernel_form
) -> NumpyProgram:
    """Return the kernel of an elementwise row in universal functions that a target implements.

    It is the same for all numbers if it can be; a kernel that looks at its constants, such as the
    orders of a remainder, has a form for each of them.

    Parameters
    ----------
    row : Primitive
        The row.
    kinds : sequence of str
        What each argument is, as in `kernel_form`.
    spelled : container of str
        The universal functions that the target implements.
    forms : callable
        What gives them.

    Raises
    ------
    UnsupportedError
        It calls others.

    Examples
    --------
    >>> from difflab.primitives import exp_remainder
    >>> known = {"exp", "multiply", "add", "subtract", "divide", "negative", "where", "absolute"}
    >>> known |= {"less", "greater", "equal", "minimum", "maximum", "isfinite", "power"}
    >>> len(spelled_form(exp_remainder, ("1.0", "0.0", "number"), known).ops) > 100
    True
    >>> spelled_form(exp_remainder, ("number", "0.0", "number"), known)
    Traceback (most recent call last):
    difflab.errors.UnsupportedError: 'exp_remainder' has no machine code
    """
    general = _kinds([kind in ("truth", "True", "False") for kind in kinds])
    form = _form(row, general, spelled, forms) or _form(row, tuple(kinds), spelled, forms)
    if form is None:
        raise UnsupportedError(f"'{row.name}' has no machine code")
    return form


def _kinds(truths: Sequence[bool]) -> tuple[str, ...]:
    return tuple(["truth" if truth else "number" for truth in truths])


def _form(
    row: Primitive, kinds: tuple[str, ...], spelled: Container[str], forms: Forms
) -> NumpyProgram | None:
    form = forms(row, kinds)
    if form is None or not all(op.name in spelled and op.dtype in (FLOAT, BOOL) for op in form.ops):
        return None
    return form
