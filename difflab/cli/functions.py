"""``module:function``: Python code of the user as the subject of a command.

The module that the user names is imported and run.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflab.cli.options import one_of, parse_point
from difflab.cli.output import say
from difflab.cli.program_text import read_expression
from difflab.core.wording import names_problem
from difflab.errors import InputError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from difflab.graph.function import Function
    from difflab.lab.code import CodeSubject
    from difflab.lab.study.cases import Domain


RUN = 10.0
"""Seconds for one run of Python code, of commands without a time limit of their own."""

_NAMED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_function(argument: str) -> bool:
    """Return whether an argument names a Python function, ``module:function``."""
    return _NAMED.fullmatch(argument) is not None


@dataclass(frozen=True)
class Subject:
    """Subject of a command: a formula, or a Python function traced at a point.

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
    code : CodeSubject or Function or None
        The Python function itself.
    """

    text: str
    point: dict[str, Any] | None
    traced: Function | None = None
    start: dict[str, Any] | None = None
    variables: Collection[str] = ()
    code: CodeSubject | Function | None = None

    @classmethod
    def of(
        cls,
        argument: str,
        at: Sequence[str] | None,
        variables: Collection[str] = (),
        *,
        runs: bool = False,
        over: Mapping[str, Any] | None = None,
    ) -> Subject:
        """Read the argument EXPR and the options ``--at`` of a command.

        Parameters
        ----------
        argument, at, variables
            What the user gives.
        runs : bool
            Whether the command can run Python code that cannot be traced.
        over : mapping, optional
            A point of the domain, for parameters that vary over it and that ``--at`` lacks.

        Raises
        ------
        InputError
            The point or a file cannot be read; or the module or the function is not found, has no
            point, or cannot be traced.
        """
        point = parse_point(at or [])
        if names_problem(argument):
            from difflab.lab.problems.library import problem

            entry = problem(argument)
            return cls(entry.text, point, start=entry.start, variables=variables)
        if not is_function(argument):
            return cls(read_expression(argument), point, variables=variables)
        code = code_at(argument, point if over is None else {**over, **(point or {})})
        graph = required(argument, code) if not runs else None
        return cls(argument, point, graph, variables=variables, code=code)

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
        if self.code is not None:
            return required(self.text, self.code)
        return parse(self.text, [*given_names(self.point_or_start), *self.variables])


def code_at(target: str, point: Mapping[str, Any] | None) -> CodeSubject | Function:
    """Import ``module:function`` and trace it at a point, if it can be traced.

    Raises
    ------
    InputError
        The module or the function is not found, or has no point.
    """
    from difflab.graph.function import Function
    from difflab.lab.code import CodeSubject

    with user_code(target):
        code = load_function(target)
        return code if isinstance(code, Function) else CodeSubject.of(code, point, target)


def required(target: str, code: CodeSubject | Function) -> Function:
    """Return the graph of Python code, or raise the exception of tracing it."""
    from difflab.graph.function import Function

    with user_code(target):
        return code if isinstance(code, Function) else code.required()


def verified(target: str, code: CodeSubject | Function, domains: Sequence[Domain] = ()) -> Function:
    """Return the graph of Python code, after comparing it with runs of the code.

    A run that takes longer than the time limit is reported, and no error.

    Parameters
    ----------
    target : str
        The name of the code.
    code : CodeSubject or Function
        The code.
    domains : sequence of Domain
        Domains at whose points it is run too, as many as there is time for.

    Raises
    ------
    GraphMismatchError
        The graph has another value than the code.
    """
    from difflab.errors import MethodTimeout
    from difflab.lab.code import CodeSubject

    function = required(target, code)
    if isinstance(code, CodeSubject):
        try:
            code.verified(RUN)
            for domain in domains:
                code.verified_over(_sampled(function, code, domain), RUN)
        except MethodTimeout as error:
            say(f"the graph was not compared with the code: {error}")
    return function


def _sampled(function: Function, code: CodeSubject, domain: Domain) -> NDArray[float64]:
    """Return the points of a domain."""
    from difflab.lab.domain.box import box_of, evenly

    fixed = {name: value for name, value in code.point.items() if name not in domain.over}
    box = box_of(function, domain.over, fixed, domain.scale)
    return box.points(evenly(len(box.moving), domain.points, domain.seed)[: domain.points])


@contextmanager
def user_code(target: str, point: str = "") -> Iterator[None]:
    """Send the user's prints to standard error; convert its exceptions to `InputError`."""
    with redirect_stdout(sys.stderr):
        try:
            yield
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            from difflab.lab.code import user_frame

            frame = user_frame(error)
            if frame is None:
                raise
            where = f" at {point}" if point else ""
            raise InputError(
                f"{target} raised {type(error).__name__}{where}: {error}", hint=frame
            ) from error


def code_digest(function: Callable[..., Any]) -> str:
    """Return the identifier of a function's code: other code is another function."""
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
        if name.endswith(".py"):
            module_name = name.removesuffix(".py").replace("/", ".").replace("\\", ".")
            raise InputError(
                f"{target!r} names a file, not a module", hint=f"write {module_name}:{attribute}"
            ) from error
        folder = f"run difflab in the folder of {name.split('.')[0]}.py"
        raise InputError(
            f"no module named {error.name!r} in the current directory or the installed packages",
            hint="problem:SET/NAME is a problem of the library" if name == "problem" else folder,
        ) from error
    except SyntaxError as error:
        line = f"{Path(error.filename or name).name}, line {error.lineno}"
        raise InputError(f"{name} is not valid Python: {error.msg}", hint=f"in {line}") from error
    function: Callable[..., Any] | None = getattr(module, attribute, None)
    if function is None:
        public = sorted(
            key for key, value in vars(module).items() if callable(value) and key[0] != "_"
        )
        one_of(attribute, public, f"function of {name},")
    if not callable(function):
        raise InputError(f"{target!r} is not a function")
    return function
