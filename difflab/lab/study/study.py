"""A study's TOML file: read, checked, and expanded to its cases."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from difflab.core.system import open_regular, reason
from difflab.errors import InputError
from difflab.lab.study.cases import THIS, Domain, StudyCase
from difflab.lab.study.functions import (
    NO_USER_CODE,
    KeyLocations,
    KeyPath,
    Source,
    UserCode,
    function_of,
    members,
    source,
)

if TYPE_CHECKING:
    from difflab.graph.function import Function


T = TypeVar("T")

_GRID_KEYS = (
    *("formulas", "families", "sizes", "n", "m", "at", "seeds", "over", "points", "scale"),
    *("methods", "orders", "targets", "versions", "timeout", "timing", "repeats"),
)
_MOST_CASES = 1_000_000
_MOST_POINTS = 10_000_000  # of a domain
_MOST_REPEATS = 100


@dataclass(frozen=True)
class Study:
    """A study.

    Attributes
    ----------
    name : str
        Its name, by default that of its file.
    cases : tuple of StudyCase
        Its cases, each once, in the order of the file.
    versions : mapping of str to Path
        The Python interpreter of every other version of difflab that a case names.
    """

    name: str
    cases: tuple[StudyCase, ...]
    versions: Mapping[str, Path]


def read(path: Path, code: UserCode = NO_USER_CODE) -> Study:
    """Return the study that a TOML file describes; the documentation lists its keys.

    Parameters
    ----------
    path : Path
        The file.
    code : UserCode
        The Python code that the study names as ``module:function``.

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
    return _Reader(path, KeyLocations(text), code).study(content)


@dataclass(frozen=True)
class _StudyPoint:
    """A function where a study compares it: at a point, or over a domain."""

    source: Source
    point: Mapping[str, Any]
    domain: Domain | None = None


