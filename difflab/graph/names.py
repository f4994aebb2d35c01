"""Names of inputs and outputs, and how a call groups the inputs into trees of arguments."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from difflab.core.wording import counted, did_you_mean
from difflab.errors import InputError, PointError
from difflab.graph.pytree import LEAF, Structure, flatten, is_container, leaf_paths

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
        What the program calls its nodes (`difflab.graph.ir.Graph.labels`).
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
        """Reserve and return `stem` with the next `count` unused numbers."""
        unused: list[str] = []
        while len(unused) < count:
            last = self._counts.get(stem, 0)
            self._counts[stem] = behind = last + count - len(unused)
            names = [f"{stem}{number}" for number in range(last + 1, behind + 1)]
            unused += [n for n in names if n not in self._taken and n not in self._reserved]
        self._taken.update(unused)
        return unused


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call, whose leaves one after the other are the inputs.

    Attributes
    ----------
    names : tuple of str
        The name of each argument.
    trees : tuple of Structure
        The tree of each argument.

    Examples
    --------
    >>> params = Arguments(("params", "x"), (flatten({"w": 1.0, "b": 2.0})[1], LEAF))
    >>> params.inputs()
    ['params_b', 'params_w', 'x']
    >>> params.groups()
    [(0, 1), (2,)]
    """

    names: tuple[str, ...]
    trees: tuple[Structure, ...]

    def inputs(self) -> list[str]:
        """Return a name for each leaf: an identifier made of the expression of the leaf."""
        fresh = FreshNames()
        return [
            fresh.fresh(re.sub(r"\W+", "_", f"{name}{path}").rstrip("_"))
            for name, tree in zip(self.names, self.trees, strict=True)
            for path in leaf_paths(tree)
        ]

    def groups(self) -> list[tuple[int, ...]]:
        """Return the positions of each argument's leaves among the inputs."""
        slices, start = [], 0
        for tree in self.trees:
            slices.append(tuple(range(start, start + tree.leaves)))
            start += tree.leaves
        return slices

    def flattened(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], inputs: Sequence[str]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the values of a call by input: those given by position, and by name.

        Values that are no trees, one for each input, are the inputs.

        Raises
        ------
        PointError
            There are too many arguments, or one has another structure.
        """
        named: dict[str, Any] = {}
        for name, value in kwargs.items():
            place = self.names.index(name) if name in self.names else -1
            if place < 0 or self.trees[place] == LEAF:
                named[name] = value
            else:
                leaves = self._leaves(place, value)
                named |= zip((inputs[k] for k in self.groups()[place]), leaves, strict=True)
        if len(args) == len(inputs) and not any(map(is_container, args)):
            return args, named
        if len(args) > len(self.names):
            raise PointError(
                f"the function takes {counted(len(self.names), 'argument')} "
                f"({shortened(self.names)}), but {len(args)} were given"
            )
        leaves = [leaf for place, value in enumerate(args) for leaf in self._leaves(place, value)]
        return leaves, named

    def _leaves(self, place: int, value: Any) -> list[Any]:
        """Return the leaves of an argument; a list of numbers is an array where one is expected."""
        if self.trees[place] == LEAF:
            return [value]
        leaves, tree = flatten(value)
        if tree != self.trees[place]:
            raise PointError(
                f"the argument '{self.names[place]}' has the structure {tree} instead of "
                f"{self.trees[place]}"
            )
        return leaves


def by_input(
    inputs: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of a call by the name of the input.

    Raises
    ------
    PointError
        There are too many values, a name is unknown, or an input has two values.

    Examples
    --------
    >>> by_input(("x", "y"), [1.0], {"y": 2.0})
    {'x': 1.0, 'y': 2.0}
    """
    if len(args) > len(inputs):
        raise PointError(
            f"the function has {len(inputs)} inputs ({shortened(inputs)}), "
            f"but {len(args)} values were given"
        )
    given = dict(zip(inputs, args, strict=False))
    known = frozenset(inputs)
    for name, value in kwargs.items():
        if name not in known:
            raise PointError(
                f"the function has no input '{name}'",
                hint=did_you_mean(name, inputs) or f"its inputs are {shortened(inputs)}",
            )
        if name in given:
            raise PointError(f"the input '{name}' was given twice")
        given[name] = value
    return given
