// The page: state, what depends on it, and the controls.

const find = (id) => document.getElementById(id);
const program = makeProgram(JSON.parse(find("data").textContent));
const HANDED = 300;  // most rows of a table on paper
let state = readAddress(program), run = null, steps = [], timer = null;

const graph = drawGraph(program, find("picture"));
const movePoint = showPoint(find("point"), program, (k, value) => { state.point[k] = value; compute(); });
const difference = makeDifference(find("difference"), (h) => { state.h = h; show(); });

function compute() {
    const values = evaluate(program, state.point), output = program.data.outputs[state.output][1];
    run = {
        point: state.point, values, seed: state.seed, output: state.output,
        forward: tangents(program, values, state.seed), sweep: cotangents(program, values, output),
    };
    steps = stepsOf(program, state.mode, run);
    const last = steps.length - 1;
    state.step = state.step === null ? (state.mode === "value" ? last : 0) : Math.min(state.step, last);
    show();
}

function view() {
    const step = steps[state.step].written(), { mode } = state, order = isReached();
    return {
        now: step.node, values: run.values, reached: order,
        valued: (node) => mode !== "value" || order(node),
        value: (node, named) => mode !== "value" || order(node) ? `${named && isOperation(program, node) ? `${pretty(program.names[node])} = ` : ""}${shown(run.values[node], 5)}` : "",
        derivative: derivativeText(order),
        arrow: (source, target, place) => step.arrows.find(([a, b, k]) => a === source && b === target && k === place)?.[3] ?? null,
    };
}

function isReached() {
    if (state.mode === "reverse") {
        const reached = new Set(steps.slice(0, state.step + 1).map((step) => step.node));
        return (node) => reached.has(node);
    }
    const last = steps[state.step].node;
    return (node) => node <= last || isConstant(program, node);
}

function derivativeText(reached) {
    if (state.mode === "forward") return (node) => reached(node) ? `${pretty(program.names[node], DOT)} = ${shown(run.forward.dots[node], 5)}` : "";
    if (state.mode === "value") return () => "";
    const bars = new Map(steps.slice(0, state.step + 1).map((step) => [step.node, step.event.total]));
    return (node) => bars.has(node) ? `${pretty(program.names[node], BAR)} = ${shown(bars.get(node), 5)}` : "";
}

// Shows the current state everywhere; the values were computed before.
function show() {
    const step = steps[state.step].written(), last = steps.length - 1;
    document.querySelectorAll("[name=mode]").forEach((radio) => { radio.checked = radio.value === state.mode; });
    const choices = state.mode === "reverse" ? program.data.outputs : program.data.inputs;
    find("seed-label").textContent = state.mode === "reverse" ? "derivative of" : "derivative by";
    const chosen = state.mode === "reverse" ? state.output : state.seed;
    find("seed").replaceChildren(...choices.map(([name], k) => made("option", { value: String(k), selected: k === chosen }, name)));
    find("seeding").hidden = choices.length < 2 && state.mode === "reverse";
    find("step").max = String(last);
    find("step").value = String(state.step);
    find("count").textContent = `step ${state.step + 1} of ${steps.length}`;
    find("first").disabled = find("back").disabled = state.step === 0;
    find("last").disabled = find("next").disabled = state.step === last;
    const notes = step.notes.map(([short, long]) => made("span", { class: "badge", title: long }, `${short}: ${long}`));
    find("say").replaceChildren(sentence(program, state.mode, run, step), ...notes);
    updateGraph(graph, program, view());
    scrollToBox(graph, step.node, find("picture"));
    showRows(find("trace"), steps, state.step, state.mode, traceRow);
    showRows(find("code"), steps, state.step, state.mode, (each) => [made("span", {}, each.code)]);
    movePoint(state.point);
    showResult(find("result"), program, run);
    showPaths(find("paths"), program, run);
    showDifference(difference, program, run, state.h);
    find("verdict-panel").hidden = !showVerdicts(find("verdicts"), program, state.point);
    document.querySelectorAll("#formula .now").forEach((each) => each.classList.remove("now"));
    document.querySelectorAll(`#formula [data-n~="${step.user ?? step.node}"]`).forEach((each) => each.classList.add("now"));
    writeAddress(program, state);
}