class _Reader:
    """Reads the tables of one file; every error names the key and its line."""

    def __init__(self, path: Path, locations: KeyLocations, code: UserCode) -> None:
        self._path = path
        self._error = locations.error
        self._code = code

    def study(self, content: Mapping[str, Any]) -> Study:
        self._known((), content, ("name", "versions", "grid"))
        name = self._typed((), content, "name", str, self._path.stem)
        versions = self._versions(content)
        grids = content.get("grid")
        if not isinstance(grids, list) or not grids or not all(isinstance(g, dict) for g in grids):
            raise self._error(("grid",), "a study has at least one grid", "begin it with [[grid]]")
        cases: dict[str, StudyCase] = {}
        for index, grid in enumerate(grids):
            for case in self._cases(("grid", index), grid, versions):
                earlier = cases.get(case.key)
                if earlier is not None:  # the same function in two grids: one case
                    extra = [method for method in case.methods if method not in earlier.methods]
                    case = StudyCase(**{**vars(earlier), "methods": (*earlier.methods, *extra)})
                cases[case.key] = case
        return Study(name, tuple(cases.values()), versions)

    def _versions(self, content: Mapping[str, Any]) -> dict[str, Path]:
        versions: dict[str, Path] = {}
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
            versions[name] = interpreter.absolute()
        return versions

    def _cases(
        self, at: KeyPath, grid: Mapping[str, Any], versions: Mapping[str, Path]
    ) -> Iterator[StudyCase]:
        self._known(at, grid, _GRID_KEYS)
        methods = self._methods(at, grid)
        targets = self._each(at, grid, "targets", str, ("auto",), _check_target)
        orders = self._each(at, grid, "orders", int, (1,), _one_of((1, 2)))
        names = self._each(at, grid, "versions", str, (THIS,), _one_of((THIS, *versions)))
        timeout = float(self._typed(at, grid, "timeout", (int, float), 10.0))
        if not 0 < timeout < float("inf"):
            raise self._error((*at, "timeout"), "the time limit is a positive number of seconds")
        repeats = self._repeats(at, grid)
        study_points = list(self._study_points(at, grid))
        count = len(study_points) * len(orders) * len(targets) * len(names)
        if count > _MOST_CASES:
            raise self._error(at, f"the grid has {count:,} cases, and a study {_MOST_CASES:,}")
        for study_point, order, target, version in product(study_points, orders, targets, names):
            yield StudyCase(
                text=study_point.source.text,
                point=study_point.point,
                methods=methods,
                formula=study_point.source.formula,
                family=study_point.source.family,
                size=study_point.source.size,
                m=study_point.source.m,
                order=order,
                target=target,
                version=version,
                timeout=timeout,
                repeats=repeats,
                domain=study_point.domain,
            )

    # --- the values of a grid -------------------------------------------------------------------

    def _methods(self, at: KeyPath, grid: Mapping[str, Any]) -> tuple[str, ...]:
        from difflab.methods.registry import select

        names = self._each(at, grid, "methods", str, ()) or None
        return self._checked(
            (*at, "methods"), lambda: tuple(method.name for method in select(names))
        )

    def _repeats(self, at: KeyPath, grid: Mapping[str, Any]) -> int:
        """Return the blocks of timing; a comparison over a domain is not timed."""
        repeats: int = self._typed(at, grid, "repeats", int, 10)
        if not 1 <= repeats <= _MOST_REPEATS:
            raise self._error((*at, "repeats"), f"repeats is from 1 to {_MOST_REPEATS}")
        timing: bool = self._typed(at, grid, "timing", bool, "over" not in grid)
        if "over" in grid and (timing or "repeats" in grid):
            key = "repeats" if "repeats" in grid else "timing"
            raise self._error((*at, key), "a comparison over a domain is not timed")
        return repeats if timing else 0

    def _sources(
        self, at: KeyPath, grid: Mapping[str, Any], domains: Sequence[Domain]
    ) -> Iterator[tuple[Source, Mapping[str, Any] | None]]:
        """Yield every function at every point that the grid gives; the point None is none."""
        points: tuple[Mapping[str, Any] | None, ...] = self._each(at, grid, "at", dict, (None,))
        formulas = self._each(at, grid, "formulas", str, ())
        families = self._each(at, grid, "families", str, ())
        if "sizes" in grid and "n" in grid:
            raise self._error((*at, "n"), "sizes and n are two names of the same", "leave out one")
        n = self._each(at, grid, "n" if "n" in grid else "sizes", int, (), _one_from)
        m = self._each(at, grid, "m", int, (), _one_from)
        if not formulas and not families:
            raise self._error(at, "the grid has neither formulas nor families")
        if bool(families) != bool(n or m):
            missing, present = ("sizes", "families") if families else ("families", "sizes")
            key = present if present in grid else "n" if n else "m"
            raise self._error((*at, key), f"{key} need {missing}, which the grid lacks")
        for formula in formulas:
            find = partial(source, formula, self._path.parent, self._code, points, domains)
            yield from zip(self._checked((*at, "formulas"), find), points, strict=True)
        for name in families:
            list_members = partial(_listed, name, n, m, self._code)
            yield from product(self._checked((*at, "families"), list_members), points)

    def _study_points(self, at: KeyPath, grid: Mapping[str, Any]) -> Iterator[_StudyPoint]:
        """Yield the functions at their points (given, customary or chosen), or over domains."""
        from difflab.diagnose.point_check import checked_point
        from difflab.language import given_names

        seeds = self._each(at, grid, "seeds", int, (0,), _one_from_zero)
        domains = self._domains(at, grid, seeds)
        functions: dict[tuple[str, frozenset[str]], Function] = {}
        for each, override in self._sources(at, grid, domains):
            key = (*at, "families" if each.family else "formulas")
            names = frozenset(
                given_names(each.point, override, *(domain.over for domain in domains))
            )
            find = partial(function_of, each, names)
            function = functions.get((each.text, names)) or self._checked(key, find)
            functions[each.text, names] = function
            each = replace(each, text=function.text or each.text)
            if domains:
                yield from self._over(at, each, function, override, domains)
                continue
            point = each.point if override is None else override
            key = key if override is None else (*at, "at")
            for seed in seeds if point is None else (0,):
                chosen = partial(checked_point, function, point, seed)
                yield _StudyPoint(each, self._checked(key, chosen))

    def _domains(self, at: KeyPath, grid: Mapping[str, Any], seeds: Sequence[int]) -> list[Domain]:
        """Return the domains of a grid; none if it compares at points."""
        points = self._typed(at, grid, "points", int, 10_000)
        if not 1 <= points <= _MOST_POINTS:
            raise self._error((*at, "points"), f"points are from 1 to {_MOST_POINTS:,}")
        scale = self._typed(at, grid, "scale", dict, {})
        for key in ("points", "scale"):
            if key in grid and "over" not in grid:
                raise self._error((*at, key), f"{key} belong to a domain", "over = {x = [0.1, 10]}")
        return [
            Domain(over, points, scale, seed)
            for over in self._each(at, grid, "over", dict, ())
            for seed in seeds
        ]

    def _over(
        self,
        at: KeyPath,
        each: Source,
        function: Function,
        override: Mapping[str, Any] | None,
        domains: Sequence[Domain],
    ) -> Iterator[_StudyPoint]:
        """Yield a function over domains: `override` or its customary point has the other inputs."""
        from difflab.lab.domain.box import box_of

        for domain in domains:
            point = {} if each.point is None or override is not None else each.point
            fixed = override or {name: x for name, x in point.items() if name not in domain.over}
            find = partial(box_of, function, domain.over, fixed, domain.scale)
            yield _StudyPoint(each, self._checked((*at, "over"), find).fixed, domain)

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


def _listed(name: str, n: Sequence[int], m: Sequence[int], code: UserCode) -> list[Source]:
    return list(members(name, n, m, code))
