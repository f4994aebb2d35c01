"""The page itself: one HTML file that holds its style, its script and its data."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from difflab.core.strict_json import strict
from difflab.drawing import BoxKind
from difflab.drawing.svg import DARK, LIGHT
from difflab.errors import InputError
from difflab.explore.content import Content
from difflab.report.style import shorten

__all__ = ["LARGEST_PAGE", "page", "refused"]

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
    """Return a page with its style, and the policy that allows what is its own."""
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
        found = [f"--{role}: {colours[name]};" for role, name in _ROLES.items()]
        for kind in BoxKind:
            found += [f"--{kind}: {colours[kind]};", f"--{kind}-line: {colours[f'{kind} line']};"]
        schemes.append(f":root {{ {' '.join(found)} }}")
    light, dark = schemes
    kinds = [
        f".fill-{kind} {{ fill: var(--{kind}); stroke: var(--{kind}-line); }}" for kind in BoxKind
    ]
    screen = f"@media screen and (prefers-color-scheme: dark) {{ {dark} }}"
    return "\n".join([light, screen, *kinds])
