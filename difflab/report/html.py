"""HTML pages without network access, in a light or a dark theme, and their parts.

All text is escaped.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape

from difflab.core.table import Cell, Column, Table
from difflab.report.terminal import FAMILIES

# All rules are nested, so that a comparison in a notebook does not change the notebook's style.
_STYLE = """
.difflab { --paper: #fff; --ink: #1b1c1d; --faint: #63676c; --line: #d9dce0; --panel: #f5f6f8;
  --good: #00724f; --bad: #b3261e; --odd: #8a5a00; --mono: ui-monospace, Menlo, monospace;
  max-width: 62rem; padding: 1rem 1.25rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif;
  @media (prefers-color-scheme: dark) { --paper: #16181b; --ink: #e8eaed; --faint: #a0a6ad;
    --line: #363a40; --panel: #202328; --good: #5fd3a6; --bad: #ff8a80; --odd: #f2c063; }
  & * { box-sizing: border-box; }
  & h1 { font-size: 1.15rem; margin: 0 0 .5rem; font-weight: 600; }
  & h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
  & pre { background: var(--panel); color: inherit; padding: .75rem 1rem; border-radius: 6px;
    margin: 0 0 1rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 1.05rem; }
  & code, & pre, & td.figure, & dd { font-family: var(--mono); }
  & dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem;
    margin: 0 0 1rem; }
  & dt { color: var(--faint); font-weight: normal; }
  & dd { margin: 0; overflow-wrap: anywhere; }
  & .scroll { overflow-x: auto; }
  & table { border-collapse: collapse; color: inherit; width: 100%; font-size: .92rem; }
  & th, & td { padding: .35rem .6rem; border: 0; border-bottom: 1px solid var(--line);
    text-align: left; background: none; }
  & th { color: var(--faint); font-weight: 600; white-space: nowrap; }
  & th.figure, & td.figure { text-align: right; white-space: nowrap; }
  & td:is(.symbolic, .numeric, .automatic, .date) { white-space: nowrap; }
  & td:is(.symbolic, .numeric, .automatic)::before { content: ""; display: inline-block;
    width: .65em; height: .65em; margin-right: .5em; border-radius: 50%;
    background: var(--family); }
  & td.point { min-width: 9rem; overflow-wrap: anywhere; }
  & .symbolic { --family: SYMBOLIC; } & .numeric { --family: NUMERIC; }
  & .automatic { --family: AUTOMATIC; }
  & .agree, & .convention, & .declared { color: var(--good); }
  & .disagree, & .failed { color: var(--bad); font-weight: 600; }
  & .inconclusive, & .timeout { color: var(--odd); }
  & .unsupported, & .note, & footer { color: var(--faint); }
  & .note { margin: .25rem 0; }
  & .sentence { border-left: 3px solid var(--good); padding: .25rem 0 .25rem .9rem;
    font-weight: 600; margin: 1.25rem 0; }
  & .wrong .sentence { border-color: var(--bad); }
  & svg { display: block; width: 100%; height: auto; margin: 1rem 0; }
  & .picture { overflow-x: auto; }
  & .picture > svg { min-width: 40rem; }
  & th button { all: unset; cursor: pointer; }
  & th[aria-sort=ascending]::after { content: " ▲"; }
  & th[aria-sort=descending]::after { content: " ▼"; }
  & a { color: inherit; }
  & summary { cursor: pointer; padding: .4rem 0; }
  & details { border-bottom: 1px solid var(--line); }
  & .wide { --width: max(100%, min(80rem, 100vw - 4rem)); width: var(--width);
    margin-inline: calc(50% - var(--width) / 2); }
  & footer { margin-top: 2.5rem; font-size: .85rem; }
}
"""
_PAGE_STYLE = """
html { color-scheme: light dark; }
body.difflab { margin: 0 auto; padding: 2rem 1.25rem 3rem; min-height: 100vh;
  box-sizing: border-box; }
html:has(body.difflab) { background: #fff; }
@media (prefers-color-scheme: dark) { html:has(body.difflab) { background: #16181b; } }
"""
for _name, _family in FAMILIES.items():
    _STYLE = _STYLE.replace(_name.upper(), _family.colour)

# The page loads nothing and runs no script but its own; the policy makes the browser enforce this.
# Pictures stand in the page itself: an SVG may contain images.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title: str, body: Sequence[str], script: str = "") -> str:
    """Return a whole page with the lines of `body`, whose texts are already escaped.

    A `script` is run at the end of the page.
    """
    policy = _POLICY
    if script:
        allowed = b64encode(sha256(script.encode()).digest()).decode("ascii")
        policy += f"; script-src 'sha256-{allowed}'"
        body = [*body, f"<script>{script}</script>"]
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{_PAGE_STYLE}</style>\n</head>\n"
        '<body class="difflab">\n'
    )
    return head + "\n".join(body) + "\n</body>\n</html>\n"


def fragment(body: Sequence[str]) -> str:
    """Return lines of HTML as a part of another page, such as a notebook, with their style."""
    return "\n".join([f'<div class="difflab">\n<style>{_STYLE}</style>', *body, "</div>"])


def labelled(pairs: Iterable[tuple[str, str]]) -> str:
    """Return labelled texts as a list of terms."""
    terms = (f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in pairs)
    return f"<dl>\n{''.join(terms)}\n</dl>"


def table(content: Table) -> str:
    """Return a table; the kind of each cell is its class."""
    lines = "\n".join(_line("td", content.columns, line) for line in content.lines())
    head = _line("th", content.columns, map(Cell, content.headings))
    body = f"<thead>{head}</thead>\n<tbody>\n{lines}\n</tbody>"
    return f'<div class="scroll"><table>\n{body}</table></div>'


def _line(tag: str, columns: Sequence[Column], cells: Iterable[Cell]) -> str:
    line = []
    for column, cell in zip(columns, cells, strict=True):
        names = " ".join(filter(None, ("figure" * column.right, escape(cell.kind))))
        scope = ' scope="col"' if tag == "th" else ""
        classes = f' class="{names}"' if names else ""
        line.append(f"<{tag}{scope}{classes}>{escape(cell.text)}</{tag}>")
    return f"<tr>{''.join(line)}</tr>"
