"""The content of the reports about a comparison over a domain, and its data as CSV and Parquet.

The data have a row for each point and method.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.optional import require
from difflab.core.table import csv_text, guarded
from difflab.lab.domain.judging import SILENT, VERDICTS, MethodJudged
from difflab.lab.domain.record import UNANSWERED, DomainComparison
from difflab.report.domain.plots import inline_svg
from difflab.report.domain.view import view as content
from difflab.report.summary import Summary
from difflab.report.terminal import clean

_ERRORS = ("absolute", "relative", "ulps")


def view(result: DomainComparison) -> Summary:
    """Return the content of the reports, with the picture of the page."""
    picture, caption = partial(inline_svg, result), "verdicts and errors over the domain"
    return replace(content(result), picture=picture, caption=caption)


def csv(result: DomainComparison) -> str:
    """Return the points as CSV (RFC 4180), floats in full precision.

    A row has the number of the point, the inputs, the referee's status, whether it is proved, the
    method, its verdict, its largest errors (empty where there is none) and the reason of the
    verdict. Text that a spreadsheet would treat as a formula begins with an apostrophe.
    """
    by_name = columns(result)
    lines = zip(*(_cells(column) for column in by_name.values()), strict=True)
    heading = [guarded(clean(name)) for name in by_name]
    return csv_text([heading, *lines])


def parquet(result: DomainComparison) -> bytes:
    """Return the points as an Apache Parquet file, with the columns of `csv`.

    Raises
    ------
    MissingDependencyError
        pyarrow is missing; the message says how to add it.
    """
    arrow: Any = require("pyarrow", extra="parquet")
    writer: Any = require("pyarrow.parquet", extra="parquet")
    by_name = columns(result)
    table = arrow.table({name: arrow.array(column) for name, column in by_name.items()})
    table = table.replace_schema_metadata({"difflab": result.to_json(indent=None)})
    buffer = BytesIO()
    writer.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def columns(result: DomainComparison) -> dict[str, NDArray[Any]]:
    """Return the columns by name, the methods one after the other; None for a missing error."""
    count, methods = len(result.points), len(result.methods)
    by_name: dict[str, NDArray[Any]] = {"point": np.tile(np.arange(count), methods)}
    for position, name in enumerate(_inputs(result)):
        by_name[name] = np.tile(result.points[:, position], methods)
    by_name["status"] = np.tile(np.array(result.referred.status), methods)
    by_name["proved"] = np.tile(result.referred.proved, methods)
    by_name["method"] = np.repeat(np.array([row.label for row in result.methods]), count)
    by_name["verdict"] = np.concatenate([_verdicts(each) for each in result.judged])
    for name in _ERRORS:
        sizes = np.concatenate([getattr(each, name) for each in result.judged])
        errors = sizes.astype(object)
        errors[np.isneginf(sizes)] = None
        by_name[f"{name.removesuffix('s')}_error"] = errors
    by_name["message"] = np.concatenate([_messages(each) for each in result.judged])
    return by_name


def _inputs(result: DomainComparison) -> Iterator[str]:
    """Yield the name of every flattened input."""
    reserved = {"point", "status", "proved", "method", "verdict", "message"}
    for variable in result.expression.inputs:
        name = f"{variable.name}_" if variable.name in reserved else variable.name
        for index in np.ndindex(variable.shape):
            yield f"{name}[{','.join(map(str, index))}]" if index else name


def _verdicts(judged: MethodJudged) -> NDArray[Any]:
    names = np.array([*map(str, VERDICTS), UNANSWERED], dtype=object)
    assert SILENT == -1  # the last name
    verdicts: NDArray[Any] = names[judged.verdicts]
    return verdicts


def _messages(judged: MethodJudged) -> NDArray[Any]:
    messages = np.full(len(judged.verdicts), "", dtype=object)
    for index, reason in judged.reasons.items():
        messages[index] = clean(reason)
    return messages


def _cells(column: NDArray[Any]) -> list[object]:
    """Return the cells of a column: floats in full precision, texts guarded against evaluation."""
    texts = (clean(cell) if isinstance(cell, str) else cell for cell in column.tolist())
    return [guarded(cell) if isinstance(cell, str) else cell for cell in texts]
