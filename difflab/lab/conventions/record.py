"""Record of the conventions: the results of every package in every case, to and from JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from difflab.core import strict_json
from difflab.errors import InputError

EXACT = "exact"
"""The results of ball arithmetic, which are the truth of the smooth cases."""
SCHEMA = "difflab.conventions/1"
ORDERS = ("value", "first", "second")
"""The value and the derivatives, by order."""


@dataclass(frozen=True)
class Package:
    """A package: the name of its method, its own title, and its version."""

    name: str
    title: str
    version: str
    numeric: bool = False


@dataclass(frozen=True)
class Result:
    """The results of one package in one case.

    Attributes
    ----------
    package : str
        The name of its method.
    formula : str
        The formula of the case.
    at : tuple of float
        Its point.
    code : str
        The code that was run; empty if the package has no such function.
    own : bool
        Whether that is a function of the package, rather than composed here of others.
    answers : tuple
        Value, gradient and Hessian, flattened; or the reason why there is none.
    """

    package: str
    formula: str
    at: tuple[float, ...]
    code: str = ""
    own: bool = True
    answers: tuple[tuple[float, ...] | str, ...] = ("", "", "")


@dataclass(frozen=True)
class Conventions:
    """Results of packages, their versions, and why other packages were left out."""

    packages: Sequence[Package]
    results: Sequence[Result]
    left_out: Mapping[str, str] = field(default_factory=dict)

    def of(self, formula: str, at: tuple[float, ...]) -> list[Result]:
        """Return the results of a case, in the order of the packages."""
        return [found for found in self.results if found.formula == formula and _same(found.at, at)]

    def merged(self, older: Conventions) -> Conventions:
        """Return these results, with those of packages that only an older record has."""
        mine = {package.name for package in self.packages}
        packages = [*self.packages, *(each for each in older.packages if each.name not in mine)]
        results = [*self.results, *(each for each in older.results if each.package not in mine)]
        known = {package.name for package in packages}
        reasons = {name: why for name, why in self.left_out.items() if name not in known}
        return Conventions(packages, results, reasons)

    def to_json(self) -> str:
        """Return the record as strict JSON."""
        record = {
            "schema": SCHEMA,
            "packages": self.packages,
            "left_out": self.left_out,
            "results": [_entry(result) for result in self.results],
        }
        return strict_json.dumps(strict_json.strict(record)) + "\n"

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Conventions:
        """Read a record.

        Raises
        ------
        InputError
            It has another schema.
        """
        if record.get("schema") != SCHEMA:
            raise InputError(f"the record is not of the schema {SCHEMA}")
        packages = [Package(**each) for each in record["packages"]]
        results = [_result(each) for each in record["results"]]
        return cls(packages, results, record["left_out"])


def _same(one: Iterable[float], other: Iterable[float]) -> bool:
    return [*map(repr, one)] == [*map(repr, other)]  # nan is the same as nan


def _entry(result: Result) -> dict[str, Any]:
    found = {name: getattr(result, name) for name in ("package", "formula", "at", "code", "own")}
    for name, answer in zip(ORDERS, result.answers, strict=True):
        found[name] = {"reason": answer} if isinstance(answer, str) else answer
    return found


def _result(entry: Mapping[str, Any]) -> Result:
    answers = [
        answer["reason"] if isinstance(answer, dict) else tuple(map(float, answer))
        for answer in (entry[name] for name in ORDERS)
    ]
    at = tuple(map(float, entry["at"]))
    return Result(
        entry["package"], entry["formula"], at, entry["code"], entry["own"], tuple(answers)
    )
