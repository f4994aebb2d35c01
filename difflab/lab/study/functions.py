"""The functions of a grid: formulas, problems, files, the user's Python code, members of families.

Python code is traced when the study is read, and the program that was recorded is what the study
compares: other code is another case, and processes and versions need the program only. Errors name
the lines of keys of the TOML file, which `tomllib` does not report.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from difflab.core.place import SourceLocation
from difflab.core.system import open_regular
from difflab.core.wording import names_problem
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.lab.problems.sized import SizedFamily
    from difflab.lab.study.cases import Domain


_SIZE = "{n}"


class UserCode(Protocol):
    """Python code of the user that a study names as ``module:function``."""

    def function(
        self, name: str, point: Mapping[str, Any] | None, domains: Sequence[Domain] = ()
    ) -> Function | None:
        """Return a function, traced at a point; None if `name` names no Python code.

        Parameters
        ----------
        name : str
            ``module:function``.
        point : mapping or None
            The values of its arguments.
        domains : sequence of Domain
            The domains over which it is compared: `point` lacks arguments that vary.
        """

    def family(self, name: str) -> SizedFamily | None:
        """Return a family of functions by size; None if `name` names no Python code."""


class _NoUserCode:
    """Every name is a formula."""

    def function(
        self, name: str, point: Mapping[str, Any] | None, domains: Sequence[Domain] = ()
    ) -> Function | None:
        return None

    def family(self, name: str) -> SizedFamily | None:
        return None


NO_USER_CODE: UserCode = _NoUserCode()


@dataclass(frozen=True)
class Source:
    """A function of a grid.

    Attributes
    ----------
    text : str
        The function, a program of the language.
    formula : str
        How the study writes it.
    family : str
        The family that it belongs to; empty without one.
    size, m : int or None
        Its sizes.
    point : mapping or None
        Its customary point.
    """

    text: str
    formula: str
    family: str = ""
    size: int | None = None
    m: int | None = None
    point: Mapping[str, Any] | None = None


def source(
    formula: str,
    folder: Path,
    code: UserCode,
    points: Sequence[Mapping[str, Any] | None],
    domains: Sequence[Domain] = (),
) -> list[Source]:
    """Return the source of a formula at each point: a traced function may differ between them.

    A formula, a problem of the library and a file's content are one source for all points.
    """
    traced = [code.function(formula, point, domains) for point in points]
    if traced[0] is not None:
        return [Source(_program(each, formula), formula) for each in traced if each is not None]
    if names_problem(formula):
        from difflab.lab.problems.library import problem

        entry = problem(formula)
        return [Source(entry.text, formula, point=entry.start)] * len(points)
    if not formula.startswith("@"):
        return [Source(formula, formula)] * len(points)
    try:
        with open_regular(folder / formula[1:]) as file:
            text = file.read().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {formula[1:]!r}: {error}") from error
    return [Source(text, formula)] * len(points)


def members(name: str, n: Sequence[int], m: Sequence[int], code: UserCode) -> Iterator[Source]:
    """Yield the members of a family: of `FAMILIES`, a formula or Python code.

    A formula has ``{n}`` for the size, or the names n and m, as `formula_family` reads them.
    """
    from difflab.lab.problems import FAMILIES
    from difflab.lab.problems.sized import formula_family

    if name in FAMILIES:
        named = FAMILIES[name]
        for size in n:
            yield Source(named.text(size), name, name, size, point=named.point(size))
        return
    if _SIZE in name:
        for size in n:
            yield Source(name.replace(_SIZE, str(size)), name, name, size)
        return
    family = code.family(name)
    if family is None:
        try:
            family = formula_family(name)
        except InputError as error:
            raise InputError(
                f"there is no family {name!r}",
                hint=f"one of {', '.join(FAMILIES)}, or a formula with {_SIZE}, or with the names"
                f" n and m for sizes ({error.message})",
            ) from error
    if "m" in family.sizes and not m:
        raise InputError(f"the family {name!r} has a size m, which the grid lacks", hint="m = [4]")
    yield from _sized(name, family, n, m)


def _sized(name: str, family: SizedFamily, n: Sequence[int], m: Sequence[int]) -> Iterator[Source]:
    """Yield the members of a family with sizes n, m or both; one that it lacks is one."""
    columns: Sequence[int | None] = n if "n" in family.sizes else [None]
    rows: Sequence[int | None] = m if "m" in family.sizes else [None]
    for column in columns:
        for row in rows:
            function, packed = family.member(column or 1, row or 1)
            point = dict(zip(function.inputs, function.split(packed), strict=True))
            yield Source(_program(function, name), name, name, column, row, point)


def _program(function: Function, name: str) -> str:
    """Return a function as a program of the language."""
    from difflab.language import parse
    from difflab.language.printers import text

    program = function.text or text(function, whole=True)
    try:
        parse(program)
    except InputError as error:
        raise InputError(
            f"{name} has no form in the language, in which a study keeps it: {error.message}",
            hint="difflab compare takes it",
        ) from error
    return program


def function_of(source: Source, variables: Collection[str]) -> Function:
    """Return the parsed function of a source, in which `variables` are inputs.

    Raises
    ------
    InputError
        It cannot be parsed, or has no input.
    """
    from difflab.language import parse

    try:
        function = parse(source.text, variables)
    except InputError as error:
        # The location in the formula; that of the key is added by the caller.
        raise InputError(f"{error.render()}\nin the formula") from error
    if function.n == 0:
        raise InputError(f"{source.formula!r} has no input to differentiate with respect to")
    return function


# --- the lines of keys ------------------------------------------------------------------------

KeyPath = tuple[str | int, ...]
"""A key and the tables around it; a number is the index of a table of an array."""


class KeyLocations:
    r"""Finds the text of each key of a valid TOML document.

    Examples
    --------
    >>> locations = KeyLocations('name = "a"\n[[grid]]\nsizes = [\n 1,\n]\n')
    >>> print(locations.error(("grid", 0, "sizes"), "no size is even"))
    grid[0].sizes: no size is even
    line 3: sizes = [
            ^~~~~
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = dict(_spans(text))

    def error(self, path: KeyPath, message: str, hint: str | None = None) -> InputError:
        """Return the error of a key, with its name and line.

        A key that does not stand in the document has the location of the table around it.
        """
        nearest = (*path, 0) if (*path, 0) in self._spans else path  # an array of tables
        while nearest and nearest not in self._spans:
            nearest = nearest[:-1]
        message = f"{_name(path)}: {message}" if path else message
        if not nearest:
            return InputError(message, hint=hint)
        return SourceLocation(self._text, self._spans[nearest]).error(InputError, message, hint)


def _name(path: KeyPath) -> str:
    """Return a key as ``grid[0].sizes``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).lstrip(".")


def _spans(text: str) -> Iterator[tuple[KeyPath, tuple[int, int]]]:
    """Yield the path and the span of every key.

    A statement ends at the first line at which it is valid by itself: a value that continues on
    the next line, or a text that looks like a key, is never taken for a statement.
    """
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    start, statement = 0, ""
    for line in text.splitlines(keepends=True):
        statement += line
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        begun = statement.lstrip()
        offset = start + len(statement) - len(begun)
        if begun.startswith("["):
            table = _entered(parsed, counts)
            yield table, (offset, offset + len(begun.splitlines()[0].rstrip()))
        else:
            end = offset + len(begun.partition("=")[0].rstrip())
            for path in _keys(parsed):
                yield (*table, *path), (offset, end)
        start, statement = start + len(statement), ""


def _entered(header: Mapping[str, Any], counts: dict[KeyPath, int]) -> KeyPath:
    """Return the path of the table that a header such as ``[[grid]]`` begins."""
    path: KeyPath = ()
    while header:
        ((name, inner),) = header.items()
        path = (*path, name)
        if isinstance(inner, list):
            counts[path] = counts.get(path, -1) + 1
            path, inner = (*path, counts[path]), inner[0]
        elif path in counts:
            path = (*path, counts[path])
        header = inner
    return path


def _keys(statement: Mapping[str, Any]) -> Iterator[KeyPath]:
    """Yield the paths of all keys of a statement, those of inline tables included."""
    pending: list[tuple[KeyPath, Mapping[str, Any]]] = [((), statement)]
    while pending:
        path, table = pending.pop()
        for name, inner in table.items():
            yield (*path, name)
            if isinstance(inner, Mapping):
                pending.append(((*path, name), inner))
