"""The cases: a formula, a point, and the code of each package for it, in files of TOML.

A file of ``cases/`` is a family; its first line says what the cases have in common. A case has a
``formula``, the point ``at`` (the values of x and y), and by column the code over a package's
functions: ``jax``, ``torch``, ``numpy``, … (`difflab.methods.peers.peer.Peer.columns`). A peer may
have such a table of its own instead (`difflab.methods.peers.peer.Peer.codes`). Code that begins
with ``~`` spells what the package has no function for. difflab computes the ``formula``,
the one in ``difflab`` if there is one, or the NumPy code in ``traced``. ``smooth`` is a case whose
truth ball arithmetic gives.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

FOLDER = Path(__file__).parent / "cases"
FAMILIES = ("kinks", "ties", "steps", "powers", "infinities", "special", "matrices")
"""The families, in the order of every table."""
_INPUTS = ("x", "y")
_FIELDS = {"formula", "at", "smooth"}
LANGUAGE, TRACED = "difflab", "traced"
"""The columns of difflab: a formula, or NumPy code."""


@dataclass(frozen=True)
class PackageCode:
    """Code over a package's functions, and whether the package has the function itself."""

    text: str
    own: bool = True

    @classmethod
    def read(cls, text: str) -> PackageCode:
        """Return the code of a table's entry."""
        return cls(text.removeprefix("~").strip(), not text.startswith("~"))


@dataclass(frozen=True)
class ConventionCase:
    """A formula at a point.

    Attributes
    ----------
    formula : str
        What is differentiated, for the reader.
    at : tuple of float
        The values of x, and of y if the formula has two variables.
    codes : mapping
        The code by column: that of difflab is under ``difflab`` or ``traced``.
    smooth : bool
        Whether it is smooth at the point, so that there is a true derivative.
    """

    family: str
    formula: str
    at: tuple[float, ...]
    codes: Mapping[str, PackageCode]
    smooth: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the variables."""
        return _INPUTS[: len(self.at)]

    @property
    def point(self) -> str:
        """The point as text, such as ``x = 0, y = 1``."""
        pairs = zip(self.inputs, self.at, strict=True)
        return ", ".join(f"{name} = {value:g}" for name, value in pairs)

    def code(
        self, columns: Sequence[str], own: Mapping[str, str] = MappingProxyType({})
    ) -> PackageCode | None:
        """Return the code of the first column that has any, else that of a peer's own table."""
        code = next((self.codes[name] for name in columns if name in self.codes), None)
        if code is None and self.formula in own:
            return PackageCode.read(own[self.formula])
        return code


@dataclass(frozen=True)
class ConventionFamily:
    """Cases of one file, and the sentence at its head."""

    name: str
    title: str
    cases: tuple[ConventionCase, ...]


@cache
def families() -> tuple[ConventionFamily, ...]:
    """Return all families.

    Examples
    --------
    >>> families()[0].title
    'Kinks: the slope jumps, or is infinite.'
    >>> families()[0].cases[0].point
    'x = 0'
    """
    return tuple(map(_read, FAMILIES))


def cases() -> Iterator[ConventionCase]:
    """Yield the cases of all families."""
    for family in families():
        yield from family.cases


def _read(name: str) -> ConventionFamily:
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    title = text.partition("\n")[0].removeprefix("#").strip()
    listed = tomllib.loads(text)["case"]
    return ConventionFamily(name, title, tuple(_case(name, entry) for entry in listed))


def _case(family: str, entry: dict[str, object]) -> ConventionCase:
    formula, at = str(entry["formula"]), entry["at"]
    assert isinstance(at, list)
    codes = {
        column: PackageCode.read(text)
        for column, text in entry.items()
        if column not in _FIELDS and isinstance(text, str)
    }
    if not {LANGUAGE, TRACED} & codes.keys():
        codes[LANGUAGE] = PackageCode(formula)
    point = tuple(map(float, at))
    return ConventionCase(family, formula, point, codes, bool(entry.get("smooth")))
