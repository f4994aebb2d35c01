"""The files of a site: `index.html`, a page for each comparison, and the store itself.

The tables of its index can be sorted and filtered, by a script.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from difflab.core.wording import counted, exact, seconds
from difflab.lab.diff.sides import STORE_IN_SITE
from difflab.lab.domain.record import read_rows
from difflab.lab.kinds import RecordColumn
from difflab.lab.record import STORED, Comparison, from_dict
from difflab.lab.store import Record, unpacked_json
from difflab.lab.study.cases import Domain, StudyCase
from difflab.lab.study.versions import command
from difflab.report import html
from difflab.report.comparison.view import view
from difflab.report.domain.view import methods_table, notes
from difflab.report.site.pictures import times, verdicts
from difflab.report.summary import point_text
from difflab.report.terminal import clean, shorten

_SPAN = 70  # characters of a function in the table
_SHOWN = {each.heading: each for each in STORED if each.heading}
_COLUMNS = (
    *("function", "at", "size", "m", "method", "target", "version", "order", "verdict"),
    *_SHOWN,
    *("difflab", "date"),
)
_WHERE_GIVEN = ("size", "m")  # columns of families only
_WHERE_DIFFERENT = ("target", "version", "order")
_FIGURES = ("size", "m", "order", *(head for head, each in _SHOWN.items() if each.figure))
_CONTROLS = (
    '<p><label>Filter <input id="filter" type="search" placeholder="reverse disagree"></label> '
    '<span id="shown" class="note" role="status"></span></p>'
)


def site(records: Sequence[Record]) -> dict[Path, bytes]:
    """Return the pages of a study by their relative paths.

    Parameters
    ----------
    records : sequence of dict
        The records of a store.
    """
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(_group(record), []).append(record)
    names = {group: f"records/{number}.html" for number, group in enumerate(groups, start=1)}
    pages = {Path("index.html"): _index(records, names).encode("utf-8")}
    for group, members in groups.items():
        pages[Path(names[group])] = _page(members).encode("utf-8")
    return pages


def _group(record: Record) -> tuple[str, ...]:
    """Return the key of the records on one page: the comparison, and the code."""
    return record["identity"], record["version"], record["code"] or "", record["date"]


# --- the table of all records -----------------------------------------------------------------


def _index(records: Sequence[Record], names: Mapping[tuple[str, ...], str]) -> str:
    studies = ", ".join(dict.fromkeys(record["study"] for record in records))
    wrong = sum(record["verdict"] == "disagree" for record in records)
    heading = f"{clean(studies)}: {counted(len(records), 'record')}, {wrong} of them wrong"
    body = ["<main>", f"<h1>{escape(heading)}</h1>", *_pictures(records), _CONTROLS]
    columns = [name for name in _COLUMNS if _is_shown(name, records)]
    if same := [name for name in _WHERE_DIFFERENT if name not in columns]:
        said = ", ".join(f"{name} {clean(str(records[0][name]))}" for name in same)
        body.append(f'<p class="note">In all records: {escape(said)}.</p>')
    head = "".join(
        f'<th scope="col"{_class(name)}><button>{escape(name)}</button></th>' for name in columns
    )
    ordered = sorted(records, key=_place)
    lines = "\n".join(_line(record, names[_group(record)], columns) for record in ordered)
    body.append(
        f'<div class="scroll wide"><table class="sortable"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )
    body.append(
        f'<footer>All data: <a href="{STORE_IN_SITE}">{STORE_IN_SITE}</a>, for '
        "<code>difflab study export</code> and <code>difflab diff</code>.</footer></main>"
    )
    return html.document(f"Study {clean(studies)}", body, SCRIPT)


def _is_shown(name: str, records: Sequence[Record]) -> bool:
    """Whether the table has a column; one of equal settings is a note instead."""
    if name in _WHERE_GIVEN:
        return any(record[name] is not None for record in records)
    return name not in _WHERE_DIFFERENT or len({record[name] for record in records}) > 1


def _place(record: Record) -> tuple[Any, ...]:
    """Return the sorting key of the lines: function, sizes, point, settings and method."""
    sizes = tuple(record[name] or 0 for name in _WHERE_GIVEN)
    settings = tuple(record[name] for name in _WHERE_DIFFERENT)
    return _function(record), sizes, record["point"] or "", settings, record["method"]


def _function(record: Record) -> str:
    return str(record["family"] or record["formula"])


def _class(name: str) -> str:
    return ' class="figure"' if name in _FIGURES else ""


def _line(record: Record, page: str, columns: Sequence[str]) -> str:
    domain, link = Domain.of_record(record), f"{page}#{record['key']}"
    point = clean(
        point_text(unpacked_json(record["point"]))
        if domain is None
        else f"{domain.label}, {domain.points} points"
    )
    text, code = _function(record), f"{record['difflab']} {(record['code'] or '')[:7]}"
    cells = {
        "function": f'<td><a href="{escape(link)}">{escape(shorten(clean(text), _SPAN))}</a></td>',
        "at": f'<td class="point">{escape(shorten(point, 60))}</td>',
        **{name: _figure(record[name], str) for name in (*_WHERE_GIVEN, "order")},
        **{name: _text(str(record[name])) for name in ("method", "target", "version")},
        "verdict": _outcome(record),
        **{head: _shown(record[each.name], each) for head, each in _SHOWN.items()},
        "difflab": _text(code),
        "date": f'<td class="date">{escape(clean(record["date"][:16].replace("T", " ")))}</td>',
    }
    return f"<tr>{''.join(cells[name] for name in columns)}</tr>"


def _text(value: str) -> str:
    return f"<td>{escape(clean(value))}</td>"


def _shown(value: Any, column: RecordColumn) -> str:
    return _figure(value, column.text) if column.figure else _text(column.text(value))


def _figure(value: Any, shown: Any) -> str:
    data = "" if value is None else repr(value)
    data = {"inf": "Infinity", "-inf": "-Infinity"}.get(data, data)
    text = "" if value is None else shown(value)
    return f'<td class="figure" data-value="{escape(data)}">{escape(text)}</td>'


def _outcome(record: Record) -> str:
    outcome = record["verdict"] if record["status"] == "ok" else record["status"]
    return f'<td class="{escape(str(outcome))}">{escape(str(outcome))}</td>'


def _pictures(records: Sequence[Record]) -> Iterator[str]:
    counts: dict[str, Counter[str]] = {}
    lines: dict[str, dict[str, dict[int, float]]] = {}
    for record in records:
        outcome = record["verdict"] if record["status"] == "ok" else record["status"]
        counts.setdefault(record["method"], Counter())[outcome] += 1
        if record["family"] and record["call_seconds"]:
            methods = lines.setdefault(clean(record["family"]), {})
            line = methods.setdefault(clean(record["method"]), {})
            previous = line.get(record["size"], math.inf)
            line[record["size"]] = min(previous, record["call_seconds"])
    yield f"<h2>Verdicts</h2>{verdicts(counts)}" if counts else ""
    for family, methods in lines.items():
        if any(len(line) > 1 for line in methods.values()):
            yield times({name: sorted(line.items()) for name, line in methods.items()}, family)


# --- one comparison ---------------------------------------------------------------------------


def _page(records: Sequence[Record]) -> str:
    """Return the page of the records of one comparison."""
    body = ['<main><p><a href="../index.html">All records</a></p>']
    over = Domain.of_record(records[0])
    documents = [unpacked_json(r["comparison"]) for r in records if r["comparison"]]
    saved = [from_dict(document) for document in documents if over is None]
    if over is not None:
        body += domain_summary(records[0]["text"], over, documents)
    elif saved:
        methods = tuple(row for comparison in saved for row in comparison.methods)
        shown = view(replace(saved[0], methods=methods))
        body.append(f"<h1>{escape(shown.derivative_name.capitalize())} of</h1>")
        body += shown.html_lines()
    else:
        body += [f"<pre>{escape(clean(records[0]['text']))}</pre>"]
    body.append("<h2>Repeat</h2>")
    body.append(f"<pre>{escape(_command(records))}</pre>")
    for record in records:
        body += _one(record)
    return html.document(shorten(clean(records[0]["formula"]), _SPAN), [*body, "</main>"])


def _command(records: Sequence[Record]) -> str:
    """Return the command that repeats a comparison."""
    case = StudyCase.of_record(records[0])
    return shlex.join(["difflab", *command(case, [record["method"] for record in records])])


def _one(record: Record) -> Iterator[str]:
    """Yield all columns of a record, and its derivative."""
    yield f'<h2 id="{escape(record["key"])}">{escape(clean(record["method"]))}</h2>'
    hidden = ("comparison", "blocks", "text", "point", "method")
    facts = [
        (name, clean(exact(value) if isinstance(value, float) else str(value)))
        for name, value in record.items()
        if value not in (None, "") and name not in hidden
    ]
    if record["comparison"] and record["over"] is None:
        comparison: Comparison = from_dict(unpacked_json(record["comparison"]))
        jacobian = comparison.methods[0].jacobian
        if jacobian is not None and jacobian.size:
            facts.append(("derivative", ", ".join(map(exact, jacobian.ravel()[:100].tolist()))))
    blocks = unpacked_json(record["blocks"])
    if blocks:
        medians = ", ".join(seconds(sorted(call)[len(call) // 2]) for call, _ in blocks)
        facts.append(("median of each block", medians))
    yield html.labelled(facts)


def domain_summary(
    text: str, domain: Domain, documents: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield the function, the domain, and a table with a line for each method.

    Parameters
    ----------
    text : str
        The function.
    domain : Domain
        The domain.
    documents : sequence of mapping
        Comparisons of the schema ``difflab.domain/3``.
    """
    yield f"<h1>Over {escape(clean(domain.label))}</h1><pre>{escape(clean(text))}</pre>"
    yield f"<p>{domain.points:,} points, and those that a search suspects.</p>"
    rows = [row for document in documents for row in read_rows(document)]
    yield html.table(methods_table(rows))
    for name, remark in (note for row in rows for note in notes(row)):
        yield f'<p class="note">{escape(f"{name}: {remark}")}</p>'


