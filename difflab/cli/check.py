"""``difflab check``: a gradient that a user wrote, against numeric differentiation.

The module that the user names is imported and run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from difflab.cli.functions import load_function, user_code
from difflab.cli.options import OutputOption, parse_point
from difflab.cli.output import deliver, emit
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.graph.ir import Shape
    from difflab.lab.code import Parameters
    from difflab.testing import GradientMismatch
    from difflab.testing.checker.message import Component
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
        """Return the schema ``difflab.check/2``; non-finite values are still floats."""
        mismatch = self.mismatch
        return {
            "schema": SCHEMA,
            "target": self.target,
            "gradient": self.gradient,
            "point": dict(self.point),
            "parameters": list(self._parameters()),
            "tolerance": {"rtol": self.rtol, "atol": self.atol},
            "status": self.status,
            "wrong": _components(mismatch.components if mismatch else ()),
            "unjudged": _components(mismatch.unjudged if mismatch else ()),
            "message": self.message,
        }

    def _leaves(self) -> dict[str, Any]:
        from difflab.testing.checker.arguments import by_path

        return by_path(self.point)

    def _parameters(self) -> Iterator[dict[str, Any]]:
        """Yield where the components of each parameter, or leaf of a tree, begin."""
        first = 0
        for name, value in self._leaves().items():
            shape = getattr(value, "shape", ())
            yield {"name": name, "shape": list(shape), "first": first}
            first += prod(shape)


def _components(components: Sequence[Component]) -> list[dict[str, Any]]:
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
        for component in components
    ]


def check(
    target: str | None = None,
    /,
    gradient: str | None = None,
    at: list[str] | None = None,
    rtol: Annotated[float, typer.Option(min=0.0)] = 1e-8,
    atol: Annotated[float, typer.Option(min=0.0)] = 0.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    certificate: Path | None = None,
    form: CheckFormat = "text",
    destination: OutputOption = None,
) -> int:
    """Check a gradient that you wrote in Python, or a certificate.

    The module is imported from the current directory. The function is called with
    scalars or arrays under the names in --at and returns the pair (value, gradient):
    one gradient for one parameter, or a sequence of one per parameter, in order.

    Parameters
    ----------
    target : MODULE:FUNCTION
        A function that returns (value, gradient).
    gradient : [MODULE:]FUNCTION
        The gradient, if the function returns only its value.
    at : x1=2,x2=5
        The point: numbers, [1,2,3] or @file.npy, by parameter; @point.json may hold trees.
    rtol
        Allowed in addition to the numeric derivative's error.
    atol
        Allowed absolute error.
    seed
        Seed for choosing a point of scalars.
    certificate : FILE
        Instead, check a certificate of difflab.prove again.
    form
        The output format.

    Examples
    --------
    difflab check model:loss_and_gradient --at "w=[0.5,1]"
    difflab check model:loss --gradient loss_gradient --at a=1,b=2
    difflab check model:loss_and_gradient --format json -o check.json
    difflab check --certificate certificate.json
    """
    if certificate is not None:
        if destination is not None or form != "text":
            raise InputError("--format and -o are for the check of a gradient", hint="omit them")
        return _check_certificate(certificate)
    if target is None:
        raise InputError("there is nothing to check", hint="name a MODULE:FUNCTION")
    pair = UserGradient.of(target, gradient, at or [], seed)
    with user_code(target, pair.described):
        outcome = _checked(target, gradient, pair, rtol, atol)
    deliver(outcome.written(form), destination)
    return 0 if outcome.mismatch is None else 1


def _checked(
    target: str, gradient: str | None, pair: UserGradient, rtol: float, atol: float
) -> CheckOutcome:
    """Compare the gradient with numeric differentiation."""
    from difflab.testing.checker.truth import CheckSettings
    from difflab.testing.gradient import GradientMismatch, judged_gradient

    mismatch, declared = None, None
    settings = CheckSettings(rtol, atol)
    try:
        declared = judged_gradient(
            pair.named(pair.value), pair.named(pair.gradient), *pair.arguments, settings=settings
        )
    except GradientMismatch as error:
        mismatch = error
    return CheckOutcome(
        target, gradient, pair.point, pair.described, rtol, atol, mismatch, declared
    )


def _check_certificate(path: Path) -> int:
    """Compute a certificate's statement again."""
    from difflab.proof.certificate import checked, read_certificate

    certificate = read_certificate(path)
    fault = checked(certificate)
    emit(f"{certificate.text}\n{f'it does not hold: {fault}' if fault else certificate}\n")
    return 1 if fault else 0


