"""The script of a page whose tables can be sorted and filtered."""

from __future__ import annotations

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
