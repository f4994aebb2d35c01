"""GradBench's protocol: a JSON message per line, answered by a JSON response per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, TextIO

from benchmarks.gradbench.tool.repeats import FunctionsByName, repeated
from difflab.errors import DifflabError, InputError

__all__ = ["EVALS", "functions", "respond", "serve"]

EVALS = (
    "hello",
    "llsq",
    "lse",
    "gmm",
    "kmeans",
    "ba",
    "ht",
    "det",
    "lstm",
    "ode",
    "particle",
    "saddle",
)
"""The evals, each a module of this package."""
SHARED_MINORS = {"det": "shared_det"}
"""The modules of evals that are answered by another algorithm, on request."""


def functions(module: str, instead: Mapping[str, str] = MappingProxyType({})) -> FunctionsByName:
    """Return the functions of an eval.

    Parameters
    ----------
    module : str
        The eval.
    instead : mapping of str to str
        Modules of this package that answer evals instead of those of their names.

    Raises
    ------
    InputError
        There is no such eval.

    Examples
    --------
    >>> sorted(functions("hello"))
    ['double', 'square']
    """
    if module not in EVALS:
        raise InputError(f"there is no eval {module!r}", hint=f"one of {', '.join(EVALS)}")
    found: FunctionsByName = import_module(
        f"benchmarks.gradbench.tool.{instead.get(module, module)}"
    ).FUNCTIONS
    return found


def respond(
    message: Mapping[str, Any], instead: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the response to a message, without its ``id``; `instead` is that of `functions`.

    An evaluation that fails is a response as well: ``success`` is false and ``error`` says why.

    Examples
    --------
    >>> respond({"id": 0, "kind": "start", "eval": "hello"})
    {'tool': 'difflab'}
    >>> respond({"id": 1, "kind": "define", "module": "hallo"})["success"]
    False
    """
    kind = message.get("kind")
    if kind == "start":
        return {"tool": "difflab"}
    if kind not in ("define", "evaluate"):
        return {}
    try:
        return {"success": True, **_RESPONSES[kind](message, instead)}
    except DifflabError as error:
        return {"success": False, "error": str(error)}
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        return {"success": False, "error": f"{type(error).__name__}: {error}"}


def _defined(message: Mapping[str, Any], instead: Mapping[str, str]) -> dict[str, Any]:
    functions(_required(message, "module"), instead)
    return {}


def _evaluated(message: Mapping[str, Any], instead: Mapping[str, str]) -> dict[str, Any]:
    module, name = _required(message, "module"), _required(message, "function")
    known = functions(module, instead)
    if name not in known:
        raise InputError(
            f"the eval {module!r} has no function {name!r}", hint=f"one of {', '.join(known)}"
        )
    found = repeated(known[name], _required(message, "input"))
    _written(found["output"])  # refused here, where it is an answer
    return found


_RESPONSES = {"define": _defined, "evaluate": _evaluated}


def _required(message: Mapping[str, Any], field: str) -> Any:
    if field not in message:
        raise InputError(f"the message has no field {field!r}")
    return message[field]


def _written(response: Any) -> str:
    """Return the line of a response; nan and infinities are not JSON."""
    try:
        return json.dumps(response, allow_nan=False)
    except ValueError as error:
        raise InputError("the result is not finite, which JSON cannot express") from error


def serve(
    lines: Iterable[str],
    output: TextIO,
    errors: TextIO,
    instead: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Answer messages until the input ends.

    Parameters
    ----------
    lines : iterable of str
        The messages; empty lines are skipped.
    output : file
        Gets the responses; flushed after each.
    errors : file
        Gets the reason why a line cannot be answered.
    instead : mapping of str to str
        Modules of this package that answer evals instead of those of their names.

    Returns
    -------
    int
        The exit code: 0, or 2 after a line that is not a message.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            message = json.loads(line)
        except ValueError as error:
            print(f"line {number} is not JSON: {error}", file=errors)
            return 2
        if not isinstance(message, dict) or "id" not in message:
            print(f"line {number} is not a message: it has no 'id'", file=errors)
            return 2
        output.write(_written({"id": message["id"]} | respond(message, instead)) + "\n")
        output.flush()
    return 0
