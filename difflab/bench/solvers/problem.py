r"""Problems whose solution is differentiated, and the types of their judges and ways.

The file of a problem is a program of the language with comments before it::

    # name: two roots that nearly coincide
    # kind: root
    # about: the Jacobian at the root is 2e-3, so the derivative is 500
    # start: x = 2
    # at: p = 1e-6
    (x - 1)^2 - p

``start`` names the unknowns and their first values, and ``at`` the parameters by which the solution
is differentiated. What the program means depends on the kind:

- ``root``: as many residuals as unknowns;
- ``fixed-point``: the next value of the only unknown;
- ``linear``: residuals that are linear in the unknowns;
- ``minimum``: what is minimised; ``lower: l, 0`` and ``upper: inf, u`` list the bounds of the
  unknowns, parameters or numbers;
- ``integral``: the integrand, of the only unknown; ``between: a, b`` names its bounds, parameters
  or numbers, and ``breaks`` where its derivative jumps;
- ``ode``: the right sides, of the unknowns and the time `t`; ``between`` names the first and the
  last time, and ``breaks`` the times at which they have a kink.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.graph.function import Function, evaluate
from difflab.graph.ir import Shape, packed_slices
from difflab.lab.problems.file import Problem, assignments, read_header

CUBE_ROOT = float(np.finfo(np.float64).eps) ** (1 / 3)
"""The relative step of central differences of a function that is exact but for rounding."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SolverProblem(Problem):
    """A problem whose solution is differentiated."""

    @cached_property
    def at(self) -> dict[str, Any]:
        """The parameters: scalars and arrays, in the order of the columns of the derivative."""
        pairs = assignments(self.header["at"], self)
        return {
            name: value if isinstance(value, float) else np.array(value, dtype=np.float64)
            for name, value in pairs
        }

    @property
    def about(self) -> str:
        """The difficulty of the problem."""
        return self.header.get("about", "")

    @property
    def parameters(self) -> int:
        """The number of parameters, each element of an array counted."""
        return sum(np.size(value) for value in self.at.values())

    def named(self, key: str) -> list[Any]:
        """Return the parameters or constants that a line lists, as ``between: 0, b``."""
        parts = [part.strip() for part in self.header.get(key, "").split(",")]
        return [part if part in self.at else float(part) for part in parts if part]


@dataclass(frozen=True)
class SolverTruth:
    """The derivative of a solution by the parameters.

    Attributes
    ----------
    value : array of shape (m,)
        The solution, rounded.
    jacobian : array of shape (m, n)
        Its derivative, rounded.
    bound : float
        The largest relative error of a row of the derivative, before rounding.
    how : str
        How it was found, and whether it is proved.
    """

    value: Array
    jacobian: Array
    bound: float
    how: str


@dataclass(frozen=True)
class Answer:
    """The result of one way of differentiating.

    Attributes
    ----------
    jacobian : array of shape (m, n)
        The derivative of the solution.
    steps : int or None
        How many steps the solver took; for differences, how many solutions were computed.
    """

    jacobian: Any
    steps: int | None = None


def differences(end: Callable[[Any], Any], at: Any, steps: Any) -> Answer:
    """Return central differences of a solution, with a step for each parameter.

    Examples
    --------
    >>> differences(lambda p: p**2, np.array([1.0, 2.0]), np.array([0.5, 0.25])).jacobian.tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    columns = [
        (end(at + side) - end(at - side)) / (2 * step)
        for step, side in zip(steps, np.diag(steps), strict=True)
    ]
    return Answer(np.stack(columns, axis=1), 2 * len(columns))


Judge = Callable[[SolverProblem], SolverTruth]
"""Returns the true derivative of a solution."""

Prepared = Callable[[], Answer]
"""Differentiates once more, with what was compiled for the problem."""


@dataclass(frozen=True)
class SolverWay:
    """A way of differentiating a solution.

    Attributes
    ----------
    name : str
        As the table names it: ``implicit``, ``jax custom_root``.
    kinds : frozenset of str
        The kinds of problems that it can differentiate.
    prepare : callable
        ``prepare(problem, tolerance)`` builds or compiles everything that is reused, and returns
        a function that differentiates. Either raises an exception where it refuses.
    package : str
        The module that it needs, beside difflab.
    uses : tuple of str
        The distributions on which its results depend.
    """

    name: str
    kinds: frozenset[str]
    prepare: Callable[[SolverProblem, float], Prepared]
    package: str = ""
    uses: tuple[str, ...] = ()

    def differentiate(self, problem: SolverProblem, tolerance: float) -> Answer:
        """Return the derivative of the solution of a problem."""
        return self.prepare(problem, tolerance)()


_TRUTHS = "difflab.bench.solvers.truths"
JUDGES: Mapping[str, str] = {
    **dict.fromkeys(("root", "fixed-point", "linear", "minimum"), f"{_TRUTHS}:of_equations"),
    "integral": f"{_TRUTHS}:of_integral",
    "ode": "difflab.bench.solvers.odes:judge",
}
"""The function of each kind that returns the truth of a problem."""

WAYS: tuple[str, ...] = ("difflab.bench.solvers.ways", "difflab.bench.solvers.odes")
"""The modules whose ``WAYS`` are the ways of differentiating."""


@cache
def problems() -> tuple[SolverProblem, ...]:
    """Return the problems, in the order of their kinds and names.

    Examples
    --------
    >>> {problem.kind for problem in problems()} >= {"root", "minimum", "integral"}
    True
    """
    folder = Path(__file__).parent / "problems"
    paths = sorted(folder.glob("*.txt"))
    return tuple([SolverProblem(path.stem, path, read_header(path)) for path in paths])


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
    def start(self) -> Array:
        """The first values of the unknowns."""
        return _packed(self.problem.start.values())

    @cached_property
    def at(self) -> Array:
        """The parameters."""
        return _packed(self.problem.at.values())

    @cached_property
    def columns(self) -> dict[str, tuple[int, slice, Shape]]:
        """For each input of the program: 0 for x and 1 for p, its elements there, its shape."""
        columns = {}
        for which, values in enumerate((self.problem.start, self.problem.at)):
            shapes = [np.shape(value) for value in values.values()]
            for name, part, shape in zip(values, packed_slices(shapes), shapes, strict=True):
                columns[name] = which, part, shape
        return columns

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
        """Return the parameters and constants that a line lists, as elements of p."""
        return [
            p[self.columns[one][1].start] if isinstance(one, str) else one
            for one in self.problem.named(key)
        ]

    def sides(self, p: Any, xp: Any = np) -> tuple[Any, Any] | None:
        """Return lower and upper bounds of the unknowns, None where there are none."""
        bounds = []
        for key, missing in (("lower", -np.inf), ("upper", np.inf)):
            listed = self.listed(key, p) or [missing]
            listed = listed if len(listed) == len(self.start) else listed * len(self.start)
            lifted = getattr(xp, "asarray", lambda one: one)
            bounds.append(xp.stack([lifted(one) for one in listed]))
        none = not self.problem.header.get("lower") and not self.problem.header.get("upper")
        return None if none else (bounds[0], bounds[1])


def _packed(values: Any) -> Array:
    return np.concatenate([np.ravel(np.asarray(value, dtype=np.float64)) for value in values])
