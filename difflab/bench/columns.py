"""Layouts of benches by the names of their columns: one name has one type in all benches."""

from __future__ import annotations

from difflab.lab import provenance
from difflab.lab.sweep import CellType, SweepLayout

_INTEGERS = """
bytes columns depth evaluations inputs layers m n numbers operations outputs points recomputed rows
snapshots steps
"""
_REALS = """
bound break_even error high low peak_states ratio seconds step tolerance ulps
"""
_TYPES: dict[str, CellType] = dict.fromkeys(_INTEGERS.split(), int)
_TYPES |= dict.fromkeys(_REALS.split(), float)


def layout(columns: str, key: str) -> SweepLayout:
    """Return the layout of a bench, its columns followed by those of the provenance.

    Parameters
    ----------
    columns : str
        The names of the bench's own columns. The name, or its last word, gives the type:
        ``call_seconds`` is a real number, as all seconds; what has no other type is text.
    key : str
        Those of them that identify what is measured.

    Returns
    -------
    SweepLayout
        As `difflab.lab.provenance.layout`.

    Examples
    --------
    >>> layout("method inputs call_seconds", key="method inputs").columns["call_seconds"]
    <class 'float'>
    """
    types = {name: _type(name) for name in columns.split()}
    return provenance.layout(types, key.split())


def _type(name: str) -> CellType:
    return _TYPES.get(name) or _TYPES.get(name.rpartition("_")[2], str)
