"""``difflab compare --each-line``: a comparison of every formula of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from difflab.cli.functions import Subject, is_function
from difflab.cli.options import one_of, parse_point
from difflab.cli.program_text import read_expression
from difflab.core.wording import names_problem
from difflab.errors import InputError, ParseError, PointError
from difflab.graph.names import missing_values

if TYPE_CHECKING:
    from difflab.graph.function import Function


def formulas(argument: str) -> list[tuple[int, str]]:
    """Return the formulas of EXPR, one a line, each with its line number; ``#`` begins a comment.

    Raises
    ------
    InputError
        There is none, or EXPR is not a text of formulas.
    """
    if names_problem(argument) or is_function(argument):
        hint = "write difflab compare @formulas.txt --each-line"
        raise InputError("--each-line is for a text of formulas, one a line", hint=hint)
    lines = enumerate(read_expression(argument).splitlines(), 1)
    bare = [(number, line.partition("#")[0].strip()) for number, line in lines]
    found = [(number, line) for number, line in bare if line]
    if not found:
        raise InputError("there is no formula in the text", hint="write one formula a line")
    return found


def subjects(argument: str, at: Sequence[str]) -> list[Subject]:
    """Return the formulas of EXPR, each with the values of ``--at`` that it needs.

    Raises
    ------
    InputError
        A formula cannot be read, the error names its line; or ``--at`` gives a value to a name
        that no formula has.
    """
    point = parse_point(at)
    found = [(number, _function(number, line, point)) for number, line in formulas(argument)]
    used = {name for _, function in found for name in function.inputs}
    for name in point or ():
        if name not in used:
            one_of(name, sorted(used), "input of the formulas,")
    return [Subject(str(f.text), _part(number, point, f)) for number, f in found]


def _function(number: int, line: str, point: Mapping[str, Any] | None) -> Function:
    from difflab.language import given_names, parse

    try:
        return parse(line, given_names(point))
    except ParseError as error:
        message = f"{error.message} (line {number})"
        raise ParseError(message, text=line, span=error.span, hint=error.hint) from error


def _part(
    number: int, point: Mapping[str, Any] | None, function: Function
) -> dict[str, Any] | None:
    """Return the values of a formula's inputs."""
    if point is None:
        return None
    missing = [name for name in function.inputs if name not in point]
    if missing:
        hint = "give every formula its values, or none to have points chosen"
        raise PointError(f"{missing_values(missing)} (line {number})", hint=hint)
    return {name: value for name, value in point.items() if name in function.inputs}


def together(results: Sequence[Any], form: str, write: Callable[[Any], str]) -> str:
    """Return all comparisons: a JSON array, one table of CSV, or one after the other."""
    if form == "json":
        from difflab.core import strict_json

        return strict_json.dumps([result.to_dict() for result in results]) + "\n"
    texts = [write(result) for result in results]
    if form == "csv":
        return texts[0] + "".join(text.partition("\n")[2] for text in texts[1:])
    return "\n".join(texts)
