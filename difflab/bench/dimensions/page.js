"use strict";
// Shows the intervals of calls that the page contains; computes no break-even itself.
const data = JSON.parse(document.getElementById("data").textContent);
const methods = Object.keys(data.colours);
const byId = (id) => document.getElementById(id);

function secondsText(value) {
  for (const [unit, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]) {
    if (value >= unit) return `${(value / unit).toPrecision(3)} ${name}`;
  }
  return "0 s";
}

function callsText(value) {
  return value < 1e5 ? String(Math.ceil(value)) : value.toExponential(1).replace("e+", "e");
}

function element(tag, text, ...classes) {
  const made = document.createElement(tag);
  made.textContent = text;
  made.classList.add(...classes);
  return made;
}

// Fills a table with a cell for every size, the largest m on top.
function fill(table, cellOf) {
  table.replaceChildren();
  for (const m of [...data.m].reverse()) {
    const line = table.insertRow();
    line.append(element("th", `m = ${m}`));
    for (const n of data.n) line.append(cellOf(data.cells[`${n},${m}`], n, m));
  }
  const foot = table.insertRow();
  foot.append(element("th", ""));
  for (const n of data.n) foot.append(element("th", `n = ${n}`));
}

function coloured(lines, method, extrapolated) {
  const cell = element("td", "");
  lines.forEach((line, k) => cell.append(...(k ? [document.createElement("br")] : []), line));
  if (method === null) cell.classList.add("none");
  else cell.style.backgroundColor = data.colours[method];
  if (extrapolated) cell.classList.add("extrapolated");
  return cell;
}

function contains([low, high], calls) {
  return low <= calls && (high === null || calls <= high);
}

function winners() {
  const calls = Math.round(10 ** Number(byId("calls").value));
  byId("shown").textContent = calls.toLocaleString("en");
  fill(byId("winners"), (cell) => {
    const winner = cell && Object.entries(cell.cheapest).find(([, ends]) => contains(ends, calls));
    if (!winner) return coloured(["–"], null, false);
    const [prepare, call] = cell.costs[winner[0]];
    const total = secondsText(prepare + calls * call);
    return coloured([winner[0], total], winner[0], cell.extrapolated.includes(winner[0]));
  });
}

function intervalText(ends) {
  if (!ends) return "never";
  const [low, high] = ends;
  if (low <= 1 && high === null) return "always";
  if (high === null) return `from ${callsText(low)}`;
  if (low <= 1) return `up to ${callsText(Math.floor(high))}`;
  return `${callsText(low)} to ${callsText(Math.floor(high))}`;
}

function breakEven() {
  const first = byId("first").value;
  const second = byId("second").value;
  fill(byId("breakeven"), (cell) => {
    const known = cell && first in cell.costs && (second === "" || second in cell.costs);
    if (!known || first === second) return coloured(["–"], null, false);
    const ends = second === "" ? cell.cheapest[first] : cell.pays[first][second];
    const guessed = [first, second].some((name) => cell.extrapolated.includes(name));
    return coloured([intervalText(ends)], ends ? first : null, guessed);
  });
}

function start() {
  for (const name of methods) byId("first").append(new Option(name, name));
  byId("second").append(new Option("every other method", ""));
  for (const name of methods) byId("second").append(new Option(name, name));
  // #calls=1000&first=symbolic&second=reverse opens the page at these choices.
  const chosen = new URLSearchParams(location.hash.slice(1));
  if (chosen.has("calls")) byId("calls").value = String(Math.log10(Number(chosen.get("calls"))));
  for (const id of ["first", "second"]) {
    if (chosen.has(id)) byId(id).value = chosen.get(id);
    byId(id).addEventListener("change", breakEven);
  }
  byId("calls").addEventListener("input", winners);
  winners();
  breakEven();
}

start();
