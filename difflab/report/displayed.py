"""Base class of the public results of comparisons: their displays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Self

from difflab.report.terminal import WIDTH

_WRITERS = {"md": "markdown", "html": "page"}
"""The reports that have another name than their format."""


def report_of(result: Any, form: str, reports: Any, **screen: Any) -> Any:
    """Return a report by a function of a module of reports, else by its `view` of the result."""
    name = _WRITERS.get(form, form)
    own = getattr(reports, name, None)
    return getattr(reports.view(result), name)(**screen) if own is None else own(result, **screen)


class Displayed:
    """A dataclass whose `repr` is its table, shown as HTML as the result of a notebook's cell."""

    _reports: ClassVar[Any]
    """The module of its reports."""

    @classmethod
    def of(cls, record: Any) -> Self:
        """Return a record of the lab with a display."""
        return cls(**{item.name: getattr(record, item.name) for item in fields(record)})

    def table(self, *, width: int = WIDTH) -> str:
        """Return the table that ``difflab compare`` prints."""
        return str(report_of(self, "table", self._reports, width=width))

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks display."""
        return str(report_of(self, "fragment", self._reports))
