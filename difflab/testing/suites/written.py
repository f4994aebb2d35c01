"""The text of a pytest file that checks the gradient of one Python function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.graph.ir import Shape
from difflab.graph.pytree import flatten, unflatten


@dataclass(frozen=True)
class WrittenTest:
    """A test file.

    Attributes
    ----------
    module, function : str
        The function under test.
    gradient : str
        The function that returns its gradient, ``module:function``; empty if `paired`, or if
        difflab differentiates the function.
    paired : bool
        Whether the function returns value and gradient.
    parameters : mapping of str to tuple of int
        The parameters to differentiate by, and the shapes of their values, () for trees.
    positional : sequence of str
        Those that can only be passed by position.
    by_position : bool
        Whether the parameters, in order, can be passed by position.
    points : sequence of sequence
        The points: for each, the values of the parameters.
    scalar : bool
        Whether the function returns one number.
    """

    module: str
    function: str
    gradient: str
    paired: bool
    parameters: Mapping[str, Shape]
    positional: Sequence[str]
    by_position: bool
    points: Sequence[Any]
    scalar: bool = True

    @property
    def text(self) -> str:
        """The file."""
        name = f"{self.module}:{self.function}"
        names = ", ".join(self.parameters)
        imports = ["import pytest", "", *sorted(f"import {module}" for module in self._modules())]
        points = [self._point(point) for point in self.points]
        if any(self.parameters.values()) or any("np.array(" in point for point in points):
            imports.insert(0, "import numpy as np")
        functions: list[str] = []
        value, gradient = self._value(functions), self._gradient(functions)
        checked = ", ".join(part for part in (value, gradient, self._passed()) if part)
        lines = [
            f'"""Derivatives of {name}, checked at {len(self.points)} points.',
            "",
            "Written by `difflab write-test`.",
            '"""',
            "",
            *imports,
            "",
            "POINTS = [",
            *(f"    {point}," for point in points),
            "]",
            "",
            "",
            *functions,
            f'@pytest.mark.parametrize("{names}", POINTS)',
            f"def test_gradient_of_{self.function}(check_gradient, {names}):",
            f"    check_gradient({checked})",
        ]
        return "\n".join(lines) + "\n"

    def _modules(self) -> set[str]:
        own = {self.module, *([self.gradient.partition(":")[0]] if self.gradient else [])}
        return own if self.gradient or self.paired else own | {"difflab"}

    def _point(self, point: Sequence[Any]) -> str:
        """Return one case of the parametrization."""
        literals = [
            repr(value.tolist() if isinstance(value, np.ndarray) else _literals(value))
            for value in point
        ]
        return literals[0] if len(point) == 1 else f"({', '.join(literals)})"

    def _passed(self) -> str:
        """Return the arguments of the check; lists of scalars become arrays, trees have arrays."""
        return ", ".join(
            f"np.array({name}, dtype=float)" if shape else name
            for name, shape in self.parameters.items()
        )

    def _value(self, functions: list[str]) -> str:
        """Return the function under test; one that calls it is appended where that is needed."""
        called = f"{self.module}.{self.function}"
        if self.by_position and not self.paired:
            return called
        functions += self._defined("value", called, "[0]" if self.paired else "")
        return "value"

    def _gradient(self, functions: list[str]) -> str:
        """Return the gradient, as for the value."""
        if self.gradient:
            called = self.gradient.replace(":", ".")
            if self.by_position:
                return called
            functions += self._defined("gradient", called, "")
            return "gradient"
        if self.paired:
            functions += self._defined("gradient", f"{self.module}.{self.function}", "[1]")
            return "gradient"
        value = f"{self.module}.{self.function}" if self.by_position else "value"
        count = len(self.parameters)
        argnums = f", argnums={tuple(range(count))}" if count > 1 else ""
        return f"difflab.{'grad' if self.scalar else 'jacrev'}({value}{argnums})"

    def _defined(self, name: str, called: str, entry: str) -> list[str]:
        """Return a function that calls the user's."""
        arguments = ", ".join(
            each if each in self.positional or self.by_position else f"{each}={each}"
            for each in self.parameters
        )
        return [
            f"def {name}({', '.join(self.parameters)}):",
            f"    return {called}({arguments}){entry}",
            "",
            "",
        ]


class _Literal:
    """An array whose representation is the expression that makes it."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __repr__(self) -> str:
        return f"np.array({self.array.tolist()})"


def _literals(tree: Any) -> Any:
    """Return a tree with the arrays as literals.

    Examples
    --------
    >>> _literals({"b": 1.0, "w": np.ones(2)})
    {'b': 1.0, 'w': np.array([1.0, 1.0])}
    """
    leaves, structure = flatten(tree)
    read = [_Literal(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    return unflatten(structure, read)