function goTo(step) {
    state.step = Math.max(0, Math.min(steps.length - 1, step));
    show();
}

function choose(mode) {
    state.mode = mode;
    state.step = null;
    compute();
}

function play(on) {
    clearInterval(timer);
    timer = null;
    if (on) {
        if (state.step === steps.length - 1) goTo(0);
        timer = setInterval(() => state.step < steps.length - 1 ? goTo(state.step + 1) : play(false), 900);
    }
    find("play").textContent = timer ? "⏸ Pause" : "▶ Play";
    find("play").setAttribute("aria-label", timer ? "Pause" : "Play");
}

function nextSeed() {
    const reverse = state.mode === "reverse", count = (reverse ? program.data.outputs : program.data.inputs).length;
    if (reverse) state.output = (state.output + 1) % count;
    else state.seed = (state.seed + 1) % count;
    compute();
}

const ACTIONS = {
    ArrowRight: () => goTo(state.step + 1), ArrowLeft: () => goTo(state.step - 1),
    Home: () => goTo(0), End: () => goTo(steps.length - 1), " ": () => play(!timer),
    1: () => choose("value"), 2: () => choose("forward"), 3: () => choose("reverse"), s: nextSeed,
};

document.addEventListener("keydown", (event) => {
    const target = event.target, typed = target.matches("input:not([name=mode]):not(#step), select, textarea");
    if (typed || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && target.matches("button")) return;
    const action = ACTIONS[event.key];
    if (!action) return;
    event.preventDefault();
    if (event.key !== " ") play(false);
    action();
});

function light(event) {
    document.querySelectorAll(".lit").forEach((each) => each.classList.remove("lit"));
    const nodes = event?.target.closest?.("[data-n]")?.getAttribute("data-n").split(" ") ?? [];
    for (const node of nodes.slice(0, 60))
        if (node) document.querySelectorAll(`[data-n~="${node}"]`).forEach((each) => each.classList.add("lit"));
}

document.addEventListener("mouseover", light);
document.addEventListener("focusin", light);
document.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) return goTo(Number(row.dataset.step));
    const place = event.target.closest("svg .box, #formula .here");
    if (!place) return;
    const nodes = place.getAttribute("data-n").split(" ").map(Number);
    const index = steps.findIndex((step) => nodes.includes(step.node));
    if (index >= 0) goTo(index);
});

document.querySelectorAll("[name=mode]").forEach((radio) => radio.addEventListener("change", () => choose(radio.value)));
find("seed").addEventListener("change", (event) => {
    state[state.mode === "reverse" ? "output" : "seed"] = Number(event.target.value);
    compute();
});
find("step").addEventListener("input", (event) => { play(false); goTo(Number(event.target.value)); });
for (const [id, key] of [["first", "Home"], ["back", "ArrowLeft"], ["next", "ArrowRight"], ["last", "End"]])
    find(id).addEventListener("click", () => { play(false); ACTIONS[key](); });
find("play").addEventListener("click", () => play(!timer));
window.addEventListener("hashchange", () => { state = readAddress(program); compute(); });

// On paper: the three traces and the derivatives, whole.
function handOut() {
    const table = (title, mode) => {
        const rows = stepsOf(program, mode, run).slice(0, HANDED).map((step) => made("tr", {}, ...traceRow(step.written()).map((cell) => made("td", {}, cell))));
        return [made("h2", {}, title), made("table", {}, made("tbody", {}, ...rows))];
    };
    const at = program.data.inputs.map(([name], k) => `${name} = ${state.point[k]}`).join(", ");
    const result = made("table", {});
    showResult(result, program, run);
    find("handout").replaceChildren(made("p", {}, `at ${at}`), ...table("Forward evaluation trace", "value"),
        ...table(`Forward mode, by ${program.data.inputs[state.seed][0]}`, "forward"), ...table("Reverse mode", "reverse"), made("h2", {}, "Result"), result);
}

window.addEventListener("beforeprint", handOut);
find("lead").textContent = program.data.lead;
showFormula(find("formula"), program);
find("key").textContent = program.data.key;
compute();
