"""Provenance of a row: versions and sources, machine and settings, in the same columns everywhere.

A row measured by other code, another version of a package, on another processor or with other
settings is another measurement, so all of these belong to the key by which a sweep identifies its
rows. A version number does not identify the code of a package that is developed in place, so
difflab and plug-ins are also identified by a hash of their files; unlike modification times, the
hash does not depend on the location of the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from difflab.lab.environment import environment, own_code, packages, sources, versions
from difflab.lab.sweep import Cell, CellType, SweepLayout

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
    distributions = [*versions(uses), *([] if method is None else packages(method))]
    distributions += [text for text in sources(measured_by) if text not in distributions]
    return {
        **{name: here[name] for name in _HERE},
        "code": own_code(),
        "packages": ", ".join(distributions),
        "target": target,
        "timeout": timeout,
        "seed": seed,
    }