# A cell's `data-value` is what it is sorted by: the text shows a number with few digits. The
# address keeps the state, `#sort=3,desc&filter=text`, so that a sorted page can be linked.
SCRIPT = """
"use strict";
const table = document.querySelector("table.sortable");
const body = table.tBodies[0];
const heads = [...table.tHead.rows[0].cells];
const filter = document.querySelector("#filter");
const shown = document.querySelector("#shown");
const rows = [...body.rows];

function value(row, column) {
  const cell = row.cells[column];
  const given = cell.dataset.value;
  if (given === undefined) return cell.textContent.toLowerCase();
  return given === "" ? NaN : Number(given);
}

function compare(a, b) {
  if (typeof a === "number" || typeof b === "number") {
    const [lost, other] = [Number.isNaN(a), Number.isNaN(b)];
    return lost || other ? 2 * (lost - other) : Math.sign(a - b);
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

function sort(column, descending) {
  const keyed = rows.map((row, index) => [value(row, column), index, row]);
  keyed.sort((a, b) => {
    const order = compare(a[0], b[0]);
    if (Math.abs(order) === 2) return order;
    return (descending ? -order : order) || a[1] - b[1];
  });
  body.append(...keyed.map(([, , row]) => row));
  heads.forEach((head, index) => {
    if (index === column) head.ariaSort = descending ? "descending" : "ascending";
    else head.removeAttribute("aria-sort");
  });
}

function select(text) {
  const words = text.toLowerCase().split(/\\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const content = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => content.includes(word));
    count += !row.hidden;
  }
  shown.textContent = `${count} of ${rows.length}`;
}

function restore() {
  const state = new URLSearchParams(location.hash.slice(1));
  filter.value = state.get("filter") ?? "";
  select(filter.value);
  const [column, order] = (state.get("sort") ?? "").split(",");
  if (column !== "" && heads[Number(column)]) sort(Number(column), order === "desc");
}

function keep(name, text) {
  const state = new URLSearchParams(location.hash.slice(1));
  if (text) state.set(name, text);
  else state.delete(name);
  history.replaceState(null, "", `#${state}`);
}

heads.forEach((head, column) => {
  const button = head.querySelector("button");
  button.addEventListener("click", () => {
    const descending = head.ariaSort === "ascending";
    sort(column, descending);
    keep("sort", `${column},${descending ? "desc" : "asc"}`);
  });
});
filter.addEventListener("input", () => {
  select(filter.value);
  keep("filter", filter.value);
});
window.addEventListener("hashchange", restore);
restore();
"""
