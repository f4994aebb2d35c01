"""Provenance of a row: versions and sources, machine and settings, in the same columns everywhere.

A row measured by other code, another version of a package, on another processor or with other
settings is another measurement, so all of these belong to the key by which a sweep identifies its
rows. A version number does not identify the code of a package that is developed in place, so
difflab and plug-ins are also identified by a hash of their files; unlike modification times, the
hash does not depend on the location of the files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.machinery import all_suffixes
from importlib.util import find_spec
from pathlib import Path

from difflab.errors import printable
from difflab.lab.environment import environment, package_version
from difflab.lab.sweep import Cell, CellType, SweepLayout
from difflab.methods.registry import entry_point

MACHINE: Mapping[str, CellType] = {
    "difflab": str,
    "code": str,
    "python": str,
    "numpy": str,
    "scipy": str,
    "llvmlite": str,
    "packages": str,
    "system": str,
    "cpu": str,
    "threads": int,
}
"""The columns of what produces a row, apart from its settings."""
_SOURCE = {**MACHINE, "target": str, "timeout": float, "seed": int}
_ABOUT: Mapping[str, CellType] = {"date": str, "repetitions": int, "spread": float}
ADDED = frozenset({*_SOURCE, *_ABOUT})
"""The columns that `layout` adds."""
_HERE = ("difflab", "python", "numpy", "scipy", "llvmlite", "system", "cpu", "threads")
_CODE = tuple(suffix for suffix in all_suffixes() if suffix != ".pyc")
_DIGITS = 12


def layout(columns: Mapping[str, CellType], key: Sequence[str]) -> SweepLayout:
    """Return the layout of a bench: its own columns, followed by the provenance columns.

    Parameters
    ----------
    columns : mapping of str to type
        The bench's own columns.
    key : sequence of str
        Those of them that identify what is measured.

    Returns
    -------
    SweepLayout
        Its further columns are the versions of difflab (``code`` is a hash of its files),
        Python, NumPy, SciPy and llvmlite, the ``packages`` of the row's method, system,
        processor, threads, target, timeout in seconds and seed, which identify the row beside
        its key; then the ``date``, the ``repetitions`` behind a time and their ``spread``: the
        distance of the quartiles over the median.

    Examples
    --------
    >>> layout({"size": int, "seconds": float}, key=["size"]).source[:3]
    ('difflab', 'code', 'python')
    """
    return SweepLayout({**columns, **_SOURCE, **_ABOUT}, tuple(key), tuple(_SOURCE))


def source(
    method: object | None = None,
    *,
    uses: Sequence[str] = (),
    measured_by: str = "difflab",
    target: str | None = None,
    timeout: float | None = None,
    seed: int | None = None,
) -> dict[str, Cell]:
    """Return the provenance of a row, keyed by the columns of `layout`.

    Parameters
    ----------
    method : object, optional
        The method, peer or plug-in of the row.
    uses : sequence of str
        Distribution names of further packages that the row depends on.
    measured_by : str
        The module that measures; a hash of its package is stated if that is not difflab.
    target, timeout, seed : optional
        Settings; None for a setting without influence.
    """
    here = environment()
    versions = [*_versions(uses), *([] if method is None else packages(method))]
    versions += [found for found in _sources(measured_by) if found not in versions]
    return {
        **{name: here[name] for name in _HERE},
        "code": _own_code(),
        "packages": ", ".join(versions),
        "target": target,
        "timeout": timeout,
        "seed": seed,
    }


def packages(method: object) -> list[str]:
    """Return the versions of the packages that a method consists of, besides difflab.

    These are the distributions listed in its attribute `packages` and, for a plug-in, its own
    distribution with a hash of its source. ``"unusable"`` is appended if the method cannot run,
    since that may be fixed without a new version.

    Examples
    --------
    >>> from difflab.methods.registry import find
    >>> packages(find("reverse"))
    []
    >>> [text.split()[0] for text in packages(find("symbolic"))]
    ['sympy']
    """
    named = getattr(method, "packages", ())
    found = _versions(named if isinstance(named, tuple) else ())
    name = getattr(method, "name", None)
    entry = entry_point(name) if isinstance(name, str) else None
    module = type(method).__module__ if entry is None else entry.module
    dist = None if entry is None else entry.dist
    found += _sources(module, None if dist is None else f"{dist.name} {dist.version}")
    missing = getattr(method, "missing", None)
    if callable(missing) and missing() is not None:
        found.append("unusable")
    return found


def _sources(module: str, known: str | None = None) -> list[str]:
    """Return the name of a module outside of difflab with a hash of its source."""
    if module.partition(".")[0] == "difflab":
        return []
    return [printable(f"{known or module} (source {_source_hash(module)})")]


def _versions(names: Iterable[object]) -> list[str]:
    """Return name and version of the installed distributions among `names`."""
    found = ((str(name), package_version(str(name))) for name in names)
    return [f"{name} {version}" for name, version in found if version is not None]


@cache
def _own_code() -> str:
    import difflab

    return _hash([Path(folder) for folder in difflab.__path__], every=True)


def _source_hash(module: str) -> str:
    """Return a hash of the package that contains a module, or of a single module."""
    roots = list(_roots(module.partition(".")[0])) or list(_roots(module))
    return _hash(roots) if roots else "unknown"


def _roots(module: str) -> Iterator[Path]:
    """Yield the folders of a package, or the file of a module."""
    try:
        spec = getattr(sys.modules.get(module), "__spec__", None) or find_spec(module)
    except (ImportError, AttributeError, ValueError):  # raised by a broken package
        return
    if spec is None:
        return
    if spec.submodule_search_locations is not None:
        yield from map(Path, spec.submodule_search_locations)
    elif spec.has_location and spec.origin is not None:
        yield Path(spec.origin)


def _hash(roots: Sequence[Path], *, every: bool = False) -> str:
    """Return a hash of the names and contents of modules, or of `every` file."""
    digest = sha256()
    for root in roots:
        for path in _files(root):
            if every or path.endswith(_CODE):
                digest.update(os.path.relpath(path, root).encode("utf-8", "surrogatepass"))
                try:
                    digest.update(sha256(Path(path).read_bytes()).digest())
                except OSError:  # an unreadable file was not executed
                    continue
    return digest.hexdigest()[:_DIGITS]


def _files(root: Path) -> list[str]:
    """Return the sorted files of a folder, without Python's bytecode caches."""
    if root.is_file():
        return [str(root)]
    found: list[str] = []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name != "__pycache__"]
        found += [os.path.join(folder, name) for name in names]  # noqa: PTH118 - 10 × faster
    return sorted(found)
