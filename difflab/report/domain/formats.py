"""The content of the reports about a comparison over a domain, and its data as CSV and Parquet."""

from difflab.report.domain.data import csv, parquet
from difflab.report.domain.view import view

__all__ = ["csv", "parquet", "view"]
