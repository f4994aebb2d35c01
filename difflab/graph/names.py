"""Names for display: natural order, names of outputs, fresh names."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import product

from difflab.errors import InputError

SHOWN = 6
"""Most names of a list that are written out."""

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def check_function_name(name: str, reserved: Container[str], language: str) -> None:
    """Raise `InputError` where a printed function of a language cannot have a name.

    Examples
    --------
    >>> check_function_name("int", {"int", "double"}, "C")
    Traceback (most recent call last):
        ...
    difflab.errors.InputError: 'int' cannot be the name of a function in C
    hint: use ASCII letters, digits and underscores, and no word of the language
    """
    if not _IDENTIFIER.fullmatch(name) or name in reserved:
        raise InputError(
            f"{name!r} cannot be the name of a function in {language}",
            hint="use ASCII letters, digits and underscores, and no word of the language",
        )


def natural_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sorting key that puts ``x2`` before ``x10``.

    Examples
    --------
    >>> sorted(["x10", "x2", "a"], key=natural_order)
    ['a', 'x2', 'x10']
    """
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return tuple(
        (0, int(part), part) if part.isascii() and part.isdecimal() else (1, 0, part)
        for part in parts
    )


def shortened(names: Sequence[str]) -> str:
    """Return a list of names that stays readable when it is long.

    Examples
    --------
    >>> shortened([f"x{i}" for i in range(100)])
    'x0, x1, x2, x3, x4, …, x99 (100 in all)'
    """
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[: SHOWN - 1])}, …, {names[-1]} ({len(names)} in all)"


def missing_values(names: Sequence[str]) -> str:
    """Return the message about inputs without a value.

    Examples
    --------
    >>> missing_values(["x"]), missing_values(["x", "y"])
    ('no value is given for the input x', 'no value is given for the inputs x, y')
    """
    return f"no value is given for the input{'s' if len(names) > 1 else ''} {shortened(names)}"


def element_names(names: Iterable[str], shapes: Iterable[tuple[int, ...]]) -> list[str]:
    """Return a name for each element of arrays: a scalar's own, or ``y[1, 2]``.

    Examples
    --------
    >>> element_names(["x", "w"], [(), (2,)])
    ['x', 'w[0]', 'w[1]']
    """
    return [
        f"{name}[{', '.join(map(str, index))}]" if shape else name
        for name, shape in zip(names, shapes, strict=True)
        for index in product(*map(range, shape))
    ]


def output_names(variables: Sequence[str | None], taken: Iterable[str] = ()) -> tuple[str, ...]:
    """Return a name for each output: its variable's, or ``y``, or ``y1``, ``y2``, ….

    A name that the program uses for something else is not used: the sole output beside an input
    or a variable ``y`` is ``f``.

    Parameters
    ----------
    variables : sequence of str or None
        For each output the variable that it is, None where it is an expression.
    taken : iterable of str
        The names of the inputs and of the program's variables.

    Examples
    --------
    >>> output_names([None]), output_names(["a", None]), output_names(["y2", None])
    (('y',), ('a', 'y2'), ('y2', 'y2_'))
    >>> output_names([None], ["x", "y"]), output_names(["x", None], ["x", "y2"])
    (('f',), ('x', 'y2_'))
    """
    counts: dict[str | None, int] = {}
    for name in variables:
        counts[name] = counts.get(name, 0) + 1
    kept = [name if name is not None and counts[name] == 1 else None for name in variables]
    taken = {*taken, *(name for name in kept if name is not None)}
    names = FreshNames(taken)
    sole = "f" if "y" in taken else "y"
    return tuple(
        name or names.fresh(sole if len(kept) == 1 else f"y{position}")
        for position, name in enumerate(kept, 1)
    )


def display_names(labels: Mapping[int, str], taken: Iterable[str] = ()) -> dict[int, str]:
    """Return the program's own names of values, for display.

    A name that is `taken`, by an input or by another value with the same name, is not used: the
    value then gets a generated name, which must be none of these.

    Parameters
    ----------
    labels : mapping of int to str
        The program's names of its nodes (`difflab.graph.ir.Graph.labels`).
    taken : iterable of str
        The names of the inputs, and others that mean something else where this is shown.

    Examples
    --------
    >>> display_names({3: "h", 4: "x", 7: "h"}, taken=["x"])
    {3: 'h'}
    """
    used = set(taken)
    shown: dict[int, str] = {}
    for node, name in sorted(labels.items()):
        if name not in used:
            used.add(name)
            shown[node] = name
    return shown


class FreshNames:
    """Generator of names that differ from all names in use.

    Examples
    --------
    >>> names = FreshNames(["t1"])
    >>> names.fresh("t1"), names.numbered("t"), names.numbered("t")
    ('t1_', 't2', 't3')
    """

    def __init__(
        self, taken: Iterable[str] = (), reserved: Container[str] = (), suffix: str = "_"
    ) -> None:
        self._taken = set(taken)
        self._reserved = reserved
        self._suffix = suffix
        self._counts: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        """Reserve and return `name`, with the suffix appended until it is unused."""
        while name in self._taken or name in self._reserved:
            name += self._suffix
        self._taken.add(name)
        return name

    def numbered(self, stem: str) -> str:
        """Reserve and return `stem` with the next unused number."""
        return self.several(stem, 1)[0]

    def several(self, stem: str, count: int) -> list[str]:
        """Reserve and return `count` names: `stem` with the next unused suffixes."""
        unused: list[str] = []
        while len(unused) < count:
            last = self._counts.get(stem, 0)
            self._counts[stem] = behind = last + count - len(unused)
            names = [f"{stem}{number}" for number in range(last + 1, behind + 1)]
            unused += [n for n in names if n not in self._taken and n not in self._reserved]
        self._taken.update(unused)
        return unused
