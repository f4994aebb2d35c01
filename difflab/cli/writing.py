"""``difflab write-test``: a pytest file that checks the gradient of a Python function.

The module that the user names is imported and run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from difflab.cli.check import UserGradient, qualified
from difflab.cli.functions import user_code
from difflab.cli.options import OutputOption
from difflab.cli.output import deliver, say
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.testing.suites.written import WrittenTest


_TRIES = 20  # points drawn for each one that is asked for


def write_test(
    target: str,
    /,
    gradient: str | None = None,
    at: list[str] | None = None,
    points: Annotated[int, typer.Option(min=1, max=1000)] = 3,
    destination: OutputOption = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> int:
    """Write a pytest file that checks a gradient.

    Without --gradient, the function returns the pair (value, gradient), or only its
    value, which difflab then differentiates. The checks are run once before the file
    is written.

    Parameters
    ----------
    target : MODULE:FUNCTION
        The function under test.
    gradient : [MODULE:]FUNCTION
        The gradient, if the function returns only its value.
    at : x1=2,x2=5
        The point: numbers, [1,2,3] or @file.npy, by parameter; @point.json may hold trees.
    points
        The number of points, the first that of --at.
    seed
        Seed for choosing points.

    Examples
    --------
    difflab write-test model:loss --gradient loss_gradient --at "w=[0.5,1]"
    difflab write-test model:loss_and_gradient -o tests/test_loss.py
    """
    subject = _Subject.of(target, gradient, at or [], seed)
    with user_code(target):
        chosen = subject.points(points, seed)
    with user_code(target, subject.pair.described):
        wrong = subject.mismatch(chosen)
    deliver(subject.written(chosen).text, destination)
    if wrong:
        say(f"the test fails at {wrong}")
    return int(bool(wrong))


@dataclass(frozen=True)
class _Subject:
    """The function under test, and where its gradient comes from."""

    target: str
    gradient_name: str
    paired: bool
    pair: UserGradient

    @classmethod
    def of(cls, target: str, gradient: str | None, at: Sequence[str], seed: int) -> _Subject:
        """Import the functions, and call the one under test to inspect its result."""
        pair = UserGradient.of(target, gradient, at, seed)
        if gradient is not None:
            return cls(target, qualified(target, gradient), False, pair)
        with user_code(target):
            result = pair.called(pair.function, *pair.arguments)
        paired = isinstance(result, tuple) and len(result) == 2
        # Any second function makes `value` return what the first does.
        return cls(target, "", paired, pair if paired else replace(pair, slope=pair.function))

    @property
    def scalar(self) -> bool:
        """Whether the value is one number."""
        import numpy as np

        return int(np.size(self.pair.value(*self.pair.arguments))) == 1

    @property
    def gradient(self) -> Callable[..., Any]:
        """The gradient by hand, or that of difflab."""
        if self.gradient_name or self.paired:
            return self.pair.gradient
        import difflab

        transform: Callable[..., Any] = difflab.grad if self.scalar else difflab.jacrev
        count = len(self.pair.point)
        argnums = 0 if count == 1 else tuple(range(count))
        derivative: Callable[..., Any] = transform(self.pair.value, argnums=argnums)
        return derivative

    def points(self, wanted: int, seed: int) -> list[list[Any]]:
        """Return the point and others around it at which the value is finite."""
        import numpy as np

        from difflab.graph.pytree import flatten, unflatten

        draw, first = np.random.default_rng(seed), self.pair.arguments
        leaves, structure = flatten(first)
        points = [first]
        for _ in range(_TRIES * wanted):
            if len(points) == wanted:
                return points
            near = [np.round(x * draw.uniform(0.6, 1.4, np.shape(x)), 3) for x in leaves]
            moved = unflatten(structure, [x if np.ndim(x) else float(x) for x in near])
            with np.errstate(all="ignore"):
                if np.isfinite(np.asarray(self.pair.value(*moved), dtype=float)).all():
                    points.append(moved)
        raise InputError(
            f"the function is finite at {len(points)} of {_TRIES * wanted} points around the first",
            hint="give a point inside its domain with --at",
        )

    def mismatch(self, points: Sequence[list[Any]]) -> str:
        """Return the first point at which the check fails, and why; empty if there is none."""
        from difflab.report.summary import point_text
        from difflab.testing import GradientMismatch, check_gradient
        from difflab.testing.checker.arguments import by_path

        for point in points:
            try:
                value = self.pair.named(self.pair.value)
                check_gradient(value, self.pair.named(self.gradient), *point)
            except GradientMismatch as error:
                where = by_path(dict(zip(self.pair.point, point, strict=True)))
                return f"{point_text(where)}: {error}"
        return ""

    def written(self, points: Sequence[list[Any]]) -> WrittenTest:
        """Return the file."""
        from difflab.testing.suites.written import WrittenTest

        module, _, function = self.target.partition(":")
        return WrittenTest(
            module=module,
            function=function,
            gradient=self.gradient_name,
            paired=self.paired,
            parameters=dict(zip(self.pair.point, self.pair.shapes, strict=True)),
            positional=self.pair.parameters.positional,
            by_position=self.pair.by_position,
            points=points,
            scalar=self.scalar,
        )
