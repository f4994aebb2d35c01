"""A comparison as one HTML page without network access, in a light or a dark theme.

All text is escaped; the picture is part of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from difflab.core.wording import counted
from difflab.report.comparison.plots import inline_svg
from difflab.report.comparison.view import ComparisonView, DisplayedRow, view
from difflab.report.style import FAMILIES, PLAIN, seconds, shorten

__all__ = ["document", "fragment", "index", "page", "style", "summary"]

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
  & td.name { white-space: nowrap; }
  & td.name::before { content: ""; display: inline-block; width: .65em; height: .65em;
    margin-right: .5em; border-radius: 50%; background: var(--family); }
  & .agree, & .convention { color: var(--good); }
  & .disagree, & .failed { color: var(--bad); font-weight: 600; }
  & .inconclusive, & .timeout { color: var(--odd); }
  & .unsupported, & .note, & footer { color: var(--faint); }
  & .note { margin: .25rem 0; }
  & .sentence { border-left: 3px solid var(--good); padding: .25rem 0 .25rem .9rem;
    font-weight: 600; margin: 1.25rem 0; }
  & .wrong .sentence { border-color: var(--bad); }
  & svg { display: block; width: 100%; height: auto; margin: 1rem 0; }
  & summary { cursor: pointer; padding: .4rem 0; }
  & details { border-bottom: 1px solid var(--line); }
  & footer { margin-top: 2.5rem; font-size: .85rem; }
}
"""
_PAGE_STYLE = """
html { color-scheme: light dark; }
body.difflab { margin: 0 auto; padding: 2rem 1.25rem 3rem; min-height: 100vh; }
html:has(body.difflab) { background: #fff; }
@media (prefers-color-scheme: dark) { html:has(body.difflab) { background: #16181b; } }
"""
# The page has no scripts and loads nothing; the policy makes the browser enforce this.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(comparison: Any) -> str:
    """Return a comparison as a whole HTML page.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.
    """
    shown = view(comparison)
    return document(f"{shown.derivative_name} of {shown.expression}", _whole(comparison, shown))


def fragment(comparison: Any) -> str:
    """Return a comparison as a part of another page, such as a notebook.

    Parameters
    ----------
    comparison : Comparison or mapping
        The record of a comparison, or its dictionary.
    """
    body = _whole(comparison, view(comparison))
    return "\n".join(['<div class="difflab">', style(), *body, "</div>"])


def style() -> str:
    """Return the style of elements of the class ``difflab``."""
    return f"<style>{_STYLE}</style>"


def _whole(comparison: Any, shown: ComparisonView) -> list[str]:
    """Return the texts and the picture of one comparison."""
    return [
        f"<main{'' if shown.agreed else ' class=wrong'}>",
        f"<h1>{escape(shown.derivative_name.capitalize())} of</h1>",
        *summary(shown),
        '<figure style="margin:0" role="img" aria-label="accuracy against cost">',
        inline_svg(comparison),
        "</figure>",
        _footer(shown.environment),
        "</main>",
    ]


def index(comparisons: Sequence[tuple[str, Any]], faults: Mapping[str, str]) -> str:
    """Return one page about many saved comparisons, those with a wrong method first.

    Parameters
    ----------
    comparisons : sequence of (str, Comparison or mapping)
        The name of each file, and its comparison.
    faults : mapping of str to str
        The files that could not be read as a comparison, and why.
    """
    views = [(name, view(comparison)) for name, comparison in comparisons]
    wrong = sum(not shown.agreed for _, shown in views)
    body = [
        "<main>",
        f"<h1>{counted(len(views), 'comparison')}, {wrong} with a method that disagrees</h1>",
    ]
    for name, shown in sorted(views, key=lambda pair: (pair[1].agreed, pair[0])):
        body += [
            f"<details{'' if shown.agreed else ' open class=wrong'}>",
            f"<summary><code>{escape(shorten(shown.expression, 90))}</code> "
            f'<span class="note">{escape(_in_short(shown))} · {escape(name)}</span></summary>',
            *summary(shown),
            "</details>",
        ]
    if faults:
        body += ["<h2>Skipped</h2>", "<ul>"]
        body += [
            f"<li><code>{escape(name)}</code>: {escape(why)}</li>" for name, why in faults.items()
        ]
        body.append("</ul>")
    return document("difflab comparisons", [*body, "</main>"])


def _in_short(shown: ComparisonView) -> str:
    """Return the number of methods that agree, and the fastest of them."""
    agreeing = [row for row in shown.rows if row.outcome in ("agree", "convention")]
    text = f"{len(agreeing)} of {len(shown.rows)} agree"
    timed = [(row.call, row.name) for row in agreeing if row.call is not None]
    if not timed:
        return text
    call, name = min(timed)
    return f"{text}, fastest {name} ({seconds(call)})"


def summary(shown: ComparisonView) -> list[str]:
    """Return all but the picture."""
    parts = [f"<pre>{escape(shown.expression)}</pre>", "<dl>"]
    facts = [("at", shown.point + ("  (chosen by difflab)" if shown.chosen else ""))]
    facts += [("value", shown.value)]
    facts += [(shown.derivative_name, entry) for entry in shown.entries]
    facts += [("referee", shown.referee)]
    last = ""
    for label, text in facts:
        parts.append(f"<dt>{escape('' if label == last else label)}</dt><dd>{escape(text)}</dd>")
        last = label
    parts += ["</dl>", '<div class="scroll"><table>', _head(shown.headings), "<tbody>"]
    parts += [_line(row) for row in shown.rows]
    parts.append("</tbody></table></div>")
    parts += [
        f'<p class="note">{escape(name)}: {escape(message)}</p>' for name, message in shown.notes
    ]
    if shown.sentence:
        parts.append(f'<p class="sentence">{escape(shown.sentence)}</p>')
    return parts


def _head(headings: Sequence[str]) -> str:
    cells = (
        f'<th scope="col"{" class=figure" if column > 1 else ""}>{escape(heading)}</th>'
        for column, heading in enumerate(headings)
    )
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def _line(row: DisplayedRow) -> str:
    name, outcome, *figures = row.cells
    colour = FAMILIES.get(row.family, PLAIN).colour
    cells = [
        f'<td class="name" style="--family:{colour}">{escape(name)}</td>',
        f'<td class="{escape(outcome)}">{escape(outcome)}</td>',
        *(f'<td class="figure">{escape(figure)}</td>' for figure in figures),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _footer(environment: Sequence[tuple[str, str]]) -> str:
    return (
        f"<footer>{escape(' · '.join(f'{name} {value}' for name, value in environment))}</footer>"
    )


def document(title: str, body: Sequence[str]) -> str:
    """Return a whole page with the lines of `body`, whose texts are already escaped."""
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{_PAGE_STYLE}</style>\n</head>\n"
        '<body class="difflab">\n'
    )
    return head + "\n".join(body) + "\n</body>\n</html>\n"
