"""One point of a function of arrays: workspaces, each for one call at a time, and a fast call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from difflab.execute.lower.arrays.source import compiled
from difflab.execute.lower.ops import FLOAT
from difflab.execute.memory_plan import MemoryPlan
from difflab.graph.ir import Shape
from difflab.graph.pytree import Structure, expression

Workspace = tuple[Callable[..., Any], Callable[..., Any]]
"""A runner and code bound to its own memory: ``workspace[0](workspace[1], *inputs)``."""


class PointTarget:
    """Base class of targets that compute a function of arrays at one point.

    Parameters
    ----------
    input_shapes : sequence of tuple
        The shape of each input.
    outputs : int
        The number of outputs.
    """

    def __init__(self, input_shapes: Sequence[Shape], outputs: int) -> None:
        self.input_shapes = input_shapes
        self.outputs = outputs
        self._workspaces: list[Workspace] = []

    @property
    def source(self) -> str:
        """The code of one point."""
        raise NotImplementedError

    def workspace(self) -> Workspace:
        """Allocate memory, and return the code bound to it."""
        raise NotImplementedError

    def memory_plan(self) -> MemoryPlan:
        """Return the memory that a call needs."""
        raise NotImplementedError

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Return the outputs for one float64 value per input, at one point."""
        arguments = [
            value if shape else float(value)
            for value, shape in zip(values, self.input_shapes, strict=True)
        ]
        workspace = self._workspaces.pop() if self._workspaces else self.workspace()
        results = workspace[0](workspace[1], *arguments)
        self._workspaces.append(workspace)
        return list(results)

    def entry(self, structure: Structure | None) -> tuple[str, Callable[..., Any]]:
        """Return source and code of a method for float64 arrays; other calls go to `general`."""
        shapes = self.input_shapes
        names = [f"a{number}" for number in range(len(shapes))]
        checks = [
            f"{name}.__class__ is ndarray and {name}.dtype is float64 and {name}.shape == {shape}"
            if shape
            else f"{name}.__class__ is float"
            for name, shape in zip(names, shapes, strict=True)
        ]
        parameters = "".join(f"{name}=None, " for name in names)
        slash = "/, " if names else ""
        run, scope = self._run(", ".join(names), structure)
        source = "\n".join(
            [
                f"def call(self, {parameters}{slash}*rest, **named):",
                f"    if {' and '.join([*checks, 'not rest and not named'])}:",
                *run,
                f"    return self.general(({''.join(f'{name}, ' for name in names)}*rest,), named)",
            ]
        )
        return source, self._loaded(source, scope)

    def unchecked(self, structure: Structure | None) -> Callable[..., Any]:
        """Return a method for a sequence of what the checks of `entry` accept."""
        run, scope = self._run("*values", structure)
        return self._loaded("\n".join(["def call(self, values):", *run]), scope)

    def _run(
        self, arguments: str, structure: Structure | None
    ) -> tuple[list[str], Mapping[str, Any]]:
        """Return the lines that compute and return the results, and the values that they name."""
        results = [f"r{number}" for number in range(self.outputs)]
        grouped, scope = _grouped(structure, results)
        lines = [
            "        try:",
            "            space = spaces.pop()",
            "        except IndexError:",
            "            space = make()",
            f"        {', '.join(results)}, = space[0](space[1], {arguments})",
            "        spaces.append(space)",
            f"        return {grouped}",
        ]
        return lines, scope

    def _loaded(self, source: str, named: Mapping[str, Any]) -> Callable[..., Any]:
        scope = {
            **named,
            "ndarray": np.ndarray,
            "float64": FLOAT,
            "spaces": self._workspaces,
            "make": self.workspace,
        }
        found: Callable[..., Any] = compiled(source, scope)["call"]
        return found


def _grouped(structure: Structure | None, results: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    """Return the expression that groups the results as a call does, and the values it names."""
    if structure is None:
        return (results[0] if len(results) == 1 else f"({', '.join(results)})"), {}
    found = expression(structure, results)
    return found or (f"self.function.returned(({', '.join(results)},))", {})
