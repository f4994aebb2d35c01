"""``difflab check``: a gradient that a user wrote, against numeric differentiation.

The module that the user names is imported and run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from difflab.cli.checked import CheckFormat, CheckOutcome
from difflab.cli.functions import load_function, user_code
from difflab.cli.options import OutputOption, parse_point
from difflab.cli.output import deliver, emit
from difflab.errors import InputError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from difflab.graph.ir import Shape

__all__ = ["EXAMPLES", "GradientOption", "PackedGradient", "PointOption", "check"]

EXAMPLES = """\b
difflab check model:loss_and_gradient --at "w=[0.5,1]"
difflab check model:loss --gradient loss_gradient --at a=1,b=2
difflab check model:loss_and_gradient --format json -o check.json
difflab check --certificate certificate.json
"""

GradientOption = Annotated[
    str | None,
    typer.Option(
        metavar="[MODULE:]FUNCTION",
        help="The gradient, if the function returns only its value.",
    ),
]
PointOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="x1=2,x2=5", help="The point: numbers, [1,2,3] or @file.npy, by parameter."
    ),
]


def check(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="MODULE:FUNCTION", help="A function that returns (value, gradient)."
        ),
    ] = None,
    gradient: GradientOption = None,
    at: PointOption = None,
    rtol: Annotated[
        float, typer.Option(min=0.0, help="Allowed in addition to the numeric derivative's error.")
    ] = 1e-8,
    atol: Annotated[float, typer.Option(min=0.0, help="Allowed absolute error.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed for choosing a point of scalars.")] = 0,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead, check a certificate of difflab.prove again."),
    ] = None,
    form: Annotated[
        CheckFormat, typer.Option("--format", help="The output format.")
    ] = CheckFormat.TEXT,
    destination: OutputOption = None,
) -> int:
    """Check a gradient that you wrote in Python, or a certificate.

    The module is imported from the current directory. The function is called with
    scalars or arrays under the names in --at and returns the pair (value, gradient):
    one gradient for one parameter, or a sequence of one per parameter, in order.
    """
    if certificate is not None:
        if destination is not None or form is not CheckFormat.TEXT:
            raise InputError("--format and -o are for the check of a gradient", hint="omit them")
        return _check_certificate(certificate)
    if target is None:
        raise InputError("there is nothing to check", hint="name a MODULE:FUNCTION")
    point = parse_point(at or [])
    with user_code(target):
        function = load_function(target)
        module = target.partition(":")[0]
        slope = None
        if gradient is not None:
            slope = load_function(gradient if ":" in gradient else f"{module}:{gradient}")
        pair = PackedGradient.of(target, function, slope, point, seed)
    with user_code(target, pair.described):
        outcome = _checked(target, gradient, pair, rtol, atol)
    deliver(outcome.written(form), destination)
    return 0 if outcome.mismatch is None else 1


def _checked(
    target: str, gradient: str | None, pair: PackedGradient, rtol: float, atol: float
) -> CheckOutcome:
    """Compare the gradient with numeric differentiation."""
    from difflab.testing.gradient import GradientMismatch, judged_gradient

    mismatch, declared = None, None
    try:
        declared = judged_gradient(pair.value, pair.gradient, pair.packed(), rtol=rtol, atol=atol)
    except GradientMismatch as found:
        mismatch = found
    return CheckOutcome(
        target, gradient, pair.point, pair.described, pair.legend, rtol, atol, mismatch, declared
    )


def _check_certificate(path: Path) -> int:
    """Compute a certificate's statement again."""
    from difflab.proof.certificate import checked, read_certificate

    found = read_certificate(path)
    fault = checked(found)
    emit(f"{found.text}\n{f'it does not hold: {fault}' if fault else found}\n")
    return 1 if fault else 0


@dataclass(frozen=True)
class PackedGradient:
    """The user's value and gradient as functions of one packed point."""

    function: Callable[..., Any]
    slope: Callable[..., Any] | None
    point: Mapping[str, Any]
    positional: Sequence[str]

    @classmethod
    def of(
        cls,
        target: str,
        function: Callable[..., Any],
        slope: Callable[..., Any] | None,
        point: Mapping[str, Any] | None,
        seed: int,
    ) -> PackedGradient:
        """Match the point with the function's parameters; choose a point if there is none."""
        from random import Random

        from difflab.lab.code import Parameters

        parameters = Parameters.of(target, function)
        if point is None:
            random = Random(seed)
            point = {name: round(random.uniform(0.5, 1.5), 3) for name in parameters.required}
        return cls(function, slope, parameters.matched(point), parameters.positional)

    @property
    def single(self) -> bool:
        """Whether there is one parameter; the gradient then has its shape."""
        return len(self.point) == 1

    @property
    def shapes(self) -> list[Shape]:
        """The shape of every argument."""
        return [getattr(value, "shape", ()) for value in self.point.values()]

    @property
    def described(self) -> str:
        """The point in one line."""
        from difflab.report.heading import point_text

        return point_text(self.point)

    @property
    def legend(self) -> str:
        """Which parameter each component of the packed point belongs to."""
        if self.single:
            return ""
        start, parts = 0, []
        for name, shape in zip(self.point, self.shapes, strict=True):
            size = prod(shape)
            span = f"x[{start}]" if size == 1 else f"x[{start}] … x[{start + size - 1}]"
            parts.append(f"{span} is {name}")
            start += size
        return f"where {', '.join(parts)}"

    def packed(self) -> NDArray[float64]:
        """Return the point as one array: flattened, unless there is only one parameter."""
        import numpy as np

        values = [np.asarray(value, dtype=np.float64) for value in self.point.values()]
        return values[0] if self.single else np.concatenate([value.ravel() for value in values])

    def value(self, x: Any) -> Any:
        """Return the user's value at a packed point."""
        result = self.called(self.function, x)
        return result if self.slope is not None else self._split(result)[0]

    def gradient(self, x: Any) -> Any:
        """Return the user's gradient at a packed point, flattened as the point is."""
        import numpy as np

        if self.slope is not None:
            result = self.called(self.slope, x)
        else:
            result = self._split(self.called(self.function, x))[1]
        if self.single or not isinstance(result, tuple | list):
            return result
        m = np.size(self.value(x))
        if len(result) != len(self.shapes):
            raise InputError(
                f"the gradient has {len(result)} parts for {len(self.shapes)} parameters"
            )
        parts = [np.reshape(np.asarray(part, dtype=np.float64), (m, -1)) for part in result]
        return np.hstack(parts)

    def called(self, function: Callable[..., Any], x: Any) -> Any:
        """Return what a function of the user returns at a packed point."""
        if self.single:
            parts = [x]
        else:
            parts, start = [], 0
            for shape in self.shapes:
                size = prod(shape)
                parts.append(x[start] if shape == () else x[start : start + size].reshape(shape))
                start += size
        named = dict(zip(self.point, parts, strict=True))
        positional = [named.pop(name) for name in self.positional if name in named]
        return function(*positional, **named)

    def _split(self, result: Any) -> tuple[Any, Any]:
        if isinstance(result, tuple | list) and len(result) == 2:
            return result[0], result[1]
        raise InputError(
            f"the function returned a {type(result).__name__}, not the pair (value, gradient)",
            hint="name the gradient's function with --gradient",
        )