def qualified(target: str, name: str) -> str:
    """Return ``module:function`` for the name of a function, by default in the target's module."""
    return name if ":" in name else f"{target.partition(':')[0]}:{name}"


@dataclass(frozen=True)
class UserGradient:
    """The user's value and gradient as functions of the parameters that have a value."""

    function: Callable[..., Any]
    slope: Callable[..., Any] | None
    point: Mapping[str, Any]
    parameters: Parameters

    @classmethod
    def of(cls, target: str, gradient: str | None, at: Sequence[str], seed: int) -> UserGradient:
        """Import the functions, and match a point with their parameters, or choose one."""
        from random import Random

        from difflab.lab.code import Parameters

        point = parse_point(at, trees=True)
        with user_code(target):
            function = load_function(target)
            slope = None if gradient is None else load_function(qualified(target, gradient))
            parameters = Parameters.of(target, function)
            if point is None:
                random = Random(seed)
                point = {name: round(random.uniform(0.5, 1.5), 3) for name in parameters.required}
            return cls(function, slope, parameters.matched(point), parameters)

    @property
    def single(self) -> bool:
        """Whether there is one parameter; the gradient then has its shape."""
        return len(self.point) == 1

    @property
    def by_position(self) -> bool:
        """Whether the functions take the parameters, in order, by position."""
        import inspect

        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for function in (self.function, self.slope or self.function):
            parameters = list(inspect.signature(function).parameters.values())
            named = [each.name for each in parameters if each.kind in kinds]
            if named[: len(self.point)] != list(self.point):
                return False
        return True

    @property
    def shapes(self) -> list[Shape]:
        """The shape of every argument; () for trees."""
        return [getattr(value, "shape", ()) for value in self.point.values()]

    @property
    def described(self) -> str:
        """The point in one line."""
        from difflab.report.summary import point_text
        from difflab.testing.checker.arguments import by_path

        return point_text(by_path(self.point))

    @property
    def arguments(self) -> list[Any]:
        """The values of the parameters: floats, arrays of float64 and trees of them."""
        import numpy as np

        from difflab.graph.pytree import flatten, unflatten

        leaves, structure = flatten(list(self.point.values()))
        values = [
            np.asarray(value, dtype=np.float64) if hasattr(value, "shape") else float(value)
            for value in leaves
        ]
        arguments: list[Any] = unflatten(structure, values)
        return arguments

    def named(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of the arguments, whose parameters have the user's names."""
        from difflab.lab.code import named

        return named(lambda *arguments: function(*arguments), list(self.point), self.function)

    def value(self, *arguments: Any) -> Any:
        """Return the user's value."""
        result = self.called(self.function, *arguments)
        return result if self.slope is not None else self._split(result)[0]

    def gradient(self, *arguments: Any) -> Any:
        """Return the user's gradient: a part for each argument, or one for the only argument."""
        import numpy as np

        if self.slope is not None:
            result = self.called(self.slope, *arguments)
        else:
            result = self._split(self.called(self.function, *arguments))[1]
        if self.single or not hasattr(result, "shape"):
            return result
        # One array for several parameters: the parts one after the other, along its last axis.
        sizes = [prod(shape) for shape in self.shapes]
        if not result.shape or result.shape[-1] != sum(sizes):
            return result
        parts = np.split(result, np.cumsum(sizes)[:-1], axis=-1)
        ahead = result.shape[:-1]
        return [part.reshape(ahead + s) for part, s in zip(parts, self.shapes, strict=True)]

    def called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a function of the user."""
        return self.parameters.caller(function, list(self.point))(*arguments)

    def _split(self, result: Any) -> tuple[Any, Any]:
        if isinstance(result, tuple | list) and len(result) == 2:
            return result[0], result[1]
        raise InputError(
            f"the function returned a {type(result).__name__}, not the pair (value, gradient)",
            hint="name the gradient's function with --gradient",
        )
