"""`explore`: the page of a function at a point, one HTML file, with the verdict on every method."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from difflab.core.strict_json import strict
from difflab.core.system import write_whole
from difflab.core.wording import error
from difflab.diagnose.point_check import checked_point
from difflab.drawing import BoxKind
from difflab.drawing.svg import DARK, LIGHT
from difflab.errors import DifflabError, InputError
from difflab.explore.content import Content, content
from difflab.explore.scalars import SPARE_TURNS
from difflab.graph.function import Function
from difflab.lab.compare import compare, parsed
from difflab.lab.record import Comparison, MethodRow
from difflab.report.comparison.view import ComparisonView, view
from difflab.report.summary import point_text
from difflab.report.terminal import shorten

LARGEST_PAGE = 300_000
"""Most bytes of a page."""
SCRIPTS = (
    *("text.js", "engine.js", "graph.js", "steps.js", "panels.js", "difference.js", "state.js"),
    "main.js",
)
TITLE = 80
_ROLES = {
    **{name: name for name in ("paper", "ink", "quiet", "line", "value", "bad")},
    "derivative": "bar",
    "good": "output line",
    "accent": "input line",
    "focus": "operation line",
    "card": "constant",
    "lit": "operation",
    "rule": "constant",
    "central": "input line",
    "onesided": "operation line",
}
"""The colours of the page, which are those of the pictures."""


def page(content: Content, *, above: str = "", policy: str = "", served: bool = False) -> str:
    """Return the page of a function, without anything to load.

    Parameters
    ----------
    content : Content
    above : str
        HTML above the formula.
    policy : str
        What the page may do beyond running its own script, as a content security policy.
    served : bool
        Whether it asks its server for the verdicts.

    Raises
    ------
    InputError
        The page would be too large.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.explore.content import content
    >>> text = page(content(dl.parse("x < 1"), {"x": 2.0}))
    >>> "x &lt; 1" in text, "<script src" in text
    (True, False)
    """
    scripts = [_file(name) for name in (*SCRIPTS, *(["served.js"] * served))]
    run = "\n".join(['(() => {\n"use strict";', content.script, *scripts, "})();"])
    allowed = b64encode(sha256(run.encode()).digest()).decode("ascii")
    text = _filled(
        "page.html",
        policy=f"script-src 'sha256-{allowed}'; {policy}",
        title=escape(shorten(" ".join(content.data["text"].split()), TITLE)),
        above=above,
        data=_data(content.data),
        script=run,
    )
    size = len(text.encode())
    if size > LARGEST_PAGE:
        raise InputError(
            f"the page would have {size:,} bytes, more than {LARGEST_PAGE:,}",
            hint="difflab graph and difflab trace summarise larger functions",
        )
    return text


def refused(message: str, above: str, policy: str) -> str:
    """Return the page of a server that says why there is no other."""
    return _filled("refused.html", policy=policy, above=above, message=escape(message))


def _filled(name: str, *, policy: str, **parts: str) -> str:
    """Return a page with its style and a content security policy for its own scripts."""
    rules = f"default-src 'none'; style-src 'unsafe-inline'; {policy}"
    style = f"{_colours()}\n{_file('style.css')}"
    return Template(_file(name)).substitute(parts, policy=rules.rstrip("; "), style=style)


def _data(data: Mapping[str, Any]) -> str:
    """Return data as JSON that ends no element of the page."""
    text = json.dumps(strict(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


@cache
def _file(name: str) -> str:
    return (files("difflab.explore") / "assets" / name).read_text(encoding="utf-8")


@cache
def _colours() -> str:
    """Return the colours as variables, light and dark."""
    schemes = []
    for colours in (LIGHT, DARK):
        custom = [f"--{role}: {colours[name]};" for role, name in _ROLES.items()]
        for kind in BoxKind:
            custom += [f"--{kind}: {colours[kind]};", f"--{kind}-line: {colours[f'{kind} line']};"]
        schemes.append(f":root {{ {' '.join(custom)} }}")
    light, dark = schemes
    kinds = [
        f".fill-{kind} {{ fill: var(--{kind}); stroke: var(--{kind}-line); }}" for kind in BoxKind
    ]
    screen = f"@media screen and (prefers-color-scheme: dark) {{ {dark} }}"
    return "\n".join([light, screen, *kinds])


JUDGED = 400
"""Most nodes of a function whose derivatives are judged by every method."""
TIMEOUT = 5.0
"""Seconds of each method."""
FRAME = 900
"""Height of the page in a notebook, in pixels."""


@dataclass(frozen=True, eq=False, repr=False)
class ExplorePage:
    """A page on which value and derivative of a function are followed step by step.

    Attributes
    ----------
    text : str
        The function.
    at : str
        The point.
    """

    text: str
    at: str
    page: str

    def html(self) -> str:
        """Return the page, which stands alone: it loads nothing."""
        return self.page

    def save(self, path: str | Path) -> None:
        """Write the page to a file.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        write_whole({Path(path): self.page.encode()})

    def _repr_html_(self) -> str:
        """Return a frame with the page, which may run nothing but its own script."""
        return (
            f'<iframe sandbox="allow-scripts" title="{escape(self.text[:200], quote=True)}" '
            f'style="width:100%;height:{FRAME}px;border:0" '
            f'srcdoc="{escape(self.page, quote=True)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<page of {' '.join(self.text.split())[:60]} at {self.at}>"


def explore(
    function: Function, at: Mapping[str, Any] | None = None, *, verdicts: bool = True
) -> ExplorePage:
    """Return the page of ``difflab explore``, on which the derivative is followed by steps.

    Arrays are followed element by element. The page computes in the browser, at any point, with
    the JavaScript that difflab prints; the verdicts on the methods are those at `at`.

    Parameters
    ----------
    at : mapping, optional
        A value for every input; by default a point inside the domain is chosen.
    verdicts : bool
        Whether the methods are compared at the point, and the page shows their verdicts.

    Returns
    -------
    ExplorePage
        Shows itself in a notebook; ``html()`` is the page, and ``save("page.html")`` writes it.

    Raises
    ------
    InputError
        An operation on arrays or a loop cannot be followed on numbers, or the page would be
        too large.
    PointError
        A value is missing, unknown, not finite or of the wrong shape.
    UnsupportedError
        JavaScript has no function for an operation, such as ``digamma``.

    Examples
    --------
    >>> import difflab as dl
    >>> dl.parse("x*sin(y)").explore({"x": 2, "y": 0})
    <page of x*sin(y) at x = 2, y = 0>
    >>> explore(dl.parse("x*sin(y)"), {"x": 2, "y": 1}, verdicts=False)
    <page of x*sin(y) at x = 2, y = 1>
    """
    point = checked_point(function, at, inside=False)
    contents = filled(function, point)
    if verdicts:
        contents.data["verdicts"] = _judged(function, point)
    return ExplorePage(contents.data["text"], point_text(point), page(contents))


def filled(function: Function, point: Mapping[str, Any]) -> Content:
    """Return the content of a page without verdicts.

    Raises
    ------
    InputError
        The function has no input, or cannot be written as operations on numbers.
    """
    parsed(function, 1, TIMEOUT)
    contents = content(function, point)
    contents.data["lead"] = ""
    contents.data["key"] = (
        f"{contents.data['picture']['summary']}. In a box: its value and, below, its derivative. "
        "Dashed: a branch that is not taken. Point at a box, a row, a line of code or a part of "
        "the formula to find it in the others; click to go there."
    )
    if most := contents.data["turns"]:
        contents.data["key"] += (
            f" A loop with a condition is written out for up to {most} turns, {SPARE_TURNS} more"
            " than at the point of the page: where a point needs more, the result is NaN."
        )
    return contents


def _judged(function: Function, point: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the verdict on every method at a point; None for a large or undefined function."""
    if len(function.graph) > JUDGED:
        return None
    try:
        return verdicts(compare(function, point, timing=False, timeout=TIMEOUT))
    except DifflabError:
        return None


def verdicts(comparison: Comparison) -> dict[str, Any]:
    """Return the verdicts of a comparison as texts."""
    shown: ComparisonView = view(comparison)
    return {
        "at": shown.point,
        "referee": shown.referee,
        "rows": [row_texts(row) for row in shown.rows],
        "notes": [list(note) for note in shown.notes],
        "sentence": shown.sentence,
    }


def row_texts(row: MethodRow) -> dict[str, str]:
    """Return the verdict on one method as texts."""
    return {"name": row.name, "outcome": str(row.outcome), "error": error(row.max_abs_error)}
