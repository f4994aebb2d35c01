"""The content of the reports about a comparison over a domain, and its data as CSV and Parquet."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from difflab.lab.domain.record import DomainComparison
from difflab.report.domain.data import csv, parquet
from difflab.report.domain.plots import inline_svg
from difflab.report.domain.view import view as content
from difflab.report.summary import Summary

__all__ = ["csv", "parquet", "view"]


def view(result: DomainComparison) -> Summary:
    """Return the content of the reports, with the picture of the page."""
    picture, caption = partial(inline_svg, result), "verdicts and errors over the domain"
    return replace(content(result), picture=picture, caption=caption)
