// The panels beside the picture: trace, code, formula, point, paths, differences, verdicts.

function made(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key in element && typeof value !== "string") element[key] = value;
        else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
}

const WINDOW = 60;  // rows before and behind the current one that are in the page

function showRows(place, steps, now, mode, write) {
    const [start, end] = [Math.max(0, now - WINDOW), Math.min(steps.length, now + WINDOW)];
    const rows = steps.slice(start, end).map((step, k) => {
        const row = made("div", { class: "row", "data-n": String(step.node), "data-step": String(start + k) }, ...write(step.written()));
        row.classList.toggle("now", start + k === now);
        row.classList.toggle("ahead", start + k > now);
        return row;
    });
    const more = (count, where) => count > 0 ? [made("p", { class: "quiet" }, `… ${count.toLocaleString("en")} ${where}`)] : [];
    place.className = `list ${mode}`;
    place.replaceChildren(...more(start, "earlier steps"), ...rows, ...more(steps.length - end, "later steps"));
    const row = place.querySelector(".now");
    if (row) place.scrollTop += row.offsetTop - place.offsetTop - place.scrollTop - place.clientHeight / 2;
}

function traceRow(step) {
    const sides = [step.formula, step.numbers].filter((text, k, all) => text !== "" && text !== all[k - 1] && text !== step.value);
    const notes = step.notes.map(([, long]) => made("span", { class: "note" }, `▲ ${long}`));
    return [
        made("span", {}, step.name),
        made("span", {}, sides.map((text, k) => `${step.adds && k === 0 ? "←" : "="} ${text}`).join(" ")),
        made("span", { class: "figure" }, `${sides.length || step.numbers === "" ? "= " : ""}${step.value}`),
        ...notes,
    ];
}

// The text with one span per operation; operations nest as their places do.
function showFormula(place, program) {
    const { text, spans } = program.data, first = program.inputs + program.constants;
    place.parentElement.classList.toggle("long", text.length > 300);
    if (!spans.length || spans.length > 6000) { place.textContent = text; return; }
    const marks = new Map();
    for (let k = 0; k < spans.length; k += 2) {
        if (spans[k + 1] > spans[k]) {
            const key = `${spans[k]} ${spans[k + 1]}`;
            marks.set(key, [...(marks.get(key) ?? []), first + k / 2]);
        }
    }
    const ordered = [...marks].map(([key, nodes]) => [...key.split(" ").map(Number), nodes])
        .sort((a, b) => a[0] - b[0] || b[1] - a[1]);
    place.replaceChildren();
    const stack = [{ element: place, end: text.length }];
    let at = 0;
    const upTo = (position) => {
        while (stack.length > 1 && stack.at(-1).end <= position) {
            const { element, end } = stack.pop();
            if (end > at) { element.append(text.slice(at, end)); at = end; }
        }
        if (position > at) { stack.at(-1).element.append(text.slice(at, position)); at = position; }
    };
    for (const [start, end, nodes] of ordered) {
        upTo(start);
        if (end > stack.at(-1).end) continue;  // not nested: not linked
        const element = made("span", { class: "here", "data-n": nodes.join(" ") });
        stack.at(-1).element.append(element);
        stack.push({ element, end });
    }
    upTo(text.length + 1);
    while (stack.length > 1) stack.pop();
    if (at < text.length) place.append(text.slice(at));
}

const MOST_INPUTS = 200;

function showPoint(place, program, changed) {
    const rows = program.data.inputs.slice(0, MOST_INPUTS).map(([name, start], k) => {
        const size = Math.max(1, 2 * Math.abs(start)), step = 10 ** (Math.floor(Math.log10(size)) - 2);
        const low = Math.floor((start - 1.5 * size) / step) * step;
        const slider = made("input", { type: "range", min: String(low), max: String(low + Math.ceil(3 * size / step) * step), step: String(step), "aria-label": `${name}, slider` });
        const box = made("input", { type: "number", step: "any", "aria-label": name, id: `input-${k}` });
        slider.addEventListener("input", () => changed(k, Number(Number(slider.value).toPrecision(12))));
        box.addEventListener("input", () => { if (box.value !== "" && Number.isFinite(box.valueAsNumber)) changed(k, box.valueAsNumber); });
        place.append(made("div", { class: "input", "data-n": String(k) }, made("label", { for: `input-${k}` }, name), slider, box));
        return { slider, box };
    });
    if (program.data.inputs.length > MOST_INPUTS)
        place.append(made("p", { class: "quiet" }, `… and ${program.data.inputs.length - MOST_INPUTS} more inputs`));
    return (point) => rows.forEach(({ slider, box }, k) => {
        slider.value = point[k];
        if (document.activeElement !== box) box.value = point[k];
    });
}

