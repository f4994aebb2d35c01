"""``module:function``: Python code of the user as the subject of a command.

The module that the user names is imported and run.
"""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflab.cli.options import one_of, parse_point
from difflab.cli.program_text import read_expression
from difflab.core.wording import names_problem
from difflab.errors import InputError, PointError

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = [
    "Parameters",
    "Subject",
    "code_digest",
    "is_function",
    "load_function",
    "traced_at",
    "user_code",
]

_NAMED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_function(argument: str) -> bool:
    """Return whether an argument names a Python function, ``module:function``."""
    return _NAMED.fullmatch(argument) is not None


@dataclass(frozen=True)
class Subject:
    """What a command works on: a formula, or a Python function traced at a point.

    Attributes
    ----------
    text : str
        The formula, or ``module:function``.
    point : dict or None
        The values of ``--at``.
    start : dict or None
        The point of a problem of the library.
    variables : collection of str
        Names of variables that an option names, beside those of `point`.
    traced : Function or None
        The graph of the Python function.
    """

    text: str
    point: dict[str, Any] | None
    traced: Function | None = None
    start: dict[str, Any] | None = None
    variables: Collection[str] = ()

    @classmethod
    def of(
        cls, argument: str, at: Sequence[str] | None, variables: Collection[str] = ()
    ) -> Subject:
        """Read the argument EXPR and the options ``--at`` of a command.

        Raises
        ------
        InputError
            The point or a file cannot be read; or the module or the function is not found, has no
            point, or cannot be traced.
        """
        point = parse_point(at or [])
        if names_problem(argument):
            from difflab.lab.problems.library import problem

            found = problem(argument)
            return cls(found.text, point, start=found.start, variables=variables)
        if not is_function(argument):
            return cls(read_expression(argument), point, variables=variables)
        return cls(argument, point, traced_at(argument, point))

    @property
    def point_or_start(self) -> dict[str, Any] | None:
        """The values of ``--at``, else the start of a problem."""
        return self.start if self.point is None else self.point

    @cached_property
    def function(self) -> Function:
        """The function; a formula is parsed when it is first used."""
        from difflab.language import given_names, parse

        if self.traced is not None:
            return self.traced
        return parse(self.text, [*given_names(self.point_or_start), *self.variables])


def traced_at(target: str, point: Mapping[str, Any] | None) -> Function:
    """Import ``module:function`` and trace it at a point.

    Raises
    ------
    InputError
        The module or the function is not found, has no point, or cannot be traced.
    """
    with user_code(target):
        return _traced(target, load_function(target), point)


def _traced(target: str, function: Callable[..., Any], point: Mapping[str, Any] | None) -> Function:
    """Return the graph of a Python function at a point; a `Function` is one already."""
    from difflab.graph.function import Function
    from difflab.graph.trace import trace

    if isinstance(function, Function):
        return function
    parameters = Parameters.of(target, function)
    if point is None:
        names = [*parameters.required, *parameters.optional]
        raise PointError(
            f"{target} is traced at a point, which gives the shapes of its arguments",
            hint=f"--at {','.join(f'{name}=1.5' for name in names[:3])}",
        )
    values = parameters.matched(point)

    def call(*args: Any) -> Any:
        named = dict(zip(values, args, strict=True))
        positional = [named.pop(name) for name in parameters.positional if name in named]
        return function(*positional, **named)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in values])
    call.__signature__ = signature  # type: ignore[attr-defined]  # gives the inputs their names
    return trace(call, *values.values())


@dataclass(frozen=True)
class Parameters:
    """The names of a function's parameters; `positional` ones are passed by position."""

    target: str
    required: Sequence[str]
    optional: Sequence[str]
    positional: Sequence[str]

    @classmethod
    def of(cls, target: str, function: Callable[..., Any]) -> Parameters:
        """Read the signature of a function."""
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise InputError(f"the parameters of {target} cannot be read: {error}") from error
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        required = [p.name for p in named if p.default is p.empty]
        optional = [p.name for p in named if p.default is not p.empty]
        if not required and not optional:
            raise InputError(f"{target} has no named parameter to differentiate by")
        positional = [p.name for p in named if p.kind is p.POSITIONAL_ONLY]
        return cls(target, required, optional, positional)

    def matched(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a point in the order of the parameters.

        Raises
        ------
        InputError
            A name is unknown.
        PointError
            A parameter without a default has no value.
        """
        known = (*self.required, *self.optional)
        unknown = [name for name in point if name not in known]
        if unknown:
            one_of(unknown[0], known, f"parameter of {self.target}")
        missing = [name for name in self.required if name not in point]
        if missing:
            raise PointError(
                f"no value for the parameter {missing[0]!r} of {self.target}",
                hint=f"--at {missing[0]}=1.5",
            )
        return {name: point[name] for name in known if name in point}


@contextmanager
def user_code(target: str, point: str = "") -> Iterator[None]:
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


def code_digest(function: Callable[..., Any]) -> str:
    """Return what identifies the code of a function: other code is another function."""
    from hashlib import sha256

    try:
        source = Path(inspect.getsourcefile(function) or "").read_bytes()
    except (OSError, TypeError):
        return "source unknown"
    return f"SHA-256 {sha256(source).hexdigest()[:12]}"


def load_function(target: str) -> Callable[..., Any]:
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
