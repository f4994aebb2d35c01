"""Records of the checks of a test suite: as properties of the tests, and as a page.

A check is a property ``difflab.check`` of its test, in JSON. pytest sends the properties of a test
from the workers of pytest-xdist, and writes them into JUnit's file.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflab.core.system import write_whole
from difflab.testing import GradientMismatch, GradientUnjudged

PROPERTY = "difflab.check"
"""The name of the property of a test that describes one check."""

_STYLE = """
html { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em }
table { border-collapse: collapse; width: 100% }
td, th { padding: .3em .8em; text-align: left; vertical-align: top }
td:nth-child(-n+2), .message p { overflow-wrap: anywhere } th:last-child { text-align: right }
.check td { border-top: 1px solid #8886 } td.n { text-align: right; white-space: nowrap }
.message td { max-width: 0; padding-bottom: 1em }
.message pre { margin: .3em 0; overflow-x: auto }
.message p { margin: 0; white-space: pre-wrap }
.wrong, .failed { color: #b3261e; font-weight: bold }
.unjudged { color: #8c6d1f; font-weight: bold }
@media (max-width: 40em) { td, th { padding: .3em .3em } body { font-size: 13px } }
@media (prefers-color-scheme: dark) { body { background: #16181b; color: #e8eaed }
.wrong, .failed { color: #ff8a80 } .unjudged { color: #f2c063 } }
"""
_COLUMNS = ("test", "function", "point", "verdict", "time")


def recorded(
    check: Callable[..., None], properties: list[tuple[str, object]]
) -> Callable[..., None]:
    """Return the check, which also appends a record of every call to `properties`."""
    signature = inspect.signature(check)

    @wraps(check)
    def checked(*arguments: Any, **options: Any) -> None:
        __tracebackhide__ = True
        record = _described(signature.bind(*arguments, **options).arguments)
        start = time.perf_counter()
        try:
            check(*arguments, **options)
            record["verdict"] = "right"
        except GradientMismatch as error:
            record["verdict"] = "unjudged" if isinstance(error, GradientUnjudged) else "wrong"
            record["message"] = str(error)
            raise
        except BaseException as error:
            record |= {"verdict": "failed", "message": f"{type(error).__name__}: {error}"}
            raise
        finally:
            record["seconds"] = round(time.perf_counter() - start, 6)
            properties.append((PROPERTY, json.dumps(record)))

    return checked


def _described(arguments: Mapping[str, Any]) -> dict[str, object]:
    """Return the name of the function, and shape and precision of a point that is an array."""
    f: Any = arguments["f"]
    x: Any = arguments.get("x")
    record: dict[str, object] = {"function": getattr(f, "__qualname__", type(f).__name__)}
    if arguments.get("others"):
        return record
    with suppress(TypeError, ValueError):  # a tree
        point = x if hasattr(x, "dtype") and hasattr(x, "shape") else np.asarray(x, dtype=float)
        record |= {"shape": [int(side) for side in point.shape], "dtype": str(point.dtype)}
    return record


class CheckReport:
    """A plug-in that gathers the checks of all tests and writes the page when they have run.

    Parameters
    ----------
    path : str
        The page.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._checks: list[tuple[str, dict[str, Any]]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather the checks of a test, which its last phase reports with those before."""
        if report.when == "teardown":
            self._checks += [
                (report.nodeid, json.loads(str(value)))
                for name, value in report.user_properties
                if name == PROPERTY
            ]

    def pytest_sessionfinish(self) -> None:
        """Write the page."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole({self._path: self.page().encode()})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the page."""
        terminalreporter.write_line(f"{len(self._checks)} derivative checks: {self._path}")

    def page(self) -> str:
        """Return the page: a row for every check, those that failed first, its message below."""
        order = sorted(self._checks, key=lambda entry: (_right(entry), entry[0]))
        rows = "\n".join(_row(*entry) for entry in order)
        wrong = sum(not _right(entry) for entry in order)
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>Derivative checks</title><style>{_STYLE}</style></head>\n<body>"
            f"<h1>Derivative checks</h1>\n<p>{len(order)} checks, {wrong} failed</p>\n"
            f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
            "</body></html>\n"
        )


def _right(entry: tuple[str, dict[str, Any]]) -> bool:
    return bool(entry[1]["verdict"] == "right")


def _row(test: str, record: dict[str, Any]) -> str:
    shape = "×".join(map(str, record.get("shape", []))) or "scalar"
    point = f"{shape} {record['dtype']}" if "dtype" in record else ""
    cells = (test, record["function"], point)
    shown = "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
    verdict = record["verdict"]
    row = (
        f'<tr class="check">{shown}<td class="{verdict}">{verdict}</td>'
        f'<td class="n">{1000 * record["seconds"]:.1f} ms</td></tr>'
    )
    message = record.get("message")
    if not message:
        return row
    return f'{row}\n<tr class="message"><td colspan="{len(_COLUMNS)}">{_message(message)}</td></tr>'


def _message(message: str) -> str:
    """Return a message as HTML: its indented lines, a table, are not wrapped."""
    parts = []
    for indented, lines in groupby(message.splitlines(), key=lambda line: line.startswith("  ")):
        tag = "pre" if indented else "p"
        parts.append(f"<{tag}>{escape(chr(10).join(lines))}</{tag}>")
    return "".join(parts)
