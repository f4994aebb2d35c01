"""A problem as functions of two vectors, the unknowns and the parameters, in any array library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.bench.solvers.problem import SolverProblem
from difflab.graph.function import Function, evaluate
from difflab.graph.ir import Shape, packed_slices

Code = Callable[..., Sequence[Any]]
"""Maps a value per input of the program to a value per output."""


@dataclass(frozen=True)
class Flat:
    """The program of a problem as a function of the vectors x and p."""

    problem: SolverProblem

    @property
    def function(self) -> Function:
        """The program."""
        return self.problem.function

    @cached_property
    def start(self) -> NDArray[np.float64]:
        """The first values of the unknowns."""
        return _packed(self.problem.start.values())

    @cached_property
    def at(self) -> NDArray[np.float64]:
        """The parameters."""
        return _packed(self.problem.at.values())

    @cached_property
    def columns(self) -> dict[str, tuple[int, slice, Shape]]:
        """For each input of the program: 0 for x and 1 for p, its elements there, its shape."""
        found = {}
        for which, values in enumerate((self.problem.start, self.problem.at)):
            shapes = [np.shape(value) for value in values.values()]
            for name, part, shape in zip(values, packed_slices(shapes), shapes, strict=True):
                found[name] = which, part, shape
        return found

    def call(self, code: Code | None = None, xp: Any = np) -> Callable[[Any, Any], Any]:
        """Return ``f(x, p)``, a vector; `code` is the program in the library `xp`."""
        own = code or (lambda *values: evaluate(self.function, list(values)))

        def flat(x: Any, p: Any) -> Any:
            vectors, values = (x, p), []
            for name in self.function.inputs:
                which, part, shape = self.columns[name]
                vector = vectors[which]
                whole = xp.reshape(vector[part], shape) if shape else vector[part.start]
                values.append(whole)
            results = [xp.reshape(one, (-1,)) for one in own(*values)]
            return results[0] if len(results) == 1 else xp.concatenate(results)

        return flat

    def listed(self, key: str, p: Any) -> list[Any]:
        """Return the parameters and numbers that a line lists, as elements of p."""
        return [
            p[self.columns[one][1].start] if isinstance(one, str) else one
            for one in self.problem.named(key)
        ]

    def sides(self, p: Any, xp: Any = np) -> tuple[Any, Any] | None:
        """Return lower and upper bounds of the unknowns, None where there are none."""
        found = []
        for key, missing in (("lower", -np.inf), ("upper", np.inf)):
            listed = self.listed(key, p) or [missing]
            listed = listed if len(listed) == len(self.start) else listed * len(self.start)
            lifted = getattr(xp, "asarray", lambda one: one)
            found.append(xp.stack([lifted(one) for one in listed]))
        none = not self.problem.header.get("lower") and not self.problem.header.get("upper")
        return None if none else (found[0], found[1])


def _packed(values: Any) -> NDArray[np.float64]:
    return np.concatenate([np.ravel(np.asarray(value, dtype=np.float64)) for value in values])
