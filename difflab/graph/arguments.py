"""How a call groups the inputs of a function into trees of arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from difflab.core.wording import counted, did_you_mean
from difflab.errors import PointError
from difflab.graph.names import FreshNames, shortened
from difflab.graph.pytree import LEAF, Structure, flatten, is_container, leaf_paths


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
            index = self.names.index(name) if name in self.names else -1
            if index < 0 or self.trees[index] == LEAF:
                named[name] = value
            else:
                leaves = self._leaves(index, value)
                named |= zip((inputs[k] for k in self.groups()[index]), leaves, strict=True)
        if len(args) == len(inputs) and not any(map(is_container, args)):
            return args, named
        if len(args) > len(self.names):
            raise PointError(
                f"the function takes {counted(len(self.names), 'argument')} "
                f"({shortened(self.names)}), but {len(args)} were given"
            )
        leaves = [leaf for index, value in enumerate(args) for leaf in self._leaves(index, value)]
        return leaves, named

    def _leaves(self, index: int, value: Any) -> list[Any]:
        """Return the leaves of an argument; a list is one leaf where an array is expected."""
        if self.trees[index] == LEAF:
            return [value]
        leaves, tree = flatten(value)
        if tree != self.trees[index]:
            raise PointError(
                f"the argument '{self.names[index]}' has the structure {tree} instead of "
                f"{self.trees[index]}"
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
    by_name = dict(zip(inputs, args, strict=False))
    known = frozenset(inputs)
    for name, value in kwargs.items():
        if name not in known:
            raise PointError(
                f"the function has no input '{name}'",
                hint=did_you_mean(name, inputs) or f"its inputs are {shortened(inputs)}",
            )
        if name in by_name:
            raise PointError(f"the input '{name}' was given twice")
        by_name[name] = value
    return by_name
