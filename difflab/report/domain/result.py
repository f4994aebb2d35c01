"""The public form of a comparison over a domain, with a display in notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from difflab.core.system import write_whole
from difflab.errors import InputError
from difflab.lab.domain.record import DomainComparison
from difflab.report.domain import formats
from difflab.report.terminal import Displayed


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DomainResult(Displayed, DomainComparison):
    """A `difflab.lab.domain.record.DomainComparison` with a display.

    Its `repr` is the table; as the result of a notebook's cell it is shown as HTML.
    """

    _reports: ClassVar[Any] = formats

    def plot(self, path: str | Path) -> None:
        """Draw verdicts and errors over the domain.

        Parameters
        ----------
        path : str or path
            A file that ends in ``.svg``, ``.png`` or ``.pdf``.

        Raises
        ------
        difflab.errors.InputError
            The name has another ending, or the file cannot be written.
        """
        from difflab.report.domain.plots import picture

        path = Path(path)
        write_whole({path: picture(self, path.suffix[1:].lower())})

    def save(self, path: str | Path) -> None:
        """Write the verdicts at all points, a row for each point and method.

        Parameters
        ----------
        path : str or path
            A file that ends in ``.csv`` or ``.parquet``, which needs ``difflab[parquet]``.

        Raises
        ------
        difflab.errors.InputError
            The name has another ending, or the file cannot be written.
        """
        from difflab.report.domain.formats import csv, parquet

        path = Path(path)
        kind = path.suffix.lower()
        if kind not in (".csv", ".parquet"):
            raise InputError(
                f"cannot tell the format of the data from {str(path)!r}",
                hint="end the name in .csv or .parquet",
            )
        write_whole({path: csv(self).encode() if kind == ".csv" else parquet(self)})
