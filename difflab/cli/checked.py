"""The outcome of ``difflab check``, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from difflab.testing import GradientMismatch
    from difflab.testing.components.message import Component
    from difflab.testing.declared import DeclaredGradient


SCHEMA = "difflab.check/2"


CheckFormat = Literal["text", "json"]
"""The output format of a check."""


@dataclass(frozen=True)
class CheckOutcome:
    """Result of a check.

    Attributes
    ----------
    target, gradient : str
        The names of the user's functions; the gradient's is None if `target` returns both.
    point : mapping of str to array, number or tree of them
        The value of each parameter.
    described : str
        The point in one line.
    rtol, atol : float
        The tolerances beyond the error bars.
    mismatch : GradientMismatch or None
        Why the check failed; None if the gradient is right.
    declared : DeclaredGradient or None
        How it differs from the derivative, if the function declares it.
    """

    target: str
    gradient: str | None
    point: Mapping[str, Any]
    described: str
    rtol: float
    atol: float
    mismatch: GradientMismatch | None
    declared: DeclaredGradient | None = None

    @property
    def size(self) -> int:
        """The number of components of the point."""
        return sum(prod(getattr(value, "shape", ())) for value in self._leaves().values())

    @property
    def message(self) -> str:
        """The result of the check, for the terminal."""
        if self.mismatch is not None:
            return str(self.mismatch)
        if self.declared is not None:
            return str(self.declared)
        noun = "component agrees" if self.size == 1 else "components agree"
        return f"the gradient is right: {self.size} {noun}"

    @property
    def status(self) -> str:
        """The verdict: ``"right"``, ``"declared"``, ``"wrong"``, ``"unjudged"``, ``"impure"``."""
        from difflab.testing.gradient import GradientUnjudged, ImpureFunction

        if self.declared is not None:
            return "declared"

        if self.mismatch is None:
            return "right"
        if isinstance(self.mismatch, ImpureFunction):
            return "impure"
        return "unjudged" if isinstance(self.mismatch, GradientUnjudged) else "wrong"

    def written(self, form: CheckFormat) -> str:
        """Return the outcome in a format."""
        if form == "text":
            return f"{self.target} at {self.described}\n{self.message}\n"
        from difflab.core.strict_json import dumps, strict

        return dumps(strict(self.record())) + "\n"

    def record(self) -> dict[str, Any]:
        """Return the schema ``difflab.check/2``; numbers that are not finite are still floats."""
        found = self.mismatch
        return {
            "schema": SCHEMA,
            "target": self.target,
            "gradient": self.gradient,
            "point": dict(self.point),
            "parameters": list(self._parameters()),
            "tolerance": {"rtol": self.rtol, "atol": self.atol},
            "status": self.status,
            "wrong": _components(found.components if found else ()),
            "unjudged": _components(found.unjudged if found else ()),
            "message": self.message,
        }

    def _leaves(self) -> dict[str, Any]:
        from difflab.testing.trees.arguments import by_path

        return by_path(self.point)

    def _parameters(self) -> Iterator[dict[str, Any]]:
        """Yield where the components of each parameter, or leaf of a tree, begin."""
        first = 0
        for name, value in self._leaves().items():
            shape = getattr(value, "shape", ())
            yield {"name": name, "shape": list(shape), "first": first}
            first += prod(shape)


def _components(found: Sequence[Component]) -> list[dict[str, Any]]:
    return [
        {
            "name": component.name,
            "yours": float(component.yours),
            "numeric": float(component.numeric),
            "error_bar": float(component.bar),
            "left": float(component.left),
            "right": float(component.right),
            "noise": float(component.noise),
        }
        for component in found
    ]
