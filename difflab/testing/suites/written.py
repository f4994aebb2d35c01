"""The text of a pytest file that checks the gradient of one Python function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from difflab.graph.ir import Shape

__all__ = ["WrittenTest"]


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
        The parameters to differentiate by, and the shapes of their values.
    positional : sequence of str
        Those that are passed by position.
    points : sequence
        The points as nested lists: of the only parameter, or flattened, one after the other.
    scalar : bool
        Whether the function returns one number.
    """

    module: str
    function: str
    gradient: str
    paired: bool
    parameters: Mapping[str, Shape]
    positional: Sequence[str]
    points: Sequence[Any]
    scalar: bool = True

    @property
    def text(self) -> str:
        """The file."""
        name = f"{self.module}:{self.function}"
        imports = ["import pytest", "", *sorted(f"import {module}" for module in self._modules())]
        if self._packs and (self.gradient or self.paired):
            imports.insert(0, "import numpy as np")
        lines = [
            f'"""Derivatives of {name}, checked at {len(self.points)} points.',
            "",
            "Written by `difflab write-test`.",
            '"""',
            "",
            *imports,
            "",
            "POINTS = [",
            *(f"    {point!r}," for point in self.points),
            "]",
            "",
            "",
            "def value(x):",
            *self._body(f"{self.module}.{self.function}", "[0]" if self.paired else "", ""),
            "",
            "",
            "def gradient(x):",
            *self._gradient(),
            "",
            "",
            "@pytest.mark.gradients(points=POINTS)",
            f"def test_gradient_of_{self.function}(check_gradient, point):",
            "    check_gradient(value, gradient, point)",
        ]
        return "\n".join(lines) + "\n"

    def _modules(self) -> set[str]:
        own = {self.module, *([self.gradient.partition(":")[0]] if self.gradient else [])}
        return own if self.gradient or self.paired else own | {"difflab"}

    @property
    def _packs(self) -> bool:
        return len(self.parameters) > 1

    def _gradient(self) -> list[str]:
        if self.gradient:
            return self._body(self.gradient.replace(":", "."), "", self._joined)
        if self.paired:
            return self._body(f"{self.module}.{self.function}", "[1]", self._joined)
        transform = "grad" if self.scalar else "jacrev"
        return [f"    return difflab.{transform}(value)(x)"]

    @property
    def _joined(self) -> str:
        """How the parts of a gradient become one array; empty for one parameter."""
        if not self._packs:
            return ""
        if self.scalar:
            return "np.concatenate([np.ravel(part) for part in {}])"
        return "np.hstack([np.reshape(part, (len(value(x)), -1)) for part in {}])"

    def _body(self, called: str, entry: str, joined: str) -> list[str]:
        """Return the body of a function of the packed point `x`."""
        arguments, start = [], 0
        for name, shape in self.parameters.items():
            size = prod(shape)
            part = "x"
            if self._packs:
                part = f"x[{start}]" if shape == () else f"x[{start} : {start + size}]"
                part += f".reshape({shape})" if len(shape) > 1 else ""
            arguments.append(part if name in self.positional else f"{name}={part}")
            start += size
        call = f"{called}({', '.join(arguments)}){entry}"
        return [f"    return {joined.format(call) if joined else call}"]
