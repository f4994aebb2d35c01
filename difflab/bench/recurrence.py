"""The iterates of the user's own recurrence, as a family of functions."""

from __future__ import annotations

from difflab.errors import InputError
from difflab.lab.problems import FunctionFamily
from difflab.lab.problems.renaming import names, renamed
from difflab.language import parse

__all__ = ["recurrence"]


def recurrence(text: str) -> FunctionFamily:
    """Return the iterates of ``y = expression``, in which y and other names may occur.

    The k-th member applies the expression k times, first to the input y.

    Raises
    ------
    InputError
        The text is no such definition, or its expression cannot be parsed.

    Examples
    --------
    >>> print(recurrence("y = 4*y*(1 - y)").text(3))
    y_1 = 4*y*(1 - y)
    y_2 = 4*y_1*(1 - y_1)
    4*y_2*(1 - y_2)
    """
    left, equals, step = text.partition("=")
    left, step = left.strip(), step.strip()
    defined = [name for name, start, end in names(left) if end - start == len(left)]
    if not equals or step.startswith("=") or not defined:
        raise InputError(
            "a recurrence is a definition of one name",
            text=text or None,
            hint="--repeat 'y = 4*y*(1 - y)'",
        )
    (name,) = defined
    function = parse(step)
    if name not in function.inputs:
        raise InputError(
            f"the recurrence does not use {name}, so that all its iterates are equal",
            text=text,
            hint=f"write {name} on the right-hand side",
        )
    if function.m != 1:
        raise InputError(f"a step has {function.m} values instead of one", text=text)
    prefix = f"{name}_"
    while any(found.startswith(prefix) for found, _, _ in names(step)):
        prefix += "_"

    def program(depth: int) -> str:
        lines, current = [], name
        for k in range(1, depth):
            lines.append(f"{prefix}{k} = {renamed(step, {name: current})}")
            current = f"{prefix}{k}"
        return "\n".join([*lines, renamed(step, {name: current})])

    return FunctionFamily(
        f"{name} ← {step}", program, lambda _: dict.fromkeys(function.inputs, 0.2), "the user"
    )
