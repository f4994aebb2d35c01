"""A study's TOML file: read, checked, and expanded to its cases."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from difflab.core.files import open_regular, reason
from difflab.core.wording import names_problem
from difflab.errors import InputError
from difflab.lab.study.cases import THIS, Case
from difflab.lab.study.places import KeyPath, KeyPlaces

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["Study", "read"]

T = TypeVar("T")

_GRID_KEYS = (
    *("formulas", "families", "sizes", "at", "seeds", "over"),
    *("methods", "orders", "targets", "versions", "timeout", "timing", "repeats"),
)
_SIZE = "{n}"
_MOST_CASES = 1_000_000
_MOST_REPEATS = 100


@dataclass(frozen=True)
class Study:
    """A study.

    Attributes
    ----------
    name : str
        Its name, by default that of its file.
    cases : tuple of Case
        Its cases, each once, in the order of the file.
    versions : mapping of str to Path
        The Python interpreter of every other version of difflab that a case names.
    """

    name: str
    cases: tuple[Case, ...]
    versions: Mapping[str, Path]


def read(path: Path) -> Study:
    """Return the study that a TOML file describes; the README documents its keys.

    Raises
    ------
    InputError
        The file cannot be read, or a key is missing, unknown or has an invalid value; the message
        names the key and marks its line.
    """
    try:
        with open_regular(path) as file:
            text = file.read().decode("utf-8")
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {reason(error)}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not UTF-8 text: {error.reason}") from error
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{str(path)!r} is not TOML: {error}") from error
    return _Reader(path, KeyPlaces(text)).study(content)


@dataclass(frozen=True)
class _Source:
    """A function of a grid: its text, how the study writes it, and its customary point."""

    text: str
    formula: str
    family: str = ""
    size: int | None = None
    point: Mapping[str, Any] | None = None


class _Reader:
    """Reads the tables of one file; every error names the key and its line."""

    def __init__(self, path: Path, places: KeyPlaces) -> None:
        self._path = path
        self._error = places.error

    def study(self, content: Mapping[str, Any]) -> Study:
        self._known((), content, ("name", "versions", "grid"))
        name = self._typed((), content, "name", str, self._path.stem)
        versions = self._versions(content)
        grids = content.get("grid")
        if not isinstance(grids, list) or not grids or not all(isinstance(g, dict) for g in grids):
            raise self._error(("grid",), "a study has at least one grid", "begin it with [[grid]]")
        cases: dict[str, Case] = {}
        for index, grid in enumerate(grids):
            for case in self._cases(("grid", index), grid, versions):
                earlier = cases.get(case.key)
                if earlier is not None:  # the same function in two grids: one case
                    extra = [method for method in case.methods if method not in earlier.methods]
                    case = Case(**{**vars(earlier), "methods": (*earlier.methods, *extra)})
                cases[case.key] = case
        return Study(name, tuple(cases.values()), versions)

    def _versions(self, content: Mapping[str, Any]) -> dict[str, Path]:
        found: dict[str, Path] = {}
        table = self._typed((), content, "versions", dict, {})
        for name in table:
            if name == THIS:
                raise self._error(
                    ("versions", name), f"{THIS!r} is the difflab that runs the study"
                )
            interpreter = self._path.parent / self._typed(("versions",), table, name, str, "")
            if not interpreter.is_file():
                raise self._error(
                    ("versions", name),
                    f"there is no file {str(interpreter)!r}",
                    "name the Python interpreter of its environment, such as old/.venv/bin/python",
                )
            found[name] = interpreter.absolute()
        return found

    def _cases(
        self, at: KeyPath, grid: Mapping[str, Any], versions: Mapping[str, Path]
    ) -> Iterator[Case]:
        self._known(at, grid, _GRID_KEYS)
        if "over" in grid:
            raise self._error((*at, "over"), "a study compares at points, not yet over domains")
        methods = self._methods(at, grid)
        targets = self._each(at, grid, "targets", str, ("auto",), _check_target)
        orders = self._each(at, grid, "orders", int, (1,), _one_of((1, 2)))
        names = self._each(at, grid, "versions", str, (THIS,), _one_of((THIS, *versions)))
        timeout = float(self._typed(at, grid, "timeout", (int, float), 10.0))
        if not 0 < timeout < float("inf"):
            raise self._error((*at, "timeout"), "the time limit is a positive number of seconds")
        repeats = self._typed(at, grid, "repeats", int, 10)
        if not 1 <= repeats <= _MOST_REPEATS:
            raise self._error((*at, "repeats"), f"repeats is from 1 to {_MOST_REPEATS}")
        repeats *= self._typed(at, grid, "timing", bool, True)
        points = [self._points(at, grid, source) for source in self._sources(at, grid)]
        count = sum(map(len, points)) * len(orders) * len(targets) * len(names)
        if count > _MOST_CASES:
            raise self._error(at, f"the grid has {count:,} cases, and a study {_MOST_CASES:,}")
        for (source, point), order, target, version in product(
            (pair for pairs in points for pair in pairs), orders, targets, names
        ):
            yield Case(
                text=source.text,
                point=point,
                methods=methods,
                formula=source.formula,
                family=source.family,
                size=source.size,
                order=order,
                target=target,
                version=version,
                timeout=timeout,
                repeats=repeats,
            )

    # --- the values of a grid -------------------------------------------------------------------

    def _methods(self, at: KeyPath, grid: Mapping[str, Any]) -> tuple[str, ...]:
        from difflab.methods.registry import select

        names = self._each(at, grid, "methods", str, ()) or None
        return self._checked(
            (*at, "methods"), lambda: tuple(method.name for method in select(names))
        )

    def _sources(self, at: KeyPath, grid: Mapping[str, Any]) -> Iterator[_Source]:
        formulas = self._each(at, grid, "formulas", str, ())
        families = self._each(at, grid, "families", str, ())
        sizes = self._each(at, grid, "sizes", int, (), _one_from)
        if not formulas and not families:
            raise self._error(at, "the grid has neither formulas nor families")
        if bool(families) != bool(sizes):
            missing, given = ("sizes", "families") if families else ("families", "sizes")
            raise self._error((*at, given), f"{given} need {missing}, which the grid lacks")
        for formula in formulas:
            yield self._checked((*at, "formulas"), partial(_source, formula, self._path.parent))
        for name, size in product(families, sizes):
            yield self._checked((*at, "families"), partial(_member, name, size))

    def _points(
        self, at: KeyPath, grid: Mapping[str, Any], source: _Source
    ) -> list[tuple[_Source, Mapping[str, Any]]]:
        """Return the source at each of its points: those given, its own, or chosen ones."""
        from difflab.diagnose.point_check import checked_point

        key = (*at, "families" if source.family else "formulas")
        function = self._checked(key, partial(_function, source))
        seeds = self._each(at, grid, "seeds", int, (0,), _one_from_zero)
        given: Sequence[Mapping[str, Any] | None]
        if "at" in grid:
            given = self._each(at, grid, "at", dict, ())
            seeds, key = (0,) * len(given), (*at, "at")
        else:
            given = [source.point] * (1 if source.point is not None else len(seeds))
        return [
            (source, self._checked(key, partial(checked_point, function, point, seed)))
            for point, seed in zip(given, seeds, strict=False)
        ]

    # --- checks ---------------------------------------------------------------------------------

    def _checked(self, path: KeyPath, make: Callable[[], T]) -> T:
        """Return `make()`; its error names the key and its line."""
        try:
            return make()
        except InputError as error:
            raise self._error(path, error.message, error.hint) from error

    def _known(self, at: KeyPath, table: Mapping[str, Any], allowed: Sequence[str]) -> None:
        for name in table:
            if name not in allowed:
                raise self._error((*at, name), "unknown key", f"one of {', '.join(allowed)}")

    def _typed(
        self, at: KeyPath, table: Mapping[str, Any], name: str, kind: Any, other: Any
    ) -> Any:
        value = table.get(name, other)
        if not _is(value, kind):
            raise self._error((*at, name), f"{_KINDS[kind]} is needed, not {_shown(value)}")
        return value

    def _each(
        self,
        at: KeyPath,
        grid: Mapping[str, Any],
        name: str,
        kind: type,
        other: tuple[Any, ...],
        check: Callable[[Any], None] = lambda _: None,
    ) -> tuple[Any, ...]:
        """Return a list of values of one kind; one value is a list of one."""
        if name not in grid:
            return other
        values = grid[name] if isinstance(grid[name], list) else [grid[name]]
        for value in values:
            if not _is(value, kind):
                raise self._error((*at, name), f"{_KINDS[kind]} is needed, not {_shown(value)}")
            self._checked((*at, name), partial(check, value))
        if not values:
            raise self._error((*at, name), "the list is empty", "leave out the key")
        return tuple(values)


_KINDS: Mapping[Any, str] = {
    str: "text",
    int: "an integer",
    bool: "true or false",
    dict: "a table such as {x1 = 2, x2 = 5}",
    (int, float): "a number",
}


def _is(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _one_of(allowed: Sequence[Any]) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if value not in allowed:
            raise InputError(
                f"there is no {value!r} here", hint=f"one of {', '.join(map(str, allowed))}"
            )

    return check


def _one_from(value: int) -> None:
    if value < 1:
        raise InputError(f"a size is at least 1, not {value}")


def _one_from_zero(value: int) -> None:
    if value < 0:
        raise InputError(f"a seed is at least 0, not {value}")


def _check_target(value: str) -> None:
    from difflab.execute import check_target

    check_target(value)


def _source(formula: str, folder: Path) -> _Source:
    """Return what a formula spells: itself, a problem of the library, or a file's content."""
    if names_problem(formula):
        from difflab.lab.problems.library import problem

        found = problem(formula)
        return _Source(found.text, formula, point=found.start)
    if not formula.startswith("@"):
        return _Source(formula, formula)
    try:
        with open_regular(folder / formula[1:]) as file:
            return _Source(file.read().decode("utf-8"), formula)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {formula[1:]!r}: {error}") from error


def _member(name: str, size: int) -> _Source:
    """Return the member of a family: one of `FAMILIES`, or a formula with ``{n}`` for the size."""
    from difflab.lab.problems import FAMILIES

    if name in FAMILIES:
        family = FAMILIES[name]
        return _Source(family.text(size), name, name, size, family.point(size))
    if _SIZE in name:
        return _Source(name.replace(_SIZE, str(size)), name, name, size)
    raise InputError(
        f"there is no family {name!r}",
        hint=f"one of {', '.join(FAMILIES)}, or a formula with {_SIZE} for the size",
    )


def _function(source: _Source) -> Function:
    from difflab.language import parse

    try:
        function = parse(source.text)
    except InputError as error:
        # The place in the formula; that of the key is added by the caller.
        raise InputError(f"{error.render()}\nin the formula") from error
    if function.n == 0:
        raise InputError(f"{source.formula!r} has no input to differentiate with respect to")
    return function
