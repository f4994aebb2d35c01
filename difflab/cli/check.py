"""``difflab check``: a gradient that a user wrote, against numeric differentiation.

The module that the user names is imported and run.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from math import prod
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

from difflab.cli.options import one_of, parse_point
from difflab.cli.output import emit
from difflab.errors import InputError, PointError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from difflab.graph.ir import Shape

__all__ = ["EXAMPLES", "check"]

EXAMPLES = """\b
difflab check model:loss_and_gradient --at "w=[0.5,1]"
difflab check model:loss --gradient loss_gradient --at a=1,b=2
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
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION", help="A function that returns (value, gradient)."
        ),
    ],
    gradient: GradientOption = None,
    at: PointOption = None,
    rtol: Annotated[
        float, typer.Option(min=0.0, help="Allowed in addition to the numeric derivative's error.")
    ] = 1e-8,
    atol: Annotated[float, typer.Option(min=0.0, help="Allowed absolute error.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed for choosing a point of scalars.")] = 0,
) -> int:
    """Check a gradient that you wrote in Python.

    The module is imported from the current directory. The function is called with
    scalars or arrays under the names in --at and returns the pair (value, gradient):
    one gradient for one parameter, or a sequence of one per parameter, in order.
    """
    from difflab.testing import GradientMismatch, check_gradient

    point = parse_point(at or [])
    with _user_code(target):
        function = _function(target)
        module = target.partition(":")[0]
        slope = None
        if gradient is not None:
            slope = _function(gradient if ":" in gradient else f"{module}:{gradient}")
        pair = _PackedGradient.of(target, function, slope, point, seed)
    wrong = ""
    with _user_code(target, pair.described):
        try:
            check_gradient(pair.value, pair.gradient, pair.packed(), rtol=rtol, atol=atol)
        except GradientMismatch as mismatch:
            wrong = f"{mismatch}\n{pair.legend}".rstrip()
    size = pair.packed().size
    noun = "component agrees" if size == 1 else "components agree"
    emit(f"{target} at {pair.described}\n{wrong or f'the gradient is right: {size} {noun}'}\n")
    return 1 if wrong else 0


@contextmanager
def _user_code(target: str, point: str = "") -> Iterator[None]:
    """Send the user's prints to standard error; turn its exceptions into `InputError`."""
    with redirect_stdout(sys.stderr):
        try:
            yield
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            frame = _last_frame(error)
            if frame is None:
                raise
            where = f" at {point}" if point else ""
            raise InputError(
                f"{target} raised {type(error).__name__}{where}: {error}", hint=f"in {frame}"
            ) from error


def _last_frame(error: BaseException) -> str | None:
    """Return the line of the user's code that raised, or None if difflab's own code did."""
    home = str(Path.cwd())
    package = str(Path(__file__).parents[1])
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        if frame.filename.startswith(package):
            continue
        if frame.filename.startswith(home):
            return f"{Path(frame.filename).name}, line {frame.lineno}: {frame.line}"
    return None


def _function(target: str) -> Callable[..., Any]:
    """Import ``module:function`` from the current directory."""
    name, colon, attribute = target.partition(":")
    if not colon or not name or not attribute:
        raise InputError(
            f"{target!r} does not name a function", hint="difflab check module:function"
        )
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"no module named {error.name!r} in the current directory or the installed packages",
            hint=f"run difflab in the folder of {name.split('.')[0]}.py",
        ) from error
    except SyntaxError as error:
        line = f"{Path(error.filename or name).name}, line {error.lineno}"
        raise InputError(f"{name} is not valid Python: {error.msg}", hint=f"in {line}") from error
    found: Callable[..., Any] | None = getattr(module, attribute, None)
    if found is None:
        public = sorted(
            key for key, value in vars(module).items() if callable(value) and key[0] != "_"
        )
        one_of(attribute, public, f"function of {name},")
    if not callable(found):
        raise InputError(f"{target!r} is not a function")
    return found


@dataclass(frozen=True)
class _PackedGradient:
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
    ) -> _PackedGradient:
        """Match the point with the function's parameters; choose a point if there is none."""
        names, optional, positional = _parameters(target, function)
        if point is None:
            random = Random(seed)
            point = {name: round(random.uniform(0.5, 1.5), 3) for name in names}
        unknown = [name for name in point if name not in (*names, *optional)]
        if unknown:
            one_of(unknown[0], (*names, *optional), f"parameter of {target}")
        missing = [name for name in names if name not in point]
        if missing:
            raise PointError(
                f"no value for the parameter {missing[0]!r} of {target}",
                hint=f"--at {missing[0]}=1.5",
            )
        order = [name for name in (*names, *optional) if name in point]
        return cls(function, slope, {name: point[name] for name in order}, positional)

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
        from difflab.report.point import point_text

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
        result = self._call(self.function, x)
        return result if self.slope is not None else self._split(result)[0]

    def gradient(self, x: Any) -> Any:
        """Return the user's gradient at a packed point, flattened as the point is."""
        import numpy as np

        if self.slope is not None:
            result = self._call(self.slope, x)
        else:
            result = self._split(self._call(self.function, x))[1]
        if self.single or not isinstance(result, tuple | list):
            return result
        m = np.size(self.value(x))
        if len(result) != len(self.shapes):
            raise InputError(
                f"the gradient has {len(result)} parts for {len(self.shapes)} parameters"
            )
        parts = [np.reshape(np.asarray(part, dtype=np.float64), (m, -1)) for part in result]
        return np.hstack(parts)

    def _call(self, function: Callable[..., Any], x: Any) -> Any:
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


def _parameters(
    target: str, function: Callable[..., Any]
) -> tuple[list[str], list[str], list[str]]:
    """Return the required, the optional and the positional-only parameters."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise InputError(f"the parameters of {target} cannot be read: {error}") from error
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    required = [p.name for p in named if p.default is p.empty]
    optional = [p.name for p in named if p.default is not p.empty]
    if not required and not optional:
        raise InputError(f"{target} has no named parameter to differentiate by")
    return required, optional, [p.name for p in named if p.kind is p.POSITIONAL_ONLY]
