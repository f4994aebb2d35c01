"""The columns of a comparison, a domain or a study, for pandas, Arrow and polars."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from difflab.errors import InputError
from difflab.lab.domain.record import DomainComparison
from difflab.lab.record import Comparison
from difflab.lab.side_by_side import SideBySide
from difflab.lab.study.cases import StudyStore, to_columns
from difflab.report.comparison import formats as comparison_data
from difflab.report.domain import formats as domain_data

_LARGEST = 2**63


def columns(
    source: Comparison | DomainComparison | SideBySide | str | os.PathLike[str],
) -> dict[str, list[Any]]:
    """Return a table as columns, which pandas, Arrow and polars take as a dataframe.

    ``pandas.DataFrame(columns)``, ``pyarrow.table(columns)`` and ``polars.DataFrame(columns)``
    make the dataframe of that library; difflab needs none of them.

    Parameters
    ----------
    source : result of `difflab.compare`, str or path
        A comparison has a row per method, one over a domain a row for each point and method, one
        with ``stabilise=True`` the rows of both forms. A path names the file of a study, which
        has a row per record.

    Returns
    -------
    dict of str to list
        Lists of one length. A missing value is None. Numbers are in full; an integer of more than
        63 bits, such as the size of a huge tree, is a float. The columns are those of
        ``difflab compare --format csv`` and ``difflab study export``.

    Raises
    ------
    difflab.errors.InputError
        The file is not that of a study, or `source` is nothing of the above.

    Examples
    --------
    >>> import difflab as dl
    >>> result = dl.compare("sin(x)", {"x": 0.5}, methods=["forward"], timing=False)
    >>> table = dl.columns(result)
    >>> table["method"], table["verdict"], table["operations"]
    (['forward'], ['agree'], [1])
    """
    return {name: [_narrow(cell) for cell in column] for name, column in _cells(source).items()}


def _cells(source: object) -> dict[str, list[Any]]:
    if isinstance(source, SideBySide):
        plain, stable = _cells(source.plain), _cells(source.stabilised)
        return {name: plain[name] + stable[name] for name in plain}
    if isinstance(source, Comparison):
        return comparison_data.columns(source)
    if isinstance(source, DomainComparison):
        return {name: column.tolist() for name, column in domain_data.columns(source).items()}
    if isinstance(source, str | os.PathLike):
        with StudyStore(Path(source)) as store:
            return to_columns(store.records())
    raise InputError(
        f"a table cannot be made of {type(source).__name__!r}",
        hint="give the result of difflab.compare, or the file of a study",
    )


def _narrow(cell: object) -> object:
    if not isinstance(cell, int) or -_LARGEST <= cell < _LARGEST:
        return cell
    try:
        return float(cell)
    except OverflowError:
        return float("inf") if cell > 0 else float("-inf")