function showResult(place, program, run) {
    const row = (name, value, node) => made("tr", { "data-n": String(node) }, made("th", {}, name), made("td", { class: "figure" }, String(value)));
    const label = program.data.outputs[run.output][0];
    const inputs = program.data.inputs.slice(0, MOST_INPUTS).map(([name], k) =>
        row(`∂${label}/∂${name}`, run.sweep.bars.get(k) ?? 0, k));
    place.replaceChildren(...program.data.outputs.slice(0, MOST_INPUTS).map(([name, node]) => row(name, run.values[node], node)), ...inputs);
}

const MOST_PATHS = 24;

function showPaths(place, program, run) {
    const output = program.data.outputs[run.output], name = program.data.inputs[run.seed][0];
    run.paths ??= pathsBetween(program, run.values, run.seed, output[1], MOST_PATHS);
    const { total, nonzero, paths } = run.paths;
    const exact = run.sweep.bars.get(run.seed) ?? 0;
    const lines = paths.map(({ nodes, factors, product }) => made("div", { class: "path", "data-n": nodes.join(" ") },
        made("span", {}, `${nodes.map((node) => pretty(program.names[node])).join(" → ")}: ${factors.map(inserted).join(" × ") || "1"}`),
        made("span", { class: "mono" }, shown(product))));
    const counted = (count) => count > 1e15 ? count.toExponential(2) : count.toLocaleString("en");
    const said = total === 0 ? `No path leads from ${name} to ${output[0]}: the derivative is 0.`
        : `∂${output[0]}/∂${name} is the sum, over ${total === 1 ? "the only path" : `all ${counted(total)} paths`} from ${name} to ${output[0]}, of the product of the slopes on the path. Reverse mode visits each arrow once.`;
    const rest = [];
    if (nonzero > paths.length) rest.push(paths.length ? `… and ${counted(nonzero - paths.length)} more` : "They are too long to be listed.");
    if (total > nonzero) rest.push(`Not listed: ${counted(total - nonzero)} with a slope of 0, such as those through a branch that is not taken.`);
    place.replaceChildren(made("p", {}, said), ...lines, ...rest.map((text) => made("p", { class: "quiet" }, text)),
        made("div", { class: "path total" }, made("span", {}, `∂${output[0]}/∂${name}`), made("span", { class: "mono" }, shown(exact))));
}

function showVerdicts(place, program, point) {
    const verdicts = program.data.verdicts;
    if (!verdicts) return false;
    const moved = point.some((value, k) => value !== program.data.inputs[k][1]);
    const rows = verdicts.rows.map((row) => made("tr", {}, made("td", {}, row.name),
        made("td", { class: row.outcome }, row.outcome), made("td", { class: "figure" }, row.error)));
    const notes = verdicts.notes.map(([names, message]) => made("p", { class: "quiet" }, `${names}: ${message}`));
    if (!rows.length) { place.replaceChildren(made("p", {}, verdicts.sentence)); return true; }
    place.replaceChildren(
        made("p", { class: moved ? "" : "quiet" }, moved ? `Judged at ${verdicts.at}, not at the point of the sliders.` : `Judged at ${verdicts.at} by the referee${verdicts.referee ? `: ${verdicts.referee}` : ""}.`),
        made("table", {}, made("thead", {}, made("tr", {}, ...["method", "verdict", "error"].map((text) => made("th", { scope: "col" }, text)))), made("tbody", {}, ...rows)),
        ...notes,
        ...(verdicts.sentence ? [made("p", {}, verdicts.sentence)] : []));
    return true;
}
